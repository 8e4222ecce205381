//! Walks the memory of several processes, one after the other and in small parts.

use crate::allocator::{AllocatorSpace, RegionPages};
use crate::nodes::TaskNodes;
use crate::numa_maps::MemoryByUse;
use crate::search::Search;
use numakit_model::Topology;
use numakit_sys::proc::{TaskDir, TaskStatus};
use numakit_sys::{ReadError, SysRoot};
use std::collections::HashMap;
use std::io::ErrorKind;

/// The machine whose processes are walked.
#[derive(Debug, Clone)]
pub struct WalkedMachine {
    /// Its files and pages.
    pub root: SysRoot,
    /// Its nodes.
    pub nodes: TaskNodes,
    /// Its base page size.
    pub page_size: u64,
    /// Whether the lock of a large process may be held while all its memory is walked, if there is no
    /// other method.
    pub may_hold: bool,
}

impl WalkedMachine {
    /// The machine with this topology.
    pub fn of(root: &SysRoot, topology: &Topology, may_hold: bool) -> Self {
        let (nodes, page_size) = (TaskNodes::of(topology), topology.page_size.max(1024));
        Self { root: root.clone(), nodes, page_size, may_hold }
    }
}

/// A process to walk: its pid and start time, which identify it.
pub type ProcessKey = (u32, Option<u64>);

/// What is read of each process.
#[derive(Debug, Clone, Copy, Default)]
pub struct WalkRequest {
    /// Whether memory is read by node.
    pub memory: bool,
    /// Whether huge pages are counted.
    pub huge_pages: bool,
}

/// The result of a step.
#[derive(Debug, PartialEq, Eq)]
pub enum WalkStep {
    /// There is more to do.
    Part,
    /// A process is done.
    Process(ProcessKey, MemoryByUse),
    /// All are done.
    End,
}

/// A walk of processes.
#[derive(Debug, Default)]
pub struct Walk {
    wanted: WalkRequest,
    /// The remaining processes; the last one is next.
    left: Vec<ProcessKey>,
    search: Option<Search>,
    /// Where the allocators of processes have their regions.
    spaces: HashMap<u32, AllocatorSpace>,
    /// The pages of these regions, added up over processes.
    pub regions: Vec<RegionPages>,
    /// What was found besides memory so far.
    pub findings: WalkFindings,
}

/// What a walk found in addition to the memory of each process.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct WalkFindings {
    /// A process that may not be read.
    pub denied: Option<u32>,
    /// A process that could only be read while its lock is held.
    pub refused: Option<u32>,
    /// A process whose lock was held, because there was no other method.
    pub held: Option<u32>,
    /// Bytes in huge pages.
    pub huge_pages: u64,
    /// A process whose huge pages could only be counted while its lock is held.
    pub huge_unknown: Option<u32>,
    /// Square of the standard error of the bytes of a node.
    pub variance: f64,
}

impl Walk {
    /// A walk of these processes in this order.
    pub fn new(wanted: WalkRequest, mut processes: Vec<ProcessKey>) -> Self {
        processes.reverse();
        Self { wanted, left: processes, ..Self::default() }
    }

    /// Also finds the pages of these allocators.
    pub fn with_spaces(self, spaces: HashMap<u32, AllocatorSpace>) -> Self {
        Self { spaces, ..self }
    }

    /// Whether it finds the pages of allocators.
    pub fn has_spaces(&self) -> bool {
        !self.spaces.is_empty()
    }

    /// Reads one part.
    pub fn step(&mut self, place: &WalkedMachine) -> WalkStep {
        let Some(&name) = self.left.last() else { return WalkStep::End };
        match self.part(place, name.0) {
            Ok(None) => return WalkStep::Part,
            Ok(Some(memory)) => {
                self.left.pop();
                return WalkStep::Process(name, memory);
            }
            Err(error) if error.kind == ErrorKind::PermissionDenied => self.findings.denied = Some(name.0),
            Err(error) if error.kind == ErrorKind::Unsupported => {
                (self.findings.refused, self.findings.huge_unknown) = (Some(name.0), Some(name.0));
            }
            // The process is exiting and has no memory any more.
            Err(_) => {}
        }
        self.left.pop();
        self.search = None;
        if self.left.is_empty() { WalkStep::End } else { WalkStep::Part }
    }

