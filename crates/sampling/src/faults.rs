//! Page faults, each with its address, its registers and a piece of its stack: who touches which memory first.

use crate::sample::StackPiece;
use numakit_model::CpuSet;
use numakit_sys::clock;
use numakit_sys::perf::record::{PerfRecord, RawSample};
use numakit_sys::perf::sampling::{
    SampleContent, SampledEvent, SampledRings, SampledTasks, SamplingError, SamplingRequest,
};
use numakit_sys::permissions::locks_without_limit;
use numakit_sys::registers::UserRegisters;
use std::collections::HashMap;
use std::io;

/// Pages of a ring with all faults. It is drained every 5 ms, and has room for 88 faults with a piece of the stack: that is
/// 17,000 a second. All rings of a CPU together fit what the kernel lets an ordinary user lock (516 KiB).
const PAGES: usize = 16;
/// Pages of that ring where locked memory has no limit. It has room for 700 faults: those of 1.4 GiB in huge pages, which a
/// program may touch before the ring is drained for the first time, since the program's symbols are read then.
const PAGES_WITHOUT_LIMIT: usize = 128;
/// Pages of a ring with one in [`SPARSE`] faults. It has room for 175 of them, which represent 4 million faults a second.
const SPARSE_PAGES: usize = 32;
/// Pages of a ring with addresses only, of which the first size that is permitted is used. A program touches its memory all
/// at once: 18,700 addresses are all pages of 73 MiB.
const PLAIN_PAGES: [usize; 2] = [256, 32];
/// Bytes of the stack that come with a fault: most functions that touch memory first, and the functions of the C library
/// that they call, use less.
const STACK: u32 = 512;
/// While there are too many faults, one in this many is taken: the same function is likely to touch the pages around it.
const SPARSE: u64 = 127;
/// In a window of this time, in ns, about this many faults of each CPU are taken. That is 20,000 a second, and each takes 2
/// us of the program's time.
const WINDOW: u64 = 100_000_000;
const MAX_IN_WINDOW: u64 = 2_000;

/// Open files for a thread on a CPU: one for all faults, one for one in many, and one for the addresses of all if these are
/// wanted.
pub fn files(every_touch: bool) -> usize {
    2 + usize::from(every_touch)
}

/// A page fault of a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaultSample {
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// When, in ns of CLOCK_MONOTONIC.
    pub time: u64,
    /// The CPU.
    pub cpu: Option<u32>,
    /// The address that was accessed.
    pub address: u64,
    /// The registers, from which its call chain is found; their instruction is the one that accessed it.
    pub registers: UserRegisters,
    /// The top of the stack.
    pub stack: StackPiece,
    /// Number of faults that this one represents; 0 if it was delivered before, or may have been.
    pub weight: u64,
}

/// A page fault of a thread, without its call chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageTouch {
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// When, in ns of CLOCK_MONOTONIC.
    pub time: u64,
    /// The CPU.
    pub cpu: Option<u32>,
    /// The address that was accessed.
    pub address: u64,
}

impl PageTouch {
    /// The touch in a record; `None` if the record has no address.
    pub(crate) fn of(raw: &RawSample<'_>) -> Option<Self> {
        let RawSample { process, thread, time, cpu, address, .. } = *raw;
        Some(Self { process, thread, time, cpu, address: address? })
    }
}

/// The page faults of a program or process. Where there are more of them than can be taken without slowing the program, one
/// in [`SPARSE`] represents all.
#[derive(Debug)]
pub struct FaultRings {
    /// All faults, unless they are paused.
    rings: SampledRings,
    /// One in [`SPARSE`] faults, always.
    sparse: SampledRings,
    /// The addresses of all faults, always, if they are wanted and there is room for their rings.
    plain: Option<SampledRings>,
    window: u64,
    /// Faults that were taken in the window, by CPU. Faults that were lost may be of any CPU.
    taken: HashMap<Option<u32>, u64>,
    lost_in_window: u64,
    is_paused: bool,
    /// Time without samples so far, in ns.
    paused: u64,
    lost: u64,
    fault: FaultSample,
}

impl FaultRings {
    /// Opens the rings for these tasks. With `every_touch`, also those for the addresses of all faults.
    pub fn open(tasks: SampledTasks<'_>, every_touch: bool) -> Result<Self, SamplingError> {
        let open = |period, content, pages| {
            let events = [SampledEvent::page_faults(period)];
            SampledRings::open(&SamplingRequest { events: &events, tasks, content, pages })
        };
        let whole = SampleContent::Accessed { stack: STACK };
        let both = |pages| Ok((open(1, whole, pages)?, open(SPARSE, whole, SPARSE_PAGES)?));
        // In a user namespace, a limit may apply in spite of the capability.
        let (rings, sparse) = match locks_without_limit() {
            true => both(PAGES_WITHOUT_LIMIT).or_else(|_: SamplingError| both(PAGES))?,
            false => both(PAGES)?,
        };
        Ok(Self {
            rings,
            sparse,
            // If only these are refused, the page faults of neighbouring pages tell who touched a page.
            plain: PLAIN_PAGES
                .into_iter()
                .filter(|_| every_touch)
                .find_map(|pages| open(1, SampleContent::Address, pages).ok()),
            window: clock::monotonic(),
            taken: HashMap::new(),
            lost_in_window: 0,
            is_paused: false,
            paused: 0,
            lost: 0,
            fault: FaultSample::default(),
        })
    }

