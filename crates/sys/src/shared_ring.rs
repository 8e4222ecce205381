//! A ring of slots in a memory file that this process makes and observed programs map. Many threads of many processes write,
//! and this process reads. Nobody waits: if the ring is full, what would be written is lost and counted. The file has no
//! name, so that nothing is left behind.
//!
//! The programs may overwrite everything in the ring at any time: no content makes the reader panic, loop or allocate
//! without a limit.

pub mod layout;

use crate::SysRoot;
use crate::proc::TaskDir;
use crate::shared_file::{SharedFile, Taken};
use layout::{ENDS, ENTRIES, ENTRY_WORDS, HEADER_WORDS, SLOT_WORDS, entry, header};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::fence;

/// A thread that began to write a slot completes it in this time, or was killed.
pub const GRACE: u64 = 300_000_000;

/// The words of a slot.
pub type Slot = [u64; SLOT_WORDS];

/// What was written and not delivered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RingLosses {
    /// The ring was full.
    pub full: u64,
    /// A thread was killed while it wrote.
    pub unfinished: u64,
    /// The content was not what the library writes.
    pub damaged: u64,
    /// The position in the ring was overwritten: what was in the ring is lost, and not counted otherwise.
    pub resets: u64,
}

/// The ring, for its reader.
#[derive(Debug)]
pub struct SharedRing {
    pub words: SharedFile,
    pub slots: u64,
    /// All positions before this one were seen.
    pub seen: u64,
    /// Positions before `seen` that were not complete, and since when.
    pub unfinished: Vec<(u64, u64)>,
    /// The futex before the last drain.
    pub wanted: u32,
    pub losses: RingLosses,
}

impl SharedRing {
    /// A ring for at least this number of slots of 768 bytes, whose memory is allocated now.
    pub fn create(magic: u64, version: u64, slots: usize) -> io::Result<Self> {
        let slots = slots.clamp(2, 1 << 20).next_power_of_two();
        let words = SharedFile::create(slots_at() + slots * SLOT_WORDS, Taken::Now)?;
        let head = [magic, version, 8 * SLOT_WORDS as u64, slots as u64, ENTRIES as u64, words.token()];
        words.set(head.into_iter().enumerate().chain([(header::FILTERS, own_filters())]));
        let slots = slots as u64;
        let losses = RingLosses::default();
        Ok(Self { words, slots, seen: 0, unfinished: Vec::new(), wanted: 0, losses })
    }

    /// The name of the ring, by which the library finds it.
    pub fn name(&self) -> String {
        self.words.name()
    }

    /// Takes all complete slots, at most as many as the ring holds, and returns the number of those that `take` accepts.
    /// Slots of one thread come in order; slots of different threads may not.
    pub fn drain(&mut self, now: u64, take: &mut dyn FnMut(&Slot) -> bool) -> usize {
        self.wanted = self.words.half(header::WANTED).load(Acquire);
        self.words[header::BEAT].fetch_add(1, Relaxed);
        // The head is read first: a thread that completes a position after this has its next position behind the head.
        let head = self.words[header::HEAD].load(Acquire);
        let mut count = self.finish(now, take);
        if head.wrapping_sub(self.seen) > self.slots {
            self.losses.resets += 1;
            self.unfinished.clear();
            self.seen = head;
        }
        // The slots of these positions have been used again for other positions.
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
    fn finish(&mut self, now: u64, take: &mut dyn FnMut(&Slot) -> bool) -> usize {
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

    fn deliver(&mut self, words: &Slot, take: &mut dyn FnMut(&Slot) -> bool) -> usize {
        let is_sound = take(words);
        self.losses.damaged += u64::from(!is_sound);
        usize::from(is_sound)
    }

    /// Copies a slot; false if it is not complete.
    fn copy(&self, position: u64, into: &mut Slot) -> bool {
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

    /// What was lost so far.
    pub fn losses(&self) -> RingLosses {
        RingLosses { full: self.words[header::LOST].load(Relaxed), ..self.losses }
    }

    /// The words of the entries of observed processes, and whether each has ended. An entry that has is reported once,
    /// and free for another process.
    pub fn entries(&mut self) -> Vec<([u64; ENTRY_WORDS], bool)> {
        let mut all = Vec::new();
        for number in 0..ENTRIES {
            let at = HEADER_WORDS + number * ENTRY_WORDS;
            let words = &self.words[at..at + ENTRY_WORDS];
            let mut copy = [0; ENTRY_WORDS];
            for (to, from) in copy.iter_mut().zip(words) {
                *to = from.load(Relaxed);
            }
            let identity = copy[entry::IDENTITY];
            if identity == 0 {
                continue;
            }
            let is_ended = identity & ENDS != 0 || !exists(identity as u32);
            if is_ended {
                words[1..].iter().for_each(|word| word.store(0, Relaxed));
                words[entry::IDENTITY].store(0, Release);
            }
            all.push((copy, is_ended));
        }
        all
    }
}

/// Whether there is a process of this number, even if /proc hides processes of other users.
pub(crate) fn exists(process: u32) -> bool {
    let number = i32::try_from(process).ok().and_then(Pid::from_raw);
    number.is_some_and(|number| test_kill_process(number) != Err(Errno::SRCH))
}

/// The word of the first slot.
pub const fn slots_at() -> usize {
    HEADER_WORDS + ENTRIES * ENTRY_WORDS
}

/// The number of seccomp filters of this process. The library does nothing in a process that has more, since a filter
/// may end a process for a call that it does not expect.
fn own_filters() -> u64 {
    let root = SysRoot::host();
    let status = TaskDir::own(&root).status().unwrap_or_default();
    let number = |name: &str| status.field(name).and_then(|value| value.parse().ok());
    if number("Seccomp").unwrap_or(0) == 0 { 0 } else { number("Seccomp_filters").unwrap_or(1) }
}
