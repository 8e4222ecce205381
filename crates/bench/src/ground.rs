//! Where benchmarks measure: the CPUs and the memory of which nodes.

pub(crate) mod placed;
pub(crate) mod team;

use crate::interruptible::Watch;
use crate::results::{BenchResult, NotMeasured};
use crate::settings::BenchSettings;
use numakit_model::numbers::NumberStyle;
use numakit_model::{CpuSet, Topology};
use numakit_sys::SysRoot;
use numakit_topology::values::meminfo_kb;
use std::time::Duration;

/// Memory that is used where no cache is known.
const DEFAULT_SIZE: u64 = 64 << 20;
/// The caches hold a part of memory that is less than one in this number of bytes.
const TIMES_CACHE: u64 = 4;

/// A node with the CPUs on which benchmarks may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeCpus {
    /// The kernel's number.
    pub node: u32,
    /// One CPU of each core.
    pub cpus: Vec<u32>,
}

/// The CPUs and nodes on which benchmarks run.
pub(crate) struct Ground<'a> {
    /// The machine.
    pub topology: &'a Topology,
    /// The settings of the user.
    pub settings: &'a BenchSettings,
    /// Nodes with CPUs to run on.
    pub places: Vec<NodeCpus>,
    /// Nodes with memory to use.
    pub memories: Vec<u32>,
    /// All CPUs that may be used.
    pub cpus: CpuSet,
    /// Whether memory policies are permitted.
    pub binds: bool,
    /// The parts of the machine that no benchmark can measure.
    pub left_out: Vec<NotMeasured>,
    pub root: SysRoot,
    pub watch: &'a Watch,
}

impl<'a> Ground<'a> {
    /// Selects nodes and CPUs.
    pub fn new(
        root: SysRoot,
        topology: &'a Topology,
        settings: &'a BenchSettings,
        binds: bool,
        watch: &'a Watch,
    ) -> Self {
        let wanted =
            settings.cpus.as_ref().map_or_else(|| topology.allowed.clone(), |c| c.and(&topology.allowed));
        let mut ground = Self {
            topology,
            settings,
            places: Vec::new(),
            memories: Vec::new(),
            cpus: CpuSet::new(),
            binds,
            left_out: Vec::new(),
            root,
            watch,
        };
        for node in &topology.nodes {
            if settings.nodes.as_ref().is_some_and(|nodes| !nodes.contains(node.os_index)) {
                continue;
            }
            ground.add_cpus(node.os_index, &node.cpus, &wanted);
            ground.add_memory(node.os_index, node.memory_kb);
        }
        ground
    }

    fn add_cpus(&mut self, node: u32, all: &CpuSet, wanted: &CpuSet) {
        let usable = all.and(wanted);
        let why = match (all.is_empty(), all.intersects(&self.topology.allowed)) {
            (true, _) => "it has no CPUs",
            (false, false) => "the cpuset or the affinity of this process excludes them",
            _ => "--cpus excludes them",
        };
        if usable.is_empty() {
            return self.leave_out(format!("CPUs of node {node}"), why);
        }
        let first = |core: CpuSet| core.first();
        let cores = self.topology.cores.iter().map(|core| core.cpus.and(&usable)).filter_map(first);
        let mut cpus: Vec<u32> = cores.collect();
        if cpus.is_empty() {
            cpus = usable.iter().collect();
        }
        self.cpus.insert_all(&usable);
        self.places.push(NodeCpus { node, cpus });
    }

    fn add_memory(&mut self, node: u32, memory_kb: Option<u64>) {
        let what = format!("memory of node {node}");
        let allowed = &self.topology.allowed_nodes;
        if memory_kb == Some(0) {
            self.leave_out(what, "it has no memory");
        } else if !allowed.is_empty() && !allowed.contains(node) {
            self.leave_out(what, "the cpuset of this process excludes it");
        } else if !self.binds && !self.places.iter().any(|place| place.node == node) {
            self.leave_out(
                what,
                "memory policies are refused here, and no CPU of the node can be used, whose first touch would allocate there",
            );
        } else {
            self.memories.push(node);
        }
    }

    fn leave_out(&mut self, what: String, why: &str) {
        self.left_out.push(NotMeasured { what, why: why.to_owned() });
    }

    /// The first node that has CPUs and memory, and the first of these CPUs.
    pub fn near(&self) -> Option<(u32, u32)> {
        let place = self.places.iter().find(|place| self.memories.contains(&place.node))?;
        Some((place.node, *place.cpus.first()?))
    }

    /// The CPUs of a node that may be used, one for each core.
    pub fn cpus_of(&self, node: u32) -> &[u32] {
        self.places.iter().find(|place| place.node == node).map_or(&[], |place| &place.cpus)
    }

    /// The largest cache that any CPU in use has, in bytes.
    pub fn last_level_cache(&self) -> u64 {
        let caches = self.topology.caches.iter().filter(|cache| cache.cpus.intersects(&self.cpus));
        caches.filter_map(|cache| cache.size).max().unwrap_or(0)
    }

    /// The last-level caches of a node together.
    pub fn caches_of(&self, node: u32) -> u64 {
        let cpus = self.topology.node(node).map(|node| node.cpus.clone()).unwrap_or_default();
        let level = self.topology.caches.iter().map(|cache| cache.level).max().unwrap_or(0);
        let caches = self.topology.caches_of_level(level).filter(|cache| cache.cpus.intersects(&cpus));
        caches.filter_map(|cache| cache.size).sum()
    }

    /// Bytes that are more than caches of this size can hide, or what the user asked for.
    pub fn size_beyond(&self, cache: u64) -> u64 {
        self.settings.size.unwrap_or_else(|| (TIMES_CACHE * cache).max(DEFAULT_SIZE))
    }

