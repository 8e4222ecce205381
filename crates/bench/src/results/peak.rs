//! What results say of a machine's memory in general: the traffic that counts as 100 %, and the time of a load.

use crate::results::quantiles::Quantiles;
use crate::results::{BenchResult, BenchResults, Curve, PairMatrix};
use numakit_model::MeasuredMemory;
use numakit_model::measured::{LatencyMatrix, LoadCurve, LoadPoint, MeasuredNode};
use std::collections::BTreeMap;

/// Bytes per second.
const GIGABYTES: &str = "GB/s";
const GIGABYTE: f64 = 1e9;
const NANOSECONDS: &str = "ns";

/// The names of the matrices that other modules take from results.
pub(crate) const IDLE_LATENCY: &str = "load latency, idle";
pub(crate) const READ_BANDWIDTH: &str = "bandwidth, read";

impl BenchResults {
    /// The idle latency by pair of nodes.
    pub fn idle_latency(&self) -> Option<&PairMatrix> {
        self.matrix("latency", IDLE_LATENCY, NANOSECONDS)
    }

    /// The bandwidth of reads by pair of nodes. Reads are the only traffic that moves exactly the bytes that it counts: a
    /// write also fetches the line that it replaces.
    pub fn read_bandwidth(&self) -> Option<&PairMatrix> {
        self.matrix("bandwidth", READ_BANDWIDTH, GIGABYTES)
    }

    fn benchmark(&self, name: &str) -> Option<&BenchResult> {
        self.benchmarks.iter().find(|result| result.name == name)
    }

    fn matrix(&self, benchmark: &str, name: &str, unit: &str) -> Option<&PairMatrix> {
        self.benchmark(benchmark)?.matrices.iter().find(|matrix| matrix.name == name && matrix.unit == unit)
    }

    /// Peaks, times and curves of the memory of each node.
    pub fn memory(&self) -> MeasuredMemory {
        let peaks = best(self.read_bandwidth());
        let curves = self.benchmark("curve");
        let curves = curves.map(|result| result.curves.as_slice()).unwrap_or_default();
        let node = |(node, peak): (u32, f64)| {
            let curves = curves_of(curves, node);
            MeasuredNode {
                node,
                bandwidth: Some(peak * GIGABYTE),
                curve: curves.first().map(|first| points(first)).unwrap_or_default(),
                by_reads: curves.iter().filter_map(|curve| load_curve(curve)).collect(),
            }
        };
        let doubt = |result: &BenchResult| {
            let doubts = result.warnings.iter().map(|warning| format!("{}: {warning}", result.name));
            doubts.collect::<Vec<_>>()
        };
        MeasuredMemory {
            nodes: peaks.into_iter().map(node).collect(),
            latency: self.idle_latency().map(latencies).unwrap_or_default(),
            doubts: [self.benchmark("latency"), self.benchmark("bandwidth")]
                .into_iter()
                .flatten()
                .flat_map(doubt)
                .collect(),
        }
    }
}

/// Medians, to a tenth of a nanosecond.
fn latencies(times: &PairMatrix) -> LatencyMatrix {
    let ns = |cell: &Option<Quantiles>| cell.map(|cell| (10.0 * cell.median).round() / 10.0);
    let cells = times.cells.iter().map(|row| row.iter().map(ns).collect()).collect();
    LatencyMatrix { from: times.rows.clone(), to: times.columns.clone(), ns: cells }
}

/// The most that the CPUs of a node get of each memory.
fn best(matrix: Option<&PairMatrix>) -> BTreeMap<u32, f64> {
    let mut best = BTreeMap::new();
    for row in matrix.into_iter().flat_map(|matrix| &matrix.cells) {
        let columns = matrix.into_iter().flat_map(|matrix| &matrix.columns);
        for (node, cell) in columns.zip(row).filter_map(|(node, cell)| Some((*node, (*cell)?))) {
            let most = best.entry(node).or_insert(cell.median);
            *most = cell.median.max(*most);
        }
    }
    best
}

/// The curves of the time of a load by bandwidth of a node's memory: those of its own CPUs if there are any, else those of the
/// first node.
fn curves_of(curves: &[Curve], node: u32) -> Vec<&Curve> {
    let is_load = |curve: &&Curve| curve.x.unit == GIGABYTES && curve.unit == NANOSECONDS;
    let of_memory = |curve: &Curve| curve.nodes().filter(|(_, memory)| *memory == node);
    let from = |curve: &Curve| of_memory(curve).map(|(from, _)| from);
    let all: Vec<&Curve> = curves.iter().filter(is_load).filter(|curve| from(curve).is_some()).collect();
    let own = all.iter().any(|curve| from(curve) == Some(node)).then_some(node);
    let chosen = own.or_else(|| from(all.first()?));
    all.into_iter().filter(|curve| from(curve) == chosen).collect()
}

