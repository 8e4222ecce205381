//! Reserved cores.

use crate::holding::ProcessId;
use crate::location::RegistryLocation;
use crate::record::{HolderRecord, Parsed};
use crate::scan::{identity_lock, read_record, record_offset, slot_lock};
use numakit_model::CpuSet;
use numakit_sys::proc::TaskDir;
use numakit_sys::{SysRoot, lock};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::fs::FileExt;

/// The inherited descriptor has this number, or the next free one above it.
pub const MIN_DESCRIPTOR: RawFd = 100;

/// Cores that no other program can take as long as a copy of the descriptor is open. Dropping it closes this copy.
#[derive(Debug)]
pub struct Reservation {
    pub(crate) file: File,
    pub(crate) location: RegistryLocation,
    pub(crate) slot: u64,
    pub(crate) record: HolderRecord,
}

/// The result of locking.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Locked {
    /// All CPUs are locked.
    All,
    /// Another program has the record with this number. Nothing was written.
    NoSlot,
    /// Other programs have these CPUs; all others are locked.
    AllBut(CpuSet),
}

impl Reservation {
    /// The CPUs.
    pub fn cpus(&self) -> &CpuSet {
        &self.record.cpus
    }

    /// The descriptor to which the locks belong: for [`numakit_sys::start::PreparedCommand::descriptor`] and
    /// for `NUMA_HOLD`. Without that, it is closed at exec.
    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// The tag for the program and all its descendants.
    pub fn tag(&self) -> Option<u64> {
        self.record.holder.tag
    }

    /// Locks the CPUs and writes the record, if `may_replace` allows it for the record that is there: the program that wrote
    /// that one may have lost its locks and still run.
    pub(crate) fn lock(&self, may_replace: impl FnOnce(&Parsed) -> bool) -> io::Result<Locked> {
        let file = self.file.as_fd();
        // Without this lock, a removed file is only harder to recognise.
        let _ = lock::try_share(file, identity_lock(self.location.identity(&self.file)));
        if !lock::try_lock(file, slot_lock(self.slot))? || !may_replace(&read_record(&self.file, self.slot)?)
        {
            return Ok(Locked::NoSlot);
        }
        // The record is written first: locked CPUs without a record count as damaged.
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

    /// Writes into the record which processes the program and its supervisor are. Only the process that supervises
    /// the program does so.
    pub fn record_processes(&mut self, supervisor: u32, program: Option<u32>) -> io::Result<()> {
        let holder = &mut self.record.holder;
        (holder.supervisor, holder.program) = (process_id(supervisor), program.and_then(process_id));
        self.write()
    }

    /// Releases the cores, since nothing was started on them or all descendants have ended. From now on, a record without
    /// locks means nothing.
    pub fn release(mut self) {
        self.record.ended = true;
        // If this fails, the audit finds that no process belongs to the record.
        let _ = self.write();
    }

    pub(crate) fn write(&self) -> io::Result<()> {
        self.file.write_all_at(&self.record.bytes(), record_offset(self.slot))
    }
}

/// Consecutive CPUs as ranges, for as few locks as possible.
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

/// The identity of a process, which a later one with the same PID does not have.
pub(crate) fn process_id(pid: u32) -> Option<ProcessId> {
    let start = TaskDir::of(&SysRoot::host(), pid).stat().ok()?.start;
    Some(ProcessId { pid, start })
}