    /// Reads one part of a process; its memory once it is complete.
    fn part(&mut self, place: &WalkedMachine, pid: u32) -> Result<Option<MemoryByUse>, ReadError> {
        let mut memory = MemoryByUse::none(place.nodes.count());
        let mut search = match self.search.take() {
            Some(search) => search,
            None => Search::open(place, pid, self.spaces.get(&pid).copied())?,
        };
        // The huge pages of a small process are in a separate file.
        if (self.wanted.memory || !search.is_small()) && search.advance(place)? {
            self.search = Some(search);
            return Ok(None);
        }
        let small = search.is_small();
        let found = search.found();
        let findings = &mut self.findings;
        if self.wanted.memory {
            memory = found.memory;
            findings.variance += found.variance;
            self.regions.resize(self.regions.len().max(found.regions.len()), RegionPages::default());
            for (sum, pages) in self.regions.iter_mut().zip(&found.regions) {
                sum.local = sum.local.saturating_add(pages.local);
                sum.spilled = sum.spilled.saturating_add(pages.spilled);
            }
        }
        if found.held {
            findings.held = Some(pid);
        }
        match found.huge_pages {
            _ if !self.wanted.huge_pages => {}
            Some(bytes) => findings.huge_pages = findings.huge_pages.saturating_add(bytes),
            None if small => {
                let rollup = TaskStatus::new(TaskDir::of(&place.root, pid).text("smaps_rollup")?);
                let kinds = HUGE_PAGES.iter().filter_map(|kind| rollup.bytes(kind));
                findings.huge_pages = kinds.fold(findings.huge_pages, u64::saturating_add);
            }
            None => findings.huge_unknown = Some(pid),
        }
        Ok(Some(memory))
    }
}

/// Lines of smaps_rollup with memory in huge pages.
const HUGE_PAGES: [&str; 5] =
    ["AnonHugePages", "ShmemPmdMapped", "FilePmdMapped", "Shared_Hugetlb", "Private_Hugetlb"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numa_maps::Use;
    use numakit_testing::sysfs::{nodes, root};

    const BOTH: WalkRequest = WalkRequest { memory: true, huge_pages: true };

    #[test]
    fn a_long_file_is_read_in_parts_and_to_its_end() {
        let lines: String = (0..5000)
            .map(|n| format!("{n:x} default anon=1 dirty=1 N{}=1 kernelpagesize_kB=4\n", n % 2))
            .collect();
        let root = root(&[
            ("/proc/7/numa_maps", &lines),
            ("/proc/7/smaps_rollup", "AnonHugePages:  2048 kB\nShared_Hugetlb: 4096 kB\nRss: 9 kB\n"),
        ]);
        let topology = Topology { page_size: 4096, ..nodes(&[0, 1]) };
        let place = WalkedMachine::of(&root, &topology, true);
        let mut walk = Walk::new(BOTH, vec![(7, None), (8, None)]);
        let mut parts = 0;
        let memory = loop {
            match walk.step(&place) {
                WalkStep::Part => parts += 1,
                WalkStep::Process((7, None), memory) => break memory,
                other => panic!("{other:?}"),
            }
        };
        assert!(parts > lines.len() / 4096);
        assert_eq!((memory.on(0), memory.on(1)), (2500 * 4096, 2500 * 4096));
        assert_eq!((walk.findings.huge_pages, memory.used_for(Use::Anonymous)), (6 << 20, 5000 * 4096));
        // The other one has exited.
        assert_eq!((walk.step(&place), walk.findings.denied), (WalkStep::End, None));
    }

    #[test]
    fn a_process_that_may_not_be_read_is_reported() {
        let root = root(&[]);
        root.change(|tree| _ = tree.failing("/proc/7/numa_maps", ErrorKind::PermissionDenied));
        let place = WalkedMachine::of(&root, &nodes(&[0]), true);
        let mut walk = Walk::new(BOTH, vec![(7, None)]);
        assert_eq!((walk.step(&place), walk.findings.denied), (WalkStep::End, Some(7)));
    }
}
