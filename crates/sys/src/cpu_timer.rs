//! A timer of CPU time whose signal notes where it interrupts the calling thread. It sees what `libnumaexplain.so` sees in
//! programs, without the library.

use crate::thread_timer::ThreadTimer;
use std::ffi::c_void;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Places that are noted at most.
const ROOM: usize = 256;

static COUNT: AtomicUsize = AtomicUsize::new(0);
static PLACES: [AtomicU64; ROOM] = [const { AtomicU64::new(0) }; ROOM];
/// The owner of the handler's list. There is one list, so there is one timer at a time.
static OWNER: Mutex<()> = Mutex::new(());

/// The signal: a real-time signal from the end, where libraries take none.
fn signal() -> i32 {
    libc::SIGRTMAX() - 2
}

extern "C" fn note(_: i32, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes the interrupted thread's registers to handlers that are set with SA_SIGINFO.
    let machine = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
    #[cfg(target_arch = "x86_64")]
    let ip = machine.gregs[libc::REG_RIP as usize] as u64;
    #[cfg(not(target_arch = "x86_64"))]
    let ip = machine.pc;
    let at = COUNT.fetch_add(1, Ordering::Relaxed);
    if let Some(place) = PLACES.get(at) {
        place.store(ip, Ordering::Relaxed);
    }
}

/// Interrupts the thread that made it, until it is dropped.
#[derive(Debug)]
pub struct CpuTimer {
    _timer: ThreadTimer,
    _owner: MutexGuard<'static, ()>,
}

impl CpuTimer {
    /// Makes a timer that expires each time the calling thread has used this much CPU time. If there is another timer, this
    /// waits until that is dropped.
    pub fn every(period: Duration) -> io::Result<Self> {
        let owner = OWNER.lock().unwrap_or_else(PoisonError::into_inner);
        COUNT.store(0, Ordering::Relaxed);
        // SAFETY: all zero bytes are a valid value of this plain structure.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // The handler stores into atomics only, and calls that it interrupts start again.
        action.sa_sigaction = note as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        let timer = ThreadTimer::every(libc::CLOCK_THREAD_CPUTIME_ID, signal(), &action, period)?;
        Ok(Self { _timer: timer, _owner: owner })
    }

    /// How often it has expired.
    pub fn count(&self) -> usize {
        COUNT.load(Ordering::Relaxed)
    }

    /// The addresses of the first 256 instructions that it interrupted.
    pub fn places(&self) -> Vec<u64> {
        PLACES[..self.count().min(ROOM)].iter().map(|place| place.load(Ordering::Relaxed)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::{ChainSpot, LoadChain};
    use numakit_testing::until;

    #[test]
    fn it_notes_where_the_thread_is() {
        let mut chain = LoadChain::new(1 << 20);
        let timer = CpuTimer::every(Duration::from_millis(1)).unwrap();
        until!({
            chain.run(Duration::from_millis(10));
            timer.count() >= 5
        });
        let inside = timer.places().iter().filter(|ip| chain.spot(**ip) != ChainSpot::Outside).count();
        assert!(inside >= 2, "{:x?}", timer.places());
    }
}
