//! Staying with processes: what wanders or becomes remote is repaired.

use crate::error::MoveError;
use crate::observed::{MoveObservation, observe};
use crate::report::{MoveReport, RemoteSamples, StoppedBy};
use crate::session::{MoveSession, WatchEnd, is_ended, remote};
use numakit_model::CpuSet;
use numakit_sys::proc::TaskDir;
use std::time::Duration;

/// How often it looks, and for how long.
const EVERY: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_secs(2);

impl MoveSession<'_> {
    /// Looks again every 10 s until a signal comes or the processes have ended, after a first move that found this. Calls `each`
    /// after each repair. What moves is bounded: see [`crate::recent`].
    pub fn watch<E: From<MoveError>>(
        &mut self,
        first: &MoveReport,
        mut each: impl FnMut(&MoveReport) -> Result<(), E>,
    ) -> Result<WatchEnd, E> {
        let mut last = first.after.unwrap_or(first.before);
        loop {
            if is_ended(&self.signals, EVERY) {
                return Ok(WatchEnd::Signal);
            }
            if self.have_ended() {
                return Ok(WatchEnd::Ended);
            }
            let observed = match observe(self.chosen, &self.topology, LOOK) {
                // They have ended since.
                Err(_) if self.have_ended() => return Ok(WatchEnd::Ended),
                other => other?,
            };
            if observed.interrupted {
                return Ok(WatchEnd::Signal);
            }
            let threads = self.settings.threads && self.has_wandered(&observed);
            let pages = self.settings.pages && (threads || remote(&observed).has_grown(&last));
            if !observed.is_enough() || !(threads || pages) {
                continue;
            }
            let report = self.act(&observed, (threads, pages), LOOK)?;
            last = known(&report);
            if report.changes() {
                each(&report)?;
            }
            // It may have come while pages moved, or while the result was observed.
            if report.stopped == Some(StoppedBy::Signal) {
                return Ok(WatchEnd::Signal);
            }
        }
    }

    fn have_ended(&self) -> bool {
        let has_ended =
            |process: &u32| TaskDir::of(self.root, *process).stat().map_or(true, |stat| stat.has_ended());
        self.chosen.numbers().iter().all(has_ended)
    }

    /// Whether a busy thread is not bound to one CPU: it is new, or something has freed it.
    fn has_wandered(&self, observed: &MoveObservation) -> bool {
        let (threads, _) = observed.busy_threads(self.root, &self.topology, &self.records);
        let mut taken = CpuSet::new();
        threads.iter().any(|thread| {
            let one = thread.bound.first().filter(|_| thread.bound.len() == 1);
            // A thread that a bound one has created inherits its CPU.
            one.is_none_or(|cpu| {
                let is_taken = taken.contains(cpu);
                taken.insert(cpu);
                is_taken
            })
        })
    }
}

/// The remote samples after a repair, or those before it where they were not observed.
fn known(report: &MoveReport) -> RemoteSamples {
    report.after.unwrap_or(report.before)
}
