//! A timer whose signal goes to the thread that made it.

use crate::check;
use std::io;
use std::time::Duration;

/// Sends its signal again and again, until it is dropped.
#[derive(Debug)]
pub struct ThreadTimer {
    timer: libc::timer_t,
}

impl ThreadTimer {
    /// Makes a timer for the calling thread, which expires each time the clock has advanced by the period. The signal has
    /// this action from now on, and the thread does not block it.
    pub fn every(
        clock: libc::clockid_t,
        signal: i32,
        action: &libc::sigaction,
        period: Duration,
    ) -> io::Result<Self> {
        // SAFETY: all zero bytes are valid values of these plain structures, which outlive the calls; the caller's
        // handler is one for signals.
        unsafe {
            check(libc::sigaction(signal, action, std::ptr::null_mut()) as i64)?;
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, signal);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer: libc::timer_t = std::mem::zeroed();
            check(libc::timer_create(clock, &mut event, &mut timer) as i64)?;
            let made = Self { timer };
            let time = libc::timespec {
                tv_sec: period.as_secs() as libc::time_t,
                tv_nsec: period.subsec_nanos().max(1).into(),
            };
            let times = libc::itimerspec { it_interval: time, it_value: time };
            check(libc::timer_settime(made.timer, 0, &times, std::ptr::null_mut()) as i64)?;
            Ok(made)
        }
    }
}

impl Drop for ThreadTimer {
    fn drop(&mut self) {
        // SAFETY: the timer is this one's.
        unsafe { libc::timer_delete(self.timer) };
    }
}
