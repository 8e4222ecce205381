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
    pub latency: LatencyMatrix,
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
    /// The same for each share of reads that was measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_reads: Vec<LoadCurve>,
}

/// How long loads take beside traffic with a share of reads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadCurve {
    /// Reads in the traffic, in percent.
    pub read_percent: u32,
    /// In the order of the load.
    pub points: Vec<LoadPoint>,
}

/// How long a load takes, and by which curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadTime {
    /// Nanoseconds.
    pub ns: f64,
    /// The share of reads of the curve, in percent, if it was chosen by that.
    pub read_percent: Option<u32>,
}

/// The time of a load at a bandwidth.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadPoint {
    /// Bytes per second.
    pub bandwidth: f64,
    /// Nanoseconds.
    pub ns: f64,
}

/// Nanoseconds of a load from the CPUs of each of some nodes to the memory of each of some nodes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LatencyMatrix {
    /// The nodes of the CPUs: the rows.
    pub from: Vec<u32>,
    /// The nodes of the memory: the columns.
    pub to: Vec<u32>,
    /// `ns[row][column]`; null if it was not measured.
    pub ns: Vec<Vec<Option<f64>>>,
}

impl LatencyMatrix {
    /// Of a pair of nodes.
    pub fn ns(&self, from: u32, to: u32) -> Option<f64> {
        let row = self.from.iter().position(|node| *node == from)?;
        self.ns.get(row).and_then(|row| self.in_row(row, to))
    }

    /// To the memory of a node from the CPUs that are nearest to it.
    pub fn nearest(&self, to: u32) -> Option<f64> {
        self.ns.iter().filter_map(|row| self.in_row(row, to)).min_by(f64::total_cmp)
    }

    fn in_row(&self, row: &[Option<f64>], to: u32) -> Option<f64> {
        let column = self.to.iter().position(|node| *node == to)?;
        row.get(column).copied().flatten().filter(|ns| *ns > 0.0)
    }
}

impl MeasuredMemory {
    /// Whether anything was measured.
    pub fn is_empty(&self) -> bool {
        self.latency.ns.iter().flatten().flatten().next().is_none()
            && self.nodes.iter().all(|node| node.peak().is_none())
    }

    /// The values of a node.
    pub fn node(&self, number: u32) -> Option<&MeasuredNode> {
        self.nodes.iter().find(|node| node.node == number)
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
        Some(reduced(&peaks.iter().map(share).collect::<Vec<_>>())).filter(|weights| !weights.is_empty())
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
        ns_at(&self.curve, bandwidth)
    }

    /// The same by the curve whose share of reads is nearest to that of the traffic, if that is known.
    pub fn load_at(&self, bandwidth: f64, read_percent: Option<f64>) -> Option<LoadTime> {
        let distance = |curve: &LoadCurve, reads: f64| (f64::from(curve.read_percent) - reads).abs();
        let nearest = read_percent.and_then(|reads| {
            let curves = self.by_reads.iter();
            curves.min_by(|one, other| distance(one, reads).total_cmp(&distance(other, reads)))
        });
        let (points, read_percent) = match nearest {
            Some(curve) => (&curve.points, Some(curve.read_percent)),
            None => (&self.curve, None),
        };
        Some(LoadTime { ns: ns_at(points, bandwidth)?, read_percent })
    }
}

fn ns_at(curve: &[LoadPoint], bandwidth: f64) -> Option<f64> {
    let first = curve.first()?;
    if bandwidth <= first.bandwidth {
        return Some(first.ns);
    }
    // Beyond saturation a curve may turn back: the way up to there counts.
    let mut pairs = curve.windows(2);
    let pair = pairs.find(|pair| pair[0].bandwidth < bandwidth && bandwidth <= pair[1].bandwidth)?;
    let part = (bandwidth - pair[0].bandwidth) / (pair[1].bandwidth - pair[0].bandwidth);
    Some(pair[0].ns + part * (pair[1].ns - pair[0].ns))
}

/// Weights without their common divisor: 1 and 2 are better than 16 and 32.
pub fn reduced(weights: &[u32]) -> Vec<u32> {
    let divisor = weights.iter().copied().reduce(common_divisor).unwrap_or(1).max(1);
    weights.iter().map(|weight| weight / divisor).collect()
}

fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(peaks: &[f64]) -> MeasuredMemory {
        let node = |(node, peak): (u32, &f64)| MeasuredNode {
            node,
            bandwidth: Some(*peak),
            ..MeasuredNode::default()
        };
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
        assert_eq!((reduced(&[32, 16]), reduced(&[0, 0]), reduced(&[])), (vec![2, 1], vec![0, 0], vec![]));
        assert_eq!(of(&[1e9]).weights(&[0, 1]), None, "node 1 was not measured");
    }

    #[test]
    fn values_are_the_same_after_they_were_written_and_read() {
        let bandwidths = (0..1000).map(|step| f64::from(step).sqrt() * 1e9 / 7.0);
        let written = of(&bandwidths.collect::<Vec<_>>());
        let text = serde_json::to_string(&written).unwrap();
        assert_eq!(serde_json::from_str::<MeasuredMemory>(&text).unwrap(), written);
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
    fn the_curve_with_the_nearest_share_of_reads_counts() {
        let flat = |ns| vec![LoadPoint { bandwidth: 1e9, ns }];
        let by_reads = [(100, 80.0), (75, 90.0), (50, 110.0)];
        let by_reads = by_reads.map(|(read_percent, ns)| LoadCurve { read_percent, points: flat(ns) });
        let node = MeasuredNode { curve: flat(80.0), by_reads: by_reads.to_vec(), ..MeasuredNode::default() };
        let at = |reads| node.load_at(1e9, reads).map(|load| (load.ns, load.read_percent));
        assert_eq!([at(Some(98.0)), at(Some(70.0))], [Some((80.0, Some(100))), Some((90.0, Some(75)))]);
        assert_eq!([at(Some(0.0)), at(None)], [Some((110.0, Some(50))), Some((80.0, None))]);
        assert_eq!(node.load_at(2e9, Some(70.0)), None, "more than was measured with this share");
        let old = MeasuredNode { by_reads: Vec::new(), ..node };
        assert_eq!(old.load_at(1e9, Some(70.0)), Some(LoadTime { ns: 80.0, read_percent: None }));
    }

    #[test]
    fn times_are_those_of_the_pair() {
        let ns = vec![vec![Some(80.0), Some(140.0)], vec![None, Some(0.0)]];
        let latency = LatencyMatrix { from: vec![0, 1], to: vec![0, 1], ns };
        assert_eq!((latency.ns(0, 1), latency.ns(1, 1), latency.ns(1, 0)), (Some(140.0), None, None));
        assert_eq!((latency.nearest(1), latency.nearest(2), latency.ns(7, 0)), (Some(140.0), None, None));
        let memory = MeasuredMemory { latency, ..MeasuredMemory::default() };
        assert!(!memory.is_empty() && MeasuredMemory::default().is_empty());
    }
}
