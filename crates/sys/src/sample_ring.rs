//! Samples that `libnumaexplain.so` takes in observed programs: a ring in a memory file that this process makes and the
//! programs map. Many threads of many processes write, and this one reads. Nobody waits: a full ring loses samples, and
//! counts them. The file has no name, so that nothing is left behind.
//!
//! Everything in the ring may be overwritten by the programs, at any time: no content makes the reader panic, loop or
//! allocate without a limit.

mod layout;
mod raw;

pub use layout::SLOT_WORDS;
pub use raw::{BELOW_STACK, GENERAL, RingSample, STACK_BYTES, SampleArchitecture};

use crate::memory::SharedWords;
use crate::proc::TaskDir;
use crate::{SysRoot, check, clock};
use layout::{ENDS, ENTRIES, ENTRY_WORDS, HEADER_WORDS, MAGIC, VERSION, entry, header};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};

/// Names the ring to the library.
pub const RING: &str = "NUMA_SAMPLES";
/// Samples per second of CPU time of a thread; the library's default is 199.
pub const RATE: &str = "NUMA_SAMPLE_RATE";
/// Makes a program run a chain of loads for this number of milliseconds, and end.
pub const CHAIN: &str = "NUMA_SAMPLE_CHAIN";

/// A thread that began to write a sample completes it in this time, or was killed.
const GRACE: u64 = 300_000_000;

/// Samples that were not delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RingLosses {
    /// The ring was full.
    pub full: u64,
    /// A thread was killed while it wrote.
    pub unfinished: u64,
    /// The content was not a sample.
    pub damaged: u64,
    /// The position in the ring was overwritten: what was in the ring is lost, and not counted otherwise.
    pub resets: u64,
}

/// What the library in all observed processes counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RingCounts {
    /// Processes that were sampled.
    pub processes: u64,
    /// Of these, how many found no entry of their own.
    pub processes_without_entry: u64,
    /// Threads.
    pub threads: u64,
    /// Of these, how many got no timer, for example because of RLIMIT_SIGPENDING.
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
    /// It has ended, or will at once.
    pub is_ended: bool,
    /// When the library was loaded, monotonic ns.
    pub since: u64,
    /// Threads since then.
    pub threads: u64,
    /// Of these, how many got no timer.
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

/// The ring, for its reader.
#[derive(Debug)]
pub struct SampleRing {
    file: File,
    words: SharedWords,
    slots: u64,
    token: u64,
    /// All positions before were seen.
    seen: u64,
    /// Positions before `seen` that were not complete, and since when.
    unfinished: Vec<(u64, u64)>,
    /// The futex before the last drain.
    wanted: u32,
    losses: RingLosses,
}

impl SampleRing {
    /// A ring for at least this number of samples of 768 bytes, whose memory is allocated now.
    pub fn create(samples: usize) -> io::Result<Self> {
        let slots = samples.clamp(2, 1 << 20).next_power_of_two();
        let file = memory_file()?;
        let words = SharedWords::of_file(&file, slots_at() + slots * SLOT_WORDS)?;
        seal(&file)?;
        let token = clock::monotonic().wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(std::process::id());
        let head = [MAGIC, VERSION, 8 * SLOT_WORDS as u64, slots as u64, ENTRIES as u64, token];
        for (word, value) in words.iter().zip(head) {
            word.store(value, Relaxed);
        }
        words[header::FILTERS].store(own_filters(), Relaxed);
        let slots = slots as u64;
        let losses = RingLosses::default();
        Ok(Self { file, words, slots, token, seen: 0, unfinished: Vec::new(), wanted: 0, losses })
    }

