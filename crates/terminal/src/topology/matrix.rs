//! Distances as a matrix that fits a terminal.

use numakit_model::CpuSet;
use numakit_model::topology::Distances;
use std::fmt::Write;

/// Up to this many nodes, each has its own row.
const SMALL: usize = 20;
/// A matrix with more different rows than this is not shown.
const MAX: usize = 256;

/// Nodes that share a row because swapping any two of them leaves the matrix unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeGroup {
    /// Positions in the matrix.
    members: Vec<usize>,
    /// Distances inside the group from a node's own to the farthest, each with the number of
    /// nodes that are at most that far.
    steps: Vec<(usize, u32)>,
}

impl NodeGroup {
    /// The position that represents all.
    fn first(&self) -> usize {
        self.members[0]
    }

    /// The nodes, as a list.
    pub fn name(&self, distances: &Distances) -> String {
        self.members.iter().map(|&at| distances.nodes[at]).collect::<CpuSet>().to_string()
    }

    /// The largest distance to another group, or inside this one.
    pub fn farthest(&self, other: &Self, distances: &Distances) -> u32 {
        match self == other {
            true => self.steps.last().map_or(0, |step| step.1),
            false => distances.rows[self.first()][other.first()],
        }
    }

    /// The cell of the matrix; inside a group it lists every step.
    pub fn cell(&self, other: &Self, distances: &Distances) -> String {
        if self != other {
            return distances.rows[self.first()][other.first()].to_string();
        }
        self.steps.iter().map(|step| step.1.to_string()).collect::<Vec<_>>().join("/")
    }

    /// What the steps mean, if there are several.
    fn explanation(&self) -> Option<String> {
        let [(_, own), .., (_, _)] = self.steps.as_slice() else { return None };
        let text: Vec<String> = self.steps.iter().map(|step| step.1.to_string()).collect();
        let others = self
            .steps
            .windows(2)
            .map(|pair| format!("{} to {} of its row", pair[1].1, pair[1].0 - pair[0].0));
        let words: Vec<String> = std::iter::once(format!("{own} to itself")).chain(others).collect();
        Some(format!("{} is {}", text.join("/"), words.join(", ")))
    }
}

/// Every node as a group.
pub fn singles(distances: &Distances) -> Vec<NodeGroup> {
    let single = |(at, row): (usize, &Vec<u32>)| NodeGroup { members: vec![at], steps: vec![(1, row[at])] };
    distances.rows.iter().enumerate().map(single).collect()
}

/// Merges groups that are equally far from all others.
pub fn merge(distances: &Distances, groups: &[NodeGroup]) -> Vec<NodeGroup> {
    let rows = Rows::of(distances, groups);
    let mut classes: Vec<Vec<usize>> = Vec::new();
    for at in 0..groups.len() {
        // A group that can be swapped with the first can be swapped with all.
        match classes.iter_mut().find(|class| rows.are_twins(class[0], at)) {
            Some(class) => class.push(at),
            None => classes.push(vec![at]),
        }
    }
    let join = |class: Vec<usize>| {
        let mut group = groups[class[0]].clone();
        if let Some(&second) = class.get(1) {
            group.members = class.iter().flat_map(|&at| groups[at].members.iter().copied()).collect();
            group.steps.push((group.members.len(), rows.at(class[0], second)));
        }
        group
    };
    classes.into_iter().map(join).collect()
}

/// The matrix of groups, with a hash per row that distinguishes most rows at once.
struct Rows<'a> {
    distances: &'a Distances,
    groups: &'a [NodeGroup],
    sums: Vec<[u64; 2]>,
    /// Whether all distances are the same both ways, so that comparing rows is enough.
    symmetric: bool,
}

impl<'a> Rows<'a> {
    fn of(distances: &'a Distances, groups: &'a [NodeGroup]) -> Self {
        let mut rows = Self { distances, groups, sums: Vec::new(), symmetric: true };
        let mut sums = vec![[0u64; 2]; groups.len()];
        // Row by row, which is the order in memory.
        for from in 0..groups.len() {
            for to in 0..groups.len() {
                sums[from][0] = sums[from][0].wrapping_add(rows.mark(to, from, to));
                sums[to][1] = sums[to][1].wrapping_add(rows.mark(from, from, to));
            }
        }
        let same = |from: usize| (0..from).all(|to| rows.at(from, to) == rows.at(to, from));
        rows.symmetric = (0..groups.len()).all(same);
        rows.sums = sums;
        rows
    }

    fn at(&self, from: usize, to: usize) -> u32 {
        self.distances.rows[self.groups[from].first()][self.groups[to].first()]
    }

    /// The hash of a distance at a position of a row or column. It is mixed well, since rows that
    /// differ and have the same sum of hashes are compared value by value.
    fn mark(&self, place: usize, from: usize, to: usize) -> u64 {
        let value = (place as u64) << 32 | u64::from(self.at(from, to));
        let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ value >> 31
    }

    /// The sums of a row and column without two positions.
    fn without(&self, of: usize, a: usize, b: usize) -> [u64; 2] {
        let [row, column] = self.sums[of];
        let row = row.wrapping_sub(self.mark(a, of, a)).wrapping_sub(self.mark(b, of, b));
        [row, column.wrapping_sub(self.mark(a, a, of)).wrapping_sub(self.mark(b, b, of))]
    }

    fn are_twins(&self, a: usize, b: usize) -> bool {
        let same = |other: usize| {
            self.at(a, other) == self.at(b, other)
                && (self.symmetric || self.at(other, a) == self.at(other, b))
        };
        self.groups[a].steps == self.groups[b].steps
            && self.at(a, b) == self.at(b, a)
            && self.without(a, a, b) == self.without(b, a, b)
            && (0..self.groups.len()).all(|other| other == a || other == b || same(other))
    }
}

