//! The order of the values in a row: those of each node, those of the machine, those of each pair of nodes.

use crate::board::NONE;
use crate::known::{ACCESS, KnownName};
use numakit_explain::tally::Tally;
use numakit_explain::traffic::Traffic;
use numakit_model::{Instance, Metric, Scope};

/// Number of values of each node, in the table's order.
pub const NODE: usize = 10;
/// Number of values of the machine.
pub const MACHINE: usize = 2;
/// Number of values of each pair of nodes.
pub const PAIR: usize = 6;

/// Pairs are shown up to this number of nodes, and what memory they use it for up to that one: a row would be too long.
const MAX_NODES: usize = 16;
const MAX_NODES_OF_PARTS: usize = 8;

/// Places of the values that only emulated processors have.
const PAGES: [usize; 3] = [8, 9, NODE + MACHINE + PAIR - 1];
/// Places of those that all have.
const OF_ALL: [usize; 3] = [6, NODE, NODE + 1];
/// Places of the parts of memory.
const PARTS: std::ops::Range<usize> = NODE + MACHINE + 1..NODE + MACHINE + PAIR - 1;

/// The metric of a line of the table.
pub fn metric(at: usize, known: &KnownName) -> Metric {
    let scope = match at {
        at if at < NODE => Scope::Node,
        at if at < NODE + MACHINE => Scope::Machine,
        _ => Scope::Pair,
    };
    known.metric("access", scope, "samples of instructions, /proc/PID/maps and move_pages")
}

/// All metrics, in the table's order.
pub fn metrics() -> Vec<Metric> {
    ACCESS.iter().enumerate().map(|(at, known)| metric(at, known)).collect()
}

/// Why a metric has no series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoSeries {
    /// Samples of this machine do not say where time goes.
    NoTime,
    /// They do, so that traffic need not be estimated.
    HasTime,
    /// One node has all memory.
    OneNode,
    /// The machine has too many nodes.
    TooManyNodes(usize),
}

/// The values of a machine.
#[derive(Debug, Clone)]
pub struct AccessSeries {
    /// The nodes.
    pub nodes: Vec<u32>,
    /// Whether samples name the instruction that waited.
    pub is_precise: bool,
}

impl AccessSeries {
    /// Length of a row.
    pub fn values(&self) -> usize {
        let count = self.nodes.len();
        count * NODE + MACHINE + count * count * PAIR
    }

    /// The position of a node's value.
    fn of_node(&self, at: usize, node: usize) -> usize {
        node * NODE + at
    }

    /// The position of a value of the machine.
    fn of_machine(&self, at: usize) -> usize {
        self.nodes.len() * NODE + at
    }

    /// The position of a pair's value.
    fn of_pair(&self, at: usize, cpu_node: usize, memory_node: usize) -> usize {
        let count = self.nodes.len();
        self.of_machine(MACHINE) + (cpu_node * count + memory_node) * PAIR + at
    }

    /// Whether a line of the table has series here.
    pub fn check(&self, at: usize) -> Result<(), NoSeries> {
        let is_pair = at >= NODE + MACHINE;
        match at {
            at if OF_ALL.contains(&at) => Ok(()),
            at if self.is_precise && PAGES.contains(&at) => Err(NoSeries::HasTime),
            at if !self.is_precise && !PAGES.contains(&at) => Err(NoSeries::NoTime),
            _ if self.nodes.len() < 2 && (is_pair || [1, 9].contains(&at)) => Err(NoSeries::OneNode),
            at if PARTS.contains(&at) && self.nodes.len() > MAX_NODES_OF_PARTS => {
                Err(NoSeries::TooManyNodes(MAX_NODES_OF_PARTS))
            }
            _ if is_pair && self.nodes.len() > MAX_NODES => Err(NoSeries::TooManyNodes(MAX_NODES)),
            _ => Ok(()),
        }
    }

