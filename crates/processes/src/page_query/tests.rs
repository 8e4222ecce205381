use super::*;
use crate::numa_maps::Use;
use crate::search::{Located, Search};
use numakit_model::Topology;
use numakit_testing::sysfs::{nodes, root};
use std::sync::Mutex;

const PAGE: u64 = 4096;
const START: u64 = 0x1000_0000;

/// A process in which each page from [`START`] on has a node or is absent.
#[derive(Debug)]
struct Script {
    node: fn(u64) -> Option<u32>,
    pagemap: bool,
    huge: Option<bool>,
    refused: bool,
    queried: Mutex<Vec<usize>>,
}

impl Script {
    fn new(node: fn(u64) -> Option<u32>) -> Self {
        Self { node, pagemap: true, huge: Some(false), refused: false, queried: Mutex::default() }
    }
}

fn number(address: u64) -> u64 {
    (address - START) / PAGE
}

impl Pages for Script {
    fn open(&self, _: u32) -> io::Result<Box<dyn Present>> {
        match self.pagemap {
            true => Ok(Box::new(Listed { node: self.node, huge: self.huge })),
            false => Err(ErrorKind::NotFound.into()),
        }
    }

    fn nodes(&self, _: u32, pages: &[u64]) -> io::Result<Vec<Option<u32>>> {
        if self.refused {
            return Err(ErrorKind::PermissionDenied.into());
        }
        self.queried.lock().unwrap().push(pages.len());
        Ok(pages.iter().map(|page| (self.node)(number(*page))).collect())
    }

    fn pools(&self) -> Vec<(u32, u32)> {
        vec![(0, 16)]
    }
}

#[derive(Debug)]
struct Listed {
    node: fn(u64) -> Option<u32>,
    huge: Option<bool>,
}

impl Present for Listed {
    /// A thousand pages at a time.
    fn runs(&self, start: u64, end: u64, runs: &mut Vec<PageRun>) -> io::Result<u64> {
        let end = end.min(start + 1000 * PAGE);
        for page in (start..end).step_by(PAGE as usize).filter(|page| (self.node)(number(*page)).is_some()) {
            runs.push(PageRun { start: page, end: page + PAGE, huge: self.huge });
        }
        Ok(end)
    }
}

/// A process with `resident` pages in one mapping of `mapped` pages; `what` is the rest of its line.
fn process(script: Script, resident: u64, mapped: u64, what: &str) -> (SysRoot, Arc<Script>) {
    let script = Arc::new(script);
    let kib = |pages: u64| format!("{} kB", pages * 4);
    let status = format!("VmSize:\t{}\nVmRSS:\t{}\nVmPTE:\t40 kB\n", kib(mapped), kib(resident));
    let maps = format!("{START:x}-{:x} rw-p 0 {what}\n", START + mapped * PAGE);
    let numa_maps = format!("{START:x} default N1={resident} kernelpagesize_kB=4\n");
    let files = [("/proc/7/status", &*status), ("/proc/7/maps", &*maps), ("/proc/7/numa_maps", &*numa_maps)];
    (root(&files).with_pages(script.clone()).traced(), script)
}

/// The mapping is of the region of node 0.
const SPACE: AllocatorSpace = AllocatorSpace { address: START, region_bytes: 1 << 40, regions: 4 };

fn search(root: &SysRoot, ids: &[u32], may_hold: bool) -> Result<Located, ReadError> {
    let place = WalkedMachine::of(root, &Topology { page_size: PAGE, ..nodes(ids) }, may_hold);
    let mut search = Search::open(&place, 7, Some(SPACE))?;
    while search.advance(&place)? {}
    Ok(search.found())
}

fn reads_numa_maps(root: &SysRoot) -> bool {
    root.touched().iter().any(|path| path.ends_with("numa_maps") || path.contains("smaps"))
}

const ANONYMOUS: &str = "00:00 0";

#[test]
fn a_small_process_is_read_from_its_numa_maps_and_a_larger_one_never() {
    let (root, script) = process(Script::new(|_| Some(0)), 4096, 5000, ANONYMOUS);
    let found = search(&root, &[0, 1], true).unwrap();
    assert_eq!((found.memory.on(1), found.variance, found.held), (4096 * PAGE, 0.0, false));
    assert_eq!(found.regions[0], RegionPages { local: 0, spilled: 4096 * PAGE });
    assert!(script.queried.lock().unwrap().is_empty() && reads_numa_maps(&root));
    let (root, script) = process(Script::new(|_| Some(0)), 4097, 5000, ANONYMOUS);
    let found = search(&root, &[0, 1], true).unwrap();
    assert_eq!(found.memory.on(0), 5000 * PAGE);
    assert!(!script.queried.lock().unwrap().is_empty() && !reads_numa_maps(&root));
}

#[test]
fn addresses_that_are_only_kept_are_not_searched() {
    let (root, script) = process(Script::new(|_| Some(0)), 5000, 5000, ANONYMOUS);
    let end = START + 5000 * PAGE;
    let kept = format!("{end:x}-{:x} ---p 0 00:00 0\n", end + (1 << 46));
    root.change(|files| {
        let maps = format!("{START:x}-{end:x} rw-p 0 00:00 0\n{kept}");
        files.file("/proc/7/maps", maps);
    });
    assert_eq!(search(&root, &[0, 1], false).unwrap().memory.on(0), 5000 * PAGE);
    assert_eq!(script.queried.lock().unwrap().iter().sum::<usize>(), 5000);
}

