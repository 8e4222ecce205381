//! Takes live samples from the ring buffer into the history.

use crate::hub::Hub;
use crate::layout::SeriesLayout;
use numakit_history::{History, Source};
use numakit_model::CpuSet;
use numakit_recording::ring::RingEntry;
use numakit_recording::{Header, Rates, Ring};
use numakit_sys::sched;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// How often rows are taken: the wake-ups are the cost, not the rows.
const PERIOD: u64 = 25_000_000;
/// Memory of a ring buffer, unless its rows are very long.
const RING_BYTES: usize = 4 << 20;

/// A ring buffer for the rows of several periods.
pub fn ring(header: &Header) -> io::Result<Ring> {
    Ring::in_memory(header.series.len(), capacity(header.series.len()))
}

fn capacity(columns: usize) -> usize {
    (RING_BYTES / (columns.max(1) * 8)).clamp(16, 512)
}

/// Takes rows and labels from the ring buffer.
pub struct Ingest {
    /// The ring buffer.
    pub ring: Arc<Ring>,
    /// Their destination.
    pub history: Arc<History>,
    /// Sends labels to clients.
    pub hub: Arc<Hub>,
    /// Order of the series.
    pub layout: SeriesLayout,
    /// Rates of the header's series.
    pub rates: Rates,
    /// Number of the source.
    pub source: u32,
    /// Columns of the ring buffer.
    pub columns: usize,
}

impl Ingest {
    /// Runs until the ring buffer is closed.
    pub fn start(mut self, cpus: CpuSet) -> io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name("ingest".into()).spawn(move || {
            if !cpus.is_empty() {
                // Without this it is only slower: farther from its memory.
                let _ = sched::set_affinity(&cpus);
            }
            self.run();
        })
    }

    fn run(&mut self) {
        let max = capacity(self.columns);
        let mut raw = vec![None; self.columns];
        let mut row = Vec::with_capacity(self.layout.series());
        let ring = Arc::clone(&self.ring);
        for pending in ring.views(max / 2, max, PERIOD) {
            for entry in pending.entries() {
                match entry {
                    RingEntry::Row(sample) => {
                        sample.values(&mut raw);
                        self.layout.row(self.rates.push(sample.time(), &raw), &mut row);
                        self.history.push(sample.time(), &row);
                    }
                    RingEntry::Label { time, index } => self.label(time, &pending.label_text(index)),
                }
            }
            pending.release();
        }
    }

    fn label(&mut self, time: u64, text: &str) {
        self.rates.label(text);
        self.hub.label(self.source, self.history.as_ref() as &dyn Source, time, text);
    }
}