    /// The instances of a line of the table, and the positions of their values.
    pub fn instances(&self, at: usize) -> Vec<(Instance, usize)> {
        let nodes = || self.nodes.iter().copied().enumerate();
        match at {
            at if at < NODE => nodes().map(|(n, id)| (Instance::Node(id), self.of_node(at, n))).collect(),
            at if at < NODE + MACHINE => vec![(Instance::Machine, self.of_machine(at - NODE))],
            at => nodes()
                .flat_map(|(c, cpu)| nodes().map(move |(m, memory)| (c, cpu, m, memory)))
                .map(|(c, cpu, m, memory)| {
                    (Instance::Pair(cpu, memory), self.of_pair(at - NODE - MACHINE, c, m))
                })
                .collect(),
        }
    }

    /// Fills a row with times.
    pub fn fill_times(&self, tally: &Tally, row: &mut [u64]) {
        for (node, sums) in tally.of_nodes().iter().enumerate() {
            let values = [
                sums.local,
                sums.remote,
                sums.unknown,
                sums.contended,
                sums.cached,
                sums.computing,
                sums.samples,
            ];
            for (at, value) in values.into_iter().enumerate() {
                row[self.of_node(at, node)] = value;
            }
        }
        let count = self.nodes.len();
        for (pair, parts) in tally.of_pairs().iter().enumerate() {
            let first = self.of_pair(0, pair / count, pair % count);
            row[first] = parts.iter().sum();
            row[first + 1..=first + parts.len()].copy_from_slice(parts);
        }
    }

    /// Fills a row with traffic.
    pub fn fill_pages(&self, tally: &Tally, traffic: &Traffic, row: &mut [u64]) {
        let place = |node: u32| self.nodes.iter().position(|known| *known == node);
        let before = row.to_vec();
        for (node, sums) in tally.of_nodes().iter().enumerate() {
            row[self.of_node(6, node)] = sums.samples;
            row[self.of_node(8, node)..=self.of_node(9, node)].fill(0);
        }
        let first = self.of_machine(MACHINE);
        row[first..].fill(0);
        for cell in &traffic.pages {
            let (Some(cpu), Some(memory)) = (place(cell.cpu_node), place(cell.memory_node)) else { continue };
            row[self.of_node(if cpu == memory { 8 } else { 9 }, cpu)] += cell.pages;
            row[self.of_pair(PAIR - 1, cpu, memory)] += cell.pages;
        }
        // Later samples may show that caches keep a page, but a counter never falls.
        let known = row.iter_mut().zip(before).filter(|(value, before)| *before != NONE && **value != NONE);
        known.for_each(|(value, before)| *value = (*value).max(before));
    }

    /// Fills what the sensor says of itself.
    pub fn fill_own(&self, lost: u64, cpu: u64, row: &mut [u64]) {
        row[self.of_machine(0)] = lost;
        row[self.of_machine(1)] = cpu;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_explain::traffic::TrafficCell;

    #[test]
    fn counts_of_pages_never_fall() {
        let layout = AccessSeries { nodes: vec![0, 1], is_precise: false };
        let tally = Tally::new(&layout.nodes);
        let mut row = vec![NONE; layout.values()];
        let traffic = |near: u64, far: u64| {
            let cell = |cpu_node, pages| TrafficCell { cpu_node, memory_node: 0, pages };
            Traffic { pages: vec![cell(0, near), cell(1, far)], ..Traffic::default() }
        };
        for (seen, shown) in [((7, 5), (7, 5)), ((6, 9), (7, 9)), ((8, 2), (8, 9))] {
            layout.fill_pages(&tally, &traffic(seen.0, seen.1), &mut row);
            assert_eq!((row[layout.of_node(8, 0)], row[layout.of_node(9, 1)]), shown);
            assert_eq!(row[layout.of_pair(PAIR - 1, 1, 0)], shown.1);
        }
    }
}