    /// How long each value is measured.
    pub fn time(&self) -> Duration {
        self.settings.time()
    }

    /// Whether the user has interrupted the run.
    pub fn is_stopped(&self) -> bool {
        self.watch.is_stopped()
    }

    /// Tells the user what is measured now.
    pub fn now(&self, what: impl Into<String>) {
        self.watch.now(what.into());
    }

    /// Why this number of bytes cannot be allocated on a node; `None` if it can.
    pub fn lacks(&self, node: u32, bytes: u64) -> Option<String> {
        let words = |bytes: u64| NumberStyle::Bytes.words(bytes as f64);
        if let Some(limit) = self.topology.limits.memory_kb.map(|kb| kb << 10)
            && bytes > limit / 2
        {
            return Some(format!(
                "it needs {}, and the control group of this process may have {}; give a smaller --size",
                words(bytes),
                words(limit)
            ));
        }
        let free = self.free(node)?;
        (bytes > free)
            .then(|| format!("it needs {} and {} are free; give a smaller --size", words(bytes), words(free)))
    }

    /// Bytes that the kernel can give on a node: free ones, and half of the page cache.
    fn free(&self, node: u32) -> Option<u64> {
        let text = self.root.bytes(&format!("/sys/devices/system/node/node{node}/meminfo"));
        let bytes = text.or_else(|_| self.root.bytes("/proc/meminfo")).ok()?;
        let field = |name| meminfo_kb(&bytes, name);
        let cached = field("Active(file)").unwrap_or(0) + field("Inactive(file)").unwrap_or(0);
        Some((field("MemFree")? + cached / 2) << 10)
    }

    /// Adds to a result the parts that it lacks on this ground.
    pub fn explain(&self, result: &mut BenchResult) {
        result.left_out.extend(self.left_out.iter().cloned());
    }
}

/// Lets a test measure on this machine: little memory, for a millisecond a value.
#[cfg(test)]
pub(crate) fn on_this_machine<T>(measure: impl FnOnce(&Ground<'_>) -> T) -> T {
    let topology = numakit_topology::read(&SysRoot::host()).unwrap();
    let (size, time) = (Some(1 << 20), Some(Duration::from_millis(1)));
    let settings = BenchSettings { size, time, ..BenchSettings::default() };
    measure(&Ground::new(SysRoot::host(), &topology, &settings, true, &Watch::default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_topology::synthetic;

    fn machine() -> Topology {
        let mut machine = synthetic::parse("package:2 node:1(mem=1G) core:2 pu:2").unwrap();
        machine.nodes[1].memory_kb = Some(0);
        machine
    }

    fn ground(
        topology: &Topology,
        settings: &BenchSettings,
        binds: bool,
    ) -> (Vec<NodeCpus>, Vec<u32>, Vec<String>) {
        let watch = Watch::default();
        let ground = Ground::new(SysRoot::host(), topology, settings, binds, &watch);
        let left = ground.left_out.iter().map(|left| format!("{}: {}", left.what, left.why)).collect();
        (ground.places, ground.memories, left)
    }

    #[test]
    fn one_cpu_of_each_core_is_used_and_what_is_missing_is_said() {
        let (places, memories, left) = ground(&machine(), &BenchSettings::default(), true);
        assert_eq!(places.iter().map(|place| place.cpus.len()).collect::<Vec<_>>(), [2, 2], "{places:?}");
        assert_eq!((memories, left), (vec![0], vec!["memory of node 1: it has no memory".to_owned()]));
    }

    #[test]
    fn nodes_and_cpus_can_be_selected() {
        let machine = machine();
        let nodes = BenchSettings { nodes: Some(CpuSet::range(0, 0)), ..Default::default() };
        let (places, memories, left) = ground(&machine, &nodes, true);
        assert_eq!((places.len(), memories, left.len()), (1, vec![0], 0));
        let other: CpuSet = machine.nodes[1].cpus.first().into_iter().collect();
        let cpus = BenchSettings { cpus: Some(other.clone()), ..Default::default() };
        let (places, memories, left) = ground(&machine, &cpus, true);
        assert_eq!(places, [NodeCpus { node: 1, cpus: other.iter().collect() }]);
        assert_eq!(memories, [0]);
        assert!(left.contains(&"CPUs of node 0: --cpus excludes them".to_owned()), "{left:?}");
        // Without policies, only the first touch of a CPU of the node allocates there.
        assert_eq!(ground(&machine, &cpus, false).1, [0; 0]);
    }

    #[test]
    fn a_cpuset_excludes_nodes() {
        let mut machine = machine();
        machine.allowed = machine.nodes[1].cpus.clone();
        machine.allowed_nodes = CpuSet::range(1, 1);
        let (places, memories, left) = ground(&machine, &BenchSettings::default(), true);
        assert_eq!((places.len(), memories.len()), (1, 0));
        assert!(left.iter().any(|l| l.contains("memory of node 0: the cpuset")), "{left:?}");
        assert!(left.iter().any(|l| l.contains("CPUs of node 0: the cpuset")), "{left:?}");
    }

    #[test]
    fn more_than_there_is_free_is_refused() {
        let (machine, settings, watch) = (machine(), BenchSettings::default(), Watch::default());
        let ground = Ground::new(SysRoot::host(), &machine, &settings, true, &watch);
        assert_eq!(ground.lacks(0, 1 << 20), None);
        assert!(ground.lacks(0, 1 << 50).unwrap().contains("free; give a smaller --size"));
        assert_eq!((ground.size_beyond(100 << 20), ground.size_beyond(0)), (400 << 20, 64 << 20));
    }
}
