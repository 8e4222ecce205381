//! The CPUs on which the events of a section are opened, and what they are counted for.

use crate::events::{Open, Section, Spread};
use crate::pmu::Pmu;
use numakit_model::{Instance, Topology};
use std::collections::BTreeSet;

/// A CPU on which events are opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountingCpu {
    /// The CPU.
    pub cpu: u32,
    /// The chip, if events are opened once per chip.
    pub chip: Option<u32>,
    /// The package of its counts.
    package: Option<u32>,
    /// The node of its counts.
    node: Option<u32>,
    /// Links belong to nodes instead of packages, because packages have several of these CPUs.
    by_node: bool,
}

/// The counting CPUs of a PMU.
pub fn of(topology: &Topology, section: &Section, device: &Pmu) -> Vec<CountingCpu> {
    let online = &topology.online;
    let named = device.cpus.and(online);
    let counting_cpu = |cpu: u32| CountingCpu {
        cpu,
        chip: None,
        package: package_of(topology, cpu),
        node: topology.node_of_cpu(cpu).map(|node| node.os_index),
        by_node: false,
    };
    let mut counting_cpus: Vec<CountingCpu> = match section.open {
        Open::Everywhere if !named.is_empty() => named.iter().map(counting_cpu).collect(),
        Open::Everywhere if device.core && device.cpus.is_empty() => {
            online.iter().map(counting_cpu).collect()
        }
        // A PMU without a `cpumask` can be opened on any CPU.
        Open::Everywhere if device.cpus.is_empty() => online.first().map(counting_cpu).into_iter().collect(),
        Open::Everywhere => Vec::new(),
        Open::OncePerNode => {
            let sets = topology.nodes.iter().map(|node| node.cpus.and(online));
            sets.filter_map(|cpus| cpus.first()).map(counting_cpu).collect()
        }
        Open::EachChip => {
            let on = named.first().or_else(|| online.first());
            let chips = (0..topology.packages.len()).filter_map(|at| number_of_package(topology, at));
            let chip =
                |chip| Some(CountingCpu { chip: Some(chip), package: Some(chip), ..counting_cpu(on?) });
            chips.filter_map(chip).collect()
        }
    };
    let packages: BTreeSet<_> = counting_cpus.iter().map(|s| s.package).collect();
    let nodes: BTreeSet<_> = counting_cpus.iter().map(|s| s.node).collect();
    let several = counting_cpus.len() > packages.len() && counting_cpus.len() == nodes.len();
    let by_node = section.open == Open::OncePerNode || several;
    counting_cpus.iter_mut().for_each(|s| s.by_node = by_node);
    counting_cpus
}

fn package_of(topology: &Topology, cpu: u32) -> Option<u32> {
    let at = topology.packages.iter().position(|package| package.cpus.contains(cpu))?;
    number_of_package(topology, at)
}

/// The kernel's number of a package, or its index if there is none.
fn number_of_package(topology: &Topology, at: usize) -> Option<u32> {
    topology.packages[at].os_index.or_else(|| u32::try_from(at).ok())
}

impl CountingCpu {
    /// The instance of an event on this CPU; `number` is that of its link or of the other node.
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
