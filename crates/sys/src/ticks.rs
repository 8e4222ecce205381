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

/// Readings at a moment. The closest counts, for a process may lose its CPU for milliseconds within one.
const READINGS: usize = 16;

/// The clock in ns, the ticks, and the time that reading both took, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    clock: u64,
    ticks: u64,
    took: u64,
}

impl Reading {
    fn now() -> Self {
        let (clock, ticks) = (clock::monotonic(), ticks());
        Self { clock, ticks, took: clock::monotonic().saturating_sub(clock) }
    }

    /// The reading of these that took least.
    fn closest(readings: [Self; READINGS]) -> Self {
        readings.into_iter().fold(readings[0], |best, next| if next.took < best.took { next } else { best })
    }
}

/// Nanoseconds of a tick, in units of 2^-32.
pub fn ns_per_tick() -> u64 {
    let moment = || Reading::closest([(); READINGS].map(|()| Reading::now()));
    let begin = moment();
    std::thread::sleep(std::time::Duration::from_nanos(COMPARED));
    let end = moment();
    let passed = u128::from(end.ticks.wrapping_sub(begin.ticks).max(1));
    u64::try_from((u128::from(end.clock.saturating_sub(begin.clock)) << 32) / passed).unwrap_or(1 << 32)
}

/// Ticks in a second, in thousands.
pub fn khz() -> u64 {
    u64::try_from((1_000_000_u128 << 32) / u128::from(ns_per_tick().max(1))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_readings_the_one_counts_that_nothing_interrupted() {
        let mut readings = [Reading { clock: 10, ticks: 1, took: 4_000_000 }; READINGS];
        readings[5] = Reading { clock: 20, ticks: 2, took: 30 };
        assert_eq!(Reading::closest(readings), readings[5]);
    }

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
