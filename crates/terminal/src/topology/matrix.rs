//! Distances as a matrix that fits a screen.

use numakit_model::CpuSet;
use numakit_model::topology::Distances;
use std::fmt::Write;

/// Up to this many nodes, each has a row of its own.
const SMALL: usize = 20;

/// The matrix. On large machines, nodes that are equally far from all others share a row,
/// which loses nothing; what is still too wide is cut into blocks of columns.
pub fn matrix(distances: &Distances, width: usize) -> String {
    let groups = if distances.nodes.len() <= SMALL { singles(distances) } else { twins(distances) };
    let names: Vec<String> = groups.iter().map(|group| names(distances, group).to_string()).collect();
    let cells: Vec<Vec<String>> =
        groups.iter().map(|from| groups.iter().map(|to| cell(distances, from, to)).collect()).collect();
    let side = names.iter().map(String::len).max().unwrap_or(0).max(4);
    let column = |at: usize| names[at].len().max(cells.iter().map(|row| row[at].len()).max().unwrap_or(0));
    let mut out = String::new();
    let mut start = 0;
    while start < groups.len() {
        let mut end = start;
        let mut used = side + 4;
        while end < groups.len() && (end == start || used + column(end) + 2 <= width) {
            used += column(end) + 2;
            end += 1;
        }
        if start > 0 {
            out.push('\n');
        }
        // Writing to a string cannot fail.
        let _ = write!(out, "  {:side$}  ", "node");
        for (at, name) in names.iter().enumerate().take(end).skip(start) {
            let _ = write!(out, "  {name:>w$}", w = column(at));
        }
        for (name, row) in names.iter().zip(&cells) {
            let _ = write!(out, "\n  {name:>side$}  ");
            for (at, cell) in row.iter().enumerate().take(end).skip(start) {
                let _ = write!(out, "  {cell:>w$}", w = column(at));
            }
        }
        out.push('\n');
        start = end;
    }
    if groups.iter().any(|group| group.len() > 1) {
        out.push_str(
            "  nodes in one row are equally far from all others; 10/16 is to itself / to each other\n",
        );
    }
    out
}

/// The nodes of a group.
pub fn names(distances: &Distances, group: &[usize]) -> CpuSet {
    group.iter().map(|&at| distances.nodes[at]).collect()
}

/// The distance from one group to another; of a group of several to itself, both distances.
pub fn cell(distances: &Distances, from: &[usize], to: &[usize]) -> String {
    let value = distances.rows[from[0]][to[0]];
    if from == to && from.len() > 1 {
        return format!("{value}/{}", distances.rows[from[0]][from[1]]);
    }
    value.to_string()
}

/// Every node for itself.
pub fn singles(distances: &Distances) -> Vec<Vec<usize>> {
    (0..distances.nodes.len()).map(|at| vec![at]).collect()
}

/// Positions of nodes that could be exchanged without changing the matrix.
pub fn twins(distances: &Distances) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for at in 0..distances.nodes.len() {
        match groups.iter_mut().find(|group| group.iter().all(|&other| are_twins(&distances.rows, at, other)))
        {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    groups
}

fn are_twins(rows: &[Vec<u32>], a: usize, b: usize) -> bool {
    let same = |other: usize| rows[a][other] == rows[b][other] && rows[other][a] == rows[other][b];
    rows[a][a] == rows[b][b]
        && rows[a][b] == rows[b][a]
        && (0..rows.len()).all(|other| other == a || other == b || same(other))
}
