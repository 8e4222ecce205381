//! CPU masks, scheduling classes and limits.

use crate::check;
use numakit_model::CpuSet;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::set_current_timer_slack;
use std::io;
use std::num::NonZeroU64;

// Space for 16,384 CPUs: the kernel refuses masks that are shorter than its own. The mask of rustix has only 1,024.
const MASK_WORDS: usize = 256;

/// The CPUs that the calling thread may run on.
pub fn affinity() -> io::Result<CpuSet> {
    affinity_of(0)
}

/// The CPUs that this thread of any process may run on; 0 is the calling one.
pub fn affinity_of(thread: u32) -> io::Result<CpuSet> {
    let mut mask = [0u64; MASK_WORDS];
    // SAFETY: the buffer has this length.
    let bytes = check(unsafe {
        libc::syscall(libc::SYS_sched_getaffinity, thread, size_of_val(&mask), mask.as_mut_ptr())
    })?;
    let mut cpus = CpuSet::new();
    for (mut word, first) in mask.into_iter().zip((0..).step_by(64)).take(bytes as usize / 8) {
        while word != 0 {
            cpus.insert(first + word.trailing_zeros());
            word &= word - 1;
        }
    }
    Ok(cpus)
}

/// The CPUs that threads of this process may bind themselves to, whatever the calling thread is bound to now: a program that
/// this process starts may run on any of them. A thread of its own asks for all CPUs, and the kernel leaves it those of the
/// cpuset.
pub fn permitted() -> io::Result<CpuSet> {
    let all = CpuSet::range(0, MASK_WORDS as u32 * 64 - 1);
    std::thread::scope(|scope| {
        // If binding is refused, a program cannot leave the present CPUs either.
        let ask = move || set_affinity(&all).and_then(|()| affinity()).or_else(|_| affinity());
        let asked = std::thread::Builder::new().name("cpus".to_owned()).spawn_scoped(scope, ask)?;
        asked.join().unwrap_or_else(|_| affinity())
    })
}

/// Binds the calling thread to these CPUs.
pub fn set_affinity(cpus: &CpuSet) -> io::Result<()> {
    set_affinity_of(0, cpus)
}

/// Binds a thread of any process to these CPUs; 0 is the calling one.
pub fn set_affinity_of(thread: u32, cpus: &CpuSet) -> io::Result<()> {
    let mut mask = [0u64; MASK_WORDS];
    for cpu in cpus.iter().filter(|&c| (c as usize) < MASK_WORDS * 64) {
        mask[cpu as usize / 64] |= 1 << (cpu % 64);
    }
    // SAFETY: the buffer has this length.
    check(unsafe {
        libc::syscall(libc::SYS_sched_setaffinity, thread as i32, size_of_val(&mask), mask.as_ptr())
    })
    .map(drop)
}

/// The CPU that the calling thread runs on. When this returns, the thread may be on a different one.
pub fn current_cpu() -> Option<u32> {
    // SAFETY: without arguments.
    u32::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Gives the calling thread the lowest real-time priority (SCHED_FIFO 1), above all normal threads. Its children are
/// normal again.
pub fn set_realtime() -> io::Result<()> {
    let param = libc::sched_param { sched_priority: 1 };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameter outlives the call.
    check(unsafe { libc::sched_setscheduler(0, policy, &param) } as i64)?;
    Ok(())
}

/// Makes the calling thread a normal one again.
pub fn set_normal() -> io::Result<()> {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter outlives the call.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_OTHER, &param) } as i64)?;
    Ok(())
}

/// Whether the calling thread has real-time priority.
pub fn is_realtime() -> bool {
    // SAFETY: plain integers.
    let policy = unsafe { libc::sched_getscheduler(0) };
    matches!(policy & !libc::SCHED_RESET_ON_FORK, libc::SCHED_FIFO | libc::SCHED_RR)
}

/// Whether this process may use real-time priority. This is tried on a thread that ends at once.
pub fn may_use_realtime() -> bool {
    let trial = std::thread::Builder::new().spawn(|| set_realtime().is_ok());
    trial.is_ok_and(|thread| thread.join().unwrap_or(false))
}

/// Lets timers of the calling thread fire within 1 ns of their time instead of 50 us.
pub fn set_timer_slack() -> io::Result<()> {
    Ok(set_current_timer_slack(Some(NonZeroU64::MIN))?)
}

/// The limit of open files of this process, and up to where it may be raised.
pub fn open_files_limits() -> (u64, u64) {
    let limit = getrlimit(Resource::Nofile);
    (limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX))
}

/// Raises the limit of open files to the hard limit; returns the limit in force.
pub fn raise_open_files() -> io::Result<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    }
    Ok(limit.maximum.unwrap_or(u64::MAX))
}

/// The base page size in bytes.
pub fn page_size() -> u64 {
    // SAFETY: no precondition.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// Ticks per second in /proc/stat (USER_HZ).
pub fn ticks_per_second() -> u64 {
    // SAFETY: no precondition.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affinity_can_be_narrowed_and_restored() {
        let before = affinity().unwrap();
        let one: CpuSet = before.first().into_iter().collect();
        set_affinity(&one).unwrap();
        assert_eq!(affinity().unwrap(), one);
        set_affinity(&before).unwrap();
        assert_eq!(affinity().unwrap(), before);
    }

    #[test]
    fn a_narrow_thread_may_use_all_cpus_again() {
        let all = permitted().unwrap();
        let narrow = std::thread::spawn(|| {
            let one: CpuSet = affinity().unwrap().first().into_iter().collect();
            set_affinity(&one).unwrap();
            (permitted().unwrap(), affinity().unwrap(), one)
        });
        let (permitted, after, one) = narrow.join().unwrap();
        assert_eq!((permitted, after), (all, one));
    }

    #[test]
    fn priority_can_be_asked_for() {
        assert!(!is_realtime());
        let raised = std::thread::spawn(|| set_realtime().is_ok() == is_realtime());
        assert!(raised.join().unwrap());
        let lowered = std::thread::spawn(|| {
            let _ = set_realtime();
            set_normal().unwrap();
            is_realtime()
        });
        assert!(!lowered.join().unwrap());
    }

    #[test]
    fn no_cpu_at_all_is_refused() {
        assert!(set_affinity(&CpuSet::new()).is_err());
    }
}