fn load_curve(curve: &Curve) -> Option<LoadCurve> {
    Some(LoadCurve { read_percent: curve.reads()?, points: points(curve) })
}

fn points(curve: &Curve) -> Vec<LoadPoint> {
    let point = |at: &crate::CurvePoint| LoadPoint { bandwidth: at.x * GIGABYTE, ns: at.value.median };
    curve.points.iter().map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::conditions::BenchConditions;
    use crate::results::{Axis, VERSION};

    fn value(median: f64) -> Option<Quantiles> {
        Some(Quantiles { median, low: median, high: median, samples: 3 })
    }

    fn matrix(name: &str, unit: &str, cells: [[f64; 3]; 2]) -> PairMatrix {
        let mut matrix = PairMatrix::new(name, unit, true, vec![0, 1], vec![0, 1, 12]);
        for (row, cells) in cells.iter().enumerate() {
            cells.iter().enumerate().for_each(|(column, cell)| matrix.set(row, column, value(*cell)));
        }
        matrix
    }

    fn curve(name: &str, points: &[(f64, f64)]) -> Curve {
        let mut curve = Curve::new(name, NANOSECONDS, true, Axis::bandwidth());
        points.iter().for_each(|(x, ns)| curve.add(*x, value(*ns)));
        curve
    }

    fn results() -> BenchResults {
        let latency = matrix("load latency, idle", "ns", [[80.0, 140.0, 300.0], [139.0, 82.0, 350.0]]);
        let read = matrix("bandwidth, read", "GB/s", [[65.0, 30.0, 9.0], [31.0, 64.0, 11.0]]);
        let write = matrix("bandwidth, write", "GB/s", [[95.0; 3]; 2]);
        let curves = vec![
            curve("load latency, 100 % reads, CPUs of node 0 with memory of node 12", &[(1.0, 290.0)]),
            curve("load latency, 100 % reads, CPUs of node 0 with memory of node 1", &[(1.0, 139.0)]),
            curve(
                "load latency, 100 % reads, CPUs of node 1 with memory of node 1",
                &[(1.0, 82.0), (60.0, 200.0)],
            ),
            Curve { read_percent: Some(67), ..curve("beside writes", &[(1.0, 90.0)]).between(1, 1) },
        ];
        let one = |name: &str, matrices, curves| BenchResult {
            name: name.into(),
            matrices,
            curves,
            warnings: vec!["busy".into()],
            ..BenchResult::default()
        };
        BenchResults {
            version: VERSION,
            machine_key: String::new(),
            topology: None,
            conditions: BenchConditions::default(),
            benchmarks: vec![
                one("latency", vec![latency], vec![curve("by size", &[])]),
                one("bandwidth", vec![write, read], vec![]),
                one("curve", vec![], curves),
            ],
            runs: 1,
            complete: true,
        }
    }

    #[test]
    fn a_peak_is_what_the_best_node_reads() {
        let memory = results().memory();
        let peaks: Vec<_> = memory.nodes.iter().map(|node| (node.node, node.peak())).collect();
        assert_eq!(peaks, [(0, Some(65e9)), (1, Some(64e9)), (12, Some(11e9))]);
        assert_eq!(
            (memory.latency.ns(0, 1), memory.latency.ns(1, 12), memory.latency.ns(12, 0)),
            (Some(140.0), Some(350.0), None)
        );
        assert_eq!(memory.doubts, ["latency: busy", "bandwidth: busy"]);
    }

    #[test]
    fn a_node_has_the_curve_of_its_own_cpus_or_the_first() {
        let memory = results().memory();
        let at = |node: usize, bandwidth| memory.nodes[node].ns_at(bandwidth);
        assert_eq!(
            [at(0, 1e9), at(1, 1e9), at(1, 60e9), at(2, 1e9)],
            [None, Some(82.0), Some(200.0), Some(290.0)]
        );
        let shares = |node: usize| {
            memory.nodes[node].by_reads.iter().map(|curve| curve.read_percent).collect::<Vec<_>>()
        };
        assert_eq!([shares(0), shares(1), shares(2)], [vec![], vec![100, 67], vec![100]]);
    }

    #[test]
    fn nothing_measured_is_nothing() {
        let without = BenchResults { benchmarks: Vec::new(), ..results() };
        assert!(without.memory().is_empty());
    }
}
