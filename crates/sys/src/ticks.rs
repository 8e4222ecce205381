//! The processor's clock that costs some nanoseconds: the time stamp counter of x86-64, the virtual counter of AArch64; elsewhere
//! the kernel's.

use crate::clock;

/// The clock.
pub fn ticks() -> u64 {
    counter().unwrap_or_else(clock::monotonic)
}

/// The counter of the processor, if programs can read it. It counts time at a constant rate, not the cycles of the core.
pub fn counter() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 processor has the instruction; a process to which it is denied ends with a signal.
        Some(unsafe { std::arch::x86_64::_rdtsc() })
    }
    #[cfg(target_arch = "aarch64")]
    {
        let now: u64;
        // SAFETY: it reads a register that Linux lets programs read.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) now, options(nomem, nostack)) };
        Some(now)
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    None
}

/// Time for which the counter and the clock are compared, in ns.
const COMPARED: u64 = 20_000_000;

/// Nanoseconds of a tick, in units of 2^-32.
pub fn ns_per_tick() -> u64 {
    let both = || (clock::monotonic(), ticks());
    let (begin_ns, begin) = both();
    std::thread::sleep(std::time::Duration::from_nanos(COMPARED));
    let (end_ns, end) = both();
    let passed = u128::from(end.wrapping_sub(begin).max(1));
    u64::try_from((u128::from(end_ns - begin_ns) << 32) / passed).unwrap_or(1 << 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_pass_as_the_clock_says() {
        let scale = ns_per_tick();
        // The clock is read around the ticks and between them, so that an interruption changes no bound.
        let (outer, begin, inner) = (clock::monotonic(), ticks(), clock::monotonic());
        while clock::monotonic() < inner + 1_000_000 {}
        let (least, end, most) = (clock::monotonic() - inner, ticks(), clock::monotonic() - outer);
        let ns = (u128::from(end - begin) * u128::from(scale)) >> 32;
        let [low, high] = [least / 10 * 9, most / 10 * 11].map(u128::from);
        assert!((low..=high).contains(&ns), "{ns} ns in {least} to {most} ns");
    }
}
