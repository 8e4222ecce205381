//! Cores that were taken.

use crate::holding::{Process, Who};
use crate::record::Record;
use crate::scan::slot_place;
use numakit_model::CpuSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;

/// The inherited descriptor has this number or the next that is free.
pub const LEAST_DESCRIPTOR: RawFd = 100;

/// Cores that nobody else can take as long as a copy of the descriptor is open. Dropping it gives
/// up this copy.
#[derive(Debug)]
pub struct Held {
    pub(crate) file: File,
    pub(crate) slot: u64,
    pub(crate) record: Record,
}

impl Held {
    /// The CPUs.
    pub fn cpus(&self) -> &CpuSet {
        &self.record.cpus
    }

    /// The descriptor to which the locks belong: for [`numakit_sys::start::Start::descriptor`] and
    /// for `NUMA_HOLD`. It is closed at exec otherwise.
    pub fn descriptor(&self) -> RawFd {
        self.file.as_raw_fd()
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

/// This process, or another, so that a later one with its number is told apart.
pub(crate) fn process(pid: u32) -> Option<Process> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(Process { pid, start: crate::audit::start_of(&stat)? })
}
