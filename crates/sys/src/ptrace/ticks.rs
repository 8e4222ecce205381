//! A timer that ends the waiting of one thread.

use crate::check;
use std::io;
use std::time::Duration;

/// Interrupts system calls of the thread that made it, again and again, until it is dropped.
#[derive(Debug)]
pub struct Ticks {
    timer: libc::timer_t,
}

/// The signal: a real-time signal from the end, where libraries take none.
fn signal() -> i32 {
    libc::SIGRTMAX() - 1
}

extern "C" fn nothing(_: i32) {}

impl Ticks {
    /// Of the calling thread, with this period.
    pub fn every(period: Duration) -> io::Result<Self> {
        // SAFETY: all zero bytes are valid values of these plain structures, which outlive the calls; the handler does
        // nothing; without SA_RESTART the signal ends system calls.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as *const () as usize;
            check(libc::sigaction(signal(), &action, std::ptr::null_mut()) as i64)?;
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, signal());
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal();
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer: libc::timer_t = std::mem::zeroed();
            check(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) as i64)?;
            let ticks = Self { timer };
            let time = libc::timespec {
                tv_sec: period.as_secs() as libc::time_t,
                tv_nsec: period.subsec_nanos().max(1).into(),
            };
            let times = libc::itimerspec { it_interval: time, it_value: time };
            check(libc::timer_settime(ticks.timer, 0, &times, std::ptr::null_mut()) as i64)?;
            Ok(ticks)
        }
    }
}

impl Drop for Ticks {
    fn drop(&mut self) {
        // SAFETY: the timer is this one's.
        unsafe { libc::timer_delete(self.timer) };
    }
}
