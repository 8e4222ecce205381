//! What the kubelet gave a pod: CPUs of its own or a share of those of all, on one node or several.

use super::CheckupItem;
use numakit_model::{CpuSet, Fix, Topology};

const CPUS: &str = "CPUs of the pod";
const NODES: &str = "nodes of the pod";
const MEMORY: &str = "memory of the pod";

/// Looks at the CPUs and nodes that this process may use, and at its CPU quota.
pub fn check(topology: &Topology) -> Vec<CheckupItem> {
    let nodes = nodes_of(topology, &topology.allowed);
    vec![cpus(topology), cpu_nodes(topology, &nodes), memory(topology, &nodes)]
}

/// The nodes that these CPUs are on.
fn nodes_of(topology: &Topology, cpus: &CpuSet) -> CpuSet {
    let on = topology.nodes.iter().filter(|node| node.cpus.intersects(cpus));
    on.map(|node| node.os_index).collect()
}

/// With the static policy a container with whole CPUs gets a mask of as many; all others share the rest.
fn cpus(topology: &Topology) -> CheckupItem {
    let allowed = &topology.allowed;
    let is_worth_all = topology.limits.cpus.is_none_or(|cpus| cpus >= allowed.len() as f64);
    if *allowed != topology.online && is_worth_all {
        return CheckupItem::ok(CPUS, format!("exclusive: CPUs {allowed}"));
    }
    let quota = topology.limits.cpus.map_or_else(String::new, |cpus| format!(", with the time of {cpus}"));
    let fix = "kubelet: cpuManagerPolicy: static; container: resources with limits equal to requests and a whole \
               number of CPUs (cpu: \"4\")";
    CheckupItem::note(
        CPUS,
        format!("shared with other pods: CPUs {allowed}{quota}"),
        Fix::Step(fix.to_owned()),
    )
}

fn cpu_nodes(topology: &Topology, nodes: &CpuSet) -> CheckupItem {
    if nodes.len() < 2 {
        return CheckupItem::ok(NODES, format!("all CPUs are on node {nodes}"));
    }
    let fix = match topology.nodes.iter().any(|node| node.cpus.len() >= topology.allowed.len()) {
        true => "kubelet: topologyManagerPolicy: single-numa-node, with cpuManagerPolicy: static",
        false => {
            "ask for at most the CPUs of one node, or place with 'numa run': it keeps each thread on its node"
        }
    };
    CheckupItem::note(NODES, format!("its CPUs are on nodes {nodes}"), Fix::Step(fix.to_owned()))
}

fn memory(topology: &Topology, nodes: &CpuSet) -> CheckupItem {
    let allowed = &topology.allowed_nodes;
    if allowed == nodes || topology.nodes.len() < 2 {
        return CheckupItem::ok(MEMORY, format!("from node {allowed}"));
    }
    let fix = "kubelet: memoryManagerPolicy: Static with reservedMemory, and topologyManagerPolicy: single-numa-node";
    CheckupItem::note(
        MEMORY,
        format!(
            "from nodes {allowed}, with CPUs on {nodes}: first touch keeps it local until a node is full"
        ),
        Fix::Step(fix.to_owned()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkup::FindingState;
    use numakit_model::topology::{ControlLimits, Node};

    /// Two nodes of four CPUs, and a pod on some of them.
    fn pod(cpus: &str, memory: &str, quota: Option<f64>) -> Topology {
        let node = |os_index, cpus: &str| Node { os_index, cpus: cpus.parse().unwrap(), ..Node::default() };
        Topology {
            online: CpuSet::range(0, 7),
            allowed: cpus.parse().unwrap(),
            allowed_nodes: memory.parse().unwrap(),
            nodes: vec![node(0, "0-3"), node(1, "4-7")],
            limits: ControlLimits { cpus: quota, ..ControlLimits::default() },
            ..Topology::default()
        }
    }

    fn states(topology: &Topology) -> Vec<FindingState> {
        check(topology).into_iter().map(|finding| finding.state).collect()
    }

    #[test]
    fn exclusive_cpus_of_one_node_with_its_memory_are_fine() {
        use FindingState::{Note, Ok};
        assert_eq!(states(&pod("4-5", "1", Some(2.0))), [Ok, Ok, Ok]);
        assert_eq!(states(&pod("4-5", "0-1", None)), [Ok, Ok, Note]);
        assert_eq!(states(&pod("3-4", "0-1", Some(2.0))), [Ok, Note, Ok]);
        // The shared pool: all CPUs, or what others left of them with a smaller quota.
        assert_eq!(states(&pod("0-7", "0-1", Some(2.0))), [Note, Note, Ok]);
        assert_eq!(states(&pod("2-7", "0-1", Some(2.0))), [Note, Note, Ok]);
    }

    #[test]
    fn fixes_are_settings_of_the_kubelet() {
        let fix = |topology: &Topology, at: usize| check(topology)[at].fix.clone().unwrap().to_string();
        assert!(fix(&pod("0-7", "0-1", Some(2.0)), 0).contains("cpuManagerPolicy: static"));
        assert!(fix(&pod("3-4", "0-1", Some(2.0)), 1).contains("single-numa-node"));
        // More CPUs than a node has.
        assert!(fix(&pod("0-7", "0-1", Some(8.0)), 1).contains("numa run"));
        assert!(fix(&pod("4-5", "0-1", None), 2).contains("memoryManagerPolicy: Static"));
    }
}
