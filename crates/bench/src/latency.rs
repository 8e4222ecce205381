//! The time of a load that the next one waits for, from the CPUs of each node to the memory of each node: while nothing else
//! uses the memory, and while all other cores of the node do.

use crate::generators::{Generators, Pace};
use crate::ground::{Ground, NodeCpus};
use crate::placed::{self, Misplaced};
use crate::quantiles::Quantiles;
use crate::results::{BenchResult, PairMatrix};
use crate::sampled;
use crate::{latency_curve, latency_write};
use numakit_sys::kernels::{Advice, Chain, ChainPosition, Mix};
use numakit_sys::{clock, ticks};
use std::time::Duration;

/// Loads between two readings of the clock, which takes less than a thousandth of their time.
const LOADS: usize = 1 << 12;
/// Bytes of a line.
const LINE: u64 = 64;
/// Chains have an order of their own, the same in every run.
pub(crate) const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// The time of a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LoadTime {
    /// Nanoseconds.
    pub ns: f64,
    /// Ticks of the constant counter; none where there is none.
    pub ticks: Option<f64>,
}

/// By pair of nodes.
struct Matrices {
    idle: PairMatrix,
    cycles: PairMatrix,
    loaded: PairMatrix,
    write: PairMatrix,
}

/// Measures it.
pub(crate) fn measure(ground: &Ground<'_>, result: &mut BenchResult) {
    let rows: Vec<u32> = ground.places.iter().map(|place| place.node).collect();
    let matrix = |name, unit| PairMatrix::new(name, unit, true, rows.clone(), ground.memories.clone());
    let mut all = Matrices {
        idle: matrix("load latency, idle", "ns"),
        cycles: matrix("load latency, idle, by TSC", "cycles"),
        loaded: matrix("load latency, loaded", "ns"),
        write: matrix("non-temporal write latency", "ns"),
    };
    for (column, &node) in ground.memories.iter().enumerate() {
        if ground.is_stopped() {
            break;
        }
        memory(ground, (column, node), &mut all, result);
    }
    result.matrices.push(all.idle);
    if all.cycles.values().next().is_some() {
        result
            .remarks
            .push("cycles by TSC are those of the constant counter, not of the core's clock".to_owned());
    }
    // An idle matrix without values says that there are none.
    result
        .matrices
        .extend([all.cycles, all.loaded, all.write].into_iter().filter(|m| m.values().next().is_some()));
    latency_curve::measure(ground, result);
}

/// From all nodes to the memory of one.
fn memory(ground: &Ground<'_>, (column, node): (usize, u32), all: &mut Matrices, result: &mut BenchResult) {
    ground.now(format!("latency: memory of node {node}"));
    let size = ground.size_beyond(ground.last_level_cache());
    let chain = match chain(ground, node, size) {
        Ok(chain) => chain,
        Err(Misplaced(why)) => return result.leave_out(format!("memory of node {node}"), why),
    };
    result.remarks.push(format!("memory of node {node}: {}", placed::pages(chain.region())));
    for (row, place) in ground.places.iter().enumerate() {
        let Some(&cpu) = place.cpus.first() else { continue };
        ground.now(format!("latency: CPUs of node {} to memory of node {node}", place.node));
        match placed::on_cpu(cpu, || chase(ground, &chain, ground.time())) {
            Ok(loads) => {
                all.idle.set(row, column, sampled::quantiles(&loads, |load| load.ns));
                all.cycles.set(row, column, in_ticks(&loads));
            }
            Err(Misplaced(why)) => result.leave_out(format!("CPUs of node {}", place.node), why),
        }
        ground.now(format!("latency, loaded: CPUs of node {} to memory of node {node}", place.node));
        match loaded(ground, place, node, &chain) {
            Ok(loads) => all.loaded.set(row, column, sampled::quantiles(&loads, |load| load.ns)),
            Err(Misplaced(why)) => {
                let what = format!("loaded latency, CPUs of node {} with memory of node {node}", place.node);
                result.leave_out(what, why);
            }
        }
    }
    latency_write::measure(ground, chain.into_region(), column, &mut all.write, result);
}

/// The same while all other cores of the node read from the same memory.
fn loaded(
    ground: &Ground<'_>,
    place: &NodeCpus,
    node: u32,
    chain: &Chain,
) -> Result<Vec<LoadTime>, Misplaced> {
    let Some((&cpu, others)) = place.cpus.split_first().filter(|_| !ground.is_stopped()) else {
        return Ok(Vec::new());
    };
    let size = ground.size_beyond(ground.caches_of(place.node));
    let mut generators = Generators::on(ground, others, node, size)?;
    let chased = generators.around(Mix::Reads, Pace::Full, cpu, || chase(ground, chain, ground.time()))?;
    Ok(chased.0)
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
    // The first loads fill caches and tables; so does a lap of a chain that the caches can hold.
    let fits = chain.lines() as u64 * LINE <= 2 * ground.last_level_cache();
    let mut position = ChainPosition::default();
    chain.load(&mut position, if fits { chain.lines() } else { LOADS });
    sampled::repeat(time, || {
        let (begin, first) = (clock::monotonic(), ticks::counter());
        let loads = chain.load(&mut position, LOADS) as f64;
        let (last, end) = (ticks::counter(), clock::monotonic());
        let ticks = first.zip(last).map(|(first, last)| last.saturating_sub(first) as f64 / loads);
        (!ground.is_stopped()).then(|| LoadTime { ns: (end - begin) as f64 / loads, ticks })
    })
}
