//! The memory file into which `libnumampi.so` writes what the calls of MPI programs cost. It has no name, and stays whole however
//! the programs end. They may overwrite it: no content makes the reader panic, loop or allocate without a limit.

mod layout;
mod operation;
mod parse;

pub use operation::{MpiGroup, MpiOperation};
pub use parse::{MpiAbi, MpiCell, MpiCommunicator, MpiPeer, MpiProcess, MpiServed, NotJudged, SingleCopy};

use crate::shared_file::{SharedFile, Taken};
use crate::ticks;
use layout::{PROCESSES_AT, RANKS, WORDS, header};
use parse::Scale;
use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::fence;

/// Names the file to the library.
pub const MPI: &str = "NUMA_MPI";

/// The file, for its reader.
#[derive(Debug)]
pub struct MpiFile {
    words: SharedFile,
}

/// What was written so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MpiCalls {
    /// The processes that called `MPI_Init`, in this order.
    pub processes: Vec<MpiProcess>,
    /// How many these are, with those for which the file has no room.
    pub count: u64,
}

impl MpiFile {
    /// Makes a new file. Memory is taken by the ranks, 116 KiB each. It takes 20 ms, in which two clocks are compared.
    pub fn create() -> io::Result<Self> {
        let words = SharedFile::create(WORDS, Taken::Later)?;
        words.set([
            (header::MAGIC, layout::MAGIC),
            (header::VERSION, layout::VERSION),
            (header::TOKEN, words.token()),
            (header::NS_PER_TICK, ticks::ns_per_tick()),
        ]);
        Ok(Self { words })
    }

    /// The variable that a program needs beside the preloaded library.
    pub fn environment(&self) -> (&'static str, String) {
        (MPI, self.words.name())
    }

    /// All that was written so far.
    pub fn read(&self) -> MpiCalls {
        let count = self.words[header::RANKS].load(Relaxed);
        let scale = Scale(self.words[header::NS_PER_TICK].load(Relaxed));
        let known = usize::try_from(count).unwrap_or(RANKS).min(RANKS);
        MpiCalls { processes: (0..known).filter_map(|place| self.process(place, scale)).collect(), count }
    }

    fn process(&self, place: usize, scale: Scale) -> Option<MpiProcess> {
        let from = PROCESSES_AT + place * layout::process::WORDS;
        let words = &self.words[from..from + layout::process::WORDS];
        // A part that no rank has begun has no memory, which reading would take.
        if words[layout::process::STATE].load(Acquire) != 1 {
            return None;
        }
        fence(Acquire);
        let copy: Vec<u64> = words.iter().map(|word| word.load(Relaxed)).collect();
        parse::process(&copy, scale)
    }
}

/// Whether a filter of system calls keeps this process from reading the memory of processes: its own is always allowed
/// otherwise. The number of the error.
pub fn single_copy_is_filtered() -> Option<i32> {
    let (from, mut to) = ([7u8; 8], [0u8; 8]);
    let here = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    let there = libc::iovec { iov_base: from.as_ptr().cast_mut().cast(), iov_len: from.len() };
    // SAFETY: both vectors describe arrays that live until the call has returned, and only `to` is written to.
    let read = unsafe { libc::process_vm_readv(libc::getpid(), &here, 1, &there, 1, 0) };
    (read < 0).then(|| io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_has_no_ranks_and_little_memory() {
        use std::os::unix::fs::MetadataExt;
        let file = MpiFile::create().unwrap();
        assert_eq!(file.read(), MpiCalls::default());
        file.words[header::RANKS].store(u64::MAX, Relaxed);
        assert_eq!(file.read().processes, []);
        let data = file.words.metadata().unwrap();
        assert_eq!(data.len(), 8 * WORDS as u64);
        // A page for the header, and those of the parts' states, which reading takes.
        assert!(data.blocks() * 512 <= (1 + RANKS as u64) * 4096, "{} blocks", data.blocks());
    }

    #[test]
    fn a_process_may_read_its_own_memory_unless_a_filter_refuses() {
        assert_eq!(single_copy_is_filtered(), None);
    }
}
