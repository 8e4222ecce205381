//! The columns of each metric in a row, and which of them belong to a place.

use crate::bound::{BoundFormula, bind};
use crate::catalog::{Catalog, Formula};
use crate::machine::package;
use crate::missing::Missing;
use numakit_model::{Instance, Series, Topology};
use std::collections::HashMap;

/// The series of a row by name and place.
#[derive(Debug)]
pub struct Index<'a> {
    series: &'a [Series],
    by_name: HashMap<&'a str, Vec<usize>>,
    node_of_cpu: HashMap<u32, u32>,
    package_of_cpu: HashMap<u32, u32>,
    package_of_node: HashMap<u32, u32>,
    /// Packages that contain exactly one node with CPUs.
    node_of_package: HashMap<u32, u32>,
    /// Links begin at nodes: true if one begins at a number that no package has.
    links_of_nodes: bool,
    topology: Option<&'a Topology>,
    page_size: u64,
}

impl<'a> Index<'a> {
    /// For rows of these series on that machine; page size 0 is unknown.
    pub fn new(series: &'a [Series], topology: Option<&'a Topology>, page_size: u64) -> Self {
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, one) in series.iter().enumerate() {
            by_name.entry(&one.metric.name).or_default().push(at);
        }
        let mut index = Self {
            series,
            by_name,
            node_of_cpu: HashMap::new(),
            package_of_cpu: HashMap::new(),
            package_of_node: HashMap::new(),
            node_of_package: HashMap::new(),
            links_of_nodes: false,
            topology,
            page_size,
        };
        if let Some(topology) = topology {
            index.add_places(topology);
        }
        index
    }

    fn add_places(&mut self, topology: &Topology) {
        for node in &topology.nodes {
            self.node_of_cpu.extend(node.cpus.iter().map(|cpu| (cpu, node.os_index)));
        }
        let mut ids = Vec::new();
        for (at, one) in topology.packages.iter().enumerate() {
            let Some(id) = one.os_index.or_else(|| u32::try_from(at).ok()) else { continue };
            ids.push(id);
            let Some(cpus) = package(topology, id) else { continue };
            self.package_of_cpu.extend(cpus.iter().map(|cpu| (cpu, id)));
            let with_cpus = topology.nodes.iter().filter(|n| n.cpus.intersects(cpus));
            let nodes: Vec<u32> = with_cpus.clone().map(|n| n.os_index).collect();
            // A node across packages belongs to none of them.
            let whole = with_cpus.filter(|n| n.cpus.is_subset(cpus));
            self.package_of_node.extend(whole.map(|n| (n.os_index, id)));
            if let [node] = nodes.as_slice()
                && self.package_of_node.contains_key(node)
            {
                self.node_of_package.insert(id, *node);
            }
        }
        let begins_elsewhere = |s: &Series| matches!(s.instance, Instance::Link(id, _) if !ids.contains(&id));
        self.links_of_nodes = self.series.iter().any(begins_elsewhere);
    }

    /// The series of that name that belong to a place.
    pub fn find(&self, name: &str, place: Instance) -> Vec<usize> {
        let all = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        all.iter().copied().filter(|&at| self.is_at(self.series[at].instance, place)).collect()
    }

    /// Whether there is a series of that name at all.
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// A CPU belongs to its node and package, a link to the package or node where it begins,
    /// a package to its node if it has only one, a pair of nodes to that of the CPUs, and everything to the machine.
    fn is_at(&self, instance: Instance, place: Instance) -> bool {
        match (instance, place) {
            (_, Instance::Machine) => true,
            (Instance::Link(id, _), Instance::Node(_) | Instance::Package(_)) if self.links_of_nodes => {
                self.is_at(Instance::Node(id), place)
            }
            (Instance::Cpu(cpu), Instance::Node(node)) => self.node_of_cpu.get(&cpu) == Some(&node),
            (Instance::Cpu(cpu), Instance::Package(id)) => self.package_of_cpu.get(&cpu) == Some(&id),
            (Instance::Node(node), Instance::Package(id)) => self.package_of_node.get(&node) == Some(&id),
            (Instance::Package(id) | Instance::Link(id, _), Instance::Node(node)) => {
                self.node_of_package.get(&id) == Some(&node)
            }
            (Instance::Link(id, _), Instance::Package(place)) => id == place,
            (Instance::Pair(..), Instance::Pair(..)) => instance == place,
            (Instance::Pair(cpu_node, _), _) => self.is_at(Instance::Node(cpu_node), place),
            _ => instance == place,
        }
    }

    /// The formula at that place, ready for rows, or what it lacks there.
    pub fn bind(
        &self,
        catalog: &Catalog,
        formula: &Formula,
        place: Instance,
    ) -> Result<BoundFormula, Missing> {
        bind(self, catalog, formula, place)
    }

    /// The series of the rows.
    pub fn series(&self) -> &'a [Series] {
        self.series
    }

    /// The machine, if known.
    pub fn topology(&self) -> Option<&'a Topology> {
        self.topology
    }

    /// Size of a base page in bytes; 0 if unknown.
    pub fn page_size(&self) -> u64 {
        self.page_size
    }
}
