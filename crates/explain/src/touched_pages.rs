//! Who touched each page first, as far as its fault was seen.

use crate::first_touch::FaultingThread;
use crate::observation::PAGE;
use std::collections::{BTreeMap, HashMap};

/// Pages that are kept of all processes; beyond, every second one is dropped.
const MAX_PAGES: usize = 1 << 20;
/// A page without a fault of its own was touched by who touched its neighbours: huge pages, and pages around a fault in a
/// file, have one for all. Neighbours are in a block of this many pages.
const BLOCK: u64 = 512;

/// The pages, by process.
#[derive(Debug)]
pub struct TouchedPages {
    processes: HashMap<u32, BTreeMap<u64, FaultingThread>>,
    count: usize,
    limit: usize,
    /// Pages whose number is a multiple of this are kept.
    stride: u64,
}

impl Default for TouchedPages {
    fn default() -> Self {
        Self::with_limit(MAX_PAGES)
    }
}

impl TouchedPages {
    /// With at most this many pages.
    pub fn with_limit(limit: usize) -> Self {
        Self { processes: HashMap::new(), count: 0, limit, stride: 1 }
    }

    /// Adds a fault at an address. A page that was given back and touched again belongs to who touched it last.
    pub fn add(&mut self, process: u32, address: u64, by: FaultingThread) {
        let page = address / PAGE;
        if !page.is_multiple_of(self.stride) {
            return;
        }
        let of = self.processes.entry(process).or_default();
        self.count += usize::from(of.insert(page, by).is_none());
        if self.count > self.limit {
            self.thin();
        }
    }

    fn thin(&mut self) {
        self.stride *= 2;
        for of in self.processes.values_mut() {
            of.retain(|page, _| page.is_multiple_of(self.stride));
        }
        self.count = self.processes.values().map(BTreeMap::len).sum();
    }

    /// Who touched the page of an address first, or, without a fault that was seen, its neighbours.
    pub fn toucher(&self, process: u32, address: u64) -> Option<FaultingThread> {
        let (page, of) = (address / PAGE, self.processes.get(&process)?);
        let block = page / BLOCK * BLOCK;
        let before = of.range(block..=page).next_back();
        before.or_else(|| of.range(page..block + BLOCK).next()).map(|(_, by)| *by)
    }

    /// Whether any fault was seen.
    pub fn has_any(&self) -> bool {
        self.count > 0
    }

    /// A process has executed another program.
    pub fn forget(&mut self, process: u32) {
        self.count -= self.processes.remove(&process).map_or(0, |of| of.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(thread: u32) -> FaultingThread {
        FaultingThread { thread, node: None, chain: 0 }
    }

    #[test]
    fn a_page_without_a_fault_belongs_to_its_neighbours() {
        let mut touched = TouchedPages::default();
        touched.add(7, 600 * PAGE + 5, by(1));
        touched.add(7, 700 * PAGE, by(2));
        let toucher = |page: u64| touched.toucher(7, page * PAGE).map(|by| by.thread);
        assert_eq!(
            (toucher(600), toucher(650), toucher(700), toucher(1023)),
            (Some(1), Some(1), Some(2), Some(2))
        );
        assert_eq!((toucher(512), toucher(511), toucher(1024)), (Some(1), None, None));
        assert_eq!(touched.toucher(8, 600 * PAGE), None);
        touched.add(7, 600 * PAGE, by(3));
        assert_eq!((touched.toucher(7, 600 * PAGE), touched.count), (Some(by(3)), 2));
        touched.forget(7);
        assert_eq!((touched.toucher(7, 600 * PAGE), touched.count), (None, 0));
    }

    #[test]
    fn pages_without_limit_take_limited_memory() {
        let mut touched = TouchedPages::with_limit(1000);
        (0..100_000).for_each(|page| touched.add(7, page * PAGE, by((page / 50_000) as u32)));
        assert!(touched.count <= 1000 && touched.stride == 128, "{} {}", touched.count, touched.stride);
        assert_eq!(touched.toucher(7, 1_003 * PAGE), Some(by(0)));
        assert_eq!(touched.toucher(7, 99_001 * PAGE), Some(by(1)));
    }
}
