//! What the memory of a machine was measured to do, as far as others than the benchmarks use it.

use serde::{Deserialize, Serialize};

/// The weights of all nodes together before they are reduced, as in the kernel.
const WEIGHTINESS: f64 = 32.0;

/// Peaks and times of a machine's memory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MeasuredMemory {
    /// What each node's memory can do.
    pub nodes: Vec<MeasuredNode>,
    /// The time of a load while nothing else uses memory, by pair of nodes.
    pub latency: Vec<MeasuredLatency>,
    /// Why these values should not be believed.
    pub doubts: Vec<String>,
}

/// What the memory of a node can do.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MeasuredNode {
    /// The kernel's number.
    pub node: u32,
    /// Bytes per second that all CPUs of the nearest node read from it.
    pub bandwidth: Option<f64>,
    /// How long loads take at a bandwidth, in the order of the load; empty if that was not measured.
    pub curve: Vec<LoadPoint>,
}

/// The time of a load at a bandwidth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadPoint {
    /// Bytes per second.
    pub bandwidth: f64,
    /// Nanoseconds.
    pub ns: f64,
}

/// The time of a load from the CPUs of a node to the memory of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct MeasuredLatency {
    /// The node of the CPUs.
    pub from: u32,
    /// The node of the memory.
    pub to: u32,
    /// Nanoseconds.
    pub ns: f64,
}

impl MeasuredMemory {
    /// Whether anything was measured.
    pub fn is_empty(&self) -> bool {
        self.latency.is_empty() && self.nodes.iter().all(|node| node.peak().is_none())
    }

    /// The values of a node.
    pub fn node(&self, number: u32) -> Option<&MeasuredNode> {
        self.nodes.iter().find(|node| node.node == number)
    }

    /// Nanoseconds of a load between two nodes.
    pub fn ns(&self, from: u32, to: u32) -> Option<f64> {
        let pair = self.latency.iter().find(|pair| (pair.from, pair.to) == (from, to));
        pair.map(|pair| pair.ns).filter(|ns| *ns > 0.0)
    }

    /// Nanoseconds of a load to the memory of a node from the CPUs that are nearest to it.
    pub fn nearest_ns(&self, to: u32) -> Option<f64> {
        let from_all = self.latency.iter().filter(|pair| pair.to == to && pair.ns > 0.0);
        from_all.map(|pair| pair.ns).min_by(f64::total_cmp)
    }

    /// Weights for weighted interleaving on these nodes, in their order; `None` unless the bandwidth of each is known.
    ///
    /// They are the kernel's: shares of 32, at least 1, without their common divisor. But they are rounded, where the kernel
    /// truncates: measured values of equal nodes are not equal.
    pub fn weights(&self, nodes: &[u32]) -> Option<Vec<u32>> {
        let peaks: Vec<f64> =
            nodes.iter().map(|node| self.node(*node).and_then(MeasuredNode::peak)).collect::<Option<_>>()?;
        let sum: f64 = peaks.iter().sum();
        let share = |peak: &f64| (WEIGHTINESS * peak / sum).round().max(1.0) as u32;
        let shares: Vec<u32> = peaks.iter().map(share).collect();
        let divisor = shares.iter().copied().reduce(common_divisor)?;
        Some(shares.iter().map(|share| share / divisor).collect())
    }
}

impl MeasuredNode {
    /// Its bandwidth in bytes per second; none that is not positive.
    pub fn peak(&self) -> Option<f64> {
        self.bandwidth.filter(|peak| *peak > 0.0)
    }

    /// How long a load takes at a bandwidth: on the line between the points next to it; below the first point as there.
    /// `None` without a curve, or beyond its highest bandwidth.
    pub fn ns_at(&self, bandwidth: f64) -> Option<f64> {
        let first = self.curve.first()?;
        if bandwidth <= first.bandwidth {
            return Some(first.ns);
        }
        // Beyond saturation a curve may turn back: the way up to there counts.
        let pair = self
            .curve
            .windows(2)
            .find(|pair| pair[0].bandwidth < bandwidth && bandwidth <= pair[1].bandwidth)?;
        let part = (bandwidth - pair[0].bandwidth) / (pair[1].bandwidth - pair[0].bandwidth);
        Some(pair[0].ns + part * (pair[1].ns - pair[0].ns))
    }
}

fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(peaks: &[f64]) -> MeasuredMemory {
        let node =
            |(node, peak): (u32, &f64)| MeasuredNode { node, bandwidth: Some(*peak), curve: Vec::new() };
        MeasuredMemory { nodes: (0..).zip(peaks).map(node).collect(), ..MeasuredMemory::default() }
    }

    #[test]
    fn weights_are_small_numbers_in_the_ratio_of_the_peaks() {
        let weights = |peaks: &[f64]| of(peaks).weights(&(0..peaks.len() as u32).collect::<Vec<_>>());
        assert_eq!(weights(&[65.2e9, 64.1e9]), Some(vec![1, 1]), "noise is no difference");
        assert_eq!(weights(&[200e9, 200e9, 50e9]), Some(vec![7, 7, 2]));
        assert_eq!(weights(&[300e9, 100e9]), Some(vec![3, 1]));
        assert_eq!(weights(&[1e12, 1e9]), Some(vec![32, 1]), "no node is left out");
        assert_eq!(weights(&[12e9]), Some(vec![1]));
        assert_eq!((weights(&[12e9, 0.0]), weights(&[])), (None, None));
        assert_eq!(of(&[1e9]).weights(&[0, 1]), None, "node 1 was not measured");
    }

    #[test]
    fn a_load_is_a_point_between_those_that_were_measured() {
        let points = [(5e9, 80.0), (40e9, 100.0), (60e9, 180.0), (58e9, 400.0)];
        let curve = points.map(|(bandwidth, ns)| LoadPoint { bandwidth, ns }).to_vec();
        let node = MeasuredNode { curve, ..MeasuredNode::default() };
        assert_eq!([1e9, 5e9, 40e9, 50e9].map(|at| node.ns_at(at)), [80.0, 80.0, 100.0, 140.0].map(Some));
        assert_eq!(node.ns_at(61e9), None, "more than was measured");
        assert_eq!(MeasuredNode::default().ns_at(1e9), None);
    }

    #[test]
    fn times_are_those_of_the_pair() {
        let latency = [(0, 0, 80.0), (0, 1, 140.0), (1, 1, 0.0)];
        let latency = latency.map(|(from, to, ns)| MeasuredLatency { from, to, ns }).to_vec();
        let memory = MeasuredMemory { latency, ..MeasuredMemory::default() };
        assert_eq!((memory.ns(0, 1), memory.ns(1, 1), memory.ns(1, 0)), (Some(140.0), None, None));
        assert_eq!((memory.nearest_ns(1), memory.nearest_ns(2)), (Some(140.0), None));
        assert!(!memory.is_empty() && MeasuredMemory::default().is_empty());
    }
}
