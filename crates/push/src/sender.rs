//! Sends rows, in their order, until the engine has taken or refused each.
//!
//! An engine that is down is tried again, at growing random intervals. Of a request that it refuses as wrong, the halves are sent,
//! until the value that is wrong is alone: it is dropped, and counted with the reason.

mod counts;
mod destination;
#[cfg(test)]
mod tests;

pub use counts::PushCounts;
pub(crate) use counts::clean;
pub(crate) use destination::meaning;
pub use destination::{Delivery, PushDestination, SendError};

use crate::rows;
use crate::target::PushTarget;
use numakit_model::Series;
use numakit_recording::{Batch, Header};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The first interval between tries, and the longest.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(30));
/// The longest interval that an engine may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(300);
/// How often a wait looks whether it should end.
const STEP: Duration = Duration::from_millis(50);
/// A series that was refused so often is not sent any more.
const REFUSED_OFTEN: u32 = 3;
/// After this number of refusals without a success, the engine refuses everything: halves are not tried.
const REFUSES_ALL: u32 = 64;

/// How long a sender tries, and when it gives up.
#[derive(Debug, Clone)]
pub struct Patience {
    /// For how long an engine may be down.
    pub outage: Duration,
    /// Set to give up at the next failure.
    pub stop: Arc<AtomicBool>,
    /// Told when the engine goes down, and why.
    pub notice: fn(&str),
}

/// Why rows were not sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unsent {
    /// The engine was down for longer than the patience, or the sender was stopped while it was down.
    Down(String),
    /// It refuses this sender, or has no such database: before it took anything.
    Denied(String),
}

/// Sends rows to an engine.
#[derive(Debug)]
pub struct Sender<D> {
    destination: D,
    counts: Arc<Mutex<PushCounts>>,
    patience: Patience,
    /// How often series were refused.
    refused: HashMap<String, u32>,
    /// Refusals since the last success.
    in_a_row: u32,
    has_succeeded: bool,
}

impl Sender<PushDestination> {
    /// A sender to this engine.
    pub fn new(target: &PushTarget, patience: Patience) -> Result<Self, SendError> {
        Ok(Self::to(PushDestination::new(target)?, patience))
    }
}

impl<D: Deliver> Sender<D> {
    /// A sender to this destination.
    pub fn to(destination: D, patience: Patience) -> Self {
        Self {
            destination,
            counts: Arc::default(),
            patience,
            refused: HashMap::new(),
            in_a_row: 0,
            has_succeeded: false,
        }
    }

    /// What happened so far, also for other threads.
    pub fn counts(&self) -> Arc<Mutex<PushCounts>> {
        Arc::clone(&self.counts)
    }

