//! The machine as tables, for lookups without searching.

use crate::request::Level;
use numakit_model::{CpuSet, Topology};

/// No group.
pub(crate) const NONE: u32 = u32::MAX;

/// A core and its position. Groups are numbered by their first CPU.
#[derive(Debug)]
pub(crate) struct Spot {
    /// Its PUs, ascending.
    pub pus: Vec<u32>,
    /// Position of its node in [`Topology::nodes`].
    pub node: usize,
    pub package: u32,
    pub l3: u32,
    /// The group that it shares below the last-level cache: a unit, a cluster, an L2 cache.
    pub module: u32,
    /// 0 for the fastest kind.
    pub kind: u32,
}

/// Distances between nodes by position, both ways summed.
#[derive(Debug)]
pub(crate) struct Matrix {
    size: usize,
    both: Vec<u32>,
    /// False if the machine does not report them and packages are used instead.
    pub known: bool,
}

/// The tables of a machine.
#[derive(Debug)]
pub(crate) struct Machine<'a> {
    pub topology: &'a Topology,
    /// Cores in logical order: package by package, within it node by node, cache by cache.
    pub spots: Vec<Spot>,
    /// Position of the node of each CPU, or [`NONE`].
    pub node_of_cpu: Vec<u32>,
    pub package_of_node: Vec<u32>,
    pub board_of_node: Vec<u32>,
    pub distances: Matrix,
}

impl<'a> Machine<'a> {
    pub fn of(topology: &'a Topology) -> Self {
        let size = topology.online.last().map_or(0, |last| last as usize + 1);
        let mut node_of_cpu = vec![NONE; size];
        // A CPU that several nodes list belongs to the first.
        for (at, node) in topology.nodes.iter().enumerate().rev() {
            fill(&mut node_of_cpu, &node.cpus, at as u32);
        }
        let spots = spots(topology, &node_of_cpu);
        let mut package_of_node = vec![NONE; topology.nodes.len()];
        spots.iter().rev().for_each(|spot| package_of_node[spot.node] = spot.package);
        let mut board_of_node = vec![NONE; topology.nodes.len()];
        for (at, node) in topology.nodes.iter().enumerate() {
            let board = topology.boards.iter().position(|board| board.contains(node.os_index));
            board_of_node[at] = board.map_or(NONE, |at| at as u32);
        }
        let distances = Matrix::of(topology, &package_of_node);
        Self { topology, spots, node_of_cpu, package_of_node, board_of_node, distances }
    }

    /// The number of each spot's part at this level, or [`NONE`] if it has no such part; `None` if the machine shows no such
    /// parts.
    pub fn parts(&self, level: Level) -> Option<Vec<u32>> {
        let t = self.topology;
        let of_sets = |sets: Vec<&CpuSet>| -> Option<Vec<u32>> {
            let table = groups(sets.iter().copied(), self.node_of_cpu.len());
            let of = |spot: &Spot| table.get(spot.pus[0] as usize).copied().unwrap_or(NONE);
            (!sets.is_empty()).then(|| self.spots.iter().map(of).collect())
        };
        let cache = |level: u32| of_sets(t.caches_of_level(level).map(|cache| &cache.cpus).collect());
        match level {
            Level::L2 => cache(2),
            Level::L3 => cache(3),
            Level::L4 => cache(4),
            Level::Unit => of_sets(t.units.iter().collect()),
            Level::Cluster => of_sets(t.clusters.iter().collect()),
            Level::Die => of_sets(t.dies.iter().collect()),
            Level::Package => of_sets(t.packages.iter().map(|package| &package.cpus).collect()),
            Level::Book => of_sets(t.books.iter().collect()),
            Level::Drawer => of_sets(t.drawers.iter().collect()),
            Level::Node => Some(self.spots.iter().map(|spot| spot.node as u32).collect()),
            Level::Board if t.boards.is_empty() => None,
            Level::Board => Some(self.spots.iter().map(|spot| self.board_of_node[spot.node]).collect()),
        }
    }

    /// The kernel's number of a node.
    pub fn id(&self, node: usize) -> u32 {
        self.topology.nodes[node].os_index
    }
}

fn fill(table: &mut [u32], cpus: &CpuSet, value: u32) {
    for cpu in cpus.iter() {
        if let Some(slot) = table.get_mut(cpu as usize) {
            *slot = value;
        }
    }
}

/// The group of each CPU, numbered by the groups' first CPUs.
fn groups<'a>(sets: impl Iterator<Item = &'a CpuSet>, size: usize) -> Vec<u32> {
    let mut sets: Vec<(Option<u32>, &CpuSet)> = sets.map(|set| (set.first(), set)).collect();
    sets.sort_by_key(|(first, _)| *first);
    let mut table = vec![NONE; size];
    sets.iter().zip(0..).for_each(|((_, set), at)| fill(&mut table, set, at));
    table
}

