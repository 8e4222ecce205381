//! What the same run would be on another machine: its threads on the nodes of a plan, its pages where their first touch
//! places them there.

use crate::caches::CacheSizes;
use crate::explanation::NodeTime;
use crate::observation::{Observation, Waited};
use crate::report::SampledThread;
use crate::share::ShareEstimate;
use crate::touched_pages::TouchedPages;
use numakit_model::topology::Topology;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::fmt;

/// The nodes of this number of threads, in the order in which the threads are created; empty if the machine has no place for
/// them.
pub type NodesOfThreads = dyn Fn(usize) -> Vec<u32> + Send;

/// A machine that the program does not run on.
pub struct ProjectedMachine {
    /// What it is called.
    pub name: String,
    /// What it looks like.
    pub topology: Topology,
    /// Where it has threads.
    pub nodes: Box<NodesOfThreads>,
}

impl ProjectedMachine {
    /// The caches of each of these threads; `None` if the machine's description has no caches.
    pub fn caches(&self, threads: usize) -> Option<CacheSizes> {
        let threads = threads.min(self.topology.online.len());
        (!self.topology.caches.is_empty()).then(|| CacheSizes::of(&self.topology, threads, false))
    }
}

impl fmt::Debug for ProjectedMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProjectedMachine").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The answer, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Projection {
    /// The machine.
    pub machine: String,
    /// Threads that have a place on it.
    pub threads: usize,
    /// Why the run cannot be projected; `None` if it can.
    pub why_not: Option<String>,
    /// The share of far memory in the time at memory of known nodes.
    #[serde(alias = "far_share")]
    pub remote_share: Option<ShareEstimate>,
    /// The part of the time at memory whose first touch was not seen, or whose address is not known.
    pub unknown: f64,
    /// The time at memory by pair of nodes.
    pub nodes: Vec<NodeTime>,
}

impl Projection {
    /// A projection that says why the run cannot be projected.
    pub fn impossible(machine: &str, why: impl Into<String>) -> Self {
        Self {
            machine: machine.to_owned(),
            threads: 0,
            why_not: Some(why.into()),
            remote_share: None,
            unknown: 1.0,
            nodes: Vec::new(),
        }
    }
}

/// The nodes of threads, by process and thread.
pub type ThreadNodes = HashMap<(u32, u32), u32>;

/// Places threads, which are numbered in the order of their creation.
pub fn place(threads: &BTreeSet<(u32, u32)>, machine: &ProjectedMachine) -> ThreadNodes {
    let nodes = (machine.nodes)(threads.len());
    // If there are more threads than CPUs, neighbouring threads share one.
    let node = |at: usize| nodes.get(at * nodes.len() / threads.len().max(nodes.len()).max(1)).copied();
    let placed = threads.iter().enumerate();
    placed.filter_map(|(at, thread)| Some((*thread, node(at)?))).collect()
}

/// The observations with the nodes of the other machine: of CPUs by `nodes`, of pages by who touched them first.
pub fn observations(
    observed: &[Observation],
    threads: &[SampledThread],
    nodes: &ThreadNodes,
    touched: &TouchedPages,
) -> Vec<Observation> {
    let projected = |at: &Observation| {
        let mut at = *at;
        let Some(SampledThread { pid, tid, .. }) = threads.get(at.thread as usize) else { return at };
        at.cpu_node = nodes.get(&(*pid, *tid)).copied();
        if let Waited::Memory(access) = &mut at.waited {
            let by = touched.certain_toucher(*pid, access.address);
            access.home = by.and_then(|by| nodes.get(&(*pid, by.thread)).copied());
        }
        at
    };
    observed.iter().map(projected).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::first_touch::FaultingThread;
    use crate::observation::{MemoryPart, ObservedAccess};
    use numakit_model::topology::{Cache, CacheKind, Core};
    use numakit_sampling::operand::{AccessKind, RecoveryRule};

    fn machine(nodes: &'static [u32]) -> ProjectedMachine {
        let nodes = Box::new(|wanted: usize| nodes[..wanted.min(nodes.len())].to_vec());
        ProjectedMachine { name: "made".to_owned(), topology: Topology::default(), nodes }
    }

    #[test]
    fn threads_are_placed_in_the_order_of_their_creation() {
        let threads = BTreeSet::from([(7, 9), (7, 7), (7, 8), (12, 12)]);
        let placed = place(&threads, &machine(&[0, 1, 2, 3]));
        assert_eq!(placed, HashMap::from([((7, 7), 0), ((7, 8), 1), ((7, 9), 2), ((12, 12), 3)]));
        let crowded = place(&threads, &machine(&[0, 1]));
        assert_eq!(crowded, HashMap::from([((7, 7), 0), ((7, 8), 0), ((7, 9), 1), ((12, 12), 1)]));
        assert!(place(&BTreeSet::new(), &machine(&[0])).is_empty());
        assert!(place(&threads, &machine(&[])).is_empty());
    }

    #[test]
    fn the_caches_are_those_of_the_machine_if_it_has_some() {
        let mut made = machine(&[0]);
        assert_eq!(made.caches(4), None);
        let cache = |level, size, cpus: &str| Cache {
            level,
            kind: CacheKind::Unified,
            size: Some(size),
            line_size: None,
            ways: None,
            cpus: cpus.parse().unwrap(),
        };
        made.topology.online = "0-1".parse().unwrap();
        made.topology.cores =
            ["0", "1"].map(|cpus| Core { cpus: cpus.parse().unwrap(), ..Core::default() }).into();
        made.topology.caches = vec![cache(2, 128, "0"), cache(2, 128, "1"), cache(3, 512, "0-1")];
        // No more threads at a time than CPUs.
        assert_eq!(made.caches(9), Some(CacheSizes { private: 128, last_level: 256 }));
    }

    #[test]
    fn a_page_is_on_the_node_of_who_touched_it_first() {
        let mut touched = TouchedPages::default();
        touched.add(7, 0x10_0000, FaultingThread { thread: 7, node: Some(0), chain: 0 });
        touched.add(7, 0x40_0000, FaultingThread { thread: 99, node: Some(0), chain: 0 });
        let at = |thread, address| {
            let (kind, rule, part) = (AccessKind::Load, RecoveryRule::Direct, MemoryPart::Heap);
            let access =
                ObservedAccess { address, size: 8, kind, rule, object: 0, home: Some(0), part, shared: None };
            let (waited, cpu_node) = (Waited::Memory(access), Some(0));
            Observation { thread, process: 0, time: 1, weight: 5, cpu_node, instruction: 4, waited, chain: 0 }
        };
        let thread = |tid| SampledThread { pid: 7, tid, name: String::new() };
        let nodes = HashMap::from([((7, 7), 0), ((7, 8), 3)]);
        let observed = [at(0, 0x10_0008), at(1, 0x10_0008), at(1, 0x40_0000), at(1, 0x90_0000)];
        let seen: Vec<_> = observations(&observed, &[thread(7), thread(8)], &nodes, &touched)
            .iter()
            .map(|at| (at.cpu_node, at.access().unwrap().home))
            .collect();
        // A thread that is not known, and a page without a fault, are nowhere.
        assert_eq!(seen, [(Some(0), Some(0)), (Some(3), Some(0)), (Some(3), None), (Some(3), None)]);
    }
}
