//! The counts of libnumalloc in a running process, which is not stopped for it.

mod library;
mod space;
mod table;
mod watch;

pub use space::{AllocatorSpace, PagesUnknown, RegionPages};
pub use table::{AllocatorCounts, CountTableError, RegionCounts};
pub use watch::{AllocatorCandidate, AllocatorWatch, NodeAllocations};

use crate::access::TaskAccess;
use crate::nodes::TaskNodes;
use crate::numa_maps::NumaMapsReading;
use crate::tree::Tree;
use library::LIBRARY;
use numakit_sys::proc::{TaskDir, maps};
use numakit_sys::remote::RemoteMemory;
use numakit_sys::{ReadError, SysRoot, sched};
use std::io::ErrorKind;

/// The symbol of the library's table.
const TABLE: &str = "numalloc_counts";

/// Why there are no counts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllocatorError {
    /// There is no such process.
    #[error("there is no process {0}; 'numa ps' and 'numa top --once' list processes")]
    NoProcess(u32),
    /// The process has ended meanwhile.
    #[error("process {0} has ended")]
    Ended(u32),
    /// The process executes another program by now.
    #[error("process {0} executes another program now; repeat the command")]
    Replaced(u32),
    /// The process has not loaded the library.
    #[error(
        "process {pid} ({program}) has not loaded {LIBRARY}; start the program with 'numa run --alloc numa -- CMD', and \
         give its own process ID, which 'numa ps' lists"
    )]
    NotLoaded {
        /// The process.
        pid: u32,
        /// The name of its program.
        program: String,
    },
    /// The kernel refuses to read its memory.
    #[error("process {pid}: its memory cannot be read: {seen}; {fix}")]
    Refused {
        /// The process.
        pid: u32,
        /// What refuses it.
        seen: String,
        /// What permits it.
        fix: String,
    },
    /// The file of the library cannot be read.
    #[error("process {pid}: {path} cannot be read: {reason}; run as root, or start the program again")]
    Unreadable {
        /// The process.
        pid: u32,
        /// The file.
        path: String,
        /// The system's error.
        reason: String,
    },
    /// The library has no counts.
    #[error(
        "process {pid}: {path} has no table of counts; start the program with the --alloc of this 'numa'"
    )]
    NoTable {
        /// The process.
        pid: u32,
        /// The file of the library.
        path: String,
    },
    /// What lies where the library has its table cannot be read as one.
    #[error("process {0}: {1}")]
    Table(u32, CountTableError),
}

impl AllocatorError {
    /// Whether the process has loaded the library, but has allocated nothing with it yet.
    pub fn is_unused(&self) -> bool {
        matches!(self, Self::Table(_, CountTableError::Unused))
    }
}

/// A process that has loaded the library: its counts can be read again and again.
#[derive(Debug)]
pub struct AllocatorReader {
    process: u32,
    /// The start time of the process, which with its number identifies it.
    start: u64,
    memory: RemoteMemory,
    address: u64,
    /// The table as it was read last.
    bytes: Vec<u8>,
}

impl AllocatorReader {
    /// Finds the table of counts in a process of this machine.
    pub fn open(pid: u32) -> Result<Self, AllocatorError> {
        let root = SysRoot::host();
        let task = TaskDir::of(&root, pid);
        let unreadable = |error: ReadError| match error.kind {
            ErrorKind::PermissionDenied => refused(&root, pid),
            _ => AllocatorError::NoProcess(pid),
        };
        let maps = task.text("maps").map_err(unreadable)?;
        let stat = task.stat().map_err(|_| AllocatorError::NoProcess(pid))?;
        if stat.has_ended() {
            return Err(AllocatorError::Ended(pid));
        }
        // Most processes have another allocator, and their mappings may be many.
        let mapping = maps.lines().filter(|line| line.contains(LIBRARY)).find_map(library::mapping);
        let mapping = mapping.ok_or_else(|| AllocatorError::NotLoaded { pid, program: stat.name() })?;
        let path = mapping.name.to_owned();
        let file = library::file(&task, &mapping).map_err(|reason| AllocatorError::Unreadable {
            pid,
            path: path.clone(),
            reason: reason.reason,
        })?;
        let distance = library::exported(&file, TABLE).ok_or(AllocatorError::NoTable { pid, path })?;
        let address = mapping.range.start.saturating_add(distance);
        let (memory, bytes) = (RemoteMemory::of(pid), vec![0; table::HEADER_BYTES]);
        Ok(Self { process: pid, start: stat.start, memory, address, bytes })
    }

