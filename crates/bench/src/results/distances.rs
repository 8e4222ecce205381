//! The distances that the firmware states (ACPI SLIT) beside the distances that were measured.

use crate::results::quantiles::Quantiles;
use crate::results::{BenchResults, PairMatrix};
use numakit_model::{CpuSet, Topology};
use serde::Serialize;
use thiserror::Error;

/// The distance of local memory, in both.
const LOCAL: f64 = 10.0;
/// A measured distance that differs by more than this share disagrees with the firmware.
pub const DISAGREES: f64 = 0.25;

/// Why results cannot be compared with a machine's distances.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DistanceError {
    /// No latency by pair of nodes.
    #[error(
        "the results have no latency from node to node; measure it with 'numa bench latency --json > FILE'"
    )]
    NoLatency,
    /// Numbers of nodes that the machine does not have.
    #[error(
        "the results are of nodes {results}, and the machine has {machine}; give results of a machine with these nodes"
    )]
    OtherNodes {
        /// The nodes of the results.
        results: CpuSet,
        /// The nodes of the machine.
        machine: CpuSet,
    },
}

/// The version of [`DistanceReport`].
pub const DISTANCES_VERSION: u32 = 1;

/// Measured distances with the matrices that they are computed from, as JSON for other programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DistanceReport<'a> {
    /// [`DISTANCES_VERSION`].
    pub version: u32,
    /// Whether the results are of the machine that they are compared with; null if that is not known.
    pub same_machine: Option<bool>,
    /// The processor that was measured.
    pub processor: &'a str,
    /// The machine's number of packages, nodes, cores and CPUs.
    pub machine: &'a str,
    /// The idle latency of all pairs.
    pub latency: Option<&'a PairMatrix>,
    /// The bandwidth of reading.
    pub bandwidth: Option<&'a PairMatrix>,
    /// The pairs, by the node of the CPUs and then by the node of the memory.
    pub pairs: Vec<ReportedPair>,
    /// Orders that differ from the firmware's beyond noise.
    pub orders: &'a [UnlikeOrder],
}

/// A pair of nodes, with what follows from its values.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ReportedPair {
    /// The values.
    #[serde(flatten)]
    pub pair: MeasuredPair,
    /// The measured distance as a multiple of the firmware's; null where that states none.
    pub ratio: Option<f64>,
    /// Whether the two differ by more than [`DISAGREES`].
    pub disagrees: bool,
}

impl MeasuredDistances {
    /// The report, with the results that the distances are computed from.
    pub fn report<'a>(&'a self, results: &'a BenchResults, same_machine: Option<bool>) -> DistanceReport<'a> {
        let of = |pair: &MeasuredPair| ReportedPair {
            pair: *pair,
            ratio: pair.ratio(),
            disagrees: pair.disagrees(),
        };
        DistanceReport {
            version: DISTANCES_VERSION,
            same_machine,
            processor: &results.conditions.processor,
            machine: &results.conditions.machine,
            latency: latency(results),
            bandwidth: bandwidth(results),
            pairs: self.pairs.iter().map(of).collect(),
            orders: &self.orders,
        }
    }
}

/// What is known of the way from the CPUs of a node to the memory of a node.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeasuredPair {
    /// The node of the CPUs.
    pub from: u32,
    /// The node of the memory.
    pub to: u32,
    /// The firmware's distance; `None` if it states none.
    pub firmware: Option<u32>,
    /// The measured distance: 10 for the node's own memory, or the nearest if it has none.
    pub measured: f64,
    /// The measured latency in ns.
    pub latency: Quantiles,
    /// The measured bandwidth in GB/s.
    pub bandwidth: Option<f64>,
}

impl MeasuredPair {
    /// The measured distance as a multiple of the firmware's.
    pub fn ratio(&self) -> Option<f64> {
        self.firmware.filter(|firmware| *firmware > 0).map(|firmware| self.measured / f64::from(firmware))
    }

