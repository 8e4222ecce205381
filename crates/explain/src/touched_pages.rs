//! Who touched each page first, as far as its fault was seen.

use crate::call_tree::NO_CHAIN;
use crate::first_touch::FaultingThread;
use crate::observation::PAGE;
use std::collections::{BTreeMap, HashMap};

/// Maximum number of pages that are kept, of all processes. When there are more, every second one is dropped.
const MAX_PAGES: usize = 1 << 20;
/// Pages in a block. A page that had no fault is taken to be touched by the thread that touched its neighbours in the block:
/// a huge page has one fault for all its pages, and so have the pages around a fault in a file.
const BLOCK: u64 = 512;
/// The kernel maps this many pages around a fault in a file. It maps as many at a fault where huge pages have several sizes.
const AROUND: u64 = 16;

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
    /// Makes a table that keeps at most this many pages.
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

    /// Adds that a thread touched a page. Its chain is that of the neighbours, if the same thread touched them.
    pub fn add_touch(&mut self, process: u32, address: u64, thread: u32, node: Option<u32>) {
        let neighbour = self.toucher(process, address).filter(|by| by.thread == thread);
        let chain = neighbour.map_or(NO_CHAIN, |by| by.chain);
        self.add(process, address, FaultingThread { thread, node, chain });
    }

    fn thin(&mut self) {
        self.stride *= 2;
        for of in self.processes.values_mut() {
            of.retain(|page, _| page.is_multiple_of(self.stride));
        }
        self.count = self.processes.values().map(BTreeMap::len).sum();
    }

    /// The thread that touched the page of an address first; where no fault of that page was seen, the thread that touched
    /// its neighbours.
    pub fn toucher(&self, process: u32, address: u64) -> Option<FaultingThread> {
        let (page, of) = (address / PAGE, self.processes.get(&process)?);
        let block = page / BLOCK * BLOCK;
        let before = of.range(block..=page).next_back();
        before.or_else(|| of.range(page..block + BLOCK).next()).map(|(_, by)| *by)
    }

    /// The thread that touched the page of an address first, if that is certain: its fault was seen, or one thread alone had
    /// faults in the pages that are mapped with it, or the faults before and after it are of one thread.
    pub fn certain_toucher(&self, process: u32, address: u64) -> Option<FaultingThread> {
        let (page, of) = (address / PAGE, self.processes.get(&process)?);
        if let Some(by) = of.get(&page) {
            return Some(*by);
        }
        let faults_in = |pages: u64| of.range(page / pages * pages..(page / pages + 1) * pages);
        let one_thread = |pages: u64| {
            let mut faults = faults_in(pages).map(|(_, by)| *by);
            let first = faults.next()?;
            faults.all(|by| by.thread == first.thread).then_some(first)
        };
        let between = || {
            let (_, before) = of.range(page / BLOCK * BLOCK..page).next_back()?;
            let (_, after) = of.range(page..(page / BLOCK + 1) * BLOCK).next()?;
            (before.thread == after.thread).then_some(*before)
        };
        one_thread(AROUND).or_else(|| one_thread(BLOCK)).or_else(between)
    }

    /// Whether any fault was seen.
    pub fn has_any(&self) -> bool {
        self.count > 0
    }

    /// Forgets the pages of a process that has executed a different program.
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
    fn between_the_faults_of_two_threads_nothing_is_certain() {
        let mut touched = TouchedPages::default();
        for (page, thread) in [(512, 1), (600, 1), (700, 2), (1024, 3), (1536, 4), (1552, 5)] {
            touched.add(7, page * PAGE, by(thread));
        }
        let certain = |page: u64| touched.certain_toucher(7, page * PAGE + 9).map(|by| by.thread);
        assert_eq!((certain(512), certain(560), certain(700)), (Some(1), Some(1), Some(2)));
        assert_eq!((certain(650), certain(1000)), (None, None), "the next thread may have touched it");
        assert_eq!((certain(1500), certain(2048)), (Some(3), None), "a huge page has one fault");
        assert_eq!((certain(1540), certain(1600)), (Some(4), None), "and a few pages around a fault");
        assert_eq!(touched.certain_toucher(8, 512 * PAGE), None);
    }

    #[test]
    fn a_touch_has_the_chain_of_its_neighbours() {
        let mut touched = TouchedPages::default();
        touched.add(7, 512 * PAGE, FaultingThread { thread: 1, node: Some(0), chain: 6 });
        let chain = |touched: &TouchedPages, page: u64| touched.toucher(7, page * PAGE).map(|by| by.chain);
        touched.add_touch(7, 513 * PAGE, 1, Some(0));
        touched.add_touch(7, 514 * PAGE, 2, None);
        assert_eq!((chain(&touched, 513), chain(&touched, 514)), (Some(6), Some(NO_CHAIN)));
        touched.add_touch(7, 512 * PAGE, 1, Some(0));
        assert_eq!(chain(&touched, 512), Some(6), "the fault that was seen whole stays");
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
