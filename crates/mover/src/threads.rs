//! Which busy thread goes to which core: a pure function of samples and free cores.

use numakit_model::CpuSet;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Samples of memory below which the pages of a thread say nothing.
const MIN_LOCATED: u64 = 8;
/// The part of its samples that a node must have to be the node of a thread's pages.
const MOST: f64 = 0.6;

/// A thread that used the CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BusyThread {
    /// Its process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// Its name.
    pub name: String,
    /// The CPU on which it runs or ran last.
    pub cpu: Option<u32>,
    /// The node of the CPUs on which most of its samples were.
    pub node: Option<u32>,
    /// The CPUs on which it may run.
    pub mask: CpuSet,
    /// The CPUs on which it may run now: less than `mask` where it was moved before.
    pub bound: CpuSet,
    /// Whether its process starts others of the same program, which would inherit its CPU.
    pub starts_others: bool,
    /// Its samples.
    pub samples: u64,
    /// Samples of pages, by the node of the page.
    pub homes: BTreeMap<u32, u64>,
    /// Samples of pages that it shares with other threads, by their places in the list.
    pub shared: BTreeMap<usize, u64>,
}

/// A core that may have a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FreeCore {
    /// The CPU that a thread gets.
    pub cpu: u32,
    /// All CPUs of the core.
    pub cpus: CpuSet,
    /// Their node.
    pub node: u32,
}

/// Why a thread goes where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ThreadReason {
    /// It is alone on a core of the right node.
    Stays,
    /// Most of the pages that it uses are on that node.
    NearItsPages,
    /// Another busy thread runs on its core.
    CoreWasShared,
    /// Its core is none of those that it may have.
    CoreNotFree,
    /// Processes of the same program that its process starts would inherit its CPU; it is left as it is.
    StartsOthers,
    /// There is no free core among those that it may run on; it is left as it is.
    NoCore,
    /// More threads are busy than there are cores for them: one that had a core alone would leave the others with fewer.
    MoreThreads,
}

/// What becomes of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ThreadDecision {
    /// Its process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// Its name.
    pub name: String,
    /// The CPU on which it runs now.
    pub from_cpu: Option<u32>,
    /// The node where it mostly runs now.
    pub from_node: Option<u32>,
    /// The CPU that it gets; `None`: it is left as it is.
    pub cpu: Option<u32>,
    /// The node of that CPU, or of where it is left.
    pub node: Option<u32>,
    /// Why.
    pub reason: ThreadReason,
    /// Whether its CPU mask changes.
    pub changes: bool,
    /// Its samples.
    pub samples: u64,
}

/// Gives each thread a core, the busiest first, or leaves the thread as it is; all of them, if they are more than the cores. No core gets two threads, and no thread a CPU
/// outside of its mask. If `pages_follow`, pages of a node whose cores are too few for their users go to the threads instead.
/// One decision for each thread, in their order.
pub fn plan(threads: &[BusyThread], cores: &[FreeCore], pages_follow: bool) -> Vec<ThreadDecision> {
    let mut planner = Planner {
        threads,
        cores,
        wanted: threads
            .iter()
            .map(|thread| node_of_pages(thread).filter(|_| !thread.starts_others))
            .collect(),
        given: vec![None; threads.len()],
        taken: BTreeSet::new(),
    };
    let mut order: Vec<usize> = (0..threads.len()).filter(|at| !threads[*at].starts_others).collect();
    if planner.wanting() > cores.len() {
        return (0..threads.len()).map(|at| planner.decision(at)).collect();
    }
    order.sort_by_key(|at| (std::cmp::Reverse(threads[*at].samples), *at));
    let holders = planner.holders(&order);
    if pages_follow {
        planner.forget_full_nodes(&holders);
    }
    for &at in &order {
        if let Some(core) = holders.get(&at).copied().filter(|core| planner.is_right(at, *core)) {
            planner.give(at, core, ThreadReason::Stays);
        }
    }
    order.retain(|at| planner.given[*at].is_none());
    while let Some(place) = planner.next(&order) {
        let at = order.remove(place);
        if let Some(core) = planner.best(at) {
            let reason = planner.reason(at, core, &holders);
            planner.give(at, core, reason);
        }
    }
    (0..threads.len()).map(|at| planner.decision(at)).collect()
}

/// The node that has most of the pages that a thread uses.
fn node_of_pages(thread: &BusyThread) -> Option<u32> {
    let all: u64 = thread.homes.values().sum();
    let (node, most) =
        thread.homes.iter().max_by_key(|(node, count)| (**count, std::cmp::Reverse(**node)))?;
    (all >= MIN_LOCATED && *most as f64 >= MOST * all as f64).then_some(*node)
}

struct Planner<'a> {
    threads: &'a [BusyThread],
    cores: &'a [FreeCore],
    /// The node to which each thread should go for its pages.
    wanted: Vec<Option<u32>>,
    given: Vec<Option<(usize, ThreadReason)>>,
    taken: BTreeSet<usize>,
}

