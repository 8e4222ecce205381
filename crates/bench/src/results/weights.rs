//! Weights for weighted interleaving, from the bandwidth that was measured of each node's memory.

use crate::results::BenchResults;
use numakit_model::Topology;
use numakit_model::measured::reduced;
use serde::Serialize;
use thiserror::Error;

/// Bytes per second.
const GIGABYTE: f64 = 1e9;

/// Measured interleave weights of a machine, beside those of the kernel.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InterleaveWeights {
    /// The machine that was measured.
    pub machine: String,
    /// Its nodes with memory.
    pub nodes: Vec<NodeWeight>,
    /// Whether the kernel sets its weights automatically; null where it does not say.
    pub automatic: Option<bool>,
    /// Whether the kernel's weights have the same ratio; null if the kernel has none, or if the results are of a different
    /// machine.
    pub same: Option<bool>,
    /// Why the kernel's weights are not compared, if they are not.
    pub not_compared: Option<String>,
    /// Commands for root that set the measured weights, if the kernel has different ones.
    pub set: Vec<String>,
    /// The command that returns to automatic weights after those commands.
    pub undo: Option<String>,
    /// Why the measured values should not be believed.
    pub doubts: Vec<String>,
}

/// The weight of a node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NodeWeight {
    /// The kernel's number.
    pub node: u32,
    /// How many GB/s the CPUs of the nearest node read from it.
    pub bandwidth: f64,
    /// The weight by the measured bandwidths.
    pub measured: u32,
    /// The kernel's.
    pub kernel: Option<u32>,
}

/// The weights that the kernel of the machine uses.
#[derive(Debug, Clone, Copy)]
pub struct KernelWeights<'a> {
    /// The machine that has these weights.
    pub topology: &'a Topology,
    /// The file that makes the weights automatic again, if the kernel has one.
    pub auto_file: Option<&'a str>,
}

/// There are no weights.
#[derive(Debug, Error)]
pub enum WeightsError {
    /// No value of any node.
    #[error(
        "the results have no bandwidth of memory; measure it with 'numa bench all', or 'numa bench bandwidth --json > FILE'"
    )]
    NoBandwidth,
    /// Nodes that were left out.
    #[error(
        "the bandwidth of nodes {0} was not measured, so the weights of all are unknown; 'numa bench bandwidth' says why it was left out"
    )]
    NotMeasured(String),
}

