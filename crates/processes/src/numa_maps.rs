//! /proc/PID/numa_maps: the nodes of the pages of each mapping.
//!
//! The kernel walks the page tables to print it, and holds the mmap lock of the process meanwhile. It
//! releases the lock after each page of text, so that many mappings are read in small parts.

use crate::allocator::{AllocatorSpace, RegionPages};
use crate::nodes::TaskNodes;
use crate::parted_lines::PartedLines;
pub use numakit_sys::proc::numa_maps::Use;
use numakit_sys::proc::numa_maps::line;
use numakit_sys::{ReadError, SysRoot};

/// Number of uses.
pub const USES: usize = 5;

/// Bytes on each node by use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MemoryByUse(pub Vec<[u64; USES]>);

impl MemoryByUse {
    /// No memory on this number of nodes.
    pub fn none(nodes: usize) -> Self {
        Self(vec![[0; USES]; nodes])
    }

    /// Memory on a node, of all uses.
    pub fn on(&self, place: usize) -> u64 {
        self.0.get(place).map_or(0, total)
    }

    /// Memory on all nodes.
    pub fn total(&self) -> u64 {
        (0..self.0.len()).map(|place| self.on(place)).fold(0, u64::saturating_add)
    }

    /// Memory of one use on all nodes.
    pub fn used_for(&self, usage: Use) -> u64 {
        self.0.iter().fold(0, |sum, uses| sum.saturating_add(uses[usage as usize]))
    }

    /// The node with more than half of the memory that is not from files.
    pub fn home(&self) -> Option<usize> {
        let own = |uses: &[u64; USES]| total(uses) - uses[Use::File as usize];
        let all = self.0.iter().map(own).fold(0, u64::saturating_add);
        self.0.iter().position(|uses| own(uses) > all / 2)
    }

    /// The part of a time on a node that is local: the share of memory on the node. `None` without memory.
    pub fn near(&self, place: usize, time: u64) -> Option<u64> {
        let total = u128::from(self.total());
        let near = u128::from(time) * u128::from(self.on(place)).min(total);
        near.checked_div(total).and_then(|near| u64::try_from(near).ok())
    }

    /// Adds the memory of another process.
    pub fn add(&mut self, other: &Self) {
        for (uses, more) in self.0.iter_mut().zip(&other.0) {
            uses.iter_mut().zip(more).for_each(|(sum, bytes)| *sum = sum.saturating_add(*bytes));
        }
    }
}

fn total(uses: &[u64; USES]) -> u64 {
    uses.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes))
}

/// A numa_maps file that is being read.
#[derive(Debug)]
pub struct NumaMapsReading {
    lines: PartedLines,
    memory: MemoryByUse,
    /// The regions of the allocator of the process, and their pages so far.
    regions: Option<(AllocatorSpace, Vec<RegionPages>)>,
    /// Nodes and bytes of the current line.
    on: Vec<(u32, u64)>,
}

impl NumaMapsReading {
    /// Opens the file of a process.
    pub fn open(
        root: &SysRoot,
        pid: u32,
        nodes: &TaskNodes,
        space: Option<AllocatorSpace>,
    ) -> Result<Self, ReadError> {
        let lines = PartedLines::open(root, pid, "numa_maps")?;
        let memory = MemoryByUse::none(nodes.count());
        let regions = space.map(|space| (space, space.no_pages()));
        Ok(Self { lines, memory, regions, on: Vec::new() })
    }

    /// Reads the next part. False at the end of the file.
    pub fn advance(&mut self, nodes: &TaskNodes, page_size: u64) -> Result<bool, ReadError> {
        let Self { lines, memory, regions, on } = self;
        lines.advance(|text| {
            let mapping = line(text, page_size, |usage, node, bytes| {
                on.push((node, bytes));
                if let Some(uses) = nodes.place(node).and_then(|at| memory.0.get_mut(at)) {
                    uses[usage as usize] = uses[usage as usize].saturating_add(bytes);
                }
            });
            if let (Some((start, _)), Some((space, pages))) = (mapping, regions.as_mut()) {
                on.iter().for_each(|(node, bytes)| space.add(pages, start, *node, *bytes));
            }
            on.clear();
        })
    }

    /// The memory, and the pages of the regions of its allocator.
    pub fn found(self) -> (MemoryByUse, Vec<RegionPages>) {
        (self.memory, self.regions.map(|(_, pages)| pages).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_is_where_most_of_the_private_memory_is() {
        let mut memory = MemoryByUse::none(3);
        assert_eq!(memory.home(), None);
        memory.0[0][Use::File as usize] = 900;
        memory.0[1][Use::Heap as usize] = 50;
        memory.0[2][Use::Stack as usize] = 50;
        assert_eq!(memory.home(), None);
        memory.0[2][Use::Huge as usize] = 1;
        assert_eq!(memory.home(), Some(2));
        assert_eq!((memory.total(), memory.on(2), memory.used_for(Use::Heap)), (1001, 51, 50));
    }
}