    /// Whether the two differ by more than [`DISAGREES`].
    pub fn disagrees(&self) -> bool {
        self.ratio().is_some_and(|ratio| (ratio - 1.0).abs() > DISAGREES)
    }
}

/// Two nodes, seen from a third, whose order by measured distance differs from their order in the firmware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct UnlikeOrder {
    /// Seen from this node.
    pub from: u32,
    /// The node that is nearer according to the firmware.
    pub stated: u32,
    /// The node that is nearer as measured, beyond noise.
    pub measured: u32,
}

/// All pairs that were measured, and the orders that differ.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredDistances {
    /// The pairs, by the node of the CPUs and then by the node of the memory.
    pub pairs: Vec<MeasuredPair>,
    /// At most one for each node of CPUs: the one with the largest difference.
    pub orders: Vec<UnlikeOrder>,
}

/// The latency of all pairs of nodes in results, if one was measured.
pub fn latency(results: &BenchResults) -> Option<&PairMatrix> {
    results.idle_latency().filter(has_values)
}

/// Their bandwidth: that of reading.
pub fn bandwidth(results: &BenchResults) -> Option<&PairMatrix> {
    results.read_bandwidth().filter(has_values)
}

fn has_values(matrix: &&PairMatrix) -> bool {
    matrix.values().next().is_some()
}

/// Compares measured distances with those of the firmware. The results may be of a different machine with the same numbers
/// of nodes.
pub fn measured_distances(
    topology: &Topology,
    results: &BenchResults,
) -> Result<MeasuredDistances, DistanceError> {
    let latency = latency(results).ok_or(DistanceError::NoLatency)?;
    let (machine, mut found) = (topology.node_ids(), CpuSet::new());
    latency.rows.iter().chain(&latency.columns).for_each(|node| found.insert(*node));
    if !found.is_subset(&machine) {
        return Err(DistanceError::OtherNodes { results: found, machine });
    }
    let pairs = pairs(topology, latency, bandwidth(results));
    let orders = latency.rows.iter().filter_map(|from| order(*from, &pairs)).collect();
    Ok(MeasuredDistances { pairs, orders })
}

fn pairs(topology: &Topology, latency: &PairMatrix, bandwidth: Option<&PairMatrix>) -> Vec<MeasuredPair> {
    let mut pairs = Vec::new();
    for &from in &latency.rows {
        let nearest = latency.columns.iter().filter_map(|to| Some(latency.of(from, *to)?.median));
        let nearest = nearest.fold(f64::INFINITY, f64::min);
        let local = latency.of(from, from).map_or(nearest, |own| own.median);
        for &to in &latency.columns {
            let Some(value) = latency.of(from, to).filter(|_| local > 0.0) else { continue };
            pairs.push(MeasuredPair {
                from,
                to,
                firmware: topology.distances.as_ref().and_then(|distances| distances.between(from, to)),
                measured: LOCAL * value.median / local,
                latency: *value,
                bandwidth: bandwidth.and_then(|all| Some(all.of(from, to)?.median)),
            });
        }
    }
    pairs
}

/// The two nodes whose order in the firmware is most wrong, seen from this node.
fn order(from: u32, pairs: &[MeasuredPair]) -> Option<UnlikeOrder> {
    let others: Vec<&MeasuredPair> =
        pairs.iter().filter(|pair| pair.from == from && pair.to != from).collect();
    let both = others.iter().flat_map(|near| others.iter().map(move |far| (*near, *far)));
    let wrong = both.filter(|(near, far)| {
        let is_beyond_noise = near.latency.low > far.latency.high;
        near.firmware.zip(far.firmware).is_some_and(|(near, far)| near < far) && is_beyond_noise
    });
    let (near, far) = wrong.max_by(|one, other| {
        let gap = |pair: &(&MeasuredPair, &MeasuredPair)| pair.0.latency.median - pair.1.latency.median;
        gap(one).total_cmp(&gap(other))
    })?;
    Some(UnlikeOrder { from, stated: near.to, measured: far.to })
}

#[cfg(test)]
mod tests;
