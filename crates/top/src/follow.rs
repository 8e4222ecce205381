//! Live values: from the ring buffer into the history, to the meters and to the findings.

use crate::machine::MachineMeters;
use crate::show::ScreenEvent;
use numakit_findings::finding::Findings;
use numakit_findings::range::{RangeMeans, RangeRules};
use numakit_formulas::Catalog;
use numakit_history::{History, Source};
use numakit_recording::ring::RingEntry;
use numakit_recording::{Header, Rates, Ring};
use numakit_sys::clock;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// The time that findings are about, ns.
const RANGE: u64 = 60_000_000_000;
/// Buckets of it: a second each.
const BUCKETS: usize = 60;
/// Rows wait at most so long for being shown, ns.
const PERIOD: u64 = 50_000_000;
/// Rows that the ring buffer holds: those of a second at 1 kHz.
const ROWS: usize = 1000;
/// Memory of the history, in bytes: what findings of a minute need of a large machine at a short interval, not more.
const HISTORY: usize = 64 << 20;
/// Memory of the ring buffer, unless its rows are very long.
const RING_BYTES: usize = 4 << 20;
/// Findings cost more than a row, so they rest this many times as long as they take,
const REST: u64 = 1000;
/// but not longer than this, ns,
const LONGEST_REST: u64 = 20_000_000_000;
/// nor shorter, and the first ones are about this time.
const SHORTEST_REST: u64 = 1_000_000_000;

/// A ring buffer for the rows of a header.
pub fn ring(header: &Header) -> io::Result<Ring> {
    let columns = header.series.len();
    Ring::in_memory(columns, (RING_BYTES / (columns.max(1) * 8)).clamp(16, ROWS))
}

/// What follows the rows.
pub struct Follower {
    /// What the rows are.
    pub header: Header,
    /// The formulas of findings.
    pub formulas: Arc<Catalog>,
    /// What the meters show.
    pub machine: Arc<MachineMeters>,
    /// Receives values and findings.
    pub to: Sender<ScreenEvent>,
}

impl Follower {
    /// Runs in a thread of its own until the ring buffer is closed.
    pub fn start(self, ring: Arc<Ring>) -> io::Result<()> {
        std::thread::Builder::new().name("follow".into()).spawn(move || self.run(&ring))?;
        Ok(())
    }

    fn run(&self, ring: &Ring) {
        let series = self.header.series.len();
        let history = History::new(series, HISTORY);
        let mut rates = Rates::new(&self.header.series);
        let mut raw = vec![None; series];
        let mut labels: VecDeque<(u64, String)> = VecDeque::new();
        let mut rested = Rested::default();
        let rules = RangeRules::new(&self.header, Arc::clone(&self.formulas));
        for pending in ring.views(ROWS / 2, ROWS, PERIOD) {
            let mut newest = None;
            for entry in pending.entries() {
                match entry {
                    RingEntry::Row(sample) => {
                        sample.values(&mut raw);
                        let row = rates.push(sample.time(), &raw);
                        history.push(sample.time(), row);
                        newest = Some(self.machine.moment(sample.time(), row));
                    }
                    RingEntry::Label { time, index } => {
                        let text = pending.label_text(index);
                        rates.label(&text);
                        labels.push_back((time, text));
                    }
                }
            }
            pending.release();
            let Some(moment) = newest else { continue };
            let now = moment.time;
            while labels.front().is_some_and(|(time, _)| time.saturating_add(RANGE) < now) {
                labels.pop_front();
            }
            if self.to.send(ScreenEvent::Moment(Box::new(moment))).is_err() {
                return;
            }
            if rested.is_due(now) {
                rested.work(now, || self.findings(&rules, &history, now, &labels));
            }
        }
    }

    fn findings(&self, rules: &RangeRules, history: &History, now: u64, labels: &VecDeque<(u64, String)>) {
        let labels = labels.iter().map(|(time, text)| (*time, text.as_str()));
        let (found, range) =
            found(&self.header, rules, history, (now.saturating_sub(RANGE), now + 1), labels);
        let _ = self.to.send(ScreenEvent::Findings(Box::new(found), range));
    }
}

/// The findings of a part of a history, and its seconds.
pub fn found<'a>(
    header: &Header,
    rules: &RangeRules,
    source: &dyn Source,
    range: (u64, u64),
    labels: impl IntoIterator<Item = (u64, &'a str)>,
) -> (Findings, f64) {
    let all: Vec<usize> = (0..header.series.len()).collect();
    let first = source.span().map_or(range.0, |(first, _)| first);
    let from = range.0.max(first);
    let buckets = numakit_findings::range::bucket_count(from..range.1, BUCKETS);
    let answer = source.buckets(&all, from, range.1, buckets);
    let means: Vec<Vec<f32>> = answer.columns.into_iter().map(|column| column.mean).collect();
    let range = RangeMeans { from: answer.from_ns, step: answer.step_ns, means: &means };
    let seconds = answer.step_ns as f64 * buckets as f64 / 1e9;
    (rules.findings(header, &range, labels), seconds)
}

/// When findings are due.
#[derive(Debug, Default)]
struct Rested {
    due: Option<u64>,
}

impl Rested {
    fn is_due(&mut self, now: u64) -> bool {
        now >= *self.due.get_or_insert(now.saturating_add(SHORTEST_REST))
    }

    fn work(&mut self, now: u64, work: impl FnOnce()) {
        let before = clock::thread_cpu();
        work();
        let took = clock::thread_cpu().saturating_sub(before);
        let rest = took.saturating_mul(REST).clamp(SHORTEST_REST, LONGEST_REST);
        self.due = Some(now.saturating_add(rest));
    }
}
