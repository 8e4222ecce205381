//! Samples that `libnumaexplain.so` takes in observed programs: a ring in a memory file, which the programs may
//! overwrite at any time.

mod raw;

pub use crate::shared_ring::RingLosses;
pub use crate::shared_ring::layout::SLOT_WORDS;
pub use raw::{BELOW_STACK, GENERAL, RingSample, STACK_BYTES, SampleArchitecture};

use crate::clock;
use crate::shared_ring::SharedRing;
use crate::shared_ring::layout::{ENTRY_WORDS, entry, header};
use std::io;
use std::sync::atomic::Ordering::Relaxed;

/// "NUMASMPL".
const MAGIC: u64 = 0x4c50_4d53_414d_554e;
const VERSION: u64 = 2;
/// Names the ring to the library.
pub const RING: &str = "NUMA_SAMPLES";
/// Samples per second of CPU time of a thread; the library's default is 199.
pub const RATE: &str = "NUMA_SAMPLE_RATE";
/// Makes a program run a chain of loads for this number of milliseconds, and end.
pub const CHAIN: &str = "NUMA_SAMPLE_CHAIN";

/// What the library in all observed processes counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RingCounts {
    /// Processes that were sampled.
    pub processes: u64,
    /// How many of these processes found no free entry.
    pub processes_without_entry: u64,
    /// Threads.
    pub threads: u64,
    /// How many of these threads got no timer, for example because of RLIMIT_SIGPENDING.
    pub threads_without_timer: u64,
}

/// Whether a process is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SamplingState {
    /// It is.
    Sampled,
    /// Not any more: the program reads the timers' signal from a file of signals.
    SignalHandedOver,
    /// Not any more: the program set a filter of system calls.
    Filtered,
    /// Not any more: the observer did not drain for seconds.
    ObserverGone,
}

/// What one process counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampledProcess {
    /// The process.
    pub process: u32,
    /// Whether the process has ended, or will at once.
    pub is_ended: bool,
    /// When the library was loaded, monotonic ns.
    pub since: u64,
    /// Threads since then.
    pub threads: u64,
    /// How many of these threads got no timer.
    pub threads_without_timer: u64,
    /// Samples that it wrote.
    pub samples: u64,
    /// Samples for which the ring had no room.
    pub lost: u64,
    /// The calibration loop of a process that was started with [`CHAIN`].
    pub chain: Option<ChainLoop>,
    /// Whether it is still sampled.
    pub state: SamplingState,
}

/// A loop with one load, whose address is the result of the one before, between two runs of instructions that do nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChainLoop {
    /// Its first instruction.
    pub begin: u64,
    /// The load.
    pub load: u64,
    /// Behind the load.
    pub behind: u64,
    /// The length of an instruction that does nothing.
    pub step: u64,
    /// Behind the last instruction that does nothing.
    pub end: u64,
}

impl ChainLoop {
    fn at(begin: u64) -> Option<Self> {
        let (nops, step, load) = if cfg!(target_arch = "aarch64") { (16, 4, 4) } else { (16, 1, 3) };
        let place = begin.checked_add(nops * step)?;
        let end = place.checked_add(load + nops * step)?;
        (begin != 0).then_some(Self { begin, load: place, behind: place + load, step, end })
    }
}

/// The ring of samples, for its reader.
#[derive(Debug)]
pub struct SampleRing {
    ring: SharedRing,
}

impl SampleRing {
    /// A ring for at least this number of samples of 768 bytes, whose memory is allocated now.
    pub fn create(samples: usize) -> io::Result<Self> {
        Ok(Self { ring: SharedRing::create(MAGIC, VERSION, samples)? })
    }

    /// The variables that a program to be sampled needs beside the preloaded library.
    pub fn environment(&self, rate: u32) -> [(&'static str, String); 2] {
        [(RING, self.ring.name()), (RATE, rate.to_string())]
    }

    /// Takes all samples that are complete, at most as many as the ring holds, and returns their number. Samples of
    /// a thread come in order, samples of different threads need not.
    pub fn drain(&mut self, take: &mut dyn FnMut(&RingSample)) -> usize {
        self.drain_at(clock::monotonic(), take)
    }

    fn drain_at(&mut self, now: u64, take: &mut dyn FnMut(&RingSample)) -> usize {
        self.ring.drain(now, &mut |words| RingSample::parse(words).inspect(|sample| take(sample)).is_some())
    }

    /// Sleeps until a process that ends asks for a drain, or until this monotonic time. Returns at once if one has
    /// asked since the last drain began.
    pub fn wait(&self, until: u64) {
        self.ring.wait(until);
    }

    /// Overwrites a word of the ring, as a program may do that has mapped it: for tests.
    pub fn overwrite(&self, word: usize, value: u64) {
        self.ring.overwrite(word, value);
    }

    /// Samples that were lost so far.
    pub fn losses(&self) -> RingLosses {
        self.ring.losses()
    }

    /// What all processes counted.
    pub fn counts(&self) -> RingCounts {
        let word = |index: usize| self.ring.words[index].load(Relaxed);
        RingCounts {
            processes: word(header::PROCESSES),
            processes_without_entry: word(header::WITHOUT_ENTRY),
            threads: word(header::THREADS),
            threads_without_timer: word(header::WITHOUT_TIMER),
        }
    }

    /// The observed processes. A process that has ended is reported once, and its entry is then free for another one.
    pub fn processes(&mut self) -> Vec<SampledProcess> {
        self.ring.entries().iter().map(|(words, is_ended)| process_of(words, *is_ended)).collect()
    }
}

fn process_of(words: &[u64; ENTRY_WORDS], is_ended: bool) -> SampledProcess {
    SampledProcess {
        process: words[entry::IDENTITY] as u32,
        is_ended,
        since: words[entry::SINCE],
        threads: words[entry::THREADS],
        threads_without_timer: words[entry::WITHOUT_TIMER],
        samples: words[entry::SAMPLES],
        lost: words[entry::LOST],
        chain: ChainLoop::at(words[entry::CHAIN]),
        state: match words[entry::STATE] {
            1 => SamplingState::SignalHandedOver,
            2 => SamplingState::Filtered,
            3 => SamplingState::ObserverGone,
            _ => SamplingState::Sampled,
        },
    }
}

#[cfg(test)]
mod tests;