    fn count(&self, change: impl FnOnce(&mut PushCounts)) {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Sends rows. When it returns without an error, each was taken, or refused and counted.
    pub fn send(&mut self, header: &Arc<Header>, batch: &Batch) -> Result<(), Unsent> {
        let often =
            |series: &Series| self.refused.get(&series.name()).is_some_and(|&often| often >= REFUSED_OFTEN);
        let out: Vec<bool> = header.series.iter().map(often).collect();
        if out.contains(&true) {
            let all = rows::values(batch);
            let batch = rows::without(batch.clone(), |index| out.get(index).copied().unwrap_or(false));
            self.count(|counts| counts.refuse("series that were refused before", all - rows::values(&batch)));
            self.deliver(header, &batch)?;
        } else {
            self.deliver(header, batch)?;
        }
        self.count(|counts| counts.rows += batch.len() as u64);
        Ok(())
    }

    /// Counts that the engine has refused this sender since that time, and says so when it begins: somebody has to repair it.
    pub(crate) fn note_denied(&self, why: &str, since: Instant) {
        let down = since.elapsed();
        let is_new = self.counts.lock().unwrap_or_else(PoisonError::into_inner).down.is_none();
        self.count(|counts| counts.is_down(why, down));
        if is_new {
            (self.patience.notice)(&clean(why));
        }
    }

    fn deliver(&mut self, header: &Arc<Header>, batch: &Batch) -> Result<(), Unsent> {
        match self.try_until(header, batch)? {
            Delivery::Accepted => {
                (self.in_a_row, self.has_succeeded) = (0, true);
                self.forgive(header, batch);
                Ok(())
            }
            Delivery::Partly { refused, reason } => {
                (self.in_a_row, self.has_succeeded) = (0, true);
                self.count(|counts| counts.refuse(&reason, refused));
                Ok(())
            }
            Delivery::Large => self.split(header, batch, "it is too large"),
            Delivery::Refused(reason) => {
                self.in_a_row += 1;
                if self.in_a_row > REFUSES_ALL {
                    self.count(|counts| counts.refuse(&reason, rows::values(batch)));
                    return Ok(());
                }
                self.split(header, batch, &reason)
            }
            Delivery::Down { why, .. } => Err(Unsent::Down(why)),
            Delivery::Denied(why) => Err(Unsent::Denied(why)),
        }
    }

    /// A series that is taken now was refused for the sake of some rows, such as those of a time before others.
    fn forgive(&mut self, header: &Header, batch: &Batch) {
        if !self.refused.is_empty() {
            for series in rows::filled(batch).into_iter().filter_map(|index| header.series.get(index)) {
                self.refused.remove(&series.name());
            }
        }
    }

    /// Sends the halves of what was refused: of the rows, then of the columns of a row.
    fn split(&mut self, header: &Arc<Header>, batch: &Batch, reason: &str) -> Result<(), Unsent> {
        let middle = batch.len() / 2;
        if middle > 0 {
            self.deliver(header, &batch.slice(0..middle))?;
            return self.deliver(header, &batch.slice(middle..batch.len()));
        }
        let columns = rows::filled(batch);
        let (left, right) = columns.split_at(columns.len() / 2);
        if !left.is_empty() {
            self.deliver(header, &rows::without(batch.clone(), |index| right.contains(&index)))?;
            return self.deliver(header, &rows::without(batch.clone(), |index| left.contains(&index)));
        }
        if let Some(series) = right.first().and_then(|index| header.series.get(*index)) {
            let name = series.name();
            self.count(|counts| counts.refuse_one(&name, reason));
            *self.refused.entry(name).or_default() += 1;
        } else if batch.labels() > 0 {
            self.count(|counts| counts.refuse_one("label", reason));
        }
        Ok(())
    }

    /// Tries until there is an answer other than that the engine is down, or patience ends.
    fn try_until(&mut self, header: &Arc<Header>, batch: &Batch) -> Result<Delivery, Unsent> {
        let mut since = None;
        let mut backoff = BACKOFF.0;
        loop {
            let delivery = self.destination.deliver(header, batch);
            self.count(|counts| counts.requests += 1);
            let (why, after) = match delivery {
                Delivery::Down { why, after } => (why, after),
                // What worked before works again when somebody has repaired it.
                Delivery::Denied(why) if self.has_succeeded => (why, None),
                Delivery::Denied(why) => return Ok(Delivery::Denied(why)),
                answer => {
                    self.count(PushCounts::is_up);
                    return Ok(answer);
                }
            };
            if since.is_none() {
                (self.patience.notice)(&clean(&why));
            }
            let down = since.get_or_insert_with(Instant::now).elapsed();
            self.count(|counts| counts.is_down(&why, down));
            if down > self.patience.outage || self.patience.stop.load(Ordering::Relaxed) {
                return Err(Unsent::Down(why));
            }
            self.wait(after.map_or_else(|| jittered(backoff), |after| after.min(MAX_RETRY_AFTER)));
            backoff = (backoff * 2).min(BACKOFF.1);
        }
    }

    fn wait(&self, time: Duration) {
        let until = Instant::now() + time;
        while !self.patience.stop.load(Ordering::Relaxed) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(STEP));
        }
    }
}

/// Where a sender delivers to.
pub trait Deliver {
    /// Delivers rows once.
    fn deliver(&mut self, header: &Arc<Header>, batch: &Batch) -> Delivery;
}

/// Between half of a time and all of it, so that senders of many machines do not come together.
fn jittered(time: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or(u32::MAX);
    time / 2 + (time / 2).mul_f64(f64::from(random) / f64::from(u32::MAX))
}
