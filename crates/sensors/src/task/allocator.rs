//! The counts of libnumalloc in a running process, which is not stopped for it.

mod space;
mod table;
mod watch;

pub use space::{AllocatorSpace, PagesUnknown, RegionPages};
pub use watch::{AllocatorCandidate, AllocatorWatch, NodeAllocations};

pub use table::{AllocatorCounts, CountTableError, RegionCounts};

use super::access::TaskAccess;
use numakit_explain::symbols;
use numakit_sampling::process::{ObservedProcess, ProcessMapping};
use numakit_sys::proc::{TaskDir, numa_maps};
use numakit_sys::{ReadError, SysRoot, sched};
use std::io::ErrorKind;

/// The file of the library; its table is the symbol.
const LIBRARY: &str = "libnumalloc.so";
const TABLE: &str = "numalloc_counts";

/// What the kernel adds to the name of a mapped file that was removed.
const REMOVED: &str = " (deleted)";

/// Why there are no counts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllocatorError {
    /// It does not exist.
    #[error("there is no process {0}; 'numa ps' and 'numa tasks' list processes")]
    NoProcess(u32),
    /// It has ended meanwhile.
    #[error("process {0} has ended")]
    Ended(u32),
    /// It executed another program meanwhile.
    #[error("process {0} executes another program now; repeat the command")]
    Replaced(u32),
    /// It has another allocator.
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
    /// The table is another one.
    #[error("process {0}: {1}")]
    Table(u32, CountTableError),
}

impl AllocatorError {
    /// Whether the library is there, but has not been used yet.
    pub fn is_unused(&self) -> bool {
        matches!(self, Self::Table(_, CountTableError::Unused))
    }
}

/// A process with the library.
#[derive(Debug)]
pub struct AllocatorReader {
    process: ObservedProcess,
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
        let not_loaded = || AllocatorError::NotLoaded { pid, program: stat.name() };
        // Most processes are others, and their mappings may be many.
        if !maps.contains(LIBRARY) {
            return Err(not_loaded());
        }
        let process = ObservedProcess::open(pid).map_err(unreadable)?;
        let mut mappings = process.mappings().iter();
        let mapping =
            mappings.find(|mapping| mapping.offset == 0 && is_library(mapping)).ok_or_else(not_loaded)?;
        let path = mapping.name.to_string();
        let file = library(&task, mapping).map_err(|reason| AllocatorError::Unreadable {
            pid,
            path: path.clone(),
            reason: reason.reason,
        })?;
        let distance = symbols::exported(&file, TABLE).ok_or(AllocatorError::NoTable { pid, path })?;
        let address = mapping.range.start.saturating_add(distance);
        Ok(Self { address, process, bytes: vec![0; table::HEADER_BYTES] })
    }

    /// The counts as they are now, and where the pages lie: the kernel visits all pages for that, and the program waits if
    /// it maps memory meanwhile.
    pub fn read(&mut self) -> Result<AllocatorCounts, AllocatorError> {
        let pid = self.process.id();
        // Another process may have its number, or it another program.
        self.process.refresh();
        // At the end of a process its memory goes first.
        if self.process.has_ended() || self.process.mappings().is_empty() {
            return Err(AllocatorError::Ended(pid));
        }
        if self.process.mapping(self.address).is_none() {
            return Err(AllocatorError::Replaced(pid));
        }
        let mut counts = self.peek()?;
        counts.pages = pages(pid, &counts);
        // There is a region for each number up to the highest node.
        let root = SysRoot::host();
        let has_node = |node: u32| node == 0 || root.exists(&format!("/sys/devices/system/node/node{node}"));
        counts.regions.retain(|region| region.mapped > 0 || region.node.is_none_or(has_node));
        Ok(counts)
    }

    /// The counts as they are now, without their pages. Of a process that executes another program since, this finds no
    /// table.
    pub fn peek(&mut self) -> Result<AllocatorCounts, AllocatorError> {
        let pid = self.process.id();
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

    /// Copies as much of the table as it has, as far as is known.
    fn copy(&mut self) -> Result<(), AllocatorError> {
        let pid = self.process.id();
        if self.process.read(self.address, &mut self.bytes) {
            Ok(())
        } else if self.process.has_ended() {
            Err(AllocatorError::Ended(pid))
        } else if self.process.is_readable() {
            Err(AllocatorError::Replaced(pid))
        } else {
            Err(refused(&SysRoot::host(), pid))
        }
    }
}

/// Where the pages of the regions lie, or why that is unknown.
fn pages(pid: u32, counts: &AllocatorCounts) -> Result<Vec<RegionPages>, PagesUnknown> {
    if counts.regions.iter().any(|region| region.node.is_none()) {
        return Err(PagesUnknown::NoNodes);
    }
    let text = TaskDir::of(&SysRoot::host(), pid).bytes("numa_maps")?;
    let (mut pages, mut on) = (counts.space.no_pages(), Vec::new());
    for line in text.split(|&b| b == b'\n') {
        on.clear();
        let found = numa_maps::line(line, sched::page_size(), |_, node, bytes| on.push((node, bytes)));
        if let Some((start, _)) = found {
            on.iter().for_each(|(node, bytes)| counts.space.add(&mut pages, start, *node, *bytes));
        }
    }
    Ok(pages)
}

fn is_library(mapping: &ProcessMapping) -> bool {
    let name = mapping.name.strip_suffix(REMOVED).unwrap_or(&mapping.name);
    name.strip_suffix(LIBRARY).is_some_and(|folder| folder.ends_with('/'))
}

/// The file of a mapping: as the process finds it, else, for root, the one that is mapped though it was removed.
fn library(task: &TaskDir<'_>, mapping: &ProcessMapping) -> Result<Vec<u8>, ReadError> {
    task.bytes(&format!("root{}", mapping.name)).or_else(|error| {
        let mapped = format!("map_files/{:x}-{:x}", mapping.range.start, mapping.range.end);
        task.bytes(&mapped).map_err(|_| error)
    })
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