    /// The counts as they are now, and where the pages lie: the kernel visits all pages for that, and the program waits if
    /// it maps memory meanwhile.
    pub fn read(&mut self) -> Result<AllocatorCounts, AllocatorError> {
        let (pid, root) = (self.process, SysRoot::host());
        let task = TaskDir::of(&root, pid);
        // Another process may have the number of this one by now, which may have executed another program.
        if task.stat().ok().is_none_or(|stat| stat.exited || stat.start != self.start) {
            return Err(AllocatorError::Ended(pid));
        }
        match task.text("maps") {
            // At the end of a process its memory goes first.
            Ok(text) if text.is_empty() => return Err(AllocatorError::Ended(pid)),
            Ok(text) if maps::mapping_of(&text, self.address).is_none() => {
                return Err(AllocatorError::Replaced(pid));
            }
            _ => {}
        }
        let mut counts = self.peek()?;
        counts.pages = pages(&root, pid, &counts);
        // There is a region for each number up to the highest node.
        let has_node = |node: u32| node == 0 || root.exists(&format!("/sys/devices/system/node/node{node}"));
        counts.regions.retain(|region| region.mapped > 0 || region.node.is_none_or(has_node));
        Ok(counts)
    }

    /// The counts as they are now, without where the pages lie. In a process that has executed another program since, there
    /// is no table to be found.
    pub fn peek(&mut self) -> Result<AllocatorCounts, AllocatorError> {
        let pid = self.process;
        let damaged = |error| match error {
            CountTableError::Magic => AllocatorError::Replaced(pid),
            other => AllocatorError::Table(pid, other),
        };
        self.copy()?;
        let length = table::length(&self.bytes).map_err(damaged)?;
        if length != self.bytes.len() {
            self.bytes.resize(length, 0);
            self.copy()?;
        }
        AllocatorCounts::parse(&self.bytes).map_err(damaged)
    }

    /// Copies as many bytes of the table as there is room for.
    fn copy(&mut self) -> Result<(), AllocatorError> {
        let pid = self.process;
        if self.memory.read(self.address, &mut self.bytes) == Some(self.bytes.len()) {
            Ok(())
        } else if self.memory.has_ended() {
            Err(AllocatorError::Ended(pid))
        } else if self.memory.is_readable() {
            Err(AllocatorError::Replaced(pid))
        } else {
            Err(refused(&SysRoot::host(), pid))
        }
    }
}

/// Where the pages of the regions lie, or why that is unknown.
fn pages(root: &SysRoot, pid: u32, counts: &AllocatorCounts) -> Result<Vec<RegionPages>, PagesUnknown> {
    if counts.regions.iter().any(|region| region.node.is_none()) {
        return Err(PagesUnknown::NoNodes);
    }
    let nodes = TaskNodes::default();
    let mut reading = NumaMapsReading::open(root, pid, &nodes, Some(counts.space))?;
    while reading.advance(&nodes, sched::page_size())? {}
    Ok(reading.found().1)
}

/// Whether one of these running processes or one of their descendants has loaded the library, or may have done so without showing it.
pub fn may_be_loaded(root: &SysRoot, pids: &[u32]) -> bool {
    let lacks = |pid: u32| {
        use AllocatorError::{Ended, NoProcess, NotLoaded};
        matches!(AllocatorReader::open(pid), Err(NotLoaded { .. } | NoProcess(_) | Ended(_)))
    };
    let mut tree = Tree::of(root, pids);
    tree.scan(root);
    tree.members.iter().any(|member| !lacks(member.pid))
}

/// The setting of the security module Yama.
const YAMA: &str = "/proc/sys/kernel/yama/ptrace_scope";

/// Why the memory of a process cannot be read, and what permits it.
fn refused(root: &SysRoot, pid: u32) -> AllocatorError {
    let access = TaskAccess::read(root);
    let user = TaskDir::of(root, pid).status().ok().and_then(|status| status.user());
    let own = TaskDir::own(root).status().ok().and_then(|status| status.user());
    let is_others = user.is_some() && user != own;
    let scope = root.text(YAMA).ok().and_then(|text| text.trim().parse::<u32>().ok()).unwrap_or(0);
    let (seen, fix) = match scope {
        3.. => (
            format!("kernel.yama.ptrace_scope is {scope}"),
            "boot without it: this level can only be set back by a boot".to_owned(),
        ),
        1 if !is_others && !access.is_capable() => (
            "kernel.yama.ptrace_scope is 1, by which only parents read it".to_owned(),
            "run as root, or as root: sysctl kernel.yama.ptrace_scope=0".to_owned(),
        ),
        2 if !access.is_capable() => (
            "kernel.yama.ptrace_scope is 2, by which only root reads it".to_owned(),
            "run as root, or as root: sysctl kernel.yama.ptrace_scope=0".to_owned(),
        ),
        _ if is_others => (format!("it belongs to user {}", user.unwrap_or_default()), access.fix()),
        _ => ("the kernel refuses it".to_owned(), access.fix()),
    };
    AllocatorError::Refused { pid, seen, fix }
}

#[cfg(test)]
mod tests;
