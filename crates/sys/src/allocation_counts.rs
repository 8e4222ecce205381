//! The memory file into which `libnumacount.so` counts the allocations of a program. It has no name, and stays whole however
//! the program ends. The program may overwrite it: no content makes the reader panic, loop or allocate without a limit.

mod layout;
mod parse;

pub use layout::{MAGIC as COUNTS_MAGIC, VERSION as COUNTS_VERSION, WORDS as COUNTS_WORDS};
pub use parse::{
    AllocationCounts, CountTotals, CountedModule, CountedProcess, CountedSite, CountsError, LifeCount,
    SizeCount,
};

use crate::memory::SharedWords;
use crate::shared_ring::{memory_file, seal, shared_name};
use crate::{clock, ticks};
use layout::{PROCESS_WORDS, PROCESSES, PROCESSES_AT, WORDS, header};
use std::fs::File;
use std::io;
use std::sync::atomic::Ordering::Relaxed;

/// Names the file to the library.
pub const COUNT: &str = "NUMA_COUNT";

/// The file, for its reader.
#[derive(Debug)]
pub struct CountFile {
    file: File,
    words: SharedWords,
    token: u64,
}

impl CountFile {
    /// Makes a new file. One block in `every` bytes is sampled, with its call chain if `chains`. It takes 20 ms, in which
    /// two clocks are compared.
    pub fn create(every: u64, chains: bool) -> io::Result<Self> {
        let file = memory_file()?;
        let words = SharedWords::of_file(&file, WORDS)?;
        seal(&file)?;
        let token = clock::monotonic().wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(std::process::id());
        let head = [
            (header::MAGIC, layout::MAGIC),
            (header::VERSION, layout::VERSION),
            (header::TOKEN, token),
            (header::EVERY, every.max(1)),
            (header::NS_PER_TICK, ticks::ns_per_tick()),
            (header::HAS_CHAINS, u64::from(chains)),
        ];
        head.iter().for_each(|&(word, value)| words[word].store(value, Relaxed));
        Ok(Self { file, words, token })
    }

    /// The variable that a program needs beside the preloaded library.
    pub fn environment(&self) -> (&'static str, String) {
        (COUNT, shared_name(&self.file, self.token))
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
