//! Memory over time: what the program has allocated, and what is resident for it.

use crate::allocations::report::MemoryMoment;
use numakit_sys::allocation_counts::CountedProcess;
use numakit_sys::proc::TaskDir;
use numakit_sys::{SysRoot, clock};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time between two readings at first, in ns; it doubles whenever there are too many readings.
const FIRST: u64 = 500_000;
const MAX_MOMENTS: usize = 2048;

/// Readings at equal distances, as many as a plot can show.
#[derive(Debug)]
pub struct MemorySeries {
    root: SysRoot,
    begin: u64,
    interval: u64,
    next: u64,
    moments: Vec<MemoryMoment>,
    peak: MemoryMoment,
}

impl MemorySeries {
    /// A series that begins now.
    pub fn new() -> Self {
        let begin = clock::monotonic();
        let moments = Vec::new();
        let peak = MemoryMoment::default();
        Self { root: SysRoot::host(), begin, interval: FIRST, next: begin, moments, peak }
    }

    /// How long to wait until the next reading.
    pub fn pause(&self) -> Duration {
        Duration::from_nanos(self.next.saturating_sub(clock::monotonic()))
    }

    /// Reads memory if it is time for a reading.
    pub fn read(&mut self, processes: impl FnOnce() -> Vec<CountedProcess>) {
        let now = clock::monotonic();
        if now < self.next {
            return;
        }
        self.next = now + self.interval;
        let Some(moment) = self.moment(now, &processes()) else { return };
        self.peak.live = self.peak.live.max(moment.live);
        self.peak.resident = self.peak.resident.max(moment.resident);
        self.moments.push(moment);
        if self.moments.len() >= MAX_MOMENTS {
            let mut keep = false;
            self.moments.retain(|_| {
                keep = !keep;
                keep
            });
            self.interval *= 2;
        }
    }

    /// A reading; `None` before the first process counts, and after the last one has ended.
    fn moment(&self, now: u64, processes: &[CountedProcess]) -> Option<MemoryMoment> {
        // A process that executed another program has two entries, the last of which counts.
        let latest: BTreeMap<u32, &CountedProcess> =
            processes.iter().map(|process| (process.pid, process)).collect();
        let mut moment = MemoryMoment { seconds: (now - self.begin) as f64 / 1e9, ..MemoryMoment::default() };
        let mut any = false;
        for (pid, process) in latest {
            let status = TaskDir::of(&self.root, pid).status().ok();
            let Some(anonymous) = status.and_then(|status| status.bytes("RssAnon")) else { continue };
            any = true;
            moment.live += process.live;
            moment.resident += anonymous.saturating_sub(process.own_bytes);
        }
        any.then_some(moment)
    }

    /// The readings, and the maximum of each value, also of readings that were left out.
    pub fn finish(self) -> (Vec<MemoryMoment>, MemoryMoment) {
        (self.moments, self.peak)
    }
}