    /// Takes the faults of these threads too.
    pub fn add(&mut self, threads: &[u32], cpus: &CpuSet) -> Result<(), SamplingError> {
        self.rings.add(threads, cpus)?;
        self.sparse.add(threads, cpus)?;
        // If some threads are missing, the touches of the others tell less than the faults of neighbouring pages.
        if self.plain.as_mut().is_some_and(|plain| plain.add(threads, cpus).is_err()) {
            self.plain = None;
        }
        Ok(())
    }

    /// Takes the addresses of all faults since the last call, where they are wanted. Call it before [`Self::drain`].
    pub fn drain_touches(&mut self, take: &mut dyn FnMut(PageTouch)) {
        let Some(plain) = &mut self.plain else { return };
        plain.drain(&mut |record, _| {
            if let PerfRecord::Sample(raw) = record {
                PageTouch::of(raw).into_iter().for_each(&mut *take);
            }
        });
    }

    /// Takes the faults since the last call.
    pub fn drain(&mut self, take: &mut dyn FnMut(&FaultSample)) -> io::Result<()> {
        let Self { rings, sparse, taken, lost, lost_in_window, is_paused, fault, .. } = self;
        let lost_before = *lost;
        rings.drain(&mut |record, _| match record {
            PerfRecord::Sample(raw) => {
                *taken.entry(raw.cpu).or_default() += 1;
                fill(fault, raw, 1);
                take(fault);
            }
            // Lost faults have cost the program as much as the others.
            PerfRecord::Lost(records) => {
                *lost_in_window += records;
                *lost += records;
            }
            _ => {}
        });
        let stands_for_all = *is_paused || *lost > lost_before;
        sparse.drain(&mut |record, _| {
            // The kernel reports lost records only when there is room again, so this does not count them.
            if let PerfRecord::Sample(raw) = record {
                fill(fault, raw, if stands_for_all { SPARSE } else { 0 });
                take(fault);
            }
        });
        self.pace(clock::monotonic())
    }

    /// Pauses all faults until the end of a window that had too many, and resumes after it.
    fn pace(&mut self, now: u64) -> io::Result<()> {
        let is_over = now >= self.window + WINDOW;
        if is_over {
            (self.window, self.lost_in_window) = (now, 0);
            self.taken.clear();
        }
        let busiest = self.taken.values().max().copied().unwrap_or(0);
        let is_full = busiest + self.lost_in_window >= MAX_IN_WINDOW;
        if is_full == self.is_paused {
            return Ok(());
        }
        // The rest of the window passes without samples.
        self.paused += if is_full { (self.window + WINDOW).saturating_sub(now) } else { 0 };
        self.is_paused = is_full;
        self.rings.set_running(!is_full)
    }

    /// Faults that found no room.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Time in which most faults were left out, in ns.
    pub fn paused(&self) -> u64 {
        self.paused
    }
}

fn fill(fault: &mut FaultSample, raw: &RawSample<'_>, weight: u64) {
    fault.weight = weight;
    fault.process = raw.process;
    fault.thread = raw.thread;
    fault.time = raw.time;
    fault.cpu = raw.cpu;
    fault.address = raw.address.unwrap_or(0);
    // A 32-bit program has no registers that the unwinder could follow.
    fault.registers = raw.registers.unwrap_or(UserRegisters { ip: raw.ip, ..UserRegisters::default() });
    fault.stack.set(fault.registers.stack_pointer(), raw.stack);
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::loops::{Advice, Region};

    #[test]
    fn a_fault_without_registers_has_its_instruction() {
        let mut fault = FaultSample::default();
        fill(
            &mut fault,
            &RawSample { ip: 0x40, address: Some(0x7000), thread: 9, ..RawSample::default() },
            1,
        );
        assert_eq!((fault.registers.ip, fault.address, fault.thread), (0x40, 0x7000, 9));
        assert!(fault.stack.bytes.is_empty());
    }

    #[test]
    fn every_first_touch_of_this_thread_is_seen_with_its_address() {
        let opened = FaultRings::open(SampledTasks::Caller, true);
        let mut rings = match opened {
            Ok(rings) => rings,
            Err(error) => return numakit_skips::PRIVILEGES.skip(error),
        };
        // Small pages: each has a fault of its own.
        let (pages, page) = (200, numakit_sys::sched::page_size() as usize);
        let mut block = Region::map(pages * page).unwrap();
        block.advise(Advice::Small).unwrap();
        let start = block.doubles().as_ptr() as usize;
        block.touch(page);
        let mut touched = std::collections::BTreeSet::new();
        rings.drain_touches(&mut |touch| {
            assert_eq!(touch.process, std::process::id());
            touched.insert(touch.address as usize / page);
        });
        assert_eq!(touched.range(start / page..start / page + pages).count(), pages);
        // Those with call chains are as many as there is room for.
        let mut seen = 0;
        rings
            .drain(&mut |fault| {
                let within = (start..start + pages * page).contains(&(fault.address as usize));
                seen += usize::from(within && fault.registers.ip > 0 && fault.weight == 1);
            })
            .unwrap();
        let expected = if locks_without_limit() { pages..=pages } else { 80..=pages };
        assert!(expected.contains(&seen), "{seen} of {pages}");
        assert_eq!(rings.lost(), 0);
    }
}
