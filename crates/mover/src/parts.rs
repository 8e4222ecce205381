//! Which parts of memory go to which node: a pure function of samples and of where threads will run.

use crate::recent::Recent;
use crate::shared_memory::SharedMemory;
use numakit_files::{PageUse, PlannedRange, RangeTarget, UsePlan};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The part of its samples that one node must have for a range to go there.
const NEARLY_ALL: f64 = 0.8;
/// A range moves if this part of its samples was remote.
const REMOTE: f64 = 0.1;
/// How far below its stack pointer a thread may soon use its stack, and how much above it is moved.
const STACK: Range<u64> = 16 << 10..256 << 10;
/// What is moved around the base of thread-local storage, which is at the end of it on x86-64 and at its start on AArch64.
const LOCALS: u64 = 16 << 10;

/// The name of memory without one.
pub const UNNAMED: &str = "unnamed memory";

/// A mapping that may be moved in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedRange {
    /// Its process.
    pub process: u32,
    /// Its addresses.
    pub range: Range<u64>,
}

/// A page as a thread uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedPage {
    /// The process.
    pub process: u32,
    /// The address of the page.
    pub page: u64,
    /// The node where the thread will run.
    pub node: u32,
    /// The node of the page, if that is known.
    pub home: Option<u32>,
    /// The place of the object in the list of names.
    pub object: u32,
    /// The number of samples.
    pub samples: u64,
}

/// Where a thread has its own memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnMemory {
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// The node where it will run.
    pub node: u32,
    /// The stack pointer.
    pub stack: u64,
    /// The base of thread-local storage, if that is known.
    pub base: Option<u64>,
}

/// Why a part moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartPurpose {
    /// It is the stack and the thread-local storage of a thread.
    OwnOf(u32),
    /// Threads of one node have nearly all of its samples.
    UsedByNode,
    /// All of the process goes there.
    OnlyNode,
    /// A cure says so.
    OfCure,
}

/// A part of memory that goes to one node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MovablePart {
    /// Its process.
    pub process: u32,
    /// Its addresses; several ranges for a stack with thread-local storage elsewhere.
    pub ranges: Vec<Range<u64>>,
    /// The node to which it goes.
    pub node: u32,
    /// The name of its object.
    pub name: String,
    /// Why it moves.
    pub purpose: PartPurpose,
    /// Its samples by the node of the page.
    pub homes: BTreeMap<u32, u64>,
    /// All of its samples.
    pub samples: u64,
    /// Those of them by threads of its new node.
    pub near: u64,
    /// The pages that have samples, those with most first.
    #[serde(skip)]
    pub hot: Vec<u64>,
}

/// A range that stays, since threads of several nodes use it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SharedRange {
    /// The name of its object.
    pub name: String,
    /// Its samples.
    pub samples: u64,
    /// The nodes whose threads use it.
    pub nodes: BTreeSet<u32>,
}

/// All that parts follow from.
#[derive(Debug, Default)]
pub struct PartInput {
    /// The mappings; of shared memory, one.
    pub mappings: Vec<MappedRange>,
    /// The memory that processes share.
    pub shared: Vec<SharedMemory>,
    /// Remote samples of memory that processes share which were not chosen, by the names of its objects.
    pub strangers: Vec<(String, u64)>,
    /// The samples.
    pub used: Vec<UsedPage>,
    /// The stacks and thread-local storage of threads that are moved.
    pub own: Vec<OwnMemory>,
    /// The names of the objects.
    pub names: Vec<String>,
}

/// What moves, the part with most remote samples first after the memory of threads, and what stays since several nodes use it.
/// `page` is the size of a page. Parts that moved too recently are left out.
pub fn parts(input: &PartInput, page: u64, recent: &Recent) -> (Vec<MovablePart>, Vec<SharedRange>) {
    let mut own: Vec<MovablePart> =
        input.own.iter().filter_map(|own| own_memory(own, &input.mappings)).collect();
    let (mut found, mut shared) = (Vec::new(), BTreeMap::new());
    for mapping in &input.mappings {
        let is_in = |used: &&UsedPage| used.process == mapping.process && mapping.range.contains(&used.page);
        let used: Vec<&UsedPage> = input.used.iter().filter(is_in).collect();
        if !used.is_empty() {
            of_mapping(mapping, &used, input, page, &mut found, &mut shared);
        }
    }
    let remote = |part: &MovablePart| part.samples - part.homes.get(&part.node).copied().unwrap_or(0);
    found.sort_by_key(|part| std::cmp::Reverse(remote(part)));
    own.append(&mut found);
    own.retain(|part| part.ranges.iter().all(|range| recent.may_move(part.process, range)));
    let mut shared: Vec<SharedRange> = shared.into_values().collect();
    shared.sort_by_key(|range| std::cmp::Reverse(range.samples));
    (own, shared)
}

