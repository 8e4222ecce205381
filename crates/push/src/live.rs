//! Samples that are pushed while they are taken.
//!
//! ```text
//! sampler -> ring buffer -> (spooler) -> spool -> (sender) -> engine
//! ```
//!
//! The sampler never waits: the spooler empties the ring whatever the engine does, and the sender takes from the spool. Rows that the
//! engine has not acknowledged stay in the spool when this process ends or is killed.

#[cfg(test)]
mod tests;

use crate::sender::{Patience, PushCounts, PushDestination, SendError, Sender, Unsent};
use crate::spool::{Spool, SpoolCounts, SpooledRows};
use crate::target::PushTarget;
use numakit_recording::{Header, Ring};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Rows that the ring holds while the spooler is not scheduled.
const RING_ROWS: usize = 1000;
/// How long rows wait for others before they are written to the spool.
const SPOOL_TIME: u64 = 500_000_000;
/// How often the sender looks for rows.
const LOOK: Duration = Duration::from_millis(200);
/// After this time, an engine that refused this sender is asked again.
const DENIED: Duration = Duration::from_secs(10);
/// Values of a request.
const REQUEST_VALUES: usize = 100_000;

/// The rows of a request, for a recording with this number of columns.
pub fn rows_per_request(columns: usize) -> usize {
    (REQUEST_VALUES / columns.max(1)).clamp(1, 5000)
}

/// What a push did.
#[derive(Debug, Clone, Default)]
pub struct PushState {
    /// Of the sender.
    pub sent: PushCounts,
    /// Of the spool.
    pub spool: SpoolCounts,
    /// Rows that the ring had no room for.
    pub lost: u64,
    /// Why the engine takes nothing, if so.
    pub unsent: Option<Unsent>,
}

#[derive(Debug)]
struct Shared {
    spool: Mutex<Spool>,
    counts: Arc<Mutex<PushCounts>>,
    unsent: Mutex<Option<Unsent>>,
    lost: Mutex<u64>,
    /// No rows come any more.
    is_closed: AtomicBool,
    is_sent: Mutex<bool>,
    sent: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A running push.
#[derive(Debug)]
pub struct LivePush {
    ring: Arc<Ring>,
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl LivePush {
    /// Starts to send what the ring gets, after what the spool has of an earlier process. `notice` is called
    /// when the engine goes down.
    pub fn start(
        header: &Header,
        target: &PushTarget,
        spool: Spool,
        notice: fn(&str),
    ) -> Result<Self, SendError> {
        let stop: Arc<AtomicBool> = Arc::default();
        let patience = Patience { outage: Duration::MAX, stop: Arc::clone(&stop), notice };
        let sender = Sender::new(target, patience)?;
        let ring = Ring::in_memory(header.series.len(), RING_ROWS).map(Arc::new).map_err(system)?;
        let shared = Arc::new(Shared {
            spool: Mutex::new(spool),
            counts: sender.counts(),
            unsent: Mutex::default(),
            lost: Mutex::default(),
            is_closed: AtomicBool::new(false),
            is_sent: Mutex::new(false),
            sent: Condvar::new(),
        });
        let header = Arc::new(header.clone());
        let (rows, into) = (Arc::clone(&ring), Arc::clone(&shared));
        let spooler = Builder::new().name("spooler".into()).spawn(move || spool_rows(&rows, &header, &into));
        let from = Arc::clone(&shared);
        let (every, stopped) = (target.emitter.request_time(), Arc::clone(&stop));
        let sending =
            Builder::new().name("sender".into()).spawn(move || send_rows(sender, &from, every, &stopped));
        let threads = Mutex::new(vec![spooler.map_err(system)?, sending.map_err(system)?]);
        Ok(Self { ring, shared, stop, threads })
    }

    /// Where the sampler writes to.
    pub fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }

    /// Where rows wait.
    pub fn folder(&self) -> PathBuf {
        lock(&self.shared.spool).folder().to_owned()
    }

    /// What happened so far.
    pub fn state(&self) -> PushState {
        PushState {
            sent: lock(&self.shared.counts).clone(),
            spool: lock(&self.shared.spool).counts(),
            lost: *lock(&self.shared.lost),
            unsent: lock(&self.shared.unsent).clone(),
        }
    }

    /// Sends the rest, for at most this time. What is left stays in the spool.
    pub fn finish(&self, patience: Duration) -> PushState {
        self.ring.close();
        let until = Instant::now() + patience;
        let mut is_sent = lock(&self.shared.is_sent);
        while !*is_sent {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            is_sent = self.shared.sent.wait_timeout(is_sent, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(is_sent);
        self.stop.store(true, Ordering::Relaxed);
        for thread in lock(&self.threads).drain(..) {
            let _ = thread.join();
        }
        lock(&self.shared.spool).give_up();
        self.state()
    }
}

fn system(error: io::Error) -> SendError {
    SendError::EngineClient(error.into())
}

fn spool_rows(ring: &Ring, header: &Arc<Header>, to: &Shared) {
    for pending in ring.views(RING_ROWS / 4, RING_ROWS, SPOOL_TIME) {
        lock(&to.spool).append(header, &pending.batch());
        pending.release();
        *lock(&to.lost) += ring.take_dropped();
    }
    to.is_closed.store(true, Ordering::Release);
}

/// Sends the rows of the spool, at most one request in a time while all goes well.
fn send_rows(mut sender: Sender<PushDestination>, from: &Shared, every: Duration, stop: &AtomicBool) {
    let mut due = Instant::now();
    let mut denied: Option<Instant> = None;
    while !stop.load(Ordering::Relaxed) {
        let is_closed = from.is_closed.load(Ordering::Acquire);
        let is_denied = lock(&from.unsent).is_some();
        let next = if Instant::now() >= due || is_closed && !is_denied { peek(from) } else { None };
        let Some(next) = next else {
            if is_closed && lock(&from.spool).counts().waiting == 0 {
                break;
            }
            std::thread::sleep(LOOK);
            continue;
        };
        match sender.send(&next.header, &next.batch) {
            Ok(()) => {
                denied = None;
                *lock(&from.unsent) = None;
                let mut spool = lock(&from.spool);
                spool.acknowledge(next.end);
                // What is more than a request is sent at once.
                let is_more = spool.counts().waiting > next.batch.len() as u64;
                due = Instant::now() + if is_more { Duration::ZERO } else { every };
            }
            Err(unsent) => {
                // Somebody may create the database, or permit this sender.
                if let Unsent::Denied(why) = &unsent {
                    sender.note_denied(why, *denied.get_or_insert_with(Instant::now));
                }
                *lock(&from.unsent) = Some(unsent);
                due = Instant::now() + DENIED;
            }
        }
    }
    *lock(&from.is_sent) = true;
    from.sent.notify_all();
}

fn peek(from: &Shared) -> Option<SpooledRows> {
    let mut spool = lock(&from.spool);
    let columns = spool.peek(1)?.header.series.len();
    spool.peek(rows_per_request(columns))
}
