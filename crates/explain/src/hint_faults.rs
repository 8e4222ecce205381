//! Who uses which page, by hint faults. A page has one fault each time that the kernel marked it, by the thread that used it
//! next; so the shares of nodes are those of each page first, and each page counts once: fast threads cause more faults.

use crate::NodeTime;
use crate::object_use::{NodeShare, ObjectUse};
use crate::observation::PAGE;
use crate::partition::partition;
use crate::share::ShareEstimate;
use crate::traffic::NodePair;
use numakit_model::thresholds::MIN_SAMPLES;
use numakit_sampling::faults::PageTouch;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Pages that are kept.
const MAX_PAGES: usize = 1 << 20;
/// The weight of one page in sums of shares of pages, which are integers.
const WHOLE: f64 = 1000.0;

/// What hint faults tell of an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ObjectHintFaults {
    /// Its pages that had faults.
    pub pages: u64,
    /// Faults at these pages.
    pub faults: u64,
    /// The nodes whose threads use it. Each page counts alike, however many faults it had.
    pub used_from: Vec<NodeShare>,
    /// The part of that use that was at pages of other nodes. A page counts at the node where it was before the kernel could
    /// move it.
    pub remote: Option<ShareEstimate>,
}

/// What hint faults tell of all objects together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct HintFaultCounts {
    /// Pages that had faults.
    pub pages: u64,
    /// Their faults.
    pub faults: u64,
    /// Faults that were lost, since nobody took them in time.
    pub lost: u64,
    /// How long balancing was switched on, in seconds.
    pub seconds: f64,
    /// Pages that the kernel moved meanwhile.
    pub moved: u64,
    /// Moved pages that were moved back afterwards.
    pub moved_back: u64,
    /// Whether balancing was on before the observation. Pages then move anyway, and none of them was moved back.
    pub was_on: bool,
}

/// The faults of one page.
#[derive(Debug, Clone, Default)]
struct PageFaults {
    /// Place of its object in the list of objects.
    object: Option<u32>,
    home: Option<u32>,
    /// Faults by node.
    nodes: BTreeMap<u32, u64>,
}

/// The faults of all pages.
#[derive(Debug, Default)]
pub struct HintFaults {
    pages: HashMap<(u32, u64), PageFaults>,
    /// Threads by object.
    threads: BTreeMap<u32, BTreeSet<u32>>,
}

impl HintFaults {
    /// Adds a fault of a thread on a node, at a page that was in memory on its home. `object` finds the place of its object.
    pub fn add(
        &mut self,
        used: &PageTouch,
        node: u32,
        home: Option<u32>,
        object: impl FnOnce() -> Option<u32>,
    ) {
        let key = (used.process, used.address / PAGE);
        if self.pages.len() >= MAX_PAGES && !self.pages.contains_key(&key) {
            return;
        }
        let page =
            self.pages.entry(key).or_insert_with(|| PageFaults { object: object(), ..PageFaults::default() });
        page.home = page.home.or(home);
        *page.nodes.entry(node).or_default() += 1;
        if let Some(object) = page.object {
            self.threads.entry(object).or_default().insert(used.thread);
        }
    }

    /// Pages and their faults.
    pub fn counts(&self) -> (u64, u64) {
        (self.pages.len() as u64, self.pages.values().flat_map(|page| page.nodes.values()).sum())
    }

    /// The use of each object, by its place in the list of objects.
    pub fn objects(&self) -> BTreeMap<u32, ObjectUse> {
        let mut objects: BTreeMap<u32, Vec<(u64, &PageFaults)>> = BTreeMap::new();
        for ((_, number), page) in &self.pages {
            if let Some(object) = page.object {
                objects.entry(object).or_default().push((number * PAGE, page));
            }
        }
        let threads = |object| self.threads.get(&object).map_or(0, BTreeSet::len);
        let used = |(object, pages): (u32, Vec<_>)| (object, of_pages(object, &pages, threads(object)));
        objects.into_iter().map(used).collect()
    }

    /// What the results say of these objects, as [`Self::objects`] has them.
    pub fn summaries(&self, objects: &BTreeMap<u32, ObjectUse>) -> BTreeMap<u32, ObjectHintFaults> {
        let mut faults: BTreeMap<u32, u64> = BTreeMap::new();
        for page in self.pages.values() {
            if let Some(object) = page.object {
                *faults.entry(object).or_default() += page.nodes.values().sum::<u64>();
            }
        }
        let summary = |(object, used): (&u32, &ObjectUse)| {
            let faults = faults.get(object).copied().unwrap_or(0);
            let (pages, used_from, remote) = (used.samples, used.used_from(), used.remote);
            (*object, ObjectHintFaults { pages, faults, used_from, remote })
        };
        objects.iter().map(summary).collect()
    }
}

