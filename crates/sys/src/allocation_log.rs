//! The log of allocations that `libnumaexplain.so` writes in observed programs: blocks and mappings from a size on, a
//! sample of smaller blocks, threads with their stacks, processes. A ring in a memory file, which the programs may
//! overwrite at any time.

mod record;
mod sites;

pub use crate::shared_ring::layout::SLOT_WORDS as LOG_SLOT_WORDS;
pub use record::{
    AllocationCall, AllocationEvent, AllocationFunction, AllocationRecord, CALL_FRAMES, PIECE_BYTES,
};
pub use sites::{BlockSites, SmallBlock};

use crate::clock;
use crate::shared_ring::layout::{entry, header};
use crate::shared_ring::{RingLosses, SharedRing};
use std::io;
use std::sync::atomic::Ordering::Relaxed;

/// Names the log to the library.
pub const LOG: &str = "NUMA_ALLOCATIONS";
/// Blocks and mappings of this many bytes and more are logged.
pub const LEAST: &str = "NUMA_ALLOCATIONS_MIN";
/// The variable for how many smaller blocks are logged: one in this number of bytes on average, or none if it is 0.
pub const PERIOD: &str = "NUMA_ALLOCATIONS_SAMPLE";
/// The variable for how many smaller blocks and mappings of a page and more are logged before others are.
pub const FIRST: &str = "NUMA_ALLOCATIONS_FIRST";

/// "NUMAALLC".
const MAGIC: u64 = 0x434c_4c41_414d_554e;
const VERSION: u64 = 1;

/// What is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogThreshold {
    /// Blocks and mappings of this many bytes and more; the library takes at least 256.
    pub least: u64,
    /// How many smaller blocks are logged: one in this number of bytes on average, or none if it is 0.
    pub period: u64,
    /// How many smaller blocks and mappings of a page and more are all logged at first, in each process.
    pub first: u64,
}

impl Default for LogThreshold {
    fn default() -> Self {
        Self { least: 64 << 10, period: 512 << 10, first: 4096 }
    }
}

impl LogThreshold {
    /// How many blocks of this size one logged block represents, on average: larger blocks are logged more often.
    pub fn blocks_of_a_sample(&self, size: u64) -> f64 {
        if self.period == 0 || size == 0 || size >= self.least {
            return 1.0;
        }
        -(-(size as f64) / self.period as f64).exp_m1().recip()
    }
}

/// What one process counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedProcess {
    /// The process.
    pub process: u32,
    /// Whether the process has ended, or will at once.
    pub is_ended: bool,
    /// Whether the process has set a filter of system calls; it is not logged any more then.
    pub is_filtered: bool,
    /// When the library was loaded, monotonic ns.
    pub since: u64,
    /// Records that it wrote.
    pub records: u64,
    /// Records for which the log had no room.
    pub lost: u64,
}

/// The log, for its reader.
#[derive(Debug)]
pub struct AllocationLog {
    ring: SharedRing,
    threshold: LogThreshold,
}

impl AllocationLog {
    /// A log with room for at least this number of records of 768 bytes, whose memory is allocated now.
    pub fn create(records: usize, threshold: LogThreshold) -> io::Result<Self> {
        Ok(Self { ring: SharedRing::create(MAGIC, VERSION, records)?, threshold })
    }

    /// The variables that a program needs beside the preloaded library, which may also take samples.
    pub fn environment(&self) -> [(&'static str, String); 4] {
        let LogThreshold { least, period, first } = self.threshold;
        let name = self.ring.name();
        [(LOG, name), (LEAST, least.to_string()), (PERIOD, period.to_string()), (FIRST, first.to_string())]
    }

    /// What is logged.
    pub fn threshold(&self) -> LogThreshold {
        self.threshold
    }

    /// Takes all complete records, at most as many as the log holds, and returns their number. Records of a thread come in
    /// order. Records of one address do too, unless a thread was stopped while it wrote one: then only their times are in
    /// order.
    pub fn drain(&mut self, take: &mut dyn FnMut(&AllocationRecord)) -> usize {
        self.drain_at(clock::monotonic(), take)
    }

    fn drain_at(&mut self, now: u64, take: &mut dyn FnMut(&AllocationRecord)) -> usize {
        self.ring
            .drain(now, &mut |words| AllocationRecord::parse(words).inspect(|record| take(record)).is_some())
    }

    /// Records that were lost so far.
    pub fn losses(&self) -> RingLosses {
        self.ring.losses()
    }

    /// Blocks whose end nobody will see, since too many are in the log at a time.
    pub fn without_end(&self) -> u64 {
        self.ring.words[header::WITHOUT_END].load(Relaxed)
    }

    /// The observed processes. A process that has ended is reported once, and its entry is then free for another one. If
    /// there are more processes than entries, the log still works, but some processes have no counts.
    pub fn processes(&mut self) -> Vec<LoggedProcess> {
        let entries = self.ring.entries();
        let process = |(words, is_ended): &([u64; 8], bool)| LoggedProcess {
            process: words[entry::IDENTITY] as u32,
            is_ended: *is_ended,
            is_filtered: words[entry::STATE] == 2,
            since: words[entry::SINCE],
            records: words[entry::SAMPLES],
            lost: words[entry::LOST],
        };
        entries.iter().map(process).collect()
    }

    /// Overwrites a word of the log, as a program may do that has mapped it: for tests.
    pub fn overwrite(&self, word: usize, value: u64) {
        self.ring.overwrite(word, value);
    }
}

#[cfg(test)]
mod tests;
