//! By what values are summed: nodes, on large machines packages or boards.

use numakit_model::{CpuSet, Instance, Topology};

/// At most this number of places have series of their own.
pub const MAX_PLACES: usize = 16;

/// The places of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExposedPlaces {
    /// The name of their label; empty if the machine is the only one.
    pub label: &'static str,
    /// Their numbers, each with its nodes and CPUs.
    pub list: Vec<ExposedPlace>,
}

/// A place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExposedPlace {
    /// The value of the label.
    pub name: String,
    /// The nodes.
    pub nodes: CpuSet,
    /// The CPUs.
    pub cpus: CpuSet,
}

impl ExposedPlaces {
    /// The finest division of the machine that has few enough places.
    pub fn of(topology: &Topology) -> Self {
        let levels =
            [("node", nodes(topology)), ("package", packages(topology)), ("board", boards(topology))];
        let fits = |list: &[ExposedPlace]| (1..=MAX_PLACES).contains(&list.len());
        let found = levels.into_iter().find(|(_, list)| fits(list));
        let (label, list) = found.unwrap_or_else(|| {
            let nodes = topology.nodes.iter().map(|node| node.os_index).collect();
            (
                "",
                vec![ExposedPlace {
                    name: String::new(),
                    nodes,
                    cpus: topology.online.or(&topology.offline),
                }],
            )
        });
        Self { label, list }
    }

    /// The position of the place that an instance belongs to.
    pub fn of_instance(&self, instance: Instance) -> Option<usize> {
        self.list.iter().position(|place| match instance {
            Instance::Node(node) => place.nodes.contains(node),
            Instance::Cpu(cpu) => place.cpus.contains(cpu),
            _ => false,
        })
    }
}

fn nodes(topology: &Topology) -> Vec<ExposedPlace> {
    let place = |node: &numakit_model::topology::Node| ExposedPlace {
        name: node.os_index.to_string(),
        nodes: [node.os_index].into_iter().collect(),
        cpus: node.cpus.clone(),
    };
    topology.nodes.iter().map(place).collect()
}

/// Nodes without CPUs belong to no package; they are a place of their own.
fn packages(topology: &Topology) -> Vec<ExposedPlace> {
    let sets = topology.packages.iter().enumerate().map(|(at, package)| {
        let of = |node: &&numakit_model::topology::Node| node.cpus.intersects(&package.cpus);
        let nodes = topology.nodes.iter().filter(of).map(|node| node.os_index).collect();
        let name = package.os_index.unwrap_or(at as u32).to_string();
        ExposedPlace { name, nodes, cpus: package.cpus.clone() }
    });
    let mut places: Vec<ExposedPlace> = sets.collect();
    let bare = topology.nodes.iter().filter(|node| node.cpus.is_empty()).map(|node| node.os_index);
    let bare: CpuSet = bare.collect();
    if !bare.is_empty() {
        places.push(ExposedPlace { name: "none".to_owned(), nodes: bare, cpus: CpuSet::new() });
    }
    places
}

fn boards(topology: &Topology) -> Vec<ExposedPlace> {
    let sets = topology.boards.iter().enumerate().map(|(at, nodes)| {
        let of = topology.nodes.iter().filter(|node| nodes.contains(node.os_index));
        let cpus = of.fold(CpuSet::new(), |cpus, node| cpus.or(&node.cpus));
        ExposedPlace { name: at.to_string(), nodes: nodes.clone(), cpus }
    });
    sets.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_topology::synthetic;

    fn places(description: &str) -> (&'static str, usize) {
        let topology = synthetic::parse(description).unwrap();
        let places = ExposedPlaces::of(&topology);
        let all = |of: fn(&ExposedPlace) -> &CpuSet| places.list.iter().map(|p| of(p).len()).sum::<usize>();
        assert_eq!((all(|p| &p.nodes), all(|p| &p.cpus)), (topology.nodes.len(), topology.online.len()));
        (places.label, places.list.len())
    }

    #[test]
    fn large_machines_have_few_places_and_no_cpu_is_counted_twice() {
        assert_eq!(places("package:2 node:1 core:4 pu:2"), ("node", 2));
        assert_eq!(places("package:4 node:4 core:2"), ("node", 16));
        assert_eq!(places("package:4 node:8 core:2"), ("package", 4));
        assert_eq!(places("package:128 node:1 core:2"), ("", 1));
    }
}
