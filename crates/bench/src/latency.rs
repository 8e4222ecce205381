//! The time of a load that the next one waits for, from the CPUs of each node to the memory of each node.

use crate::ground::Ground;
use crate::latency_curve;
use crate::placed::{self, Misplaced};
use crate::quantiles::Quantiles;
use crate::results::{BenchResult, PairMatrix};
use crate::sampled;
use numakit_sys::kernels::{Advice, Chain, ChainPosition};
use numakit_sys::{clock, ticks};
use std::time::Duration;

/// Loads between two readings of the clock, which takes less than a thousandth of their time.
const LOADS: usize = 1 << 12;
/// Chains have an order of their own, the same in every run.
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// The time of a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LoadTime {
    /// Nanoseconds.
    pub ns: f64,
    /// Ticks of the constant counter; none where there is none.
    pub ticks: Option<f64>,
}

/// Measures it.
pub(crate) fn measure(ground: &Ground<'_>, result: &mut BenchResult) {
    let rows: Vec<u32> = ground.places.iter().map(|place| place.node).collect();
    let mut time = PairMatrix::new("load latency, idle", "ns", true, rows.clone(), ground.memories.clone());
    let mut cycles =
        PairMatrix::new("load latency, idle, by TSC", "cycles", true, rows, ground.memories.clone());
    let size = ground.size_beyond(ground.last_level_cache());
    for (column, &node) in ground.memories.iter().enumerate() {
        if ground.is_stopped() {
            break;
        }
        ground.now(format!("latency: memory of node {node}"));
        let chain = match chain(ground, node, size) {
            Ok(chain) => chain,
            Err(Misplaced(why)) => {
                result.leave_out(format!("memory of node {node}"), why);
                continue;
            }
        };
        result.remarks.push(format!("memory of node {node}: {}", placed::pages(chain.region())));
        for (row, place) in ground.places.iter().enumerate() {
            ground.now(format!("latency: CPUs of node {} to memory of node {node}", place.node));
            let measured =
                place.cpus.first().map(|&cpu| placed::on_cpu(cpu, || chase(ground, &chain, ground.time())));
            match measured {
                Some(Ok(loads)) => {
                    time.set(row, column, sampled::quantiles(&loads, |load| load.ns));
                    cycles.set(row, column, in_ticks(&loads));
                }
                Some(Err(Misplaced(why))) => result.leave_out(format!("CPUs of node {}", place.node), why),
                None => {}
            }
        }
    }
    result.matrices.push(time);
    if cycles.values().next().is_some() {
        result
            .remarks
            .push("cycles by TSC are those of the constant counter, not of the core's clock".to_owned());
        result.matrices.push(cycles);
    }
    latency_curve::measure(ground, result);
}

/// A chain through memory of a node.
pub(crate) fn chain(ground: &Ground<'_>, node: u32, size: u64) -> Result<Chain, Misplaced> {
    let region = placed::memory(ground, node, size, Advice::Huge)?;
    placed::beside(ground, node, || Chain::over(region, usize::try_from(size).unwrap_or(usize::MAX), SEED))
}

fn in_ticks(loads: &[LoadTime]) -> Option<Quantiles> {
    Quantiles::of(loads.iter().filter_map(|load| load.ticks).collect())
}

/// Follows a chain for a time on the CPU of the calling thread.
pub(crate) fn chase(ground: &Ground<'_>, chain: &Chain, time: Duration) -> Vec<LoadTime> {
    let mut position = ChainPosition::default();
    // The first loads fill caches and tables; so does a lap of a chain that the caches can hold.
    let warm =
        if chain.region().bytes() as u64 > 2 * ground.last_level_cache() { LOADS } else { chain.lines() };
    chain.load(&mut position, warm);
    sampled::repeat(time, || {
        let (begin, first) = (clock::monotonic(), ticks::counter());
        let loads = chain.load(&mut position, LOADS) as f64;
        let (last, end) = (ticks::counter(), clock::monotonic());
        let ticks = first.zip(last).map(|(first, last)| last.saturating_sub(first) as f64 / loads);
        (!ground.is_stopped()).then(|| LoadTime { ns: (end - begin) as f64 / loads, ticks })
    })
}
