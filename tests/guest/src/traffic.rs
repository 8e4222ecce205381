//! What the simulator counted between the markers.

use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A row for each node with the CPUs, a column for each node that it had to do with.
pub type Matrix = Vec<Vec<u64>>;

/// Counts of lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// Fetched from memory, by node of the CPU and node of the memory.
    pub fetches: Matrix,
    /// From another cache, by node of the CPU and node of that cache.
    pub transfers: Matrix,
    /// Written back, by node that had them and node of the memory.
    pub writebacks: Matrix,
}

impl Lines {
    /// Lines of memory and of other caches that stayed on the node, and that did not.
    pub fn local_and_remote(&self) -> (u64, u64) {
        let mut sums = (0, 0);
        for matrix in [&self.fetches, &self.transfers] {
            for (from, row) in matrix.iter().enumerate() {
                for (to, lines) in row.iter().enumerate() {
                    *(if from == to { &mut sums.0 } else { &mut sums.1 }) += lines;
                }
            }
        }
        sums
    }

    fn is_of(&self, nodes: usize) -> bool {
        [&self.fetches, &self.transfers, &self.writebacks].into_iter().all(|matrix| is_square(matrix, nodes))
    }
}

fn is_square(matrix: &Matrix, nodes: usize) -> bool {
    matrix.len() == nodes && matrix.iter().all(|row| row.len() == nodes)
}

/// Counts of all regions together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Of this description.
    pub format: u32,
    /// Bytes of a line.
    pub line_bytes: u64,
    /// Number of nodes.
    pub nodes: usize,
    /// Begin markers that were seen.
    pub regions: u64,
    /// Time between the markers.
    pub elapsed_ns: u64,
    /// Loads and stores of each node's CPUs.
    pub accesses: Vec<u64>,
    /// Lines of all regions.
    #[serde(flatten)]
    pub lines: Lines,
    /// Estimated cycles waited, by node of the CPU and node that the line came from.
    pub wait_cycles: Matrix,
    /// Lines of each region, of the first 256.
    pub each: Vec<Lines>,
}

impl Traffic {
    /// Reads the file of the simulator.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = |problem: String| Failure::Simulator(problem);
        let traffic: Self = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let nodes = traffic.nodes;
        let whole = traffic.lines.is_of(nodes)
            && traffic.each.iter().all(|lines| lines.is_of(nodes))
            && is_square(&traffic.wait_cycles, nodes);
        if traffic.format != 1 {
            return Err(wrong(format!("its format is {}, known is 1", traffic.format)));
        }
        if traffic.accesses.len() != nodes || !whole {
            return Err(wrong(format!("its matrices are not of {nodes} nodes")));
        }
        Ok(traffic)
    }

    /// Share of the lines that came from another node, if there were any.
    pub fn remote_share(&self) -> Option<f64> {
        let (local, remote) = self.lines.local_and_remote();
        (local + remote > 0).then(|| remote as f64 / (local + remote) as f64)
    }
}

/// The matrices as a page for people.
impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.regions == 0 {
            return writeln!(f, "Nothing was counted: no begin marker was executed.");
        }
        matrix(f, "Lines fetched from memory", "of node", &self.lines.fetches)?;
        matrix(f, "Lines from other caches", "on node", &self.lines.transfers)?;
        let (local, remote) = self.lines.local_and_remote();
        match self.remote_share() {
            Some(share) => writeln!(
                f,
                "local {:.1} % ({local} lines), remote {:.1} % ({remote} lines), in {} region{}",
                100.0 * (1.0 - share),
                100.0 * share,
                self.regions,
                if self.regions == 1 { "" } else { "s" }
            ),
            None => writeln!(f, "no lines, in {} regions", self.regions),
        }
    }
}

fn matrix(f: &mut fmt::Formatter<'_>, title: &str, of: &str, rows: &Matrix) -> fmt::Result {
    let widest = rows.iter().flatten().map(|lines| lines.to_string().len()).max().unwrap_or(0);
    let width = widest.max(of.len() + 3);
    writeln!(f, "{title}")?;
    write!(f, "{:<14}", "  CPUs of")?;
    (0..rows.len()).try_for_each(|node| write!(f, " {:>width$}", format!("{of} {node}")))?;
    for (node, row) in rows.iter().enumerate() {
        write!(f, "\n{:<14}", format!("  node {node}"))?;
        row.iter().try_for_each(|lines| write!(f, " {lines:>width$}"))?;
    }
    writeln!(f, "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESULT: &str = r#"{ "format": 1, "line_bytes": 64, "nodes": 2, "regions": 1, "elapsed_ns": 5,
        "accesses": [9, 9], "fetches": [[262144, 12], [1000, 7]], "transfers": [[0, 3], [0, 0]],
        "writebacks": [[1, 0], [0, 0]], "wait_cycles": [[100, 200], [300, 400]], "each": [] }"#;

    #[test]
    fn matrices_and_shares_are_shown() {
        let traffic = Traffic::parse(RESULT).unwrap();
        assert_eq!(traffic.lines.local_and_remote(), (262_151, 1015));
        let expected = "\
Lines fetched from memory
  CPUs of       of node 0  of node 1
  node 0           262144         12
  node 1             1000          7

Lines from other caches
  CPUs of       on node 0  on node 1
  node 0                0          3
  node 1                0          0

local 99.6 % (262151 lines), remote 0.4 % (1015 lines), in 1 region
";
        assert_eq!(traffic.to_string(), expected);
    }

    #[test]
    fn a_file_that_is_not_whole_is_no_result() {
        let missing = RESULT.replace("[[262144, 12], [1000, 7]]", "[[262144, 12]]");
        for (text, reason) in [
            ("", "no result of the simulator: EOF"),
            (&missing, "no result of the simulator: its matrices are not of 2 nodes"),
            (
                &RESULT.replace("\"format\": 1", "\"format\": 2"),
                "no result of the simulator: its format is 2",
            ),
        ] {
            let message = Traffic::parse(text).unwrap_err().to_string();
            assert!(message.starts_with(reason), "{message}");
        }
    }

    #[test]
    fn without_markers_there_is_nothing_to_show() {
        let none = RESULT.replace("\"regions\": 1", "\"regions\": 0");
        assert!(Traffic::parse(&none).unwrap().to_string().starts_with("Nothing was counted"));
    }
}
