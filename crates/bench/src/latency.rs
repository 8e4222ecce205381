//! The time of a load that the next one waits for, from the CPUs of each node to the memory of each node: while nothing else
//! uses the memory, and while all other cores of the node do.

mod curve;
mod write;

use crate::bandwidth::generators::{Gauges, Generators, Pace};
use crate::ground::placed::{self, Misplaced, STOPPED};
use crate::ground::{Ground, NodeCpus};
use crate::results::peak::IDLE_LATENCY;
use crate::results::quantiles::Quantiles;
use crate::results::{BenchResult, PairMatrix};
use crate::sampled::{self, MIN_SAMPLES};
use numakit_sys::loops::{Advice, Chain, ChainPosition, Mix};
use numakit_sys::{clock, ticks};
use std::time::Duration;

/// Loads between two readings of the clock, which takes less than a thousandth of their time.
const LOADS: usize = 1 << 12;
/// Fewer beside generators: a load takes long, and each thread soon loses its CPU on a busy machine.
const LOADS_BESIDE: usize = 1 << 10;
/// How often a measurement is repeated until it had traffic beside it.
const ATTEMPTS: usize = 2;
/// Why there is no load beside traffic, in words.
pub(crate) const TURNS: &str = "no load was made while another core made traffic: the CPUs take turns, as those of an emulator do, or \
                                other programs have them";
/// Maximum time for which generators are waited for, in ns.
const PATIENCE: u64 = 500_000_000;
/// The share of what generators can do that must be done beside a load.
const NEARLY: f64 = 0.8;
/// Bytes of a line.
const LINE: u64 = 64;
/// Chains have an order of their own, the same in every run.
pub(crate) const SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// The time of a load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LoadTime {
    /// Nanoseconds.
    pub ns: f64,
    /// Time in ticks of the constant counter; `None` if there is none.
    pub ticks: Option<f64>,
    /// GB/s that the generators moved meanwhile.
    pub beside: f64,
}

/// Times by pair of nodes.
struct Matrices {
    idle: PairMatrix,
    cycles: PairMatrix,
    loaded: PairMatrix,
    write: PairMatrix,
}

/// Measures the latency of all pairs of nodes.
pub(crate) fn measure(ground: &Ground<'_>, result: &mut BenchResult) {
    let rows: Vec<u32> = ground.places.iter().map(|place| place.node).collect();
    let matrix = |name, unit| PairMatrix::new(name, unit, true, rows.clone(), ground.memories.clone());
    let mut all = Matrices {
        idle: matrix(IDLE_LATENCY, "ns"),
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
    // An idle matrix is added even if it has no values: it then shows that there are none.
    result
        .matrices
        .extend([all.cycles, all.loaded, all.write].into_iter().filter(|m| m.values().next().is_some()));
    curve::measure(ground, result);
}

/// Measures from all nodes to the memory of one.
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
    write::measure(ground, chain.into_region(), column, &mut all.write, result);
}

/// Measures a load while all other cores of the node read from the same memory.
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
    let beside = |gauges: &Gauges| chase_beside(ground, chain, ground.time(), gauges);
    let loads = generators.around(Mix::Reads, Pace::Full, cpu, beside)?;
    if loads.is_empty() && !ground.is_stopped() { Err(Misplaced(TURNS.to_owned())) } else { Ok(loads) }
}

/// A chain through memory of a node.
pub(crate) fn chain(ground: &Ground<'_>, node: u32, size: u64) -> Result<Chain, Misplaced> {
    let region = placed::memory(ground, node, size, Advice::Huge)?;
    let (bytes, stop) = (usize::try_from(size).unwrap_or(usize::MAX), || ground.is_stopped());
    placed::beside(ground, node, || Chain::over_unless(region, bytes, SEED, &stop))?
        .ok_or_else(|| Misplaced(STOPPED.to_owned()))
}