    /// The variables that a program to be sampled needs beside the preloaded library.
    pub fn environment(&self, rate: u32) -> [(&'static str, String); 2] {
        let (process, number) = (std::process::id(), self.file.as_raw_fd());
        [(RING, format!("/proc/{process}/fd/{number}:{:x}", self.token)), (RATE, rate.to_string())]
    }

    /// Takes all samples that are complete, at most as many as the ring holds, and returns their number. Samples of
    /// a thread come in order, samples of different threads need not.
    pub fn drain(&mut self, take: &mut dyn FnMut(&RingSample)) -> usize {
        self.drain_at(clock::monotonic(), take)
    }

    fn drain_at(&mut self, now: u64, take: &mut dyn FnMut(&RingSample)) -> usize {
        self.wanted = self.words.half(header::WANTED).load(Acquire);
        self.words[header::BEAT].fetch_add(1, Relaxed);
        // First: a thread that completes a position from now on has its next one behind this.
        let head = self.words[header::HEAD].load(Acquire);
        let mut count = self.finish(now, take);
        if head.wrapping_sub(self.seen) > self.slots {
            self.losses.resets += 1;
            self.unfinished.clear();
            self.seen = head;
        }
        // Their slots have other positions by now.
        let (known, slots) = (self.unfinished.len(), self.slots);
        self.unfinished.retain(|(position, _)| head.wrapping_sub(*position) <= slots);
        self.losses.unfinished += (known - self.unfinished.len()) as u64;
        let mut words = [0; SLOT_WORDS];
        while self.seen != head {
            if self.copy(self.seen, &mut words) {
                count += self.deliver(&words, take);
            } else {
                self.unfinished.push((self.seen, now));
            }
            self.seen = self.seen.wrapping_add(1);
        }
        let tail = self.unfinished.first().map_or(self.seen, |(position, _)| *position);
        self.words[header::TAIL].store(tail, Release);
        count
    }

    /// Takes positions that have been completed since the last drain, and gives up old ones.
    fn finish(&mut self, now: u64, take: &mut dyn FnMut(&RingSample)) -> usize {
        let mut count = 0;
        let mut words = [0; SLOT_WORDS];
        for (position, since) in std::mem::take(&mut self.unfinished) {
            if self.copy(position, &mut words) {
                count += self.deliver(&words, take);
            } else if now.saturating_sub(since) > GRACE {
                self.losses.unfinished += 1;
            } else {
                self.unfinished.push((position, since));
            }
        }
        count
    }

    fn deliver(&mut self, words: &[u64; SLOT_WORDS], take: &mut dyn FnMut(&RingSample)) -> usize {
        match RingSample::parse(words) {
            Some(sample) => take(&sample),
            None => {
                self.losses.damaged += 1;
                return 0;
            }
        }
        1
    }

    /// Copies a slot; false if it is not complete.
    fn copy(&self, position: u64, into: &mut [u64; SLOT_WORDS]) -> bool {
        let at = slots_at() + (position & (self.slots - 1)) as usize * SLOT_WORDS;
        let slot = &self.words[at..at + SLOT_WORDS];
        let complete = position.wrapping_add(1);
        if slot[0].load(Acquire) != complete {
            return false;
        }
        for (to, from) in into.iter_mut().zip(slot) {
            *to = from.load(Relaxed);
        }
        fence(Acquire);
        slot[0].load(Relaxed) == complete
    }

    /// Sleeps until a process that ends asks for a drain, or until this monotonic time. Returns at once if one has
    /// asked since the last drain began.
    pub fn wait(&self, until: u64) {
        crate::futex::wait_shared(self.words.half(header::WANTED), self.wanted, until);
    }

    /// Overwrites a word of the ring, as a program may do that has mapped it: for tests.
    pub fn overwrite(&self, word: usize, value: u64) {
        self.words[word % self.words.len()].store(value, Relaxed);
    }

    /// Samples that were lost so far.
    pub fn losses(&self) -> RingLosses {
        RingLosses { full: self.words[header::LOST].load(Relaxed), ..self.losses }
    }

    /// What all processes counted.
    pub fn counts(&self) -> RingCounts {
        let word = |index: usize| self.words[index].load(Relaxed);
        RingCounts {
            processes: word(header::PROCESSES),
            processes_without_entry: word(header::WITHOUT_ENTRY),
            threads: word(header::THREADS),
            threads_without_timer: word(header::WITHOUT_TIMER),
        }
    }

    /// The observed processes. One that has ended is reported once, and its entry is free for another.
    pub fn processes(&mut self) -> Vec<SampledProcess> {
        let mut all = Vec::new();
        for number in 0..ENTRIES {
            let at = HEADER_WORDS + number * ENTRY_WORDS;
            let words = &self.words[at..at + ENTRY_WORDS];
            let Some(process) = process_of(words) else { continue };
            if process.is_ended {
                words[1..].iter().for_each(|word| word.store(0, Relaxed));
                words[entry::IDENTITY].store(0, Release);
            }
            all.push(process);
        }
        all
    }
}

fn process_of(words: &[AtomicU64]) -> Option<SampledProcess> {
    let word = |index: usize| words[index].load(Relaxed);
    let identity = word(entry::IDENTITY);
    let process = identity as u32;
    (identity != 0).then(|| SampledProcess {
        process,
        is_ended: identity & ENDS != 0 || !exists(process),
        since: word(entry::SINCE),
        threads: word(entry::THREADS),
        threads_without_timer: word(entry::WITHOUT_TIMER),
        samples: word(entry::SAMPLES),
        lost: word(entry::LOST),
        chain: ChainLoop::at(word(entry::CHAIN)),
        state: match word(entry::STATE) {
            1 => SamplingState::SignalHandedOver,
            2 => SamplingState::Filtered,
            3 => SamplingState::ObserverGone,
            _ => SamplingState::Sampled,
        },
    })
}

/// Whether there is a process of this number.
fn exists(process: u32) -> bool {
    let number = i32::try_from(process).ok().and_then(Pid::from_raw);
    number.is_some_and(|number| test_kill_process(number) != Err(Errno::SRCH))
}

/// The word of the first slot.
const fn slots_at() -> usize {
    HEADER_WORDS + ENTRIES * ENTRY_WORDS
}

/// A file in memory that can be sealed.
fn memory_file() -> io::Result<File> {
    let create = |flags: libc::c_uint| {
        // SAFETY: the name is a C string; the call takes no other pointer.
        check(unsafe { libc::memfd_create(c"numakit-samples".as_ptr(), flags) }.into())
    };
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // Some systems refuse files that could be executed; kernels before 6.3 do not know the flag.
    let file = create(flags | libc::MFD_NOEXEC_SEAL).or_else(|_| create(flags))?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { File::from_raw_fd(file as i32) })
}

/// The programs can then not change its size, so that accesses to its mapping never fail.
fn seal(file: &File) -> io::Result<()> {
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: the descriptor is open; the call takes no pointer.
    check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) }.into())?;
    Ok(())
}

/// The number of seccomp filters of this process. The library does nothing in a process that has more, since a filter
/// may end a process for a call that it does not expect.
fn own_filters() -> u64 {
    let root = SysRoot::host();
    let status = TaskDir::own(&root).status().unwrap_or_default();
    let number = |name: &str| status.field(name).and_then(|value| value.parse().ok());
    if number("Seccomp").unwrap_or(0) == 0 { 0 } else { number("Seccomp_filters").unwrap_or(1) }
}

#[cfg(test)]
mod tests;
