//! NUMA nodes: their CPUs and memory.

use crate::cpus::CPU;
use crate::json::MAX_NODES;
use crate::reader::Reader;
use crate::{TopologyError, hmat, values};
use numakit_model::topology::{HugePagePool, Node};
use numakit_model::{CpuSet, Topology};
use numakit_sys::SysRoot;

pub(crate) const NODE: &str = "/sys/devices/system/node";

pub(crate) struct Nodes {
    pub nodes: Vec<Node>,
    /// The nodes that the kernel says are online; the columns of distances follow them.
    pub online: CpuSet,
}

/// The nodes that are online and have a directory. `has_cpu` and `has_memory` are not read: on
/// real machines they are empty or name nodes that are offline.
pub(crate) fn read(reader: &mut Reader<'_>, online_cpus: &CpuSet) -> Result<Nodes, TopologyError> {
    let mut nodes = read_for_placement(reader, online_cpus)?;
    for node in nodes.nodes.iter_mut().filter(|node| !node.implicit) {
        node.huge_pages = huge_pages(reader, node.os_index);
        node.access = hmat::access(reader, node.os_index);
        node.memory_side_caches = hmat::memory_side_caches(reader, node.os_index);
        node.interleave_weight = weight(reader, node.os_index);
    }
    Ok(nodes)
}

/// Reads the nodes with only their CPUs and memory.
pub(crate) fn read_for_placement(
    reader: &mut Reader<'_>,
    online_cpus: &CpuSet,
) -> Result<Nodes, TopologyError> {
    let shown = reader.numbered(NODE, "node").unwrap_or_default();
    if shown.is_empty() {
        return Ok(Nodes { nodes: vec![implicit(reader, online_cpus)], online: CpuSet::new() });
    }
    if shown.len() > MAX_NODES {
        return Err(TopologyError::TooLarge {
            root: reader.root.name().to_owned(),
            found: format!("{} nodes in {NODE}", shown.len()),
            max: format!("{MAX_NODES} nodes"),
        });
    }
    let online = reader.list(format_args!("{NODE}/online")).filter(|nodes| nodes.intersects(&shown));
    let online = online.unwrap_or_else(|| shown.clone());
    if online != shown {
        let (bare, off) = (online.minus(&shown), shown.minus(&online));
        for (what, ids) in [("has no directory", bare), ("is offline", off)] {
            if !ids.is_empty() {
                reader.note(format!("node {ids} {what} and is left out"));
            }
        }
    }
    let nodes: Vec<Node> = shown.and(&online).iter().map(|id| read_one(reader, id, online_cpus)).collect();
    note_odd_cpus(reader, &nodes, online_cpus);
    Ok(Nodes { nodes, online })
}

/// The folder of the weights of weighted interleaving: `node0` and so on.
pub const WEIGHTS: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";
/// The file that says whether the weights are set automatically. Kernels that are built as C23 call it `__auto_type`: there
/// `auto` is a macro of that name.
const AUTO: [&str; 2] = ["auto", "__auto_type"];

/// Adds the weights of weighted interleaving to a machine that was read for placement.
pub fn read_weights(root: &SysRoot, topology: &mut Topology) {
    let mut reader = Reader::new(root);
    for node in topology.nodes.iter_mut().filter(|node| !node.implicit) {
        node.interleave_weight = weight(&mut reader, node.os_index);
    }
    topology.weights_auto = weights_auto(&mut reader);
}

/// The file that makes the kernel set the weights automatically again, if the kernel has one.
pub fn weights_auto_file(root: &SysRoot) -> Option<String> {
    AUTO.into_iter().map(|name| format!("{WEIGHTS}/{name}")).find(|path| root.exists(path))
}

fn weight(reader: &mut Reader<'_>, id: u32) -> Option<u32> {
    reader.number(format_args!("{WEIGHTS}/node{id}")).and_then(|weight| u32::try_from(weight).ok())
}

/// Whether the kernel sets the interleave weights automatically.
pub(crate) fn weights_auto(reader: &mut Reader<'_>) -> Option<bool> {
    AUTO.into_iter().find_map(|name| match reader.bytes(format_args!("{WEIGHTS}/{name}"))? {
        b"true" | b"1" | b"Y" | b"y" => Some(true),
        b"false" | b"0" | b"N" | b"n" => Some(false),
        _ => None,
    })
}

/// The whole machine as one node.
fn implicit(reader: &mut Reader<'_>, online_cpus: &CpuSet) -> Node {
    reader.note("the kernel shows no nodes; the whole machine is shown as one");
    let memory = reader.bytes(format_args!("/proc/meminfo"));
    let [memory_kb, free_kb] = ["MemTotal", "MemFree"].map(|f| values::meminfo_kb(memory.unwrap_or(b""), f));
    Node { cpus: online_cpus.clone(), memory_kb, free_kb, implicit: true, ..Node::default() }
}

fn read_one(reader: &mut Reader<'_>, id: u32, online_cpus: &CpuSet) -> Node {
    // The map has offline CPUs too.
    let cpus = reader.set(format_args!("{NODE}/node{id}/cpumap"), format_args!("{NODE}/node{id}/cpulist"));
    if cpus.is_none() {
        reader.note(format!("node {id} does not say which CPUs it has"));
    }
    let memory = reader.bytes(format_args!("{NODE}/node{id}/meminfo"));
    let [memory_kb, free_kb] = ["MemTotal", "MemFree"].map(|f| values::meminfo_kb(memory.unwrap_or(b""), f));
    Node {
        os_index: id,
        cpus: cpus.unwrap_or_default().and(online_cpus),
        memory_kb,
        free_kb,
        ..Node::default()
    }
}

fn huge_pages(reader: &mut Reader<'_>, id: u32) -> Vec<HugePagePool> {
    let directory = format!("{NODE}/node{id}/hugepages");
    let names = reader.root.list(&directory).unwrap_or_default();
    let sizes = names.iter().filter_map(|n| n.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok());
    let mut pools: Vec<HugePagePool> = sizes
        .filter_map(|size_kb: u64| {
            let count = reader.number(format_args!("{directory}/hugepages-{size_kb}kB/nr_hugepages"))?;
            Some(HugePagePool { size_kb, count: u64::try_from(count).ok()? })
        })
        .collect();
    pools.sort_by_key(|pool| pool.size_kb);
    pools
}

fn note_odd_cpus(reader: &mut Reader<'_>, nodes: &[Node], online_cpus: &CpuSet) {
    let mut seen = CpuSet::new();
    let mut twice = CpuSet::new();
    for node in nodes {
        if seen.intersects(&node.cpus) {
            twice.insert_all(&seen.and(&node.cpus));
        }
        seen.insert_all(&node.cpus);
    }
    if !twice.is_empty() {
        reader.note(format!("CPUs {twice} are in several nodes"));
    }
    let without_node = online_cpus.minus(&seen);
    if !without_node.is_empty() {
        reader.note(format!("CPUs {without_node} are online but in no node ({CPU}/online, {NODE})"));
    }
}
