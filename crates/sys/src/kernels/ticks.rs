//! The counter of the CPU that ticks at a constant rate.

/// Its value: the TSC of x86, the virtual counter of Arm; none on other CPUs. It counts time at a fixed rate and not the
/// cycles of the core.
pub fn ticks() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 CPU has the instruction; a process to which it is denied ends with a signal.
        Some(unsafe { core::arch::x86_64::_rdtsc() })
    }
    #[cfg(target_arch = "aarch64")]
    {
        let value: u64;
        // SAFETY: Linux lets user code read this register.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) value, options(nomem, nostack)) };
        Some(value)
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    None
}

#[cfg(test)]
mod tests {
    use super::ticks;

    #[test]
    fn it_grows() {
        let Some(first) = ticks() else {
            return numakit_skips::MACHINE.skip("this CPU has no counter that user code can read");
        };
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(ticks().unwrap() > first);
    }
}
