//! Properties of the machine that formulas may name; they do not change while it runs.

use crate::Dimension;
use numakit_model::topology::Node;
use numakit_model::{CpuSet, Instance, Topology};

/// Prefix of the names of facts.
pub(crate) const PREFIX: &str = "topology.";

/// A property of the machine.
#[derive(Debug)]
pub struct Fact {
    /// Its name in formulas.
    pub name: &'static str,
    /// One sentence.
    pub help: &'static str,
    per_second: bool,
    bytes: bool,
    of: fn(&Topology, Instance) -> Option<f64>,
}

/// Every fact.
pub static FACTS: &[Fact] = &[
    Fact { name: "topology.nodes", help: "Nodes.", per_second: false, bytes: false, of: node_count },
    Fact { name: "topology.cores", help: "Cores.", per_second: false, bytes: false, of: cores },
    Fact { name: "topology.cpus", help: "CPUs that run.", per_second: false, bytes: false, of: cpus },
    Fact { name: "topology.memory", help: "Memory.", per_second: false, bytes: true, of: memory },
    Fact {
        name: "topology.read_bandwidth",
        help: "Memory that can be read per second from the nearest CPUs, as the firmware says (HMAT).",
        per_second: true,
        bytes: true,
        of: |topology, place| bandwidth(topology, place, |a| a.read_bandwidth),
    },
    Fact {
        name: "topology.write_bandwidth",
        help: "Memory that can be written per second from the nearest CPUs, as the firmware says (HMAT).",
        per_second: true,
        bytes: true,
        of: |topology, place| bandwidth(topology, place, |a| a.write_bandwidth),
    },
    Fact {
        name: "topology.measured_bandwidth",
        help: "Memory that was read per second from the nearest CPUs, as 'numa bench all' measured it.",
        per_second: true,
        bytes: true,
        of: measured,
    },
];

impl Fact {
    /// The fact of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        FACTS.iter().find(|fact| fact.name == name)
    }

    /// Its dimension.
    pub fn dimension(&self) -> Dimension {
        let what = if self.bytes { Dimension::BYTES } else { Dimension::NUMBER };
        if self.per_second { what.over(Dimension::SECONDS) } else { what }
    }

    /// In bytes, bytes per second or a count; CPUs have none.
    pub fn value(&self, topology: &Topology, place: Instance) -> Option<f64> {
        (self.of)(topology, place)
    }
}

/// A package by the kernel's number, or by its position where the kernel has no number.
pub(crate) fn package(topology: &Topology, id: u32) -> Option<&CpuSet> {
    let numbered = |(at, p): (usize, &numakit_model::topology::Package)| {
        p.os_index.map_or_else(|| u32::try_from(at).ok() == Some(id), |number| number == id)
    };
    topology.packages.iter().enumerate().find(|p| numbered(*p)).map(|(_, p)| &p.cpus)
}

/// The nodes at a place; those without CPUs belong to the machine only.
fn nodes(topology: &Topology, place: Instance) -> Vec<&Node> {
    let of_package = |cpus: &CpuSet| {
        let inside = |n: &&Node| !n.cpus.is_empty() && n.cpus.is_subset(cpus);
        topology.nodes.iter().filter(inside).collect()
    };
    match place {
        Instance::Machine => topology.nodes.iter().collect(),
        Instance::Node(node) => topology.node(node).into_iter().collect(),
        Instance::Package(id) => package(topology, id).map(of_package).unwrap_or_default(),
        _ => Vec::new(),
    }
}

fn cpus_at(topology: &Topology, place: Instance) -> Option<CpuSet> {
    match place {
        Instance::Machine => Some(topology.online.clone()),
        Instance::Node(node) => topology.node(node).map(|n| n.cpus.clone()),
        Instance::Package(id) => package(topology, id).cloned(),
        _ => None,
    }
}

fn node_count(topology: &Topology, place: Instance) -> Option<f64> {
    positive(nodes(topology, place).len() as f64)
}

fn cores(topology: &Topology, place: Instance) -> Option<f64> {
    let cpus = cpus_at(topology, place)?;
    positive(topology.cores.iter().filter(|c| c.cpus.intersects(&cpus)).count() as f64)
}

fn cpus(topology: &Topology, place: Instance) -> Option<f64> {
    positive(cpus_at(topology, place)?.len() as f64)
}