fn spots(topology: &Topology, node_of_cpu: &[u32]) -> Vec<Spot> {
    let size = node_of_cpu.len();
    let packages = groups(topology.packages.iter().map(|p| &p.cpus), size);
    let dies = groups(topology.dies.iter(), size);
    let nodes = groups(topology.nodes.iter().map(|n| &n.cpus), size);
    let l3s = groups(topology.caches_of_level(3).map(|c| &c.cpus), size);
    let shared_l2 = topology.caches_of_level(2).map(|c| &c.cpus);
    // Large machines have many L2 caches of a single core, which group nothing.
    let l2s = groups(shared_l2, size);
    let clusters = groups(topology.clusters.iter(), size);
    let units = groups(topology.units.iter(), size);
    let mut kinds = vec![0; size];
    for (slowness, kind) in topology.kinds.iter().rev().enumerate() {
        fill(&mut kinds, &kind.cpus, slowness as u32);
    }
    let of = |table: &[u32], cpu: u32| table.get(cpu as usize).copied().unwrap_or(NONE);
    let mut found: Vec<([u32; 8], Spot)> = Vec::with_capacity(topology.cores.len());
    for core in &topology.cores {
        let pus: Vec<u32> = core.cpus.iter().collect();
        let Some(&first) = pus.first() else { continue };
        let node = of(node_of_cpu, first);
        if node == NONE {
            continue;
        }
        let (package, l3) = (of(&packages, first), of(&l3s, first));
        let (cluster, l2, unit) = (of(&clusters, first), of(&l2s, first), of(&units, first));
        let key = [package, of(&dies, first), of(&nodes, first), l3, cluster, l2, unit, first];
        let module = [unit, cluster, l2].into_iter().find(|group| *group != NONE).unwrap_or(NONE);
        let node = node as usize;
        found.push((key, Spot { pus, node, package, l3, module, kind: of(&kinds, first) }));
    }
    found.sort_by_key(|(key, _)| *key);
    found.into_iter().map(|(_, spot)| spot).collect()
}

/// The distance between any two nodes, if the machine does not report distances.
const SAME: u32 = 10;
const SAME_PACKAGE: u32 = 15;
const OTHER: u32 = 20;

impl Matrix {
    fn of(topology: &Topology, packages: &[u32]) -> Self {
        let size = topology.nodes.len();
        let rows = topology.distances.as_ref().map(|d| &d.rows);
        let rows = rows.filter(|rows| rows.len() == size && rows.iter().all(|row| row.len() == size));
        let near = |a: usize, b: usize| packages[a] == packages[b] && packages[a] != NONE;
        let one = |a: usize, b: usize| match rows {
            // Firmware values fit into a byte; larger ones of a file must not overflow sums.
            Some(rows) => rows[a][b].min(4095),
            None if a == b => SAME,
            None if near(a, b) => SAME_PACKAGE,
            None => OTHER,
        };
        let both = (0..size).flat_map(|a| (0..size).map(move |b| (a, b))).map(|(a, b)| one(a, b) + one(b, a));
        Self { size, both: both.collect(), known: rows.is_some() || size < 2 }
    }

    /// The sum of the distances from `a` to `b` and back.
    pub fn both(&self, a: usize, b: usize) -> u32 {
        self.both[a * self.size + b]
    }

    /// The distance as the machine reports it; the mean if the two directions differ.
    pub fn between(&self, a: usize, b: usize) -> u32 {
        self.both(a, b).div_ceil(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_in_logical_order_whatever_their_numbers() {
        let machine = "package:2 node:2 core:2 pu:2 numbering=roundrobin";
        let topology = numakit_topology::synthetic::parse(machine).unwrap();
        let machine = Machine::of(&topology);
        let firsts: Vec<u32> = machine.spots.iter().map(|s| s.pus[0]).collect();
        assert_eq!(firsts, [0, 2, 4, 6, 1, 3, 5, 7]);
        let nodes: Vec<usize> = machine.spots.iter().map(|s| s.node).collect();
        assert_eq!(nodes, [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(machine.package_of_node, [0, 0, 1, 1]);
        assert_eq!(machine.spots[5].pus, [3, 11]);
        assert_eq!(machine.distances.between(0, 3), 20);
    }

    #[test]
    fn without_distances_packages_stand_in() {
        let topology = numakit_topology::synthetic::parse("package:2 node:2 core:2").unwrap();
        let topology = Topology { distances: None, ..topology };
        let machine = Machine::of(&topology);
        assert!(!machine.distances.known);
        assert!(machine.distances.between(0, 1) < machine.distances.between(0, 2));
    }
}
