//! Futexes: words in memory on which threads sleep.

use rustix::event::Timespec;
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};
use std::num::NonZeroU32;
use std::sync::atomic::AtomicU32;

/// How many threads to wake, to wake all that sleep on a word: the kernel takes a signed number.
pub(crate) const ALL: u32 = i32::MAX as u32;

/// Wakes at most this many threads that sleep on the word.
pub(crate) fn wake(word: &AtomicU32, count: u32) {
    let _ = futex::wake(word, Flags::PRIVATE, count);
}

/// Sleeps while the word has this value; false after the deadline (monotonic ns). One system call, no drift; it may
/// return early.
pub(crate) fn wait(word: &AtomicU32, value: u32, deadline: Option<u64>) -> bool {
    sleep(word, Flags::PRIVATE, value, deadline)
}

/// Sleeps as [`wait`] does, on a word in memory that other processes share.
pub(crate) fn wait_shared(word: &AtomicU32, value: u32, deadline: u64) -> bool {
    sleep(word, Flags::empty(), value, Some(deadline))
}

fn sleep(word: &AtomicU32, flags: Flags, value: u32, deadline: Option<u64>) -> bool {
    let until = deadline.map(|deadline| Timespec {
        tv_sec: (deadline / 1_000_000_000) as _,
        tv_nsec: (deadline % 1_000_000_000) as _,
    });
    // This kind of wait takes an absolute time.
    futex::wait_bitset(word, flags, value, until.as_ref(), NonZeroU32::MAX) != Err(Errno::TIMEDOUT)
}
