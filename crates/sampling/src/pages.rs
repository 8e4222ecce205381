//! On which node the page of an address is: asked for in batches, and remembered for a moment. Where the kernel does not
//! tell it of single pages, the nodes of the whole mapping are known.

use numakit_sys::pages::{MAX_QUERY, Pages};
use numakit_sys::proc::TaskDir;
use numakit_sys::proc::numa_maps;
use numakit_sys::{SysRoot, clock, sched};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::ErrorKind;
use std::sync::Arc;

/// For how long an answer is remembered, in ns: the kernel's balancing may move a page again after a scan or two.
const REMEMBERED: u64 = 200_000_000;
/// Pages that are remembered at most.
const MAX_REMEMBERED: usize = 1 << 17;
/// Reading numa_maps holds a lock of the process, so at most one in this many parts of the time is spent on it.
const SHARE_OF_TIME: u64 = 20;

/// Where the page of an address is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PagePlace {
    /// On this node.
    Node(u32),
    /// On one of the nodes of its mapping, each with the mapping's bytes there.
    Among(Arc<[(u32, u64)]>),
    /// Not in memory.
    Absent,
    /// The kernel does not say, or the process has ended.
    Unknown,
}

/// Finds the nodes of pages.
#[derive(Debug)]
pub struct PageNodes {
    root: SysRoot,
    pages: Option<Arc<dyn Pages>>,
    page_size: u64,
    /// The node of all memory, if the machine has only one.
    only: Option<u32>,
    remembered: HashMap<(u32, u64), (u64, PagePlace)>,
    /// Processes of which the kernel does not tell it of single pages, with the nodes of their mappings.
    mappings: HashMap<u32, MappingNodes>,
}

/// The nodes of the mappings of a process.
#[derive(Debug, Default)]
struct MappingNodes {
    /// The nodes of each mapping, by its first address.
    places: BTreeMap<u64, PagePlace>,
    /// When `numa_maps` is read again, in ns.
    next: u64,
}

impl PageNodes {
    /// Finds nodes for the processes of a machine with these nodes with memory.
    pub fn new(root: &SysRoot, nodes: &[u32]) -> Self {
        Self {
            root: root.clone(),
            pages: root.pages().cloned(),
            page_size: sched::page_size(),
            only: if let [node] = nodes { Some(*node) } else { None },
            remembered: HashMap::new(),
            mappings: HashMap::new(),
        }
    }

    /// Asks for all pages of these addresses of a process that are not remembered, so that [`PageNodes::place`] knows
    /// them. `now` is the time in ns.
    pub fn ask(&mut self, process: u32, addresses: impl Iterator<Item = u64>, now: u64) {
        if self.only.is_some() {
            return;
        }
        if self.remembered.len() > MAX_REMEMBERED {
            self.remembered.clear();
        }
        let is_new = |page: &u64| {
            let known = self.remembered.get(&(process, *page));
            known.is_none_or(|(time, _)| now.saturating_sub(*time) >= REMEMBERED)
        };
        let wanted: HashSet<u64> =
            addresses.map(|address| address / self.page_size * self.page_size).filter(is_new).collect();
        let wanted: Vec<u64> = wanted.into_iter().collect();
        for batch in wanted.chunks(MAX_QUERY) {
            self.ask_batch(process, batch, now);
        }
    }

    fn ask_batch(&mut self, process: u32, batch: &[u64], now: u64) {
        if !self.mappings.contains_key(&process)
            && let Some(pages) = &self.pages
        {
            match pages.nodes(process, batch) {
                Ok(nodes) => {
                    let places =
                        nodes.into_iter().map(|node| node.map_or(PagePlace::Absent, PagePlace::Node));
                    let found =
                        batch.iter().map(|page| (process, *page)).zip(places.map(|place| (now, place)));
                    return self.remembered.extend(found);
                }
                // The process has ended, and what is remembered of it stays.
                Err(error) if error.kind() == ErrorKind::NotFound || has_ended(&self.root, process) => return,
                Err(_) => {}
            }
        }
        let mappings = self.mappings.entry(process).or_default();
        if now >= mappings.next {
            mappings.read(&self.root, process, self.page_size, now);
        }
        for &page in batch {
            let place = mappings.place(page);
            self.remembered.insert((process, page), (now, place));
        }
    }

    /// Where the page of an address was when it was last asked for.
    pub fn place(&self, process: u32, address: u64) -> PagePlace {
        if let Some(node) = self.only {
            return PagePlace::Node(node);
        }
        let page = address / self.page_size * self.page_size;
        self.remembered.get(&(process, page)).map_or(PagePlace::Unknown, |(_, place)| place.clone())
    }

    /// Whether the kernel tells only the nodes of whole mappings of a process, not those of single pages.
    pub fn is_coarse(&self, process: u32) -> bool {
        self.mappings.contains_key(&process)
    }

    /// Forgets the pages of a process that has ended or has different memory.
    pub fn forget(&mut self, process: u32) {
        self.remembered.retain(|(of, _), _| *of != process);
        self.mappings.remove(&process);
    }
}

fn has_ended(root: &SysRoot, process: u32) -> bool {
    TaskDir::of(root, process).stat().map_or(true, |stat| stat.exited)
}

impl MappingNodes {
    fn read(&mut self, root: &SysRoot, process: u32, page_size: u64, now: u64) {
        let started = clock::monotonic();
        if let Ok(text) = TaskDir::of(root, process).bytes("numa_maps") {
            self.places =
                text.split(|byte| *byte == b'\n').filter_map(|line| of_line(line, page_size)).collect();
        }
        let took = clock::monotonic().saturating_sub(started);
        self.next = now.saturating_add(REMEMBERED.max(took.saturating_mul(SHARE_OF_TIME)));
    }

    /// `numa_maps` has no ends of mappings: an address between two belongs to the first one. Addresses that
    /// are asked for were used, so that they are in a mapping.
    fn place(&self, page: u64) -> PagePlace {
        self.places.range(..=page).next_back().map_or(PagePlace::Unknown, |(_, place)| place.clone())
    }
}

fn of_line(line: &[u8], page_size: u64) -> Option<(u64, PagePlace)> {
    let mut nodes = Vec::new();
    let (start, _) = numa_maps::line(line, page_size, |_, node, bytes| nodes.push((node, bytes)))?;
    nodes.retain(|(_, bytes)| *bytes > 0);
    Some((
        start,
        match nodes[..] {
            [] => PagePlace::Absent,
            [(node, _)] => PagePlace::Node(node),
            _ => PagePlace::Among(nodes.into()),
        },
    ))
}

#[cfg(test)]
mod tests;