#[test]
fn every_page_is_queried_up_to_a_limit_and_the_result_is_exact() {
    // A quarter of the mapping is not in memory; the rest is on two nodes.
    let node = |page: u64| (page % 4 != 3).then_some(if page % 12 < 4 { 3 } else { 0 });
    let (root, script) = process(Script::new(node), MAX_PAGES, MAX_PAGES / 3 * 4, "00:00 0 [heap]");
    let found = search(&root, &[0, 3], false).unwrap();
    let truth = |id| (0..MAX_PAGES / 3 * 4).filter(|page| node(*page) == Some(id)).count() as u64 * PAGE;
    assert_eq!((found.memory.on(0), found.memory.on(1)), (truth(0), truth(3)));
    assert_eq!(found.regions[0], RegionPages { local: truth(0), spilled: truth(3) });
    assert_eq!((found.variance, found.huge_pages, found.held), (0.0, Some(0), false));
    assert_eq!(found.memory.used_for(Use::Heap), found.memory.total());
    let queried = script.queried.lock().unwrap();
    assert_eq!(queried.iter().sum::<usize>() as u64 * PAGE, found.memory.total());
    assert!(queried.iter().all(|pages| *pages <= MAX_QUERY));
}

#[test]
fn pages_of_a_large_process_are_sampled_with_a_standard_error() {
    const PAGES: u64 = 1 << 20;
    // At random, in stripes of which a fixed step would only hit one, and in one piece.
    let spread = |page: u64| Some(u32::from(page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 62 == 0));
    let striped = |page: u64| Some((page % 64 / 32) as u32);
    let halved = |page: u64| Some(u32::from(page < PAGES / 2));
    for (name, node) in
        [("spread", spread as fn(u64) -> Option<u32>), ("striped", striped), ("halved", halved)]
    {
        let (root, script) = process(Script::new(node), PAGES, PAGES, ANONYMOUS);
        let found = search(&root, &[0, 1], false).unwrap();
        let truth = (0..PAGES).filter(|page| node(*page) == Some(0)).count() as f64 * PAGE as f64;
        let error = found.variance.sqrt();
        assert!((found.memory.on(0) as f64 - truth).abs() < 4.0 * error, "{name} {found:?} {truth} {error}");
        // At most half a percent, and more than 0.
        let share = error / (PAGES * PAGE) as f64;
        assert!((0.001..=0.0056).contains(&share), "{name} {share}");
        assert!(found.memory.total().abs_diff(PAGES * PAGE) <= 2 * PAGE, "{name} {found:?}");
        assert!(script.queried.lock().unwrap().iter().sum::<usize>() as u64 <= MAX_PAGES);
        assert_eq!(search(&root, &[0, 1], false).unwrap(), found, "the same pages are sampled again");
    }
}

#[test]
fn if_move_pages_is_refused_the_lock_is_held_only_if_allowed() {
    let refused = || Script { refused: true, ..Script::new(|_| Some(0)) };
    let (root, _) = process(refused(), 5000, 5000, ANONYMOUS);
    let error = search(&root, &[0, 1], false).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.to_string().contains("move_pages") && !reads_numa_maps(&root), "{error}");
    let found = search(&root, &[0, 1], true).unwrap();
    assert_eq!((found.memory.on(1), found.held), (5000 * PAGE, true));
    // With one node there is nothing to query.
    let (root, _) = process(refused(), 5000, 5000, ANONYMOUS);
    let found = search(&root, &[0], false).unwrap();
    assert_eq!((found.memory.on(0), found.held, reads_numa_maps(&root)), (5000 * PAGE, false, false));
}

#[test]
fn without_a_pagemap_present_pages_are_estimated_as_well() {
    let script = Script { pagemap: false, ..Script::new(|page| (page % 3 == 0).then_some(1)) };
    let (root, script) = process(script, 100_000, 300_000, ANONYMOUS);
    let found = search(&root, &[0, 1], false).unwrap();
    let (truth, error) = ((100_000 * PAGE) as f64, found.variance.sqrt());
    assert!((found.memory.on(1) as f64 - truth).abs() < 4.0 * error && error > 0.0, "{found:?} {error}");
    assert_eq!(found.huge_pages, None);
    assert!(script.queried.lock().unwrap().iter().sum::<usize>() as u64 <= MAX_PAGES);
}

#[test]
fn huge_pages_are_counted_and_those_of_pools_are_distinguished() {
    let script = Script { huge: Some(true), ..Script::new(|_| Some(1)) };
    let (root, _) = process(script, 5120, 5120, "00:10 9 /anon_hugepage (deleted)");
    root.change(|tree| _ = tree.file("/proc/7/status", "VmRSS:\t4 kB\nHugetlbPages:\t   20480 kB\n"));
    let found = search(&root, &[0, 1], false).unwrap();
    assert_eq!((found.huge_pages, found.memory.used_for(Use::Huge)), (Some(5120 * PAGE), 5120 * PAGE));
}
