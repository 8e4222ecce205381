//! The memory file into which `libnumacount.so` counts the allocations of a program. It has no name, and stays whole however
//! the program ends. The program may overwrite it: no content makes the reader panic, loop or allocate without a limit.

mod layout;
mod parse;

pub use layout::{MAGIC as COUNTS_MAGIC, VERSION as COUNTS_VERSION, WORDS as COUNTS_WORDS};
pub use parse::{
    AllocationCounts, CountTotals, CountedModule, CountedProcess, CountedSite, CountsError, LifeCount,
    SizeCount,
};

use crate::shared_file::{SharedFile, Taken};
use crate::ticks;
use layout::{PROCESS_WORDS, PROCESSES, PROCESSES_AT, WORDS, header};
use std::io;
use std::sync::atomic::Ordering::Relaxed;

/// Names the file to the library.
pub const COUNT: &str = "NUMA_COUNT";

/// The file, for its reader.
#[derive(Debug)]
pub struct CountFile {
    words: SharedFile,
}

impl CountFile {
    /// Makes a new file. One block in `every` bytes is sampled, with its call chain if `chains`. It takes 20 ms, in which
    /// two clocks are compared.
    pub fn create(every: u64, chains: bool) -> io::Result<Self> {
        let words = SharedFile::create(WORDS, Taken::Now)?;
        words.set([
            (header::MAGIC, layout::MAGIC),
            (header::VERSION, layout::VERSION),
            (header::TOKEN, words.token()),
            (header::EVERY, every.max(1)),
            (header::NS_PER_TICK, ticks::ns_per_tick()),
            (header::HAS_CHAINS, u64::from(chains)),
        ]);
        Ok(Self { words })
    }

    /// The variable that a program needs beside the preloaded library.
    pub fn environment(&self) -> (&'static str, String) {
        (COUNT, self.words.name())
    }

    /// The processes so far, in the order in which they started.
    pub fn processes(&self) -> Vec<CountedProcess> {
        let count = usize::try_from(self.words[header::PROCESSES].load(Relaxed)).unwrap_or(PROCESSES);
        let words = |place: usize| {
            let at = PROCESSES_AT + place * PROCESS_WORDS;
            let mut copy = [0; PROCESS_WORDS];
            copy.iter_mut().zip(&self.words[at..]).for_each(|(to, from)| *to = from.load(Relaxed));
            copy
        };
        (0..count.min(PROCESSES)).filter_map(|place| parse::process(&words(place))).collect()
    }

    /// All counts so far.
    pub fn read(&self) -> Result<AllocationCounts, CountsError> {
        let words: Vec<u64> = self.words.iter().map(|word| word.load(Relaxed)).collect();
        AllocationCounts::parse(&words)
    }
}
