//! The machine as an immutable value: nodes, packages, cores, caches, distances.

mod document;

use crate::{CpuSet, MeasuredMemory};
use document::Document;
pub use document::DocumentError;
use serde::{Deserialize, Serialize};

/// A machine. CPU sets hold online CPUs only, unless a field says otherwise.
///
/// As JSON it always has the documented form of `numa topo --json`: what follows from the rest
/// (counts, the list of PUs) is written for its readers and ignored when parsed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(into = "Document", try_from = "Document")]
pub struct Topology {
    /// Where this description comes from: `sysfs`, `capture NAME`, `machine NAME`, `synthetic DESCRIPTION`.
    pub origin: String,
    /// Base page size in bytes.
    pub page_size: u64,
    /// CPUs that run.
    pub online: CpuSet,
    /// CPUs that are present but do not run.
    pub offline: CpuSet,
    /// Online CPUs that this process may run on.
    pub allowed: CpuSet,
    /// Nodes on which this process may allocate memory.
    pub allowed_nodes: CpuSet,
    /// NUMA nodes in ascending order of `os_index`.
    pub nodes: Vec<Node>,
    /// Processor packages (sockets).
    pub packages: Vec<Package>,
    /// Dies, where a package has or may have several.
    pub dies: Vec<CpuSet>,
    /// Groups of cores that share some resource below the die, as the kernel names them.
    pub clusters: Vec<CpuSet>,
    /// Units such as AMD's modules (Opteron 62xx and 63xx): cores that the kernel lists as threads
    /// of one core, although each has a `core_id` of its own. Empty elsewhere.
    pub units: Vec<CpuSet>,
    /// Books of packages, on mainframes.
    pub books: Vec<CpuSet>,
    /// Drawers of books.
    pub drawers: Vec<CpuSet>,
    /// Physical cores in ascending order of their first CPU.
    pub cores: Vec<Core>,
    /// The kinds of cores, slowest first; empty where all cores are alike.
    pub kinds: Vec<CoreKind>,
    /// Caches, each once.
    pub caches: Vec<Cache>,
    /// Distances between the nodes.
    pub distances: Option<Distances>,
    /// Node sets that are near each other and far from the rest: the boards or servers that
    /// the distances imply. Empty when all nodes are one board.
    pub boards: Vec<CpuSet>,
    /// Devices whose node is known.
    pub devices: Vec<Device>,
    /// Whether the kernel sets the interleave weights of nodes automatically; `None` where it does
    /// not say.
    pub weights_auto: Option<bool>,
    /// What its memory was measured to do; `None` where that is not known.
    pub measured: Option<MeasuredMemory>,
    /// Limits of this process's control group.
    pub limits: ControlLimits,
    /// What was unusual in the source, and how it was interpreted.
    pub notes: Vec<String>,
}

/// Limits of control groups, the least of the group's own and of those above it. Absent where
/// there is none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ControlLimits {
    /// CPU time for each unit of time, in CPUs: with 2.5, more than 2 busy threads are throttled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    /// Memory in KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_kb: Option<u64>,
    /// Memory in huge pages, for each size that is limited.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub huge_pages: Vec<HugePageLimit>,
}

/// How much memory a control group may have in huge pages of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HugePageLimit {
    /// The size of a page in KiB.
    pub size_kb: u64,
    /// All of them together, in KiB.
    pub memory_kb: u64,
}

impl ControlLimits {
    /// Whether nothing is limited.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Threads that the CPU quota leaves running all the time; at least one.
    pub fn threads(&self) -> Option<u64> {
        self.cpus.map(|cpus| (cpus.floor() as u64).max(1))
    }
}

/// A NUMA node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Node {
    /// The kernel's number.
    pub os_index: u32,
    /// Its online CPUs; empty for a memory-only node.
    pub cpus: CpuSet,
    /// Memory in KiB; 0 for a node without memory; `None` where the source does not say.
    pub memory_kb: Option<u64>,
    /// Free memory in KiB when the source was read.
    pub free_kb: Option<u64>,
    /// True where the kernel shows no nodes, and this one is the whole machine.
    pub implicit: bool,
    /// Huge-page pools: page size and number.
    pub huge_pages: Vec<HugePagePool>,
    /// What firmware says of access from the nearest initiators (class 0: any kind, class 1: CPUs).
    pub access: Vec<Access>,
    /// Caches in front of this node's memory.
    pub memory_side_caches: Vec<MemorySideCache>,
    /// Number of successive pages that weighted interleaving allocates on it; `None` where the
    /// kernel has no weights.
    pub interleave_weight: Option<u32>,
}

/// A pool of huge pages of one size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HugePagePool {
    /// Size of a page in KiB.
    pub size_kb: u64,
    /// Pages in the pool.
    pub count: u64,
}

