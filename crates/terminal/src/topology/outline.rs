//! The parts of a machine, nested by their CPUs.

use super::homes;
use numakit_model::topology::{Cache, CacheKind, Core, Node, Package};
use numakit_model::{CpuSet, Topology};
use std::collections::{HashMap, HashSet};

/// A part of the machine with the parts inside it.
#[derive(Debug)]
pub struct Item<'a> {
    pub part: OutlinePart<'a>,
    pub cpus: CpuSet,
    pub inside: Vec<Item<'a>>,
}

/// Parts; of two with the same CPUs, the outer one is listed first here.
#[derive(Debug, Clone, Copy)]
pub enum OutlinePart<'a> {
    Board(usize),
    Drawer(usize),
    Book(usize),
    Package(&'a Package),
    Die(usize),
    Node(&'a Node),
    /// What cores share beyond caches.
    Unit,
    Cache(&'a Cache),
    Cluster,
    Core(&'a Core),
}

impl OutlinePart<'_> {
    fn rank(&self) -> u32 {
        match self {
            Self::Board(_) => 0,
            Self::Drawer(_) => 1,
            Self::Book(_) => 2,
            Self::Package(_) => 3,
            Self::Die(_) => 4,
            Self::Node(_) => 5,
            Self::Unit => 6,
            // The level nearer to memory is outside; instruction caches come after data caches.
            Self::Cache(cache) => {
                20 - 2 * cache.level.min(6) + u32::from(cache.kind == CacheKind::Instruction)
            }
            Self::Cluster => 21,
            Self::Core(_) => 22,
        }
    }
}

/// The outermost parts. Parts that overlap without nesting are siblings; caches of one
/// core are not parts of their own.
pub fn outline(t: &Topology) -> Vec<Item<'_>> {
    let mut parts = parts(t);
    parts.sort_by_cached_key(|(part, cpus)| (std::cmp::Reverse(cpus.len()), part.rank(), cpus.first()));
    let mut top = nest(t, parts);
    for node in t.nodes.iter().filter(|node| node.cpus.is_empty()) {
        let home = homes::cpus_of(t, &homes::nearest(t, node));
        insert_remote(
            &mut top,
            Item { part: OutlinePart::Node(node), cpus: CpuSet::new(), inside: Vec::new() },
            &home,
        );
    }
    sort(&mut top);
    top
}

fn parts(t: &Topology) -> Vec<(OutlinePart<'_>, CpuSet)> {
    let mut parts: Vec<(OutlinePart<'_>, CpuSet)> = Vec::new();
    let boards = t.boards.iter().map(|nodes| homes::cpus_of(t, nodes));
    parts.extend(boards.enumerate().map(|(at, cpus)| (OutlinePart::Board(at), cpus)));
    let mut groups = |sets: &[CpuSet], more_than: usize, part: fn(usize) -> OutlinePart<'static>| {
        if sets.len() > more_than {
            parts.extend(sets.iter().enumerate().map(|(at, cpus)| (part(at), cpus.clone())));
        }
    };
    // A level that equals the one outside is left out.
    groups(&t.drawers, 1, OutlinePart::Drawer);
    groups(&t.books, 1, OutlinePart::Book);
    groups(&t.dies, t.packages.len().max(1), OutlinePart::Die);
    parts.extend(t.packages.iter().map(|p| (OutlinePart::Package(p), p.cpus.clone())));
    parts.extend(
        t.nodes.iter().filter(|n| !n.cpus.is_empty()).map(|n| (OutlinePart::Node(n), n.cpus.clone())),
    );
    let core_of = |cpus: &CpuSet| t.cores.binary_search_by_key(&cpus.first(), |core| core.cpus.first()).ok();
    let private = |cpus: &CpuSet| core_of(cpus).is_none_or(|at| cpus.is_subset(&t.cores[at].cpus));
    let shared = t.caches.iter().filter(|cache| !private(&cache.cpus));
    let shared: Vec<_> = shared.map(|cache| (OutlinePart::Cache(cache), cache.cpus.clone())).collect();
    parts.extend(t.units.iter().map(|cpus| (OutlinePart::Unit, cpus.clone())));
    let known: HashSet<&CpuSet> = parts.iter().chain(&shared).map(|(_, cpus)| cpus).collect();
    let clusters = t.clusters.iter().filter(|cpus| !private(cpus) && !known.contains(cpus));
    let clusters: Vec<_> = clusters.map(|cpus| (OutlinePart::Cluster, cpus.clone())).collect();
    parts.extend(clusters);
    parts.extend(shared);
    parts.extend(t.cores.iter().map(|core| (OutlinePart::Core(core), core.cpus.clone())));
    parts
}

/// No part.
const NONE: usize = usize::MAX;

/// Puts each part into the innermost one that contains it. The larger parts come first, so
/// that the innermost part of each CPU is known.
fn nest<'a>(t: &Topology, parts: Vec<(OutlinePart<'a>, CpuSet)>) -> Vec<Item<'a>> {
    let mut innermost = vec![NONE; t.online.last().map_or(0, |last| last as usize + 1)];
    let mut outside: Vec<usize> = Vec::with_capacity(parts.len());
    for (at, (part, cpus)) in parts.iter().enumerate() {
        let up = |from: usize| std::iter::successors(Some(from), |&at| outside.get(at).copied());
        let holds = |&other: &usize| other == NONE || cpus.is_subset(&parts[other].1);
        let mut around: Vec<usize> =
            cpus.iter().filter_map(|cpu| innermost.get(cpu as usize).copied()).collect();
        around.dedup();
        // If parts overlap, the one that was added first.
        let places = around.iter().filter_map(|&inner| up(inner).find(holds));
        let place =
            places.min_by_key(|&place| if place == NONE { (1, 0) } else { (0, place) }).unwrap_or(NONE);
        outside.push(place);
        if !matches!(part, OutlinePart::Core(_)) {
            for cpu in cpus.iter() {
                if let Some(inner) = innermost.get_mut(cpu as usize).filter(|inner| **inner == place) {
                    *inner = at;
                }
            }
        }
    }
    // From the innermost outwards, so that the parts inside each one are complete.
    let mut inside: Vec<Vec<Item<'a>>> = parts.iter().map(|_| Vec::new()).collect();
    let mut top = Vec::new();
    for (at, (part, cpus)) in parts.into_iter().enumerate().rev() {
        let mut items = std::mem::take(&mut inside[at]);
        items.reverse();
        let item = Item { part, cpus, inside: items };
        match outside[at] {
            NONE => top.push(item),
            place => inside[place].push(item),
        }
    }
    top.reverse();
    top
}

