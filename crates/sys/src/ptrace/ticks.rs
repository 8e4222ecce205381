//! A timer that ends the waiting of one thread.

use crate::thread_timer::ThreadTimer;
use std::io;
use std::time::Duration;

/// Interrupts system calls of the thread that made it, again and again, until it is dropped.
#[derive(Debug)]
pub struct Ticks {
    _timer: ThreadTimer,
}

/// The signal: a real-time signal from the end, where libraries take none.
fn signal() -> i32 {
    libc::SIGRTMAX() - 1
}

extern "C" fn nothing(_: i32) {}

impl Ticks {
    /// Makes a timer of the calling thread with this period.
    pub fn every(period: Duration) -> io::Result<Self> {
        // SAFETY: all zero bytes are a valid value of this plain structure.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // The handler does nothing. Without SA_RESTART, the signal ends system calls.
        action.sa_sigaction = nothing as *const () as usize;
        ThreadTimer::every(libc::CLOCK_MONOTONIC, signal(), &action, period)
            .map(|timer| Self { _timer: timer })
    }
}