/// Performance of a node's memory as seen from its nearest initiators (ACPI HMAT).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Access {
    /// 0: any initiator; 1: CPUs only.
    pub class: u32,
    /// The nearest initiator nodes.
    pub initiators: CpuSet,
    /// MiB/s.
    pub read_bandwidth: Option<u64>,
    /// MiB/s.
    pub write_bandwidth: Option<u64>,
    /// Nanoseconds.
    pub read_latency: Option<u64>,
    /// Nanoseconds.
    pub write_latency: Option<u64>,
}

/// A cache between the processors and a node's memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorySideCache {
    /// Level, 1 nearest to memory.
    pub level: u32,
    /// Bytes.
    pub size: u64,
    /// Bytes; 0 if unknown.
    pub line_size: u32,
}

/// A processor package (socket).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    /// The kernel's number; `None` where that is -1 or missing.
    pub os_index: Option<u32>,
    /// Its online CPUs.
    pub cpus: CpuSet,
}

/// A physical core.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Core {
    /// The kernel's `core_id`, not unique across packages; `None` if unknown.
    pub os_index: Option<u32>,
    /// Its hardware threads (PUs).
    pub cpus: CpuSet,
    /// On hybrid machines, which of the [`Topology::kinds`] it is.
    pub kind: Option<u32>,
}

/// A kind of core on a hybrid machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CoreKind {
    /// What distinguishes it, in the kernel's words: `cpu_atom`, `1400 MHz base`, `capacity 446`.
    pub name: String,
    /// The online CPUs of this kind.
    pub cpus: CpuSet,
}

/// What a cache holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum CacheKind {
    Data,
    Instruction,
    #[default]
    Unified,
}

/// A cache and the CPUs that share it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cache {
    /// 1 to 4.
    pub level: u32,
    /// What it holds.
    pub kind: CacheKind,
    /// Bytes; `None` if unknown.
    pub size: Option<u64>,
    /// Bytes; `None` if unknown.
    pub line_size: Option<u32>,
    /// Ways; `None` if unknown, 0 for fully associative.
    pub ways: Option<u32>,
    /// The online CPUs that share it.
    pub cpus: CpuSet,
}

/// The distance matrix (ACPI SLIT): 10 is local, 20 twice as far. Always square, with a row
/// for each node of its machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distances {
    /// Which node each row and column is; the same nodes in the same order as [`Topology::nodes`].
    pub nodes: Vec<u32>,
    /// `rows[from][to]`.
    pub rows: Vec<Vec<u32>>,
}

impl Distances {
    /// A matrix, if it has a row and a column for each node.
    pub fn new(nodes: Vec<u32>, rows: Vec<Vec<u32>>) -> Result<Self, DocumentError> {
        let size = nodes.len();
        if rows.len() != size {
            return Err(DocumentError::Rows { rows: rows.len(), nodes: size });
        }
        match rows.iter().position(|row| row.len() != size) {
            None => Ok(Self { nodes, rows }),
            Some(row) => Err(DocumentError::Row { row, values: rows[row].len(), nodes: size }),
        }
    }

    /// The distance between two nodes by their kernel numbers.
    pub fn between(&self, from: u32, to: u32) -> Option<u32> {
        // Nodes are in ascending order.
        let position = |node| self.nodes.binary_search(&node).ok();
        self.rows.get(position(from)?)?.get(position(to)?).copied()
    }
}

/// A device with a home node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// `pci 0000:3b:00.0` or a name from a description.
    pub name: String,
    /// Kind of device: `network`, `storage`, `display`, `accelerator`, or empty.
    pub class: String,
    /// Its node.
    pub node: Option<u32>,
}

impl Topology {
    /// The node by its kernel number.
    pub fn node(&self, os_index: u32) -> Option<&Node> {
        self.nodes.iter().find(|n| n.os_index == os_index)
    }

    /// The node that an online CPU belongs to.
    pub fn node_of_cpu(&self, cpu: u32) -> Option<&Node> {
        self.nodes.iter().find(|n| n.cpus.contains(cpu))
    }

    /// The kernel's numbers of all nodes.
    pub fn node_ids(&self) -> CpuSet {
        self.nodes.iter().map(|n| n.os_index).collect()
    }

    /// Online CPUs that this process may not run on.
    pub fn not_allowed(&self) -> CpuSet {
        self.online.minus(&self.allowed)
    }

    /// Memory of all nodes in KiB; `None` where no node says.
    pub fn memory_kb(&self) -> Option<u64> {
        let known = self.nodes.iter().filter_map(|n| n.memory_kb);
        known.reduce(u64::saturating_add)
    }

    /// The caches of one level that hold data.
    pub fn caches_of_level(&self, level: u32) -> impl Iterator<Item = &Cache> {
        self.caches.iter().filter(move |c| c.level == level && c.kind != CacheKind::Instruction)
    }
}