/// Puts a node without CPUs into the innermost part above nodes that contains its nearest CPUs.
fn insert_remote<'a>(items: &mut Vec<Item<'a>>, item: Item<'a>, home: &CpuSet) {
    let holds = |other: &Item<'_>| other.part.rank() < 5 && home.is_subset(&other.cpus);
    match items.iter().position(holds).filter(|_| !home.is_empty()) {
        Some(at) => insert_remote(&mut items[at].inside, item, home),
        None => items.push(item),
    }
}

fn sort(items: &mut [Item<'_>]) {
    // Nodes without CPUs come last.
    items.sort_by_key(|item| (item.cpus.is_empty(), item.cpus.first(), item.part.rank()));
    items.iter_mut().for_each(|item| sort(&mut item.inside));
}

/// Caches that serve one core only.
pub struct Private<'a> {
    by_first: HashMap<u32, Vec<&'a Cache>>,
}

impl<'a> Private<'a> {
    pub fn of(t: &'a Topology) -> Self {
        let mut by_first: HashMap<u32, Vec<&Cache>> = HashMap::new();
        for cache in &t.caches {
            if let Some(first) = cache.cpus.first() {
                by_first.entry(first).or_default().push(cache);
            }
        }
        Self { by_first }
    }

    /// Those of a core, the largest level first.
    pub fn get(&self, core: &Core) -> Vec<&'a Cache> {
        let begin = core.cpus.iter().filter_map(|cpu| self.by_first.get(&cpu)).flatten();
        let mut caches: Vec<&Cache> = begin.copied().filter(|c| c.cpus.is_subset(&core.cpus)).collect();
        caches.sort_by_key(|cache| (std::cmp::Reverse(cache.level), cache.kind as u8));
        caches
    }
}