/// The matrix. On large machines, nodes that are equally far from all others share a row;
/// if it is still too wide, it is cut into blocks of columns.
pub fn matrix(distances: &Distances, width: usize) -> String {
    let mut groups = singles(distances);
    while groups.len() > SMALL {
        let merged = merge(distances, &groups);
        if merged.len() == groups.len() {
            break;
        }
        groups = merged;
    }
    if groups.len() > MAX {
        return left_out(distances, groups.len());
    }
    let names: Vec<String> = groups.iter().map(|group| group.name(distances)).collect();
    let cells: Vec<Vec<String>> =
        groups.iter().map(|from| groups.iter().map(|to| from.cell(to, distances)).collect()).collect();
    let mut out = blocks(&names, &cells, width);
    let mut explanations: Vec<String> = groups.iter().filter_map(NodeGroup::explanation).collect();
    explanations.sort();
    explanations.dedup();
    if !explanations.is_empty() {
        out.push_str("  nodes in one row are equally far from all other rows\n");
    }
    explanations.iter().for_each(|line| out += &format!("  {line}\n"));
    out
}

/// The text in place of a matrix that is too large.
fn left_out(distances: &Distances, rows: usize) -> String {
    let others = distances.rows.iter().enumerate();
    let others = others.flat_map(|(from, row)| row.iter().enumerate().filter(move |(to, _)| *to != from));
    let (min, max) = others.fold((u32::MAX, 0), |(min, max), (_, &d)| (d.min(min), d.max(max)));
    format!(
        "  {min} to {max} between two of {} nodes; the matrix has {rows} different rows, and up to {MAX} are \
         shown: --json has them all\n",
        distances.nodes.len()
    )
}

fn blocks(names: &[String], cells: &[Vec<String>], width: usize) -> String {
    let side = names.iter().map(String::len).max().unwrap_or(0).max(4);
    let widest = |at: usize| cells.iter().map(|row| row[at].len()).fold(names[at].len(), usize::max);
    let widths: Vec<usize> = (0..names.len()).map(widest).collect();
    let column = |at: usize| widths[at];
    let mut out = String::new();
    let mut start = 0;
    while start < names.len() {
        let mut end = start;
        let mut used = side + 4;
        while end < names.len() && (end == start || used + column(end) + 2 <= width) {
            used += column(end) + 2;
            end += 1;
        }
        if start > 0 {
            out.push('\n');
        }
        let head = std::iter::once(("node", names));
        let rows = names.iter().zip(cells).map(|(name, row)| (name.as_str(), row.as_slice()));
        for (name, row) in head.chain(rows) {
            // Writing to a string cannot fail.
            let _ = write!(out, "  {name:>side$}  ");
            for (at, cell) in row.iter().enumerate().take(end).skip(start) {
                let _ = write!(out, "  {cell:>w$}", w = column(at));
            }
            out.push('\n');
        }
        start = end;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distances by the level at which two nodes meet in a tree of these widths.
    fn nested(widths: &[usize], values: &[u32]) -> Distances {
        let count: usize = widths.iter().product();
        let distance = |a: usize, b: usize| {
            let mut span = 1;
            let far = widths.iter().position(|width| {
                span *= width;
                a / span == b / span
            });
            if a == b { values[0] } else { values[far.unwrap_or(0) + 1] }
        };
        let rows = (0..count).map(|a| (0..count).map(|b| distance(a, b)).collect()).collect();
        Distances::new((0..count as u32).collect(), rows).unwrap()
    }

    #[test]
    fn a_small_matrix_is_shown_in_full() {
        let text = matrix(&nested(&[2], &[10, 21]), 100);
        assert_eq!(text, "  node     0   1\n     0    10  21\n     1    21  10\n");
    }

    #[test]
    fn equal_nodes_share_a_row() {
        let text = matrix(&nested(&[12, 2], &[10, 16, 100]), 100);
        let expected = "   node     0-11  12-23\n   0-11    10/16    100\n  12-23      100  10/16\n  \
                        nodes in one row are equally far from all other rows\n  \
                        10/16 is 10 to itself, 16 to 11 of its row\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn groups_of_groups_share_a_row() {
        let text = matrix(&nested(&[2, 64], &[10, 12, 32]), 100);
        assert!(text.starts_with("   node       0-127\n  0-127    10/12/32\n"), "{text}");
        assert!(
            text.ends_with("10/12/32 is 10 to itself, 12 to 1 of its row, 32 to 126 of its row\n"),
            "{text}"
        );
    }

    #[test]
    fn too_many_different_rows_are_not_shown() {
        let far = |count: u32| {
            let row = |a: u32| (0..count).map(|b| 10 + a.abs_diff(b)).collect();
            Distances::new((0..count).collect(), (0..count).map(row).collect()).unwrap()
        };
        assert_eq!(matrix(&far(256), 100).lines().filter(|line| line.starts_with("  node")).count(), 15);
        assert_eq!(
            matrix(&far(257), 100),
            "  11 to 266 between two of 257 nodes; the matrix has 257 different rows, and up to 256 are shown: \
             --json has them all\n"
        );
    }

    #[test]
    fn one_way_differences_keep_rows_separate() {
        let mut distances = nested(&[30], &[10, 20]);
        distances.rows[3][7] = 21;
        // Nodes 3 and 7 differ from all others.
        assert_eq!(merge(&distances, &singles(&distances)).len(), 3);
    }

    #[test]
    fn pairs_of_a_large_machine_are_found() {
        let distances = nested(&[2, 200], &[10, 12, 32]);
        let pairs = merge(&distances, &singles(&distances));
        assert_eq!(pairs.len(), 200);
        assert_eq!(merge(&distances, &pairs).len(), 1);
    }
}
