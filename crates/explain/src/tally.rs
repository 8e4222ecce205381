//! Growing sums of observations, for series: where time went, by the node of the CPU and of the memory.

use crate::caches::CacheSizes;
use crate::contended::{self, SampleRate};
use crate::observation::{MemoryPart, Observation};
use crate::place::{Places, TimePlace};
use crate::share::{CLUSTER, Clusters};
use std::collections::{BTreeMap, HashSet};

/// Whether an object fits a cache, and who shares a line, is judged from the observations of a window of this time, in ns,
/// and of at most this number. Where sums of each process are asked for, few observations of each come.
const WINDOW: u64 = 10_000_000_000;
const WINDOW_OF_PROCESSES: u64 = 30_000_000_000;
const MAX_KEPT: usize = 40_000;
/// Samples are delivered within this time, in ns.
const LATEST: u64 = 2_000_000_000;

/// Time of the threads on the CPUs of a node, in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeTotals {
    /// Time in which threads did not wait for memory.
    pub computing: u64,
    /// Time at memory that fits the caches.
    pub cached: u64,
    /// Time at memory of the CPU's own node.
    pub local: u64,
    /// Time at memory of other nodes.
    pub remote: u64,
    /// Time at memory whose node is not known.
    pub unknown: u64,
    /// Time at lines that several threads use.
    pub contended: u64,
    /// Number of samples.
    pub samples: u64,
}

impl NodeTotals {
    /// All of it, in ns.
    pub fn all(&self) -> u64 {
        let parts = [self.computing, self.cached, self.local, self.remote, self.unknown, self.contended];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    fn count(&mut self, place: TimePlace, weight: u64) {
        self.samples += 1;
        *match place {
            TimePlace::Computing => &mut self.computing,
            TimePlace::PrivateCache | TimePlace::SharedCache => &mut self.cached,
            TimePlace::Contended => &mut self.contended,
            TimePlace::Local => &mut self.local,
            TimePlace::Remote => &mut self.remote,
            TimePlace::Unknown => &mut self.unknown,
        } += weight;
    }
}

impl ProcessTotals {
    fn count(&mut self, place: TimePlace, at: &Observation) {
        self.time.count(place, at.weight);
        let is_memory = matches!(place, TimePlace::Local | TimePlace::Remote);
        if is_memory && self.seen.insert((at.thread, at.time / CLUSTER)) {
            self.clusters += 1;
        }
    }
}

impl NodeTotals {
    /// The same times where each sample counts as one and this share more.
    pub fn standing_for(self, more: f64) -> Self {
        let of = |ns: u64| ns.saturating_add((ns as f64 * more) as u64);
        let Self { computing, cached, local, remote, unknown, contended, samples } = self;
        Self {
            computing: of(computing),
            cached: of(cached),
            local: of(local),
            remote: of(remote),
            unknown: of(unknown),
            contended: of(contended),
            samples,
        }
    }
}

/// The sums of a process since they were last taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessTotals {
    /// Its time on all nodes.
    pub time: NodeTotals,
    /// Independent observations of near and far memory.
    pub clusters: u64,
    seen: HashSet<(u32, u64)>,
}

/// The sums. Observations are added in batches; what they waited for is judged within a window of time.
#[derive(Debug)]
pub struct Tally {
    nodes: Vec<u32>,
    kept: Vec<Observation>,
    of_nodes: Vec<NodeTotals>,
    of_pairs: Vec<[u64; MemoryPart::ALL.len()]>,
    clusters: Vec<Clusters>,
    /// The sums of each process by its place, if they are asked for.
    of_processes: Option<BTreeMap<u32, ProcessTotals>>,
}

impl Tally {
    /// Makes sums for a machine with these nodes.
    pub fn new(nodes: &[u32]) -> Self {
        Self {
            nodes: nodes.to_vec(),
            kept: Vec::new(),
            of_nodes: vec![NodeTotals::default(); nodes.len()],
            of_pairs: vec![Default::default(); nodes.len() * nodes.len()],
            clusters: nodes.iter().map(|_| Clusters::default()).collect(),
            of_processes: None,
        }
    }