fn memory(topology: &Topology, place: Instance) -> Option<f64> {
    let kb: Option<f64> =
        nodes(topology, place).iter().filter_map(|n| n.memory_kb).map(|kb| kb as f64).reduce(|a, b| a + b);
    positive(kb? * 1024.0)
}

/// The sum over nodes with memory; `None` where one of them does not say.
fn bandwidth(
    topology: &Topology,
    place: Instance,
    field: fn(&numakit_model::topology::Access) -> Option<u64>,
) -> Option<f64> {
    let of_node = |node: &Node| {
        // Class 1 (CPUs) is more precise than class 0 (any initiator).
        let best = node.access.iter().max_by_key(|a| a.class);
        best.and_then(field).map(|mib| mib as f64 * 1_048_576.0)
    };
    let with_memory = nodes(topology, place).into_iter().filter(|n| n.memory_kb != Some(0));
    positive(with_memory.map(of_node).sum::<Option<f64>>()?)
}

/// The sum of what was measured of the nodes with memory; `None` where one of them was not.
fn measured(topology: &Topology, place: Instance) -> Option<f64> {
    let memory = topology.measured.as_ref()?;
    let of_node = |node: &Node| memory.node(node.os_index)?.peak();
    let with_memory = nodes(topology, place).into_iter().filter(|n| n.memory_kb != Some(0));
    positive(with_memory.map(of_node).sum::<Option<f64>>()?)
}

fn positive(value: f64) -> Option<f64> {
    Some(value).filter(|v| *v > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_model::MeasuredMemory;
    use numakit_model::measured::MeasuredNode;
    use numakit_model::topology::{Access, Package};

    fn two_packages() -> Topology {
        let access = |read| vec![Access { class: 1, read_bandwidth: read, ..Access::default() }];
        let node = |os_index, cpus, read| Node {
            os_index,
            cpus,
            memory_kb: Some(1),
            access: access(read),
            ..Node::default()
        };
        Topology {
            nodes: vec![
                node(0, CpuSet::range(0, 1), Some(1000)),
                node(1, CpuSet::range(2, 3), Some(500)),
                node(2, CpuSet::new(), None),
            ],
            packages: vec![
                Package { os_index: Some(0), cpus: CpuSet::range(0, 1) },
                Package { os_index: None, cpus: CpuSet::range(2, 3) },
            ],
            online: CpuSet::range(0, 3),
            ..Topology::default()
        }
    }

    #[test]
    fn facts_belong_to_a_place() {
        let machine = two_packages();
        let value = |name: &str, place| Fact::named(name).unwrap().value(&machine, place);
        assert_eq!(value("topology.cpus", Instance::Machine), Some(4.0));
        assert_eq!(value("topology.cpus", Instance::Package(1)), Some(2.0));
        assert_eq!(value("topology.memory", Instance::Machine), Some(3072.0));
        assert_eq!(value("topology.read_bandwidth", Instance::Node(0)), Some(1000.0 * 1_048_576.0));
        assert_eq!(value("topology.read_bandwidth", Instance::Package(1)), Some(500.0 * 1_048_576.0));
        assert_eq!(value("topology.read_bandwidth", Instance::Machine), None, "node 2 does not say");
        assert_eq!(value("topology.write_bandwidth", Instance::Node(0)), None);
        assert_eq!(value("topology.cores", Instance::Node(0)), None, "no core is described");
        assert_eq!(value("topology.cpus", Instance::Cpu(0)), None);
    }

    #[test]
    fn the_measured_peak_of_a_place_is_that_of_its_nodes() {
        let mut machine = two_packages();
        let value = |machine: &Topology, place| {
            Fact::named("topology.measured_bandwidth").unwrap().value(machine, place)
        };
        assert_eq!(value(&machine, Instance::Machine), None, "it was not measured");
        let node = |(node, peak)| MeasuredNode { node, bandwidth: Some(peak), ..MeasuredNode::default() };
        let nodes = [(0, 60e9), (1, 40e9)].map(node).to_vec();
        machine.measured = Some(MeasuredMemory { nodes, ..MeasuredMemory::default() });
        assert_eq!(value(&machine, Instance::Node(1)), Some(40e9));
        assert_eq!(value(&machine, Instance::Package(0)), Some(60e9));
        assert_eq!(value(&machine, Instance::Machine), None, "node 2 was not measured");
        machine.nodes[2].memory_kb = Some(0);
        assert_eq!(value(&machine, Instance::Machine), Some(100e9));
    }
}
