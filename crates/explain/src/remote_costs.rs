//! How many times as long remote memory takes as local memory: by the latencies that were measured on the machine, else by the
//! distances of its firmware.

use crate::object_use::ObjectUse;
use numakit_model::measured::LatencyMatrix;
use numakit_model::numbers::duration;
use numakit_model::topology::{Distances, Topology};

/// How much slower remote memory is than local memory, for each pair of nodes.
#[derive(Debug, Clone, Default)]
pub struct RemoteCosts {
    distances: Option<Distances>,
    latency: LatencyMatrix,
}

/// The slowdown of an object's remote memory, and how it is known.
#[derive(Debug, Clone, PartialEq)]
pub struct Slowdown {
    /// How many times as long it takes as local memory.
    pub times: f64,
    /// The source of this number.
    pub known_by: String,
}

impl RemoteCosts {
    /// The costs of this machine.
    pub fn of(topology: &Topology) -> Self {
        let latency = topology.measured.as_ref().map(|memory| memory.latency.clone());
        Self { distances: topology.distances.clone(), latency: latency.unwrap_or_default() }
    }

    /// How many times as long the remote memory of this object takes as local memory does.
    pub fn slowdown(&self, used: &ObjectUse) -> Option<Slowdown> {
        let measured = mean(used, |from, to| self.latency.ns(from, to));
        let by_firmware = || {
            let distances = self.distances.as_ref()?;
            mean(used, |from, to| distances.between(from, to).map(|distance| f64::from(distance.max(1))))
        };
        if let Some(Costs { local, remote, times }) = measured {
            let [local, remote] = [local, remote].map(|ns| duration(ns * 1e-9));
            return Some(Slowdown {
                times,
                known_by: format!("as measured here: a load takes {remote} instead of {local}"),
            });
        }
        let known_by = "by the distances of the firmware".to_owned();
        by_firmware().map(|Costs { times, .. }| Slowdown { times, known_by })
    }
}

/// Means over the remote pairs of an object, weighted by the time at each pair.
struct Costs {
    local: f64,
    remote: f64,
    times: f64,
}

/// `None` unless the cost of each pair is known. Remote memory is not faster than local memory.
fn mean(used: &ObjectUse, cost: impl Fn(u32, u32) -> Option<f64>) -> Option<Costs> {
    let (mut sum, mut weight) = (Costs { local: 0.0, remote: 0.0, times: 0.0 }, 0.0);
    for pair in used.pairs.iter().filter(|pair| pair.cpu_node != pair.memory_node) {
        let local = cost(pair.cpu_node, pair.cpu_node)?;
        let remote = cost(pair.cpu_node, pair.memory_node)?.max(local);
        let time = pair.time as f64;
        sum.local += time * local;
        sum.remote += time * remote;
        sum.times += time * remote / local;
        weight += time;
    }
    let Costs { local, remote, times } = sum;
    (weight > 0.0).then(|| Costs { local: local / weight, remote: remote / weight, times: times / weight })
}
