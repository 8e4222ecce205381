//! The newest sample, summed for scrapes.

use crate::setup::ExposedLine;
use numakit_model::Kind;
use numakit_recording::Ring;
use numakit_recording::ring::RingEntry;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// The longest wait for a row, in ns: the end of sampling wakes the thread before.
const WAIT: u64 = 60_000_000_000;
/// Rows that are taken from the ring at once.
const ROWS: usize = 16;

/// What scrapes show. One thread fills it, others read it; neither waits long for the other.
#[derive(Debug, Default)]
pub struct Sampled {
    sums: Mutex<RowSums>,
    /// Scrapes so far.
    pub scrapes: AtomicU64,
}

/// The sums of a row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowSums {
    /// Of each line, in the unit of its columns.
    pub lines: Vec<Option<u64>>,
    /// Of each added column.
    pub added: Vec<Option<u64>>,
    /// When the row was read, in ns since 1970.
    pub time: u64,
}

impl Sampled {
    /// The newest sums; `None` before the first sample.
    pub fn newest(&self) -> Option<RowSums> {
        let sums = self.lock();
        (sums.time > 0).then(|| sums.clone())
    }

    /// Nothing in it is left half done by a panic.
    fn lock(&self) -> MutexGuard<'_, RowSums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// RowSums the rows of a ring in a thread, until the ring is closed.
    pub fn follow(self: &Arc<Self>, ring: Arc<Ring>, mut sum: RowSum) -> io::Result<JoinHandle<()>> {
        let sampled = Arc::clone(self);
        std::thread::Builder::new().name("sums".into()).spawn(move || {
            let mut row = vec![None; ring.columns()];
            for pending in ring.views(1, ROWS, WAIT) {
                for entry in pending.entries() {
                    if let RingEntry::Row(values) = entry {
                        values.values(&mut row);
                        sum.add(&row, values.time());
                    }
                }
                pending.release();
                sampled.lock().clone_from(&sum.sums);
            }
        })
    }

    /// Counts a scrape; returns those before it.
    pub fn count(&self) -> u64 {
        self.scrapes.fetch_add(1, Ordering::Relaxed)
    }
}

/// RowSums rows.
#[derive(Debug)]
pub struct RowSum {
    lines: Vec<ExposedLine>,
    added: Vec<usize>,
    /// The last known values of counters: a CPU that goes offline keeps what it counted, so that no sum falls.
    kept: Vec<Option<u64>>,
    sums: RowSums,
}

impl RowSum {
    /// RowSums columns into these lines, and keeps the added ones.
    pub fn new(lines: Vec<ExposedLine>, added: Vec<usize>, columns: usize) -> Self {
        let sums = RowSums { lines: vec![None; lines.len()], added: vec![None; added.len()], time: 0 };
        Self { lines, added, kept: vec![None; columns], sums }
    }

    fn add(&mut self, row: &[Option<u64>], time: u64) {
        for (kept, value) in self.kept.iter_mut().zip(row) {
            *kept = value.or(*kept);
        }
        for (line, sum) in self.lines.iter().zip(&mut self.sums.lines) {
            *sum = match line.kind {
                Kind::Counter { .. } | Kind::Rate => counted(&line.columns, row, &self.kept),
                Kind::Gauge => line.columns.iter().filter_map(|&at| row[at]).reduce(u64::saturating_add),
            };
        }
        for (&at, value) in self.added.iter().zip(&mut self.sums.added) {
            *value = row[at];
        }
        self.sums.time = time;
    }
}

/// The sum of what was counted; absent if no part has a value now.
fn counted(columns: &[usize], row: &[Option<u64>], kept: &[Option<u64>]) -> Option<u64> {
    columns.iter().any(|&at| row[at].is_some()).then_some(())?;
    columns.iter().filter_map(|&at| kept[at]).reduce(u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_export::openmetrics::UnitScale;

    fn line(kind: Kind, columns: &[usize]) -> ExposedLine {
        ExposedLine {
            metric: 0,
            place: None,
            labels: String::new(),
            columns: columns.to_vec(),
            kind,
            scale: UnitScale::Times(1),
        }
    }

    #[test]
    fn a_cpu_that_goes_offline_keeps_its_counts_and_a_level_loses_its_part() {
        let lines = vec![line(Kind::COUNTER, &[0, 1]), line(Kind::Gauge, &[2, 3]), line(Kind::COUNTER, &[4])];
        let mut sum = RowSum::new(lines, vec![3], 5);
        sum.add(&[Some(5), Some(7), Some(1), Some(2), Some(9)], 1);
        assert_eq!(sum.sums.lines, [Some(12), Some(3), Some(9)]);
        sum.add(&[Some(6), None, Some(1), None, None], 2);
        assert_eq!(sum.sums.lines, [Some(13), Some(1), None], "what has no part is absent");
        assert_eq!((&sum.sums.added, sum.sums.time), (&vec![None], 2));
    }

    #[test]
    fn rows_of_a_ring_are_shown_until_it_is_closed() {
        let (ring, sampled) = (Arc::new(Ring::in_memory(1, 8).unwrap()), Arc::new(Sampled::default()));
        assert_eq!(sampled.newest(), None);
        let sum = RowSum::new(vec![line(Kind::COUNTER, &[0])], vec![], 1);
        let thread = sampled.follow(Arc::clone(&ring), sum).unwrap();
        ring.push(7, 0, &[Some(3)]);
        ring.close();
        thread.join().unwrap();
        assert_eq!(sampled.newest().unwrap().lines, [Some(3)]);
        assert_eq!((sampled.count(), sampled.count()), (0, 1));
    }
}