/// The use of an object by its pages, each of which counts as one sample.
fn of_pages(object: u32, pages: &[(u64, &PageFaults)], threads: usize) -> ObjectUse {
    let mut pairs: BTreeMap<NodePair, f64> = BTreeMap::new();
    let mut homes: BTreeMap<u32, f64> = BTreeMap::new();
    let mut points = Vec::new();
    for (address, page) in pages {
        let all = page.nodes.values().sum::<u64>() as f64;
        points.extend(page.nodes.keys().map(|node| (*address, *node)));
        let Some(home) = page.home else { continue };
        *homes.entry(home).or_default() += 1.0;
        for (node, faults) in &page.nodes {
            *pairs.entry((*node, home)).or_default() += *faults as f64 / all;
        }
    }
    let known: f64 = homes.values().sum();
    let far: f64 = pairs.iter().filter(|((node, home), _)| node != home).map(|(_, pages)| pages).sum();
    let pair = |((cpu_node, memory_node), pages): (NodePair, f64)| NodeTime {
        cpu_node,
        memory_node,
        time: (pages * WHOLE).round() as u64,
    };
    ObjectUse {
        object,
        samples: pages.len() as u64,
        pairs: pairs.into_iter().map(pair).collect(),
        remote: (known > 0.0).then(|| ShareEstimate::of_samples(far / known, known)),
        home: homes.into_iter().map(|(node, pages)| NodeShare { node, share: pages / known }).collect(),
        partition: partition(&points),
        threads,
        ..ObjectUse::default()
    }
}

/// The use of an object by its samples. Where samples are too few and hint faults are not, the nodes are those that hint
/// faults show.
pub fn completed(sampled: &ObjectUse, hinted: &ObjectUse) -> Option<ObjectUse> {
    let is_better = sampled.samples < MIN_SAMPLES && hinted.samples >= MIN_SAMPLES;
    let (all, of_hints) = (sampled.outside(), hinted.outside());
    // The object's part of the time of all objects stays the one that its samples gave.
    let scaled = |pair: &NodeTime| NodeTime {
        time: (u128::from(pair.time) * u128::from(all) / u128::from(of_hints.max(1))) as u64,
        ..*pair
    };
    (is_better && all > 0 && of_hints > 0).then(|| ObjectUse {
        samples: hinted.samples,
        pairs: hinted.pairs.iter().map(scaled).collect(),
        remote: hinted.remote,
        home: hinted.home.clone(),
        partition: hinted.partition,
        threads: hinted.threads,
        ..sampled.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(page: u64, thread: u32) -> PageTouch {
        PageTouch { process: 7, thread, cpu: Some(0), address: page * PAGE + 8, time: 1 }
    }

    #[test]
    fn each_page_counts_once_however_many_faults_it_has() {
        let mut faults = HintFaults::default();
        // Half of the pages are used by a fast thread of node 1, the others by threads of nodes 2 and 3 in turn.
        for page in 0..200 {
            let times = if page < 100 { 20 } else { 2 };
            for time in 0..times {
                let node = if page < 100 { 1 } else { 2 + time % 2 };
                faults.add(&fault(page, node), node, Some(0), || Some(4));
            }
        }
        let objects = faults.objects();
        let used = &objects[&4];
        let share = |node, share| NodeShare { node, share };
        assert_eq!(used.used_from(), [share(1, 0.5), share(2, 0.25), share(3, 0.25)]);
        assert_eq!((used.home.as_slice(), used.threads, used.samples), (&[share(0, 1.0)][..], 3, 200));
        let remote = used.remote.unwrap();
        assert!((remote.share - 1.0).abs() < 1e-9 && remote.low > 0.97, "{remote:?}");
        assert_eq!(faults.counts(), (200, 2200));
        let summary = &faults.summaries(&objects)[&4];
        assert_eq!((summary.pages, summary.faults), (200, 2200));
    }

    #[test]
    fn they_are_evidence_where_samples_are_few() {
        let mut faults = HintFaults::default();
        (0..40).for_each(|page| faults.add(&fault(page, 9), 1, Some(u32::from(page < 30)), || Some(4)));
        let hinted = &faults.objects()[&4];
        let pairs = vec![NodeTime { cpu_node: 0, memory_node: 0, time: 8000 }];
        let few = ObjectUse { object: 4, samples: 5, wandered: 0.5, pairs, ..ObjectUse::default() };
        let used = completed(&few, hinted).unwrap();
        assert_eq!((used.samples, used.remote.unwrap().share, used.wandered), (40, 0.25, 0.5));
        let pair = |memory_node, time| NodeTime { cpu_node: 1, memory_node, time };
        assert_eq!((used.pairs.as_slice(), used.outside()), (&[pair(0, 2000), pair(1, 6000)][..], 8000));
        assert_eq!(completed(&ObjectUse { samples: 30, ..few.clone() }, hinted), None);
        let too_few = ObjectUse { samples: 29, ..hinted.clone() };
        assert_eq!(completed(&few, &too_few), None);
    }

    #[test]
    fn memory_without_object_is_counted_and_has_no_use() {
        let mut faults = HintFaults::default();
        faults.add(&fault(1, 9), 0, None, || None);
        assert_eq!((faults.counts(), faults.objects().len()), ((1, 1), 0));
    }
}
