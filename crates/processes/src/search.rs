//! Finds the memory of a process by node. All such searches go through this module, because they can
//! stop the process: reading its numa_maps or smaps holds its mmap lock while the kernel visits every
//! page of a mapping, and its own `mmap` calls wait meanwhile.

use crate::allocator::{AllocatorSpace, RegionPages};
use crate::numa_maps::{MemoryByUse, NumaMapsReading};
use crate::page_query::{PageQuery, ProcessSize};
use crate::walk::WalkedMachine;
use numakit_model::Topology;
use numakit_sys::{ReadError, SysRoot};
use std::collections::BTreeMap;
use std::io::ErrorKind;

/// A process with at most this memory is read from its numa_maps, exactly, in about 1 ms.
const SMALL: u64 = 16 << 20;

/// Page tables that are walked in the same time, if most of them are empty.
const SMALL_TABLES: u64 = 1 << 20;

/// Whether all of a process may be read with its lock held.
pub fn is_small(size: ProcessSize) -> bool {
    size.resident <= SMALL && size.tables <= SMALL_TABLES
}

/// The memory of a process.
#[derive(Debug, Clone, PartialEq)]
pub struct Located {
    /// Memory by node and use.
    pub memory: MemoryByUse,
    /// Bytes in huge pages, if the kernel shows them with the nodes.
    pub huge_pages: Option<u64>,
    /// The pages of each region of its allocator; none without its space.
    pub regions: Vec<RegionPages>,
    /// Square of the standard error of the bytes of a node, the largest of all nodes; 0 if exact.
    pub variance: f64,
    /// Whether its lock was held for all that time, because there was no other method.
    pub held: bool,
}

/// The memory of a process in bytes by node number; `None` if the kernel does not show it. Its lock
/// may be held meanwhile.
pub fn memory_by_node(root: &SysRoot, topology: &Topology, pid: u32) -> Option<BTreeMap<u32, u64>> {
    let place = WalkedMachine::of(root, topology, true);
    let mut search = Search::open(&place, pid, None).ok()?;
    while search.advance(&place).ok()? {}
    let memory = search.found().memory;
    Some(place.nodes.ids().iter().zip(0..).map(|(&id, at)| (id, memory.on(at))).collect())
}

/// A running search of a process.
#[derive(Debug)]
pub struct Search {
    pid: u32,
    small: bool,
    nodes: usize,
    space: Option<AllocatorSpace>,
    method: SearchMethod,
}

#[derive(Debug)]
enum SearchMethod {
    /// Its numa_maps, once it is open.
    NumaMaps(Option<Box<NumaMapsReading>>),
    Pages(Box<PageQuery>),
}

impl Search {
    /// Opens the files of a process, whose allocator has its regions there.
    pub fn open(place: &WalkedMachine, pid: u32, space: Option<AllocatorSpace>) -> Result<Self, ReadError> {
        let (nodes, method) = (place.nodes.count(), SearchMethod::NumaMaps(None));
        let mut search = Self { pid, small: true, nodes, space, method };
        // A capture has only files.
        if let Some(pages) = place.root.pages() {
            let size = ProcessSize::of(&place.root, pid);
            search.small = is_small(size);
            if !search.small {
                search.method =
                    SearchMethod::Pages(Box::new(PageQuery::open(place, pages, pid, size, space)?));
            }
        }
        Ok(search)
    }

    /// Whether the process is small enough for any file of /proc.
    pub fn is_small(&self) -> bool {
        self.small
    }

    /// Reads the next part. False at the end. The error `Unsupported` means that the only method holds
    /// the lock of the process, which [`WalkedMachine`] does not allow.
    pub fn advance(&mut self, place: &WalkedMachine) -> Result<bool, ReadError> {
        match &mut self.method {
            SearchMethod::NumaMaps(Some(reading)) => reading.advance(&place.nodes, place.page_size),
            SearchMethod::NumaMaps(none) => {
                let mut reading = NumaMapsReading::open(&place.root, self.pid, &place.nodes, self.space)?;
                let more = reading.advance(&place.nodes, place.page_size)?;
                *none = Some(Box::new(reading));
                Ok(more)
            }
            SearchMethod::Pages(page_query) => match page_query.advance(place) {
                Err(error) if error.kind == ErrorKind::Unsupported && place.may_hold => {
                    self.method = SearchMethod::NumaMaps(None);
                    Ok(true)
                }
                other => other,
            },
        }
    }

    /// The memory of a process.
    pub fn found(self) -> Located {
        match self.method {
            SearchMethod::NumaMaps(reading) => {
                let nothing = || (MemoryByUse::none(self.nodes), Vec::new());
                let (memory, regions) = reading.map_or_else(nothing, |reading| reading.found());
                Located { memory, huge_pages: None, regions, variance: 0.0, held: !self.small }
            }
            SearchMethod::Pages(page_query) => page_query.found(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_testing::sysfs::{nodes, root};

    #[test]
    fn memory_is_listed_by_the_numbers_of_nodes() {
        let maps = "1 default heap N1=2 kernelpagesize_kB=4\n2 default N4=1 kernelpagesize_kB=4\n";
        let root = root(&[("/proc/7/numa_maps", maps)]);
        let topology = Topology { page_size: 4096, ..nodes(&[1, 4]) };
        assert_eq!(memory_by_node(&root, &topology, 7), Some(BTreeMap::from([(1, 8192), (4, 4096)])));
        assert_eq!(memory_by_node(&root, &topology, 8), None);
    }
}