    /// The same with sums of each process.
    pub fn by_process(self) -> Self {
        Self { of_processes: Some(BTreeMap::new()), ..self }
    }

    /// The sums of each process since the last call, by its place in the list of processes.
    pub fn take_processes(&mut self) -> BTreeMap<u32, ProcessTotals> {
        self.of_processes.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Adds observations, whose nodes are known.
    pub fn add(&mut self, new: Vec<Observation>, caches: CacheSizes) {
        let Some(latest) = new.iter().map(|at| at.time).max() else { return };
        let (window, rate) = match self.of_processes {
            Some(_) => (WINDOW_OF_PROCESSES, SampleRate::Sparse),
            None => (WINDOW, SampleRate::Dense),
        };
        self.kept.retain(|at| at.time + window >= latest);
        let room = MAX_KEPT.saturating_sub(new.len());
        self.kept.drain(..self.kept.len().saturating_sub(room));
        let known = self.kept.len();
        self.kept.extend(new);
        let kept = std::mem::take(&mut self.kept);
        let lines = contended::costly(&kept, rate);
        let places = Places::new(&kept, &lines, caches, &std::collections::HashMap::new());
        for at in &kept[known..] {
            self.count(at, places.of(at));
        }
        self.kept = kept;
        self.clusters.iter_mut().for_each(|of_node| of_node.close(latest.saturating_sub(LATEST)));
    }

    fn count(&mut self, at: &Observation, place: TimePlace) {
        // A sample without a CPU belongs to no node.
        let Some(node) = at.cpu_node.and_then(|node| self.place(node)) else { return };
        self.of_nodes[node].count(place, at.weight);
        if let Some(processes) = &mut self.of_processes {
            processes.entry(at.process).or_default().count(place, at);
        }
        if !matches!(place, TimePlace::Local | TimePlace::Remote) {
            return;
        }
        self.clusters[node].add(at.thread, at.time, at.weight, place == TimePlace::Remote);
        if let Some(access) = at.access()
            && let Some(home) = access.home.and_then(|home| self.place(home))
        {
            self.of_pairs[node * self.nodes.len() + home][access.part as usize] += at.weight;
        }
    }

    fn place(&self, node: u32) -> Option<usize> {
        self.nodes.iter().position(|known| *known == node)
    }

    /// The sums of each node, in the order of the nodes.
    pub fn of_nodes(&self) -> &[NodeTotals] {
        &self.of_nodes
    }

    /// The time at near and far memory by node of the CPU and node of the memory, the latter inside, by part.
    pub fn of_pairs(&self) -> &[[u64; MemoryPart::ALL.len()]] {
        &self.of_pairs
    }

    /// Independent observations of near and far memory on a node's CPUs: the samples of a thread within 100 ms count as one.
    pub fn clusters(&self, node: usize) -> u64 {
        self.clusters.get(node).map_or(0, Clusters::count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::{LINE, ObservedAccess, Waited};
    use numakit_sampling::operand::{AccessKind, RecoveryRule};

    const CACHES: CacheSizes = CacheSizes { private: 1 << 20, last_level: 32 << 20 };
    const STEP: u64 = 5_000_000;

    fn at(n: u64, cpu_node: u32, home: u32, part: MemoryPart) -> Observation {
        Observation {
            thread: cpu_node,
            process: 0,
            time: n * STEP,
            weight: STEP,
            cpu_node: Some(cpu_node),
            instruction: 0x400,
            chain: 0,
            waited: Waited::Memory(ObservedAccess {
                address: n * 1_000_003 * LINE,
                size: 8,
                kind: AccessKind::Load,
                rule: RecoveryRule::Direct,
                object: home,
                home: Some(home),
                part,
                shared: None,
            }),
        }
    }

    #[test]
    fn sums_grow_by_node_and_pair() {
        let mut tally = Tally::new(&[0, 2]);
        tally.add((0..100).map(|n| at(n, 0, 0, MemoryPart::Heap)).collect(), CACHES);
        tally.add((100..400).map(|n| at(n, 0, 2, MemoryPart::Stack)).collect(), CACHES);
        let computing = Observation { waited: Waited::Computing, ..at(400, 2, 2, MemoryPart::Heap) };
        // Of no node, and of a node that is not counted.
        let elsewhere =
            [Observation { cpu_node: None, ..computing }, Observation { cpu_node: Some(7), ..computing }];
        tally.add([vec![computing], elsewhere.to_vec()].concat(), CACHES);
        let [first, second] = tally.of_nodes() else { panic!() };
        assert_eq!((first.local, first.remote, first.samples), (100 * STEP, 300 * STEP, 400));
        assert_eq!(*second, NodeTotals { computing: STEP, samples: 1, ..NodeTotals::default() });
        assert_eq!(tally.of_pairs()[0], [100 * STEP, 0, 0, 0]);
        assert_eq!(tally.of_pairs()[1], [0, 300 * STEP, 0, 0]);
        assert_eq!(tally.clusters(0), 20);
    }

    #[test]
    fn samples_stand_for_those_that_were_lost() {
        let times = NodeTotals { local: 100, remote: 7, samples: 5, ..NodeTotals::default() };
        let whole = NodeTotals { local: 150, remote: 10, samples: 5, ..NodeTotals::default() };
        assert_eq!((times.standing_for(0.0), times.standing_for(0.5)), (times, whole));
    }

    #[test]
    fn sums_of_processes_are_those_since_the_last_call() {
        let mut tally = Tally::new(&[0, 2]).by_process();
        let of = |process: u32, n: u64, home| Observation { process, ..at(n, 0, home, MemoryPart::Heap) };
        tally.add((0..40).map(|n| of(7, n, 2)).chain([of(8, 40, 0)]).collect(), CACHES);
        let taken = tally.take_processes();
        assert_eq!((taken[&7].time.remote, taken[&7].time.samples), (40 * STEP, 40));
        // 40 samples in 200 ms.
        assert_eq!((taken[&7].clusters, taken[&8].time.local), (2, STEP));
        assert!(tally.take_processes().is_empty() && Tally::new(&[0]).take_processes().is_empty());
    }

    #[test]
    fn a_line_that_few_samples_hit_is_contended_if_threads_use_it_again_and_again() {
        // Two threads of one process in turn, a sample each 200 ms, of 256 processes that compute nothing else.
        let use_of = |n: u64, thread: u32, process: u32, line: u64| {
            let mut at =
                Observation { thread, process, time: n * 40 * STEP, ..at(n, 0, 0, MemoryPart::Heap) };
            if let Waited::Memory(access) = &mut at.waited {
                (access.address, access.kind) = (line * LINE, AccessKind::Atomic);
            }
            at
        };
        let others = |n: u64| {
            (0..256).map(move |other| use_of(n, 100 + other, 10 + other, 1_000 * n + u64::from(other)))
        };
        let contended = |turn: u64| {
            let mut tally = Tally::new(&[0]).by_process();
            let all = |n: u64| others(n).chain([use_of(n, (n / turn % 2) as u32, 7, 5)]);
            // One second after the other.
            (0..30)
                .for_each(|second| tally.add((5 * second..5 * second + 5).flat_map(all).collect(), CACHES));
            let of_process = tally.take_processes()[&7].time;
            of_process.contended as f64 / of_process.all() as f64
        };
        assert!(contended(1) > 0.8, "{}", contended(1));
        assert_eq!(contended(25), 0.0, "a line that is handed over each five seconds");
    }

    #[test]
    fn what_is_kept_is_bounded_and_counts_once() {
        let mut tally = Tally::new(&[0]);
        for batch in 0..200 {
            let start = batch * 100;
            tally.add((start..start + 100).map(|n| at(n, 0, 0, MemoryPart::Heap)).collect(), CACHES);
        }
        assert_eq!(tally.of_nodes()[0].samples, 20_000);
        assert!(tally.kept.len() as u64 <= WINDOW / STEP + 101, "{}", tally.kept.len());
        assert_eq!(tally.clusters(0), 1000);
    }
}
