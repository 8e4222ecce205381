//! How the threads of each node use each object.

use crate::code::{self, CodeNames, CodeTime, PlaceTimes};
use crate::explanation::NodeTime;
use crate::observation::{Observation, ObservedAccess, PAGE};
use crate::partition::partition;
use crate::place::TimePlace;
use crate::share::{Clusters, ShareEstimate};
use crate::traffic::{ObjectPages, TrafficCell};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Lines of code that use an object, at most.
const MAX_CODE: usize = 5;
/// With fewer pages that were seen more than once, it is not known whether pages move.
const MIN_PAGES: usize = 16;

/// A part of something that belongs to a node.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct NodeShare {
    /// The node.
    pub node: u32,
    /// Between 0 and 1.
    pub share: f64,
}

/// The use of one object.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObjectUse {
    /// Its place in the list of objects.
    pub object: u32,
    /// The process, by its place in the list of processes.
    pub process: u32,
    /// Samples that accessed it, or were about to.
    pub samples: u64,
    /// Where the time of these samples went; empty where samples do not tell time.
    pub time: PlaceTimes,
    /// Time at it outside of the caches by pair of nodes; where time cannot be told, pages.
    pub pairs: Vec<NodeTime>,
    /// The part of it that is at other nodes.
    pub remote: Option<ShareEstimate>,
    /// The part of its pages in caches that is at other nodes; `None` if no such page was seen, and where samples tell time.
    pub cached_remote: Option<ShareEstimate>,
    /// The nodes of its pages, of those that samples saw.
    pub home: Vec<NodeShare>,
    /// The part of its pages that were on several nodes in turn; `None` if too few pages were seen twice.
    pub moved: Option<f64>,
    /// The part of its far time that is of threads which had used it on their own node before, and then went to another
    /// node.
    pub wandered: f64,
    /// Whether each node uses a part of its own: 0 if all nodes use all of the object, 1 if no two nodes use the same part.
    pub partition: Option<f64>,
    /// The part of samples that write; `None` where samples do not tell whether they do.
    pub writes: Option<f64>,
    /// Threads that use it.
    pub threads: usize,
    /// Whether a thread used it from several nodes.
    pub roams: bool,
    /// The code that uses it, with most time first: source lines if they are known, else functions.
    pub used_by: Vec<CodeTime>,
}

type Placed<'a> = (&'a Observation, TimePlace);

/// The use of all objects, from samples that name the instruction that waited; that with most time at memory first.
pub fn by_time(placed: &[Placed<'_>], has_nodes: bool, names: &mut dyn CodeNames) -> Vec<ObjectUse> {
    let one = |(object, of): (u32, Vec<Placed<'_>>)| {
        let mut used = use_of(object, &of, names);
        used.pairs = pairs(&of);
        used.remote = if has_nodes { remote(&of).estimate() } else { None };
        used
    };
    let mut all: Vec<ObjectUse> = by_object(placed).into_iter().map(one).collect();
    all.sort_by_key(|used| (Reverse(used.time.outside()), used.object));
    all
}

/// The use of objects by their pages in use, for machines whose samples do not tell time. The object with most pages comes
/// first.
pub fn by_pages(objects: &BTreeMap<u32, ObjectPages>) -> Vec<ObjectUse> {
    let mut all: Vec<ObjectUse> = objects.iter().map(|(object, pages)| of_pages(*object, pages)).collect();
    all.sort_by_key(|used| (Reverse(used.outside()), used.object));
    all
}

fn of_pages(object: u32, pages: &ObjectPages) -> ObjectUse {
    let pair = |cell: &TrafficCell| NodeTime {
        cpu_node: cell.cpu_node,
        memory_node: cell.memory_node,
        time: cell.pages,
    };
    let sum = |is_counted: &dyn Fn(&&TrafficCell) -> bool| {
        pages.cells.iter().filter(is_counted).map(|cell| cell.pages).sum::<u64>() as f64
    };
    let (all, far) = (sum(&|_| true), sum(&|cell| cell.cpu_node != cell.memory_node));
    let mut nodes: BTreeMap<u32, f64> = BTreeMap::new();
    pages.homes.values().for_each(|home| *nodes.entry(*home).or_default() += 1.0);
    let (again, of_far) = (pages.seen_again, pages.far);
    ObjectUse {
        object,
        process: pages.process,
        samples: pages.samples,
        pairs: pages.cells.iter().map(pair).collect(),
        remote: (all > 0.0).then(|| ShareEstimate::of_samples(far / all, pages.samples as f64)),
        cached_remote: (pages.cached.all > 0).then(|| {
            let all = pages.cached.all as f64;
            ShareEstimate::of_samples(pages.cached.remote as f64 / all, all)
        }),
        home: shares(nodes),
        moved: (again.all >= MIN_PAGES as u64).then(|| again.moved as f64 / again.all as f64),
        wandered: of_far.was_near as f64 / of_far.all.max(1) as f64,
        partition: partition(&pages.users),
        threads: pages.threads.iter().map(|(thread, _)| thread).collect::<BTreeSet<_>>().len(),
        roams: roams(&pages.threads),
        ..ObjectUse::default()
    }
}

impl ObjectUse {
    /// Time at it outside of the caches, or pages where time cannot be told.
    pub fn outside(&self) -> u64 {
        let pairs = self.pairs.iter().map(|pair| pair.time).sum();
        self.time.outside().max(pairs)
    }

    /// The nodes whose threads use it, with their parts.
    pub fn used_from(&self) -> Vec<NodeShare> {
        let mut nodes: BTreeMap<u32, f64> = BTreeMap::new();
        self.pairs.iter().for_each(|pair| *nodes.entry(pair.cpu_node).or_default() += pair.time as f64);
        shares(nodes)
    }
}

fn by_object<'a>(placed: &[Placed<'a>]) -> BTreeMap<u32, Vec<Placed<'a>>> {
    let mut objects: BTreeMap<u32, Vec<Placed<'_>>> = BTreeMap::new();
    for (at, place) in placed {
        if let Some(access) = at.access() {
            objects.entry(access.object).or_default().push((at, *place));
        }
    }
    objects
}

