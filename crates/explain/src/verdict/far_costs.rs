//! How many times as long far memory takes as near memory: by the latencies that were measured on the machine, else by the
//! distances of its firmware.

use crate::object_use::ObjectUse;
use numakit_model::measured::LatencyMatrix;
use numakit_model::numbers::duration;
use numakit_model::topology::{Distances, Topology};

/// What is known of it.
#[derive(Debug, Clone, Default)]
pub struct FarCosts {
    distances: Option<Distances>,
    latency: LatencyMatrix,
}

/// The slowdown of an object's far memory, and how it is known.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Slowdown {
    pub times: f64,
    pub known_by: String,
}

impl FarCosts {
    /// Of a machine.
    pub fn of(topology: &Topology) -> Self {
        let latency = topology.measured.as_ref().map(|memory| memory.latency.clone());
        Self { distances: topology.distances.clone(), latency: latency.unwrap_or_default() }
    }

    /// How many times as long the far memory of this object takes as near memory does.
    pub(super) fn slowdown(&self, used: &ObjectUse) -> Option<Slowdown> {
        let measured = mean(used, |from, to| self.latency.ns(from, to));
        let by_firmware = || {
            let distances = self.distances.as_ref()?;
            mean(used, |from, to| distances.between(from, to).map(|distance| f64::from(distance.max(1))))
        };
        if let Some(Costs { near, far, times }) = measured {
            let [near, far] = [near, far].map(|ns| duration(ns * 1e-9));
            return Some(Slowdown {
                times,
                known_by: format!("as measured here: a load takes {far} instead of {near}"),
            });
        }
        let known_by = "by the distances of the firmware".to_owned();
        by_firmware().map(|Costs { times, .. }| Slowdown { times, known_by })
    }
}

/// Means over the far pairs of an object, by the time at them.
struct Costs {
    near: f64,
    far: f64,
    times: f64,
}

/// `None` unless the cost of each pair is known. Far memory is not faster than near memory.
fn mean(used: &ObjectUse, cost: impl Fn(u32, u32) -> Option<f64>) -> Option<Costs> {
    let (mut sum, mut weight) = (Costs { near: 0.0, far: 0.0, times: 0.0 }, 0.0);
    for pair in used.pairs.iter().filter(|pair| pair.cpu_node != pair.memory_node) {
        let near = cost(pair.cpu_node, pair.cpu_node)?;
        let far = cost(pair.cpu_node, pair.memory_node)?.max(near);
        let time = pair.time as f64;
        sum.near += time * near;
        sum.far += time * far;
        sum.times += time * far / near;
        weight += time;
    }
    let Costs { near, far, times } = sum;
    (weight > 0.0).then(|| Costs { near: near / weight, far: far / weight, times: times / weight })
}