impl Planner<'_> {
    /// How many threads want a core.
    fn wanting(&self) -> usize {
        self.threads.iter().filter(|thread| !thread.starts_others).count()
    }

    /// The busiest thread of each core, with the core.
    fn holders(&self, order: &[usize]) -> BTreeMap<usize, usize> {
        let (mut holders, mut held) = (BTreeMap::new(), BTreeSet::new());
        for &at in order {
            let thread = &self.threads[at];
            let Some(cpu) = thread.cpu.filter(|cpu| thread.mask.contains(*cpu)) else { continue };
            let core = self.cores.iter().position(|core| core.cpus.contains(cpu));
            if let Some(core) = core.filter(|core| held.insert(*core)) {
                holders.insert(at, core);
            }
        }
        holders
    }

    /// Where more threads want to be on a node than it has cores, none goes there for its pages.
    fn forget_full_nodes(&mut self, holders: &BTreeMap<usize, usize>) {
        let nodes: BTreeSet<u32> = self.wanted.iter().flatten().copied().collect();
        for node in nodes {
            let stays =
                |(at, core): (&usize, &usize)| self.cores[*core].node == node && self.wanted[*at].is_none();
            let stay = holders.iter().filter(|(at, core)| stays((at, core))).count();
            let room = self.cores.iter().filter(|core| core.node == node).count().saturating_sub(stay);
            if self.wanted.iter().filter(|wanted| **wanted == Some(node)).count() > room {
                self.wanted
                    .iter_mut()
                    .filter(|wanted| **wanted == Some(node))
                    .for_each(|wanted| *wanted = None);
            }
        }
    }

    /// Whether a core is on the node where a thread should be.
    fn is_right(&self, at: usize, core: usize) -> bool {
        self.wanted[at].is_none_or(|node| node == self.cores[core].node)
    }

    fn give(&mut self, at: usize, core: usize, reason: ThreadReason) {
        self.given[at] = Some((core, reason));
        self.taken.insert(core);
    }

    /// The place in the order of the thread that shares most pages with those that have cores, or of the first one: so a thread
    /// finds room beside those with which it shares.
    fn next(&self, order: &[usize]) -> Option<usize> {
        let shares = |at: usize| -> u64 {
            let shared = self.threads[at].shared.iter();
            shared
                .filter(|(other, _)| self.given.get(**other).copied().flatten().is_some())
                .map(|(_, count)| count)
                .sum()
        };
        (0..order.len()).max_by_key(|place| (shares(order[*place]), std::cmp::Reverse(*place)))
    }

    /// The best free core for a thread: on the node of its pages, then with threads that use the same pages, then near to where
    /// it is.
    fn best(&self, at: usize) -> Option<usize> {
        let thread = &self.threads[at];
        let may = |core: &usize| !self.taken.contains(core) && thread.mask.contains(self.cores[*core].cpu);
        let together = |node: u32| -> u64 {
            let is_there = |other: &usize| {
                self.given
                    .get(*other)
                    .copied()
                    .flatten()
                    .is_some_and(|(core, _)| self.cores[core].node == node)
            };
            thread.shared.iter().filter(|(other, _)| is_there(other)).map(|(_, count)| *count).sum()
        };
        let score = |core: &usize| {
            let FreeCore { node, cpus, .. } = &self.cores[*core];
            let own = thread.cpu.is_some_and(|cpu| cpus.contains(cpu));
            (
                self.wanted[at] == Some(*node),
                together(*node),
                own,
                thread.node == Some(*node),
                std::cmp::Reverse(*core),
            )
        };
        (0..self.cores.len()).filter(may).max_by_key(score)
    }

    fn reason(&self, at: usize, core: usize, holders: &BTreeMap<usize, usize>) -> ThreadReason {
        let thread = &self.threads[at];
        let is_own = thread.cpu.is_some_and(|cpu| self.cores[core].cpus.contains(cpu));
        let has_core = thread.cpu.is_some_and(|cpu| self.cores.iter().any(|core| core.cpus.contains(cpu)));
        match () {
            () if is_own => ThreadReason::Stays,
            () if self.wanted[at] == Some(self.cores[core].node)
                && thread.node != Some(self.cores[core].node) =>
            {
                ThreadReason::NearItsPages
            }
            () if has_core && !holders.contains_key(&at) => ThreadReason::CoreWasShared,
            () if has_core => ThreadReason::NearItsPages,
            () => ThreadReason::CoreNotFree,
        }
    }

    fn decision(&self, at: usize) -> ThreadDecision {
        let thread = &self.threads[at];
        let (core, reason) = match self.given[at] {
            Some((core, reason)) => (Some(&self.cores[core]), reason),
            None if thread.starts_others => (None, ThreadReason::StartsOthers),
            None if self.wanting() > self.cores.len() => (None, ThreadReason::MoreThreads),
            None => (None, ThreadReason::NoCore),
        };
        // A thread that stays keeps its CPU, which may be another one of its core.
        let own = thread.cpu.filter(|cpu| thread.mask.contains(*cpu));
        let cpu = core.map(|core| own.filter(|cpu| core.cpus.contains(*cpu)).unwrap_or(core.cpu));
        ThreadDecision {
            process: thread.process,
            thread: thread.thread,
            name: thread.name.clone(),
            from_cpu: thread.cpu,
            from_node: thread.node,
            cpu,
            node: core.map(|core| core.node).or(thread.node),
            reason,
            changes: cpu.is_some_and(|cpu| thread.bound != CpuSet::range(cpu, cpu)),
            samples: thread.samples,
        }
    }
}

#[cfg(test)]
mod tests;