/// The times of loads in ticks of the constant counter.
pub(crate) fn in_ticks(loads: &[LoadTime]) -> Option<Quantiles> {
    Quantiles::of(loads.iter().filter_map(|load| load.ticks).collect())
}

/// Follows a chain for a time on the CPU of the calling thread.
pub(crate) fn chase(ground: &Ground<'_>, chain: &Chain, time: Duration) -> Vec<LoadTime> {
    follow(ground, chain, time, LOADS, &Gauges::default())
}

/// The times of loads beside generators. If other programs take CPUs from the generators, only loads beside nearly all of
/// their traffic count; `None` if there was no such load.
pub(crate) fn chase_beside(
    ground: &Ground<'_>,
    chain: &Chain,
    time: Duration,
    gauges: &Gauges,
) -> Vec<LoadTime> {
    let mut loads = Vec::new();
    for _ in 0..ATTEMPTS {
        // The generators have begun, but may not have a CPU at this moment.
        let (before, patience) = (gauges.moved(), clock::monotonic() + PATIENCE);
        while gauges.moved() == before && clock::monotonic() < patience {
            std::hint::spin_loop();
        }
        loads = follow(ground, chain, time, LOADS_BESIDE, gauges);
        if loads.iter().any(|load| load.beside > 0.0) {
            break;
        }
    }
    loads.sort_by(|one, other| other.beside.total_cmp(&one.beside));
    let least = loads.get(loads.len() / 10).map_or(0.0, |load| NEARLY * load.beside);
    let full = loads.partition_point(|load| load.beside >= least);
    loads.truncate(full.max(MIN_SAMPLES));
    loads.retain(|load| load.beside > 0.0);
    loads
}

fn follow(
    ground: &Ground<'_>,
    chain: &Chain,
    time: Duration,
    count: usize,
    gauges: &Gauges,
) -> Vec<LoadTime> {
    // The first loads fill caches and tables; so does a lap of a chain that the caches can hold.
    let fits = chain.lines() as u64 * LINE <= 2 * ground.last_level_cache();
    let mut position = ChainPosition::default();
    chain.load(&mut position, if fits { chain.lines() } else { LOADS });
    sampled::repeat(time, || {
        let (moved, begin, first) = (gauges.moved(), clock::monotonic(), ticks::counter());
        let loads = chain.load(&mut position, count) as f64;
        let (last, end, moved) = (ticks::counter(), clock::monotonic(), gauges.moved() - moved);
        let ticks = first.zip(last).map(|(first, last)| last.saturating_sub(first) as f64 / loads);
        let ns = (end - begin).max(1) as f64;
        (!ground.is_stopped()).then(|| LoadTime { ns: ns / loads, ticks, beside: moved as f64 / ns })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::on_this_machine;

    #[test]
    fn measuring_loads_count_beside_nearly_all_traffic() {
        on_this_machine(|ground| {
            let (node, cpu) = ground.near().unwrap();
            let chain = chain(ground, node, 1 << 20).unwrap();
            let alone = chase(ground, &chain, ground.time());
            assert!(
                alone.len() >= MIN_SAMPLES && alone.iter().all(|load| load.ns > 0.0 && load.beside == 0.0)
            );
            let other = ground.cpus.last().unwrap();
            if other == cpu {
                return numakit_skips::MACHINE.skip("this machine has one CPU");
            }
            let mut generators = Generators::on(ground, &[other], node, 1 << 20).unwrap();
            let beside = |gauges: &Gauges| chase_beside(ground, &chain, ground.time(), gauges);
            let loads = generators.around(Mix::Half, Pace::Full, cpu, beside).unwrap();
            assert!(!loads.is_empty(), "{TURNS}");
            let rates: Vec<f64> = loads.iter().map(|load| load.beside).collect();
            assert!(rates.is_sorted_by(|one, other| one >= other && *other > 0.0), "{rates:?}");
        });
    }
}
