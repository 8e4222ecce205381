//! The allocators of the observed processes: found when a process has loaded the library, and read at each scan, which
//! costs a call for each of them.

use super::{AllocatorCounts, AllocatorError, AllocatorReader, AllocatorSpace, RegionCounts};
use crate::nodes::TaskNodes;
use numakit_sys::clock;
use std::collections::HashMap;

/// A process may have been searched before its libraries were loaded, which takes at least this much address space. It is searched
/// again when it has that much more or less, then twice as much, and so on.
const LOADED: u64 = 1 << 20;

/// A process that may have loaded the library, and what tells whether it is searched again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocatorCandidate {
    /// The process.
    pub pid: u32,
    /// Its start time, which with its number identifies it.
    pub start: Option<u64>,
    /// Where the arguments of its program lie: elsewhere after it executes another one. `None` if the kernel does not say.
    pub arguments: Option<usize>,
    /// Its address space in bytes.
    pub mapped: u64,
}

/// The values of a node: the levels, then what grows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeAllocations {
    /// Address space that was made usable.
    pub mapped: u64,
    /// Memory in which blocks lie.
    pub in_use: u64,
    /// Free memory that the allocator keeps.
    pub cached: u64,
    /// Memory that was used again while it was kept, since its process was first seen.
    pub recycled: u64,
    /// Blocks that threads of other nodes freed, since the process was first seen.
    pub other_nodes: u64,
}

/// The allocators of several processes.
#[derive(Debug, Default)]
pub struct AllocatorWatch {
    known: HashMap<u32, Known>,
    /// The values by position of the node.
    sums: Vec<NodeAllocations>,
    /// Why the counts of a process are unknown.
    unread: Option<String>,
    /// CPU time of the searches of the last scan, in ns.
    searching: u64,
}

#[derive(Debug)]
struct Known {
    start: Option<u64>,
    /// Its arguments and its address space when it was searched; `None` if it is to be searched in any case.
    searched: Option<(Option<usize>, u64)>,
    /// How much its address space changes before it is searched again.
    change: u64,
    reader: Option<AllocatorReader>,
    counts: Option<AllocatorCounts>,
    unread: Option<String>,
}

impl AllocatorWatch {
    /// Reads the counts of these processes.
    pub fn scan(&mut self, nodes: &TaskNodes, processes: &[AllocatorCandidate]) {
        let mut before = std::mem::take(&mut self.known);
        self.searching = 0;
        self.sums.resize(nodes.count(), NodeAllocations::default());
        for sum in &mut self.sums {
            (sum.mapped, sum.in_use, sum.cached) = (0, 0, 0);
        }
        for process in processes {
            let known = before.remove(&process.pid).filter(|known| known.start == process.start);
            let mut known = known.unwrap_or_else(|| Known::new(process.start));
            if known.is_due(process) {
                let start = clock::thread_cpu();
                known.search(process);
                self.searching += clock::thread_cpu() - start;
            }
            let old = known.counts.take();
            known.read(process);
            if let Some(counts) = &known.counts {
                add(&mut self.sums, nodes, counts, old.as_ref());
            }
            self.known.insert(process.pid, known);
        }
        self.unread = self.known.values().find_map(|known| known.unread.clone());
    }

    /// The values by position of the node; `None` if no process has the library, or if one may not be read.
    pub fn sums(&self) -> Option<&[NodeAllocations]> {
        let is_known = self.unread.is_none() && self.spaces().next().is_some();
        is_known.then_some(&self.sums)
    }

    /// The CPU time that the last scan searched programs for the library, in ns: once in each, so that it need not delay
    /// the next scan.
    pub fn searching(&self) -> u64 {
        self.searching
    }

    /// Why the counts of a process are unknown.
    pub fn unread(&self) -> Option<&str> {
        self.unread.as_deref()
    }

    /// Where the regions of the processes lie.
    pub fn spaces(&self) -> impl Iterator<Item = (u32, AllocatorSpace)> + '_ {
        self.known.iter().filter_map(|(pid, known)| Some((*pid, known.counts.as_ref()?.space)))
    }
}

impl Known {
    fn new(start: Option<u64>) -> Self {
        Self { start, searched: None, change: LOADED, reader: None, counts: None, unread: None }
    }

    /// Whether it may have loaded the library since it was searched.
    fn is_due(&self, process: &AllocatorCandidate) -> bool {
        let is_other = |(arguments, mapped): (Option<usize>, u64)| {
            process.arguments != arguments || process.mapped.abs_diff(mapped) >= self.change
        };
        self.reader.is_none() && self.searched.is_none_or(is_other)
    }

    fn search(&mut self, process: &AllocatorCandidate) {
        let is_same = self.searched.is_some_and(|(arguments, _)| arguments == process.arguments);
        self.change = if is_same { self.change.saturating_mul(2) } else { LOADED };
        self.searched = Some((process.arguments, process.mapped));
        let opened = AllocatorReader::open(process.pid);
        self.unread = opened.as_ref().err().and_then(reason);
        self.reader = opened.ok();
    }