/// All memory of the processes, for one node: a part for each process, and one for each piece of memory that they share. Ranges that
/// moved too recently are left out.
pub fn whole(input: &PartInput, node: u32, recent: &Recent) -> Vec<MovablePart> {
    let is_shared = |mapping: &MappedRange| input.shared.iter().any(|memory| memory.first() == Some(mapping));
    let mut own: BTreeMap<u32, Vec<Range<u64>>> = BTreeMap::new();
    let mut found = Vec::new();
    for mapping in input.mappings.iter().filter(|mapping| recent.may_move(mapping.process, &mapping.range)) {
        match is_shared(mapping) {
            true => found.push((mapping.process, vec![mapping.range.clone()], "shared memory")),
            false => own.entry(mapping.process).or_default().push(mapping.range.clone()),
        }
    }
    let own = own.into_iter().map(|(process, ranges)| (process, ranges, "all memory of its own"));
    own.chain(found)
        .map(|(process, mut ranges, name)| {
            ranges.sort_unstable_by_key(|range| range.start);
            let is_in = |used: &&UsedPage| {
                let at = ranges.partition_point(|range| range.end <= used.page);
                used.process == process && ranges.get(at).is_some_and(|range| range.contains(&used.page))
            };
            let used: Vec<&UsedPage> = input.used.iter().filter(is_in).collect();
            let near = used.iter().filter(|used| used.node == node).map(|used| used.samples).sum();
            let (homes, hot) = homes_and_hot(&used);
            let samples = used.iter().map(|used| used.samples).sum();
            let (name, purpose) = (name.to_owned(), PartPurpose::OnlyNode);
            MovablePart { process, ranges, node, name, purpose, homes, samples, near, hot }
        })
        .collect()
}

/// The stack and the thread-local storage of a thread.
fn own_memory(own: &OwnMemory, mappings: &[MappedRange]) -> Option<MovablePart> {
    let around = |address: u64, below: u64, above: u64| {
        let of = |mapping: &&MappedRange| mapping.process == own.process && mapping.range.contains(&address);
        let mapping = &mappings.iter().find(of)?.range;
        Some(address.saturating_sub(below).max(mapping.start)..address.saturating_add(above).min(mapping.end))
    };
    let stack = around(own.stack, STACK.start, STACK.end);
    let locals = own.base.and_then(|base| around(base, LOCALS, LOCALS));
    let ranges: Vec<Range<u64>> = match (stack, locals) {
        (Some(stack), Some(locals)) if locals.start <= stack.end && stack.start <= locals.end => {
            std::iter::once(stack.start.min(locals.start)..stack.end.max(locals.end)).collect()
        }
        (stack, locals) => stack.into_iter().chain(locals).collect(),
    };
    (!ranges.is_empty()).then(|| MovablePart {
        process: own.process,
        ranges,
        node: own.node,
        name: format!("stack and thread-local storage of thread {}", own.thread),
        purpose: PartPurpose::OwnOf(own.thread),
        homes: BTreeMap::new(),
        samples: 0,
        near: 0,
        hot: Vec::new(),
    })
}

