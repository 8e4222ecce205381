//! Cores that were taken.

use crate::holding::{ProcessId, Who};
use crate::place::RegistryLocation;
use crate::record::{HolderRecord, Parsed};
use crate::scan::{mark, record_at, slot_lock, slot_place};
use numakit_model::CpuSet;
use numakit_sys::proc::TaskDir;
use numakit_sys::{SysRoot, lock};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::fs::FileExt;

/// The inherited descriptor has this number or the next that is free.
pub const MIN_DESCRIPTOR: RawFd = 100;

/// Cores that nobody else can take as long as a copy of the descriptor is open. Dropping it gives
/// up this copy.
#[derive(Debug)]
pub struct Reservation {
    pub(crate) file: File,
    pub(crate) place: RegistryLocation,
    pub(crate) slot: u64,
    pub(crate) record: HolderRecord,
}

/// What became of locks that were asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Locked {
    /// All of them are there.
    All,
    /// The record is somebody else's. Nothing was written.
    NoSlot,
    /// These CPUs are somebody else's; the others are locked.
    AllBut(CpuSet),
}

impl Reservation {
    /// The CPUs.
    pub fn cpus(&self) -> &CpuSet {
        &self.record.cpus
    }

    /// The descriptor to which the locks belong: for [`numakit_sys::start::PreparedCommand::descriptor`] and
    /// for `NUMA_HOLD`. It is closed at exec otherwise.
    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// What the program and all that it starts are to be tagged with.
    pub fn tag(&self) -> Option<u64> {
        self.record.who.tag
    }

    /// Locks and writes everything in the file, if what is written in the record's place may go: of
    /// who wrote there meanwhile the locks may be lost and the program still run.
    pub(crate) fn lock(&self, may_go: impl FnOnce(&Parsed) -> bool) -> io::Result<Locked> {
        let file = self.file.as_fd();
        // Without it only what has lost its name is harder to tell.
        let _ = lock::try_share(file, mark(self.place.identity(&self.file)));
        if !lock::try_lock(file, slot_lock(self.slot))? || !may_go(&record_at(&self.file, self.slot)?) {
            return Ok(Locked::NoSlot);
        }
        // The record comes first: what is locked without one is damaged.
        self.write()?;
        let mut others = CpuSet::new();
        for part in ranges(&self.record.cpus) {
            if lock::try_lock(file, part.clone())? {
                continue;
            }
            for cpu in part {
                if !lock::try_lock(file, cpu..cpu + 1)? {
                    others.insert(cpu as u32);
                }
            }
        }
        Ok(if others.is_empty() { Locked::All } else { Locked::AllBut(others) })
    }

    /// Changes what the record says of the holder. Only whoever keeps the cores does so.
    pub(crate) fn tell(&mut self, change: impl FnOnce(&mut Who)) -> io::Result<()> {
        change(&mut self.record.who);
        self.write()
    }

    /// All descendants have ended: a record without locks means nothing from now on.
    pub(crate) fn end(mut self) {
        self.record.ended = true;
        // Without it, the record is told apart by what still runs on the cores.
        let _ = self.write();
    }

    pub(crate) fn write(&self) -> io::Result<()> {
        self.file.write_all_at(&self.record.bytes(), slot_place(self.slot))
    }

    /// Gives the cores back before anything was started on them.
    pub fn give_back(self) {
        self.end();
    }
}

/// Neighbouring CPUs as one range: as few locks as possible.
fn ranges(cpus: &CpuSet) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for cpu in cpus.iter().map(u64::from) {
        match ranges.last_mut() {
            Some(last) if last.end == cpu => last.end += 1,
            _ => ranges.push(cpu..cpu + 1),
        }
    }
    ranges
}

/// This process, or another, so that a later one with its number is told apart.
pub(crate) fn process(pid: u32) -> Option<ProcessId> {
    let start = TaskDir::of(&SysRoot::host(), pid).stat().ok()?.start;
    Some(ProcessId { pid, start })
}
