//! The nearest nodes with CPUs of nodes without.

use numakit_model::topology::Node;
use numakit_model::{CpuSet, Topology};

/// The nodes with CPUs that are nearest to a node without CPUs: those that the firmware names, or
/// those at the smallest distance.
pub fn nearest(t: &Topology, node: &Node) -> CpuSet {
    let with_cpus: CpuSet = t.nodes.iter().filter(|n| !n.cpus.is_empty()).map(|n| n.os_index).collect();
    // Class 1 names CPUs only, so it comes first.
    let named = node.access.iter().rev().map(|access| access.initiators.and(&with_cpus));
    if let Some(nearest) = named.into_iter().find(|nodes| !nodes.is_empty()) {
        return nearest;
    }
    let Some(distances) = &t.distances else { return CpuSet::new() };
    let distance = |other: u32| distances.between(other, node.os_index);
    let smallest = with_cpus.iter().filter_map(distance).min();
    with_cpus.iter().filter(|&other| smallest.is_some() && distance(other) == smallest).collect()
}

/// The CPUs of these nodes.
pub fn cpus_of(t: &Topology, nodes: &CpuSet) -> CpuSet {
    let members = t.nodes.iter().filter(|node| nodes.contains(node.os_index));
    members.fold(CpuSet::new(), |all, node| all.or(&node.cpus))
}
