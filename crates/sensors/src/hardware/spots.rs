//! Where the events of a section are opened on a machine, and what they are counted for.

use crate::events::{Open, Section, Spread};
use crate::pmu::Pmu;
use numakit_model::{Instance, Topology};
use std::collections::BTreeSet;

/// A CPU to open events on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// The CPU.
    pub cpu: u32,
    /// The chip, where events are opened for each.
    pub chip: Option<u32>,
    /// The package that is counted for.
    package: Option<u32>,
    /// The node.
    node: Option<u32>,
    /// Links belong to nodes here, since packages have several places.
    by_node: bool,
}

/// The spots of a PMU.
pub fn of(topology: &Topology, section: &Section, device: &Pmu) -> Vec<Spot> {
    let online = &topology.online;
    let named = device.cpus.and(online);
    let spot = |cpu: u32| Spot {
        cpu,
        chip: None,
        package: package_of(topology, cpu),
        node: topology.node_of_cpu(cpu).map(|node| node.os_index),
        by_node: false,
    };
    let mut spots: Vec<Spot> = match section.open {
        Open::Everywhere if !named.is_empty() => named.iter().map(spot).collect(),
        Open::Everywhere if device.core && device.cpus.is_empty() => online.iter().map(spot).collect(),
        // The kernel takes a PMU that names no CPU on any.
        Open::Everywhere if device.cpus.is_empty() => online.first().map(spot).into_iter().collect(),
        Open::Everywhere => Vec::new(),
        Open::OncePerNode => {
            let sets = topology.nodes.iter().map(|node| node.cpus.and(online));
            sets.filter_map(|cpus| cpus.first()).map(spot).collect()
        }
        Open::EachChip => {
            let on = named.first().or_else(|| online.first());
            let chips = (0..topology.packages.len()).filter_map(|at| number_of_package(topology, at));
            let chip = |chip| Some(Spot { chip: Some(chip), package: Some(chip), ..spot(on?) });
            chips.filter_map(chip).collect()
        }
    };
    let packages: BTreeSet<_> = spots.iter().map(|s| s.package).collect();
    let nodes: BTreeSet<_> = spots.iter().map(|s| s.node).collect();
    let several = spots.len() > packages.len() && spots.len() == nodes.len();
    let by_node = section.open == Open::OncePerNode || several;
    spots.iter_mut().for_each(|s| s.by_node = by_node);
    spots
}

fn package_of(topology: &Topology, cpu: u32) -> Option<u32> {
    let at = topology.packages.iter().position(|package| package.cpus.contains(cpu))?;
    number_of_package(topology, at)
}

/// The kernel's number of a package, or its place where the kernel gives none.
fn number_of_package(topology: &Topology, at: usize) -> Option<u32> {
    topology.packages[at].os_index.or_else(|| u32::try_from(at).ok())
}

impl Spot {
    /// What an event here is counted for; `number` is that of its link or of the other node.
    pub fn instance(&self, spread: Spread, number: Option<u32>) -> Option<Instance> {
        let home = if self.by_node { self.node } else { self.package };
        Some(match spread {
            Spread::Machine => Instance::Machine,
            Spread::Package => Instance::Package(self.package?),
            Spread::Node | Spread::Cpu => Instance::Node(self.node?),
            Spread::Link => Instance::Link(home?, number.unwrap_or(0)),
            Spread::Target => Instance::Link(self.node?, number.unwrap_or(0)),
        })
    }
}
