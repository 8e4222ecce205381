//! Traffic between nodes, from all operands that a thread is about to use: for machines whose samples do not name the
//! instruction that waited.
//!
//! A page that a thread uses in a window counts once, however often it is sampled: repeats are mostly served by caches.

use serde::Serialize;
use std::collections::{BTreeMap, HashSet};

/// Pages are counted anew after this time, in ns, so that the estimate follows the program.
const WINDOW: u64 = 1_000_000_000;

/// From the node of a CPU to the node of memory.
pub type NodePair = (u32, u32);

/// Distinct pages by node pair.
#[derive(Debug, Default)]
pub struct TrafficCounter {
    window: u64,
    seen: HashSet<(u32, u64)>,
    pages: BTreeMap<NodePair, u64>,
    unknown: u64,
}

/// An estimate of where the lines came from that threads read and wrote.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Traffic {
    /// Distinct pages, summed over windows, by node pair.
    pub pages: Vec<TrafficCell>,
    /// Pages whose node is not known.
    pub unknown: u64,
}

/// One pair of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TrafficCell {
    /// The node of the CPUs.
    pub cpu_node: u32,
    /// The node of the memory.
    pub memory_node: u32,
    /// Distinct pages, summed over windows.
    pub pages: u64,
}

impl TrafficCounter {
    /// Adds an operand of a thread at a time, whose page is `page`.
    pub fn add(&mut self, thread: u32, time: u64, page: u64, pair: Option<NodePair>) {
        let window = time / WINDOW;
        if window != self.window {
            self.window = window;
            self.seen.clear();
        }
        if !self.seen.insert((thread, page)) {
            return;
        }
        match pair {
            Some(pair) => *self.pages.entry(pair).or_default() += 1,
            None => self.unknown += 1,
        }
    }

    /// The estimate so far.
    pub fn traffic(&self) -> Traffic {
        let cell = |(&(cpu_node, memory_node), &pages): (&NodePair, &u64)| TrafficCell {
            cpu_node,
            memory_node,
            pages,
        };
        Traffic { pages: self.pages.iter().map(cell).collect(), unknown: self.unknown }
    }
}

impl Traffic {
    /// The share that came from other nodes; `None` without pages.
    pub fn far_share(&self) -> Option<f64> {
        let all: u64 = self.pages.iter().map(|cell| cell.pages).sum();
        let far: u64 =
            self.pages.iter().filter(|cell| cell.cpu_node != cell.memory_node).map(|cell| cell.pages).sum();
        (all > 0).then(|| far as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_counts_once_a_window_and_thread() {
        let mut counter = TrafficCounter::default();
        for time in [0, 1, WINDOW - 1, WINDOW, WINDOW + 1] {
            counter.add(0, time, 100, Some((0, 1)));
            counter.add(1, time, 100, Some((1, 1)));
        }
        counter.add(0, WINDOW, 101, Some((0, 0)));
        counter.add(0, WINDOW, 102, None);
        let traffic = counter.traffic();
        let pages: Vec<_> =
            traffic.pages.iter().map(|cell| (cell.cpu_node, cell.memory_node, cell.pages)).collect();
        assert_eq!(pages, [(0, 0, 1), (0, 1, 2), (1, 1, 2)]);
        assert_eq!((traffic.far_share(), traffic.unknown), (Some(0.4), 1));
        assert_eq!(Traffic::default().far_share(), None);
    }
}
