//! Page faults, each with its address, its registers and a piece of its stack: who touches which memory first.

use crate::sample::StackPiece;
use numakit_model::CpuSet;
use numakit_sys::clock;
use numakit_sys::perf::record::{PerfRecord, RawSample};
use numakit_sys::perf::sampling::{
    SampleContent, SampledEvent, SampledRings, SampledTasks, SamplingError, SamplingRequest,
};
use numakit_sys::registers::UserRegisters;
use std::collections::HashMap;
use std::io;

/// Pages of a ring: where it is drained every 5 ms, 88 faults with a piece of the stack are 17,000 a second. All rings of a CPU
/// fit what the kernel lets an ordinary user lock (516 KiB).
const PAGES: usize = 16;
/// And of the few that stand for all: 175 of them are 4 million faults a second.
const SPARSE_PAGES: usize = 32;
/// And of those without registers and stack, the first that is permitted: a program touches its memory all at once, and 18,700
/// of them are all pages of 73 MiB.
const PLAIN_PAGES: [usize; 2] = [256, 32];
/// Bytes of the stack: most functions that touch memory first, and those of the C library that they call, use less.
const STACK: u32 = 512;
/// While there are too many, one in this many is taken: each of its neighbours is likely to be touched by the same function.
const SPARSE: u64 = 127;
/// In a window of this time, in ns, about this many faults of each CPU are taken, which is 20,000 a second: each takes 2 us of
/// the program.
const WINDOW: u64 = 100_000_000;
const MOST: u64 = 2_000;

/// Files of a thread on a CPU: all faults, one in many, and the addresses of all if they are wanted.
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
    /// Number of faults that it represents; 0 for one that was delivered before, or may have been.
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
    /// `None` for a record without address.
    pub(crate) fn of(raw: &RawSample<'_>) -> Option<Self> {
        let RawSample { process, thread, time, cpu, address, .. } = *raw;
        Some(Self { process, thread, time, cpu, address: address? })
    }
}

/// The page faults of a program or process. Where there are more of them than can be taken without slowing the program, one
/// in [`SPARSE`] represents all.
#[derive(Debug)]
pub struct FaultRings {
    /// All, unless paused.
    rings: SampledRings,
    /// One in [`SPARSE`], always.
    sparse: SampledRings,
    /// The addresses of all, always, if they are wanted and there is room for them.
    plain: Option<SampledRings>,
    window: u64,
    /// In the window, by CPU; those that were lost are of any.
    taken: HashMap<Option<u32>, u64>,
    lost_in_window: u64,
    is_paused: bool,
    /// Time without samples so far, in ns.
    paused: u64,
    lost: u64,
    fault: FaultSample,
}

impl FaultRings {
    /// Opens them for these tasks, with the addresses of all faults or without.
    pub fn open(tasks: SampledTasks<'_>, every_touch: bool) -> Result<Self, SamplingError> {
        let open = |period, content, pages| {
            let events = [SampledEvent::page_faults(period)];
            SampledRings::open(&SamplingRequest { events: &events, tasks, content, pages })
        };
        let whole = SampleContent::Accessed { stack: STACK };
        Ok(Self {
            rings: open(1, whole, PAGES)?,
            sparse: open(SPARSE, whole, SPARSE_PAGES)?,
            // Where only they are refused, neighbours tell of the others.
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

    /// Takes those of these threads too.
    pub fn add(&mut self, threads: &[u32], cpus: &CpuSet) -> Result<(), SamplingError> {
        self.rings.add(threads, cpus)?;
        self.sparse.add(threads, cpus)?;
        // Without those of all threads, neighbours tell more than the rest of them.
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
            // They have cost the program as much.
            PerfRecord::Lost(records) => {
                *lost_in_window += records;
                *lost += records;
            }
            _ => {}
        });
        let stands_for_all = *is_paused || *lost > lost_before;
        sparse.drain(&mut |record, _| {
            // That others were lost is known only when there is room again.
            if let PerfRecord::Sample(raw) = record {
                fill(fault, raw, if stands_for_all { SPARSE } else { 0 });
                take(fault);
            }
        });
        self.pace(clock::monotonic())
    }

    /// Stops until the end of a window in which there were many, and goes on after it.
    fn pace(&mut self, now: u64) -> io::Result<()> {
        let is_over = now >= self.window + WINDOW;
        if is_over {
            (self.window, self.lost_in_window) = (now, 0);
            self.taken.clear();
        }
        let busiest = self.taken.values().max().copied().unwrap_or(0);
        let is_full = busiest + self.lost_in_window >= MOST;
        if is_full == self.is_paused {
            return Ok(());
        }
        // What is left of the window.
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
    // A 32-bit program has none that could be followed.
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
                seen += usize::from(within && fault.registers.ip > 0);
            })
            .unwrap();
        assert!(seen > 0 && seen <= pages, "{seen} of {pages}");
        assert_eq!(rings.lost(), 0);
    }
}