    fn read(&mut self, process: &AllocatorCandidate) {
        let Some(reader) = &mut self.reader else { return };
        match reader.peek() {
            Ok(counts) if counts.is_by_node() => {
                self.counts = Some(counts);
            }
            Ok(_) => {
                self.reader = None;
                self.unread = Some(format!(
                    "process {} has libnumalloc without nodes (NUMALLOC_PROFILE is uma or lowmem), so nothing of it is \
                     known by node",
                    process.pid
                ));
            }
            Err(error) if error.is_unused() => {}
            // The process executes another program, and is searched again at the next scan.
            Err(AllocatorError::Replaced(_) | AllocatorError::Ended(_)) => {
                (self.reader, self.searched) = (None, None);
            }
            Err(error) => (self.reader, self.unread) = (None, reason(&error)),
        }
    }
}

/// Why the counts of a process that may have the library are unknown.
fn reason(error: &AllocatorError) -> Option<String> {
    match error {
        AllocatorError::NoProcess(_)
        | AllocatorError::Ended(_)
        | AllocatorError::Replaced(_)
        | AllocatorError::NotLoaded { .. } => None,
        other => Some(other.to_string()),
    }
}

/// Adds the counts of a process, with what they grew since the scan before.
fn add(
    sums: &mut [NodeAllocations],
    nodes: &TaskNodes,
    counts: &AllocatorCounts,
    old: Option<&AllocatorCounts>,
) {
    for (at, region) in counts.regions.iter().enumerate() {
        let place = region.node.and_then(|node| nodes.place(node));
        let Some(sum) = place.and_then(|place| sums.get_mut(place)) else { continue };
        sum.mapped = sum.mapped.saturating_add(region.mapped);
        sum.in_use = sum.in_use.saturating_add(region.in_use);
        sum.cached = sum.cached.saturating_add(region.cached);
        let Some(old) = old.and_then(|old| old.regions.get(at)) else { continue };
        let grown = |of: fn(&RegionCounts) -> u64| of(region).saturating_sub(of(old));
        sum.recycled = sum.recycled.saturating_add(grown(|region| region.recycled));
        sum.other_nodes = sum.other_nodes.saturating_add(grown(|region| region.from_other_nodes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_testing::processes::four_nodes;

    fn counts(in_use: u64, recycled: u64) -> AllocatorCounts {
        let region = |node| RegionCounts {
            node: Some(node),
            mapped: 100,
            in_use: in_use * u64::from(node),
            recycled,
            from_other_nodes: 2 * recycled,
            ..RegionCounts::default()
        };
        let space = AllocatorSpace { address: 1 << 40, region_bytes: 1 << 30, regions: 5 };
        AllocatorCounts {
            space,
            pages: Err(crate::allocator::PagesUnknown::NotSearched),
            regions: (0..5).map(region).collect(),
        }
    }

    #[test]
    fn levels_are_those_of_now_and_counters_grow_from_the_first_scan_on() {
        let nodes = TaskNodes::of(&four_nodes());
        let mut sums = vec![NodeAllocations::default(); 4];
        // A child of a fork begins with the counts of its parent.
        add(&mut sums, &nodes, &counts(10, 500), None);
        add(&mut sums, &nodes, &counts(5, 520), Some(&counts(10, 500)));
        let third = NodeAllocations { mapped: 200, in_use: 45, cached: 0, recycled: 20, other_nodes: 40 };
        assert_eq!(sums[3], third);
        // Another program in the same process begins at 0.
        add(&mut sums, &nodes, &counts(0, 3), Some(&counts(5, 520)));
        assert_eq!(sums[3].recycled, 20);
    }

    #[test]
    fn a_process_without_the_library_is_not_searched_at_each_scan() {
        let (nodes, mut watch) = (TaskNodes::of(&four_nodes()), AllocatorWatch::default());
        let own = AllocatorCandidate {
            pid: std::process::id(),
            start: Some(1),
            arguments: Some(7),
            mapped: 1 << 30,
        };
        let mut searched = |seen: AllocatorCandidate| {
            watch.scan(&nodes, &[seen]);
            watch.known[&own.pid].searched.unwrap()
        };
        assert_eq!(searched(own), (Some(7), own.mapped));
        let more = |bytes: u64| AllocatorCandidate { mapped: own.mapped + bytes, ..own };
        assert_eq!(searched(more(LOADED - 1)).1, own.mapped);
        assert_eq!(searched(more(LOADED)).1, own.mapped + LOADED);
        // It grows: the next search is when it has got twice as much.
        assert_eq!(searched(more(2 * LOADED)).1, own.mapped + LOADED);
        assert_eq!(searched(more(3 * LOADED)).1, own.mapped + 3 * LOADED);
        // It executes another program.
        let other = AllocatorCandidate { arguments: Some(8), ..more(3 * LOADED) };
        assert_eq!(searched(other), (Some(8), other.mapped));
        assert_eq!(
            searched(AllocatorCandidate { mapped: other.mapped + LOADED, ..other }).1,
            other.mapped + LOADED
        );
        assert_eq!((watch.sums(), watch.unread()), (None, None));
        watch.scan(&nodes, &[]);
        assert!(watch.known.is_empty());
    }
}
