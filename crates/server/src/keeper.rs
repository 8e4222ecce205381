//! Live samples on their way from the ring into the history.

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

/// Rows are taken so often: it is the sampler's wake-up that costs, not the row.
const PERIOD: u64 = 25_000_000;
/// Memory of a ring, unless its rows are very long.
const RING_BYTES: usize = 4 << 20;

/// A ring that holds what comes in while the keeper is away.
pub fn ring(header: &Header) -> io::Result<Ring> {
    Ring::in_memory(header.series.len(), capacity(header.series.len()))
}

fn capacity(columns: usize) -> usize {
    (RING_BYTES / (columns.max(1) * 8)).clamp(16, 512)
}

/// Takes rows out of the ring and labels too.
pub struct Ingest {
    /// Where they come from.
    pub ring: Arc<Ring>,
    /// Where they go.
    pub history: Arc<History>,
    /// Who is told of labels.
    pub hub: Arc<Hub>,
    /// The order of the series.
    pub layout: SeriesLayout,
    /// Differences of the header's series.
    pub rates: Rates,
    /// The source that it is.
    pub source: u32,
    /// Columns of the ring.
    pub columns: usize,
}

impl Ingest {
    /// Works until the ring is closed.
    pub fn start(mut self, cpus: CpuSet) -> io::Result<JoinHandle<()>> {
        std::thread::Builder::new().name("keeper".into()).spawn(move || {
            if !cpus.is_empty() {
                // Elsewhere it works too, only farther from its memory.
                let _ = sched::set_affinity(&cpus);
            }
            self.run();
        })
    }

    fn run(&mut self) {
        let most = capacity(self.columns);
        let mut raw = vec![None; self.columns];
        let mut row = Vec::with_capacity(self.layout.series());
        let ring = Arc::clone(&self.ring);
        for pending in ring.views(most / 2, most, PERIOD) {
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
            pending.done();
        }
    }

    fn label(&mut self, time: u64, text: &str) {
        self.rates.label(text);
        self.hub.label(self.source, self.history.as_ref() as &dyn Source, time, text);
    }
}