/// The parts of one mapping.
fn of_mapping(
    mapping: &MappedRange,
    used: &[&UsedPage],
    input: &PartInput,
    page: u64,
    found: &mut Vec<MovablePart>,
    shared: &mut BTreeMap<u32, SharedRange>,
) {
    let start = mapping.range.start;
    let number = |used: &UsedPage| (used.page - start) / page;
    let mut uses: BTreeMap<PageUse, u64> = BTreeMap::new();
    for used in used {
        let key = PageUse { page: number(used), node: used.node, home: used.home };
        *uses.entry(key).or_default() += used.samples;
    }
    let plan = UsePlan::new(&uses, (mapping.range.end - start).div_ceil(page));
    for range in &joined(plan.ranges) {
        let of: Vec<&UsedPage> =
            used.iter().copied().filter(|used| range.pages.contains(&number(used))).collect();
        let samples: u64 = of.iter().map(|used| used.samples).sum();
        let object = most(of.iter().map(|used| (used.object, used.samples)));
        let (Some(object), true) = (object, samples > 0) else { continue };
        let name = input.names.get(object as usize).cloned().unwrap_or_else(|| UNNAMED.to_owned());
        let near = |node: u32| range.samples.get(&node).copied().unwrap_or(0);
        match &range.target {
            RangeTarget::Node(node) if near(*node) as f64 >= NEARLY_ALL * samples as f64 => {
                let addresses = start + range.pages.start * page..start + range.pages.end * page;
                let addresses = addresses.start..addresses.end.min(mapping.range.end);
                found.extend(part(mapping.process, addresses, *node, near(*node), name, &of));
            }
            RangeTarget::Node(_) | RangeTarget::Shared(_) => {
                let of_object = shared.entry(object).or_insert_with(|| SharedRange {
                    name,
                    samples: 0,
                    nodes: BTreeSet::new(),
                });
                of_object.samples += samples;
                of_object.nodes.extend(range.samples.keys());
            }
            RangeTarget::Unused | RangeTarget::Unclear => {}
        }
    }
}

/// Ranges without a clear user between those of one node become its own, where no other node has any: that no sample fell there is
/// chance.
fn joined(ranges: Vec<PlannedRange>) -> Vec<PlannedRange> {
    let is_clear =
        |range: &&PlannedRange| matches!(range.target, RangeTarget::Node(_) | RangeTarget::Shared(_));
    let mut clear = ranges.iter().filter(is_clear);
    let Some(first) = clear.next() else { return ranges };
    let last = clear.clone().next_back().unwrap_or(first);
    if matches!(first.target, RangeTarget::Shared(_)) || clear.any(|range| range.target != first.target) {
        return ranges;
    }
    let (pages, mut whole) = (first.pages.start..last.pages.end, first.clone());
    whole.samples.clear();
    for range in ranges.iter().filter(|range| pages.contains(&range.pages.start)) {
        range.samples.iter().for_each(|(node, count)| *whole.samples.entry(*node).or_default() += count);
    }
    vec![PlannedRange { pages, ..whole }]
}

/// A part that threads of one node use, unless nearly all of it is there.
fn part(
    process: u32,
    range: Range<u64>,
    node: u32,
    near: u64,
    name: String,
    used: &[&UsedPage],
) -> Option<MovablePart> {
    let (homes, hot) = homes_and_hot(used);
    let placed: u64 = homes.values().sum();
    let remote = placed - homes.get(&node).copied().unwrap_or(0);
    if remote == 0 || (remote as f64) < REMOTE * placed as f64 {
        return None;
    }
    let samples = used.iter().map(|used| used.samples).sum();
    let purpose = PartPurpose::UsedByNode;
    Some(MovablePart { process, ranges: vec![range], node, name, purpose, homes, samples, near, hot })
}

/// The samples by the node of the page, and the pages, those with most samples first.
fn homes_and_hot(used: &[&UsedPage]) -> (BTreeMap<u32, u64>, Vec<u64>) {
    let (mut homes, mut pages): (BTreeMap<u32, u64>, BTreeMap<u64, u64>) = Default::default();
    for used in used {
        used.home.into_iter().for_each(|home| *homes.entry(home).or_default() += used.samples);
        *pages.entry(used.page).or_default() += used.samples;
    }
    let mut hot: Vec<u64> = pages.keys().copied().collect();
    hot.sort_by_key(|page| (std::cmp::Reverse(pages[page]), *page));
    (homes, hot)
}

/// What has most samples.
fn most(counts: impl Iterator<Item = (u32, u64)>) -> Option<u32> {
    let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
    counts.for_each(|(what, samples)| *sums.entry(what).or_default() += samples);
    sums.into_iter().max_by_key(|(what, samples)| (*samples, std::cmp::Reverse(*what))).map(|(what, _)| what)
}

#[cfg(test)]
mod tests;
