//! What lies in what: the parts of a machine nested by their CPUs.

use super::homes;
use numakit_model::topology::{Cache, CacheKind, Core, Node, Package};
use numakit_model::{CpuSet, Topology};

/// A part of the machine with the parts inside it.
#[derive(Debug)]
pub struct Item<'a> {
    pub part: Part<'a>,
    pub cpus: CpuSet,
    pub inside: Vec<Item<'a>>,
}

/// Parts, the outer first where two have the same CPUs.
#[derive(Debug, Clone, Copy)]
pub enum Part<'a> {
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

impl Part<'_> {
    fn rank(&self) -> u32 {
        match self {
            Self::Board(_) => 0,
            Self::Drawer(_) => 1,
            Self::Book(_) => 2,
            Self::Package(_) => 3,
            Self::Die(_) => 4,
            Self::Node(_) => 5,
            Self::Unit => 6,
            // The level nearer to memory is outside, instructions come after data.
            Self::Cache(cache) => {
                20 - 2 * cache.level.min(6) + u32::from(cache.kind == CacheKind::Instruction)
            }
            Self::Cluster => 21,
            Self::Core(_) => 22,
        }
    }
}

/// The outermost parts. Parts that overlap without nesting stand side by side; caches of one
/// core are not parts of their own.
pub fn outline(t: &Topology) -> Vec<Item<'_>> {
    let mut parts = parts(t);
    // Cores come last: nothing lies in them, so that finding a place need not look at them.
    let core = |part: &Part<'_>| matches!(part, Part::Core(_));
    parts.sort_by_key(|(part, cpus)| (core(part), std::cmp::Reverse(cpus.len()), part.rank(), cpus.first()));
    let mut top: Vec<Item<'_>> = Vec::new();
    for (part, cpus) in parts {
        insert(&mut top, Item { part, cpus, inside: Vec::new() });
    }
    for node in t.nodes.iter().filter(|node| node.cpus.is_empty()) {
        let home = homes::cpus_of(t, &homes::nearest(t, node));
        insert_beside(
            &mut top,
            Item { part: Part::Node(node), cpus: CpuSet::new(), inside: Vec::new() },
            &home,
        );
    }
    sort(&mut top);
    top
}

fn parts(t: &Topology) -> Vec<(Part<'_>, CpuSet)> {
    let mut parts: Vec<(Part<'_>, CpuSet)> = Vec::new();
    let boards = t.boards.iter().map(|nodes| homes::cpus_of(t, nodes));
    parts.extend(boards.enumerate().map(|(at, cpus)| (Part::Board(at), cpus)));
    let mut groups = |sets: &[CpuSet], more_than: usize, part: fn(usize) -> Part<'static>| {
        if sets.len() > more_than {
            parts.extend(sets.iter().enumerate().map(|(at, cpus)| (part(at), cpus.clone())));
        }
    };
    // A level that is the same as the one outside says nothing.
    groups(&t.drawers, 1, Part::Drawer);
    groups(&t.books, 1, Part::Book);
    groups(&t.dies, t.packages.len().max(1), Part::Die);
    parts.extend(t.packages.iter().map(|p| (Part::Package(p), p.cpus.clone())));
    parts.extend(t.nodes.iter().filter(|n| !n.cpus.is_empty()).map(|n| (Part::Node(n), n.cpus.clone())));
    let core_of = |cpus: &CpuSet| t.cores.binary_search_by_key(&cpus.first(), |core| core.cpus.first()).ok();
    let private = |cpus: &CpuSet| core_of(cpus).is_none_or(|at| cpus.is_subset(&t.cores[at].cpus));
    let shared = t.caches.iter().filter(|cache| !private(&cache.cpus));
    let shared: Vec<_> = shared.map(|cache| (Part::Cache(cache), cache.cpus.clone())).collect();
    parts.extend(t.units.iter().map(|cpus| (Part::Unit, cpus.clone())));
    for cpus in &t.clusters {
        if !private(cpus) && !parts.iter().chain(&shared).any(|(_, other)| other == cpus) {
            parts.push((Part::Cluster, cpus.clone()));
        }
    }
    parts.extend(shared);
    parts.extend(t.cores.iter().map(|core| (Part::Core(core), core.cpus.clone())));
    parts
}

/// Puts an item into the innermost part that holds all of it.
fn insert<'a>(items: &mut Vec<Item<'a>>, item: Item<'a>) {
    let first = item.cpus.first();
    let holds = |other: &Item<'_>| {
        first.is_some_and(|cpu| other.cpus.contains(cpu)) && item.cpus.is_subset(&other.cpus)
    };
    match items.iter().take_while(|other| !matches!(other.part, Part::Core(_))).position(holds) {
        Some(at) => insert(&mut items[at].inside, item),
        None => items.push(item),
    }
}

/// Puts a node without CPUs into the innermost part above nodes that holds its home.
fn insert_beside<'a>(items: &mut Vec<Item<'a>>, item: Item<'a>, home: &CpuSet) {
    let holds = |other: &Item<'_>| other.part.rank() < 5 && home.is_subset(&other.cpus);
    match items.iter().position(holds).filter(|_| !home.is_empty()) {
        Some(at) => insert_beside(&mut items[at].inside, item, home),
        None => items.push(item),
    }
}

fn sort(items: &mut [Item<'_>]) {
    // Nodes without CPUs come last.
    items.sort_by_key(|item| (item.cpus.is_empty(), item.cpus.first(), item.part.rank()));
    items.iter_mut().for_each(|item| sort(&mut item.inside));
}

/// Caches that serve one core only, the largest level first.
pub fn private_caches<'a>(t: &'a Topology, core: &Core) -> Vec<&'a Cache> {
    let begins_here = |cache: &&Cache| cache.cpus.first().is_some_and(|cpu| core.cpus.contains(cpu));
    let mut caches: Vec<&Cache> = t.caches.iter().filter(begins_here).collect();
    caches.retain(|cache| cache.cpus.is_subset(&core.cpus));
    caches.sort_by_key(|cache| (std::cmp::Reverse(cache.level), cache.kind as u8));
    caches
}