impl InterleaveWeights {
    /// Weights by results, beside the kernel's weights if these are of the same machine.
    pub fn new(results: &BenchResults, kernel: Option<KernelWeights<'_>>) -> Result<Self, WeightsError> {
        let memory = results.memory();
        let measured = memory.nodes.iter().filter_map(|node| Some((node.node, node.peak()?)));
        let (nodes, peaks): (Vec<u32>, Vec<f64>) = measured.unzip();
        let weights = memory.weights(&nodes).ok_or(WeightsError::NoBandwidth)?;
        let kernels_of = |node: u32| kernel?.topology.node(node)?.interleave_weight;
        if let Some(KernelWeights { topology, .. }) = kernel {
            let with_memory = topology.nodes.iter().filter(|node| node.memory_kb != Some(0));
            let missing = with_memory.map(|node| node.os_index).filter(|node| !nodes.contains(node));
            let missing: Vec<String> = missing.map(|node| node.to_string()).collect();
            if !missing.is_empty() {
                return Err(WeightsError::NotMeasured(missing.join(", ")));
            }
        }
        let kernels: Option<Vec<u32>> = nodes.iter().map(|node| kernels_of(*node)).collect();
        let same = kernels.as_ref().map(|kernels| reduced(kernels) == weights);
        let set = |(node, weight): (&u32, &u32)| {
            format!("echo {weight} > {}/node{node}", numakit_topology::WEIGHTS)
        };
        let not_compared = match (&kernel, &kernels) {
            (None, _) => Some("the results are of another machine"),
            (Some(_), None) => Some("this kernel has no weights of nodes; they need Linux 6.9"),
            (Some(_), Some(_)) => None,
        };
        let is_other = same == Some(false);
        let automatic = kernel.and_then(|kernel| kernel.topology.weights_auto);
        let undo = kernel.and_then(|kernel| kernel.auto_file).filter(|_| is_other && automatic == Some(true));
        let bandwidth = results.benchmarks.iter().filter(|result| result.name == "bandwidth");
        let doubts = bandwidth.flat_map(|result| result.warnings.clone()).collect();
        let node = |((node, peak), measured): ((&u32, &f64), &u32)| NodeWeight {
            node: *node,
            bandwidth: peak / GIGABYTE,
            measured: *measured,
            kernel: None,
        };
        let mut rows: Vec<NodeWeight> = nodes.iter().zip(&peaks).zip(&weights).map(node).collect();
        rows.iter_mut().zip(kernels.iter().flatten()).for_each(|(row, weight)| row.kernel = Some(*weight));
        Ok(Self {
            machine: format!("{}; {}", results.conditions.processor, results.conditions.machine),
            nodes: rows,
            automatic,
            same,
            not_compared: not_compared.map(str::to_owned),
            set: if is_other { nodes.iter().zip(&weights).map(set).collect() } else { Vec::new() },
            undo: undo.map(|file| format!("echo true > {file}")),
            doubts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::conditions::BenchConditions;
    use crate::results::quantiles::Quantiles;
    use crate::results::{BenchResult, PairMatrix, VERSION};

    fn results(peaks: [f64; 2]) -> BenchResults {
        let mut matrix = PairMatrix::new("bandwidth, read", "GB/s", false, vec![0], vec![0, 1]);
        for (column, median) in peaks.into_iter().enumerate() {
            let value = Quantiles { median, low: median, high: median, samples: 3 };
            matrix.set(0, column, Some(value).filter(|_| median > 0.0));
        }
        let bandwidth =
            BenchResult { name: "bandwidth".into(), matrices: vec![matrix], ..BenchResult::default() };
        let conditions = BenchConditions {
            processor: "Some CPU".into(),
            machine: "2 nodes".into(),
            ..BenchConditions::default()
        };
        let machine_key = String::new();
        BenchResults {
            version: VERSION,
            machine_key,
            topology: None,
            conditions,
            benchmarks: vec![bandwidth],
            runs: 1,
            complete: true,
        }
    }

    fn machine(weights: [Option<u32>; 2], automatic: bool) -> Topology {
        let mut topology = numakit_topology::synthetic::parse("package:2 node:1 core:2").unwrap();
        topology.nodes.iter_mut().zip(weights).for_each(|(node, weight)| node.interleave_weight = weight);
        topology.weights_auto = Some(automatic);
        topology
    }

    #[test]
    fn other_weights_than_the_kernels_come_with_the_commands_that_set_them() {
        let here = machine([Some(1), Some(1)], true);
        let found = InterleaveWeights::new(
            &results([60.0, 20.0]),
            Some(KernelWeights { topology: &here, auto_file: Some("/sys/auto") }),
        )
        .unwrap();
        assert_eq!((found.same, found.automatic, &found.not_compared), (Some(false), Some(true), &None));
        let rows: Vec<_> = found.nodes.iter().map(|node| (node.node, node.measured, node.kernel)).collect();
        assert_eq!(rows, [(0, 3, Some(1)), (1, 1, Some(1))]);
        let folder = numakit_topology::WEIGHTS;
        assert_eq!(found.set, [format!("echo 3 > {folder}/node0"), format!("echo 1 > {folder}/node1")]);
        assert_eq!(found.undo.as_deref(), Some("echo true > /sys/auto"));
    }

    #[test]
    fn equal_ratios_need_nothing() {
        let here = machine([Some(6), Some(2)], false);
        let found = InterleaveWeights::new(
            &results([60.0, 20.0]),
            Some(KernelWeights { topology: &here, auto_file: Some("/sys/auto") }),
        )
        .unwrap();
        assert_eq!((found.same, found.set.len(), found.undo), (Some(true), 0, None));
    }

    #[test]
    fn what_cannot_be_compared_has_a_reason() {
        let other = InterleaveWeights::new(&results([60.0, 20.0]), None).unwrap();
        assert_eq!((other.same, other.set.len(), other.nodes[0].measured), (None, 0, 3));
        assert_eq!(other.not_compared.as_deref(), Some("the results are of another machine"));
        let here = machine([None, None], false);
        let found = InterleaveWeights::new(
            &results([60.0, 20.0]),
            Some(KernelWeights { topology: &here, auto_file: None }),
        )
        .unwrap();
        assert!(found.not_compared.unwrap().contains("Linux 6.9"));
        let refused = |peaks| {
            InterleaveWeights::new(&results(peaks), Some(KernelWeights { topology: &here, auto_file: None }))
                .unwrap_err()
                .to_string()
        };
        assert!(refused([60.0, 0.0]).contains("bandwidth of nodes 1 was not measured"));
        assert!(refused([0.0, 0.0]).contains("no bandwidth of memory"));
    }
}
