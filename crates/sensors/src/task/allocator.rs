//! The counts of libnumalloc in a running process, which is not stopped for it.

mod table;

pub use table::{AllocatorCounts, CountTableError, RegionCounts};

use super::access::TaskAccess;
use numakit_explain::symbols;
use numakit_sampling::process::{ObservedProcess, ProcessMapping};
use numakit_sys::SysRoot;
use numakit_sys::proc::TaskDir;
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

/// A process with the library.
#[derive(Debug)]
pub struct AllocatorReader {
    process: ObservedProcess,
    address: u64,
}

impl AllocatorReader {
    /// Finds the table of counts in a process of this machine.
    pub fn open(pid: u32) -> Result<Self, AllocatorError> {
        let root = SysRoot::host();
        let task = TaskDir::of(&root, pid);
        let process = ObservedProcess::open(pid).map_err(|error| match error.kind {
            ErrorKind::PermissionDenied => refused(&root, pid),
            _ => AllocatorError::NoProcess(pid),
        })?;
        let stat = task.stat().map_err(|_| AllocatorError::NoProcess(pid))?;
        if stat.has_ended() {
            return Err(AllocatorError::Ended(pid));
        }
        let Some(mapping) =
            process.mappings().iter().find(|mapping| mapping.offset == 0 && is_library(mapping))
        else {
            return Err(AllocatorError::NotLoaded { pid, program: stat.name() });
        };
        let path = mapping.name.to_string();
        let file = library(&task, mapping).map_err(|reason| AllocatorError::Unreadable {
            pid,
            path: path.clone(),
            reason: reason.reason,
        })?;
        let distance = symbols::exported(&file, TABLE).ok_or(AllocatorError::NoTable { pid, path })?;
        Ok(Self { address: mapping.range.start.saturating_add(distance), process })
    }

    /// The counts as they are now.
    pub fn read(&mut self) -> Result<AllocatorCounts, AllocatorError> {
        let pid = self.process.id();
        let mut bytes = vec![0; table::HEADER_BYTES];
        self.copy(&mut bytes)?;
        let length = table::length(&bytes).map_err(|error| AllocatorError::Table(pid, error))?;
        bytes.resize(length, 0);
        self.copy(&mut bytes)?;
        let mut counts = AllocatorCounts::parse(&bytes).map_err(|error| AllocatorError::Table(pid, error))?;
        // There is a region for each number up to the highest node.
        let root = SysRoot::host();
        let has_node = |node: u32| node == 0 || root.exists(&format!("/sys/devices/system/node/node{node}"));
        counts.regions.retain(|region| region.mapped > 0 || region.node.is_none_or(has_node));
        Ok(counts)
    }

    /// Copies the first bytes of the table.
    fn copy(&mut self, into: &mut [u8]) -> Result<(), AllocatorError> {
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
        if self.process.read(self.address, into) {
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

fn is_library(mapping: &ProcessMapping) -> bool {
    let name = mapping.name.strip_suffix(REMOVED).unwrap_or(&mapping.name);
    name.strip_suffix(LIBRARY).is_some_and(|folder| folder.ends_with('/'))
}

/// The file of a mapping: as the process finds it, else, for root, the one that is mapped though it was removed.
fn library(task: &TaskDir<'_>, mapping: &ProcessMapping) -> Result<Vec<u8>, numakit_sys::ReadError> {
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
