//! Boards or servers that the distances imply.

use numakit_model::{CpuSet, Topology};
use std::collections::BTreeSet;

/// Minimum ratio of the distance to the nearest other board and the distance to the farthest node
/// of the same board, if boards have several packages. Links between sockets are below this.
const FAR: f64 = 2.5;
/// The minimum ratio if each board would be a single package: some packages with several nodes are far from each other
/// without being boards.
const FAR_PACKAGES: f64 = 4.0;

/// Groups of nodes that are near each other and far from all others, in ascending order; empty if
/// all nodes are one group. Nodes without CPUs join the board that is nearest to them.
pub fn find(topology: &Topology) -> Vec<CpuSet> {
    let Some(matrix) = Matrix::of(topology) else { return Vec::new() };
    let mut cuts = matrix.cuts();
    // The widest gap first.
    cuts.sort_by(|a, b| b.ratio().total_cmp(&a.ratio()));
    for cut in cuts.iter().take_while(|cut| cut.ratio() >= FAR) {
        let groups = matrix.groups(cut.near);
        let whole = groups.iter().all(|group| matrix.is_near(group, cut.near));
        let several = groups.len() > 1 && groups.iter().any(|group| group.len() > 1);
        if whole && several && (cut.ratio() >= FAR_PACKAGES || !inside_packages(topology, &matrix, &groups)) {
            return matrix.with_all_nodes(topology, &groups);
        }
    }
    Vec::new()
}

/// Distances between the nodes that have CPUs, the larger one if the two directions differ.
struct Matrix {
    ids: Vec<u32>,
    rows: Vec<Vec<u32>>,
}

/// A gap in the distances: every distance is at most `near` or at least `far`.
struct Cut {
    near: u32,
    far: u32,
}

impl Cut {
    fn ratio(&self) -> f64 {
        f64::from(self.far) / f64::from(self.near.max(1))
    }
}

impl Matrix {
    fn of(topology: &Topology) -> Option<Self> {
        let distances = topology.distances.as_ref()?;
        let with_cpus = topology.nodes.iter().enumerate().filter(|(_, node)| !node.cpus.is_empty());
        let nodes: Vec<usize> = with_cpus.map(|(at, _)| at).collect();
        let value = |from: usize, to: usize| Some(*distances.rows.get(from)?.get(to)?);
        let both = |from: usize, to: usize| Some(value(from, to)?.max(value(to, from)?));
        let row = |&from: &usize| nodes.iter().map(|&to| both(from, to)).collect::<Option<Vec<u32>>>();
        Some(Self {
            ids: nodes.iter().map(|&at| topology.nodes[at].os_index).collect(),
            rows: nodes.iter().map(row).collect::<Option<_>>()?,
        })
    }

    fn cuts(&self) -> Vec<Cut> {
        let pairs = self.rows.iter().enumerate().flat_map(|(from, row)| &row[..from]);
        let values: BTreeSet<u32> = pairs.copied().collect();
        let values: Vec<u32> = values.into_iter().collect();
        values.windows(2).map(|pair| Cut { near: pair[0], far: pair[1] }).collect()
    }

    /// Positions of nodes that are connected by steps of at most `near`.
    fn groups(&self, near: u32) -> Vec<Vec<usize>> {
        let mut left: Vec<usize> = (0..self.ids.len()).collect();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        while !left.is_empty() {
            let mut group = vec![left.remove(0)];
            let mut next = 0;
            while let Some(&at) = group.get(next) {
                next += 1;
                let (reached, rest) = left.into_iter().partition(|&to| self.rows[at][to] <= near);
                let reached: Vec<usize> = reached;
                group.extend(reached);
                left = rest;
            }
            group.sort_unstable();
            groups.push(group);
        }
        groups
    }

    /// Whether all pairs of a group are near each other, and not only connected through nodes between them.
    fn is_near(&self, group: &[usize], near: u32) -> bool {
        group.iter().all(|&from| group.iter().all(|&to| from == to || self.rows[from][to] <= near))
    }

    fn with_all_nodes(&self, topology: &Topology, groups: &[Vec<usize>]) -> Vec<CpuSet> {
        let mut boards: Vec<CpuSet> =
            groups.iter().map(|group| group.iter().map(|&at| self.ids[at]).collect()).collect();
        let homes: Vec<(u32, usize)> =
            boards.iter().enumerate().flat_map(|(b, n)| n.iter().map(move |n| (n, b))).collect();
        for node in topology.nodes.iter().filter(|node| node.cpus.is_empty()) {
            let distance = |&&(home, _): &&(u32, usize)| {
                topology.distances.as_ref().and_then(|d| d.between(home, node.os_index)).unwrap_or(u32::MAX)
            };
            if let Some(&(_, board)) = homes.iter().min_by_key(distance) {
                boards[board].insert(node.os_index);
            }
        }
        boards
    }
}

/// Whether each group is inside one package.
fn inside_packages(topology: &Topology, matrix: &Matrix, groups: &[Vec<usize>]) -> bool {
    groups.iter().all(|group| {
        let ids = group.iter().map(|&at| matrix.ids[at]);
        let nodes = ids.filter_map(|id| topology.node(id));
        let cpus = nodes.fold(CpuSet::new(), |all, node| all.or(&node.cpus));
        topology.packages.iter().any(|package| cpus.is_subset(&package.cpus))
    })
}
