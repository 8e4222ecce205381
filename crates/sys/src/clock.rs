//! Clocks, and a sleep until an absolute time that another thread can end.

use crate::futex::{wait, wake};
use std::sync::atomic::{AtomicU32, Ordering};

fn read(clock: libc::clockid_t) -> u64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec; these clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut ts) };
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}

/// Nanoseconds of the monotonic clock.
pub fn monotonic() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds since 1970, UTC.
pub fn utc() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// By how many minutes local time is ahead of UTC now; `None` if the system does not say.
pub fn utc_offset() -> Option<i32> {
    let now = libc::time_t::try_from(utc() / 1_000_000_000).ok()?;
    // SAFETY: all zero bytes are a valid value; both pointers are to live values.
    let local = unsafe {
        let mut local: libc::tm = std::mem::zeroed();
        if libc::localtime_r(&now, &mut local).is_null() {
            return None;
        }
        local
    };
    i32::try_from(local.tm_gmtoff / 60).ok()
}

/// Nanoseconds of CPU that the calling thread has used.
pub fn thread_cpu() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Nanoseconds of CPU that all threads of this process have used.
pub fn process_cpu() -> u64 {
    read(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// CPU time and page faults of processes that have ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EndedUsage {
    /// In user mode, ns.
    pub user: u64,
    /// In the kernel, ns.
    pub kernel: u64,
    /// Page faults.
    pub faults: u64,
}

impl EndedUsage {
    /// In both modes, ns.
    pub fn cpu(&self) -> u64 {
        self.user.saturating_add(self.kernel)
    }
}

/// CPU time of all descendants that have ended, if they and their parents were waited for.
pub fn ended_children() -> EndedUsage {
    let usage = usage(libc::RUSAGE_CHILDREN);
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    EndedUsage {
        user: ns(usage.ru_utime),
        kernel: ns(usage.ru_stime),
        faults: (usage.ru_minflt + usage.ru_majflt) as u64,
    }
}

/// The resources that these processes or threads have used.
pub(crate) fn usage(who: i32) -> libc::rusage {
    // SAFETY: all zero bytes are a valid value, which outlives the call.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &mut usage);
        usage
    }
}

/// A sleep until an absolute monotonic time that [`Alarm::ring`] ends early.
#[derive(Debug, Default)]
pub struct Alarm {
    rung: AtomicU32,
}

impl Alarm {
    /// An alarm that has not rung.
    pub const fn new() -> Self {
        Self { rung: AtomicU32::new(0) }
    }

    /// Ends the present sleep; if nobody sleeps now, the next one. It may be called from any thread.
    pub fn ring(&self) {
        self.rung.store(1, Ordering::Release);
        wake(&self.rung, 1);
    }

    /// Sleeps until `deadline` (monotonic nanoseconds); one system call, no drift.
    /// True if the time came, false if the alarm rang before, which clears it.
    pub fn sleep_until(&self, deadline: u64) -> bool {
        loop {
            if self.rung.load(Ordering::Acquire) != 0 {
                self.rung.store(0, Ordering::Release);
                return false;
            }
            if !wait(&self.rung, 0, Some(deadline)) {
                return true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_sleep_ends_at_its_time_and_not_before() {
        let alarm = Alarm::new();
        let deadline = monotonic() + 5_000_000;
        assert!(alarm.sleep_until(deadline));
        assert!(monotonic() >= deadline);
    }

    #[test]
    fn a_ring_ends_a_sleep_once() {
        let alarm = Arc::new(Alarm::new());
        let ringer = Arc::clone(&alarm);
        let far = monotonic() + 60_000_000_000;
        let thread = std::thread::spawn(move || ringer.ring());
        assert!(!alarm.sleep_until(far));
        thread.join().unwrap();
        assert!(alarm.sleep_until(monotonic()));
    }
}
