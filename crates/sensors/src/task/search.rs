//! The one way to the memory of a process by node. Whoever wants to know where the memory of
//! another process is comes here, as the way matters to that process: what reads its numa_maps
//! or smaps holds its mmap lock while the kernel looks at every page of a mapping, and its own
//! mappings wait for that long.

use super::asking::{Asked, Asking, Size};
use super::nodes::TaskNodes;
use super::numa_maps::{MemoryByUse, NumaMapsReading};
use super::walk::WalkTarget;
use numakit_model::Topology;
use numakit_sys::{ReadError, SysRoot};
use std::collections::BTreeMap;
use std::io::ErrorKind;

/// A process that has no more memory is read from its numa_maps, exactly, in about 1 ms.
const SMALL: u64 = 16 << 20;

/// Page tables that are looked through in as long, where most of them are empty.
const SMALL_TABLES: u64 = 1 << 20;

/// Whether the whole of a process may be looked at with its lock held.
pub(super) fn is_small(size: Size) -> bool {
    size.resident <= SMALL && size.tables <= SMALL_TABLES
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Located {
    /// Memory by node and use.
    pub memory: MemoryByUse,
    /// Bytes in huge pages, where they were counted on the way.
    pub huge_pages: Option<u64>,
    /// Square of the standard error of the bytes of a node; 0 where it was not estimated.
    pub variance: f64,
    /// Its lock was held for as long as it took, as there was no other way.
    pub held: bool,
}

/// The memory of a process by the kernel's numbers of the nodes, in bytes; `None` where the kernel
/// does not say. Its lock may be held meanwhile.
pub fn by_node(root: &SysRoot, topology: &Topology, pid: u32) -> Option<BTreeMap<u32, u64>> {
    let nodes = TaskNodes::of(topology);
    let place = WalkTarget { root, nodes: &nodes, page_size: topology.page_size.max(1024), may_hold: true };
    let mut search = Search::open(&place, pid).ok()?;
    while search.advance(&place).ok()? {}
    let memory = search.found().memory;
    Some(nodes.ids().iter().zip(0..).map(|(&id, at)| (id, memory.on(at))).collect())
}

/// A process that is being looked at.
#[derive(Debug)]
pub struct Search {
    pid: u32,
    small: bool,
    nodes: usize,
    road: Road,
}

#[derive(Debug)]
enum Road {
    /// Its numa_maps, once it is read.
    NumaMaps(Option<Box<NumaMapsReading>>),
    Pages(Box<Asking>),
}

impl Search {
    /// Opens what tells of a process.
    pub fn open(place: &WalkTarget<'_>, pid: u32) -> Result<Self, ReadError> {
        let mut search = Self { pid, small: true, nodes: place.nodes.count(), road: Road::NumaMaps(None) };
        // Of a capture there is nothing but its files.
        if let Some(pages) = place.root.pages() {
            let size = Size::of(place.root, pid);
            search.small = is_small(size);
            if !search.small {
                search.road = Road::Pages(Box::new(Asking::open(place, pages, pid, size)?));
            }
        }
        Ok(search)
    }

    /// Whether the process is small enough for whatever is below /proc.
    pub fn is_small(&self) -> bool {
        self.small
    }

    /// Looks at the next part. False at the end. An error of the kind `Unsupported` is that there
    /// is no way but to hold the lock of the process, which [`WalkTarget`] does not allow.
    pub fn advance(&mut self, place: &WalkTarget<'_>) -> Result<bool, ReadError> {
        match &mut self.road {
            Road::NumaMaps(Some(reading)) => reading.advance(place.nodes, place.page_size),
            Road::NumaMaps(none) => {
                let mut reading = NumaMapsReading::open(place.root, self.pid, place.nodes)?;
                let more = reading.advance(place.nodes, place.page_size)?;
                *none = Some(Box::new(reading));
                Ok(more)
            }
            Road::Pages(asking) => match asking.advance(place) {
                Err(error) if error.kind == ErrorKind::Unsupported && place.may_hold => {
                    self.road = Road::NumaMaps(None);
                    Ok(true)
                }
                other => other,
            },
        }
    }

    /// What was found.
    pub fn found(self) -> Located {
        match self.road {
            Road::NumaMaps(reading) => Located {
                memory: reading.map_or_else(|| MemoryByUse::none(self.nodes), |reading| reading.memory()),
                huge_pages: None,
                variance: 0.0,
                held: !self.small,
            },
            Road::Pages(asking) => {
                let Asked { memory, huge_pages, variance } = asking.found();
                Located { memory, huge_pages, variance, held: false }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{nodes, root};

    #[test]
    fn memory_is_listed_by_the_numbers_of_nodes() {
        let maps = "1 default heap N1=2 kernelpagesize_kB=4\n2 default N4=1 kernelpagesize_kB=4\n";
        let root = root(&[("/proc/7/numa_maps", maps)]);
        let topology = Topology { page_size: 4096, ..nodes(&[1, 4]) };
        assert_eq!(by_node(&root, &topology, 7), Some(BTreeMap::from([(1, 8192), (4, 4096)])));
        assert_eq!(by_node(&root, &topology, 8), None);
    }
}