/// The part of an object's use that does not depend on how much time each sample means.
fn use_of(object: u32, of: &[Placed<'_>], names: &mut dyn CodeNames) -> ObjectUse {
    let mut time = PlaceTimes::default();
    of.iter().for_each(|(at, place)| time.add(*place, at.weight));
    let (functions, lines) = code::times(of.iter().copied(), names);
    let mut used_by = if lines.is_empty() { functions } else { lines };
    used_by.truncate(MAX_CODE);
    let writes = accesses(of).filter(|(_, access)| access.writes()).count();
    // Each process has it at other addresses.
    let process = of.first().map_or(0, |(at, _)| at.process);
    let is_of_one = of.iter().all(|(at, _)| at.process == process);
    let points: Vec<(u64, u32)> = accesses(of)
        .filter(|(_, access)| is_of_one && access.line_of_object().is_some())
        .filter_map(|(at, access)| Some((access.address, at.cpu_node?)))
        .collect();
    let (home, moved) = homes(of);
    let threads: BTreeSet<(u32, u32)> =
        of.iter().filter_map(|(at, _)| Some((at.thread, at.cpu_node?))).collect();
    ObjectUse {
        object,
        process,
        samples: of.len() as u64,
        time,
        home,
        moved,
        wandered: wandered(of),
        partition: partition(&points),
        writes: Some(writes as f64 / of.len().max(1) as f64),
        threads: of.iter().map(|(at, _)| at.thread).collect::<BTreeSet<_>>().len(),
        roams: roams(&threads),
        used_by,
        ..ObjectUse::default()
    }
}

/// Whether one of these threads was on several nodes.
fn roams(threads: &BTreeSet<(u32, u32)>) -> bool {
    threads.iter().zip(threads.iter().skip(1)).any(|((one, _), (other, _))| one == other)
}

fn accesses<'a>(of: &'a [Placed<'_>]) -> impl Iterator<Item = (&'a Observation, &'a ObservedAccess)> {
    of.iter().filter_map(|(at, _)| Some((*at, at.access()?)))
}

fn outside<'a>(of: &'a [Placed<'_>]) -> impl Iterator<Item = (&'a Observation, bool)> {
    of.iter().filter_map(|(at, place)| match place {
        TimePlace::Local => Some((*at, false)),
        TimePlace::Remote => Some((*at, true)),
        _ => None,
    })
}

/// The far part of the time of samples at memory outside of the caches.
pub(crate) fn remote(of: &[Placed<'_>]) -> Clusters {
    let mut clusters = Clusters::default();
    outside(of).for_each(|(at, is_far)| clusters.add(at.thread, at.time, at.weight, is_far));
    clusters
}

/// The time of samples at memory outside of the caches, by pair of nodes.
pub(crate) fn pairs(of: &[Placed<'_>]) -> Vec<NodeTime> {
    let mut pairs: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for (at, _) in outside(of) {
        if let Some(pair) = at.cpu_node.zip(at.access().and_then(|access| access.home)) {
            *pairs.entry(pair).or_default() += at.weight;
        }
    }
    let pair = |((cpu_node, memory_node), time)| NodeTime { cpu_node, memory_node, time };
    pairs.into_iter().map(pair).collect()
}

/// The last node of each page that samples saw, and how many of those that were seen twice have moved.
fn homes(of: &[Placed<'_>]) -> (Vec<NodeShare>, Option<f64>) {
    let mut pages: HashMap<(u32, u64), (u32, u64, bool)> = HashMap::new();
    for (at, access) in accesses(of).filter(|(_, access)| access.line_of_object().is_some()) {
        if let Some(home) = access.home {
            let page = pages.entry((at.process, access.address / PAGE)).or_insert((home, 0, false));
            *page = (home, page.1 + 1, page.2 || page.0 != home);
        }
    }
    let again: Vec<bool> =
        pages.values().filter(|(_, seen, _)| *seen > 1).map(|(_, _, moved)| *moved).collect();
    let moved = again.iter().filter(|moved| **moved).count() as f64 / again.len().max(1) as f64;
    let mut nodes: BTreeMap<u32, f64> = BTreeMap::new();
    pages.values().for_each(|(home, ..)| *nodes.entry(*home).or_default() += 1.0);
    (shares(nodes), (again.len() >= MIN_PAGES).then_some(moved))
}

/// The part of far time that is of threads which used the object from its own node before they went to another node.
fn wandered(of: &[Placed<'_>]) -> f64 {
    let mut was_near: BTreeSet<(u32, u32)> = BTreeSet::new();
    let (mut far, mut moved) = (0u64, 0u64);
    for (at, is_far) in outside(of) {
        let Some(home) = at.access().and_then(|access| access.home) else { continue };
        if !is_far {
            was_near.insert((at.thread, home));
            continue;
        }
        far += at.weight;
        moved += if was_near.contains(&(at.thread, home)) { at.weight } else { 0 };
    }
    moved as f64 / far.max(1) as f64
}

fn shares(nodes: BTreeMap<u32, f64>) -> Vec<NodeShare> {
    let all: f64 = nodes.values().sum();
    nodes.into_iter().map(|(node, part)| NodeShare { node, share: part / all }).collect()
}

#[cfg(test)]
mod tests;
