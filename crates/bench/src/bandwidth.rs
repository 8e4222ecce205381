//! Bytes per second between the CPUs of each node and the memory of each node, and between all of them at once.

pub(crate) mod curve;
mod curve_knee;
mod fastest;
pub(crate) mod generators;
pub(crate) mod stream;
mod stream_orders;

use crate::bandwidth::fastest::fastest;
use crate::ground::placed::Misplaced;
use crate::ground::team::{self, BYTE, Part, Rounds, Seat};
use crate::ground::{Ground, NodeCpus};
use crate::results::quantiles::Quantiles;
use crate::results::{BenchResult, NamedValue, PairMatrix};
use crate::sampled::MIN_SAMPLES;
use numakit_sys::loops::{Vectors, copy, copy_past_caches, read, write, write_past_caches};
use std::time::Duration;

/// The work of a thread on one part. It returns the number of bytes that it has moved.
type Pass = fn(&mut Part, Vectors) -> usize;
/// A thread with its memory, which it passes over part after part.
type Passing = Seat<Vec<Part>>;

/// What threads do, by name. A copy counts what it reads and what it writes, as STREAM does.
const PASSES: [(&str, Pass); 5] = [
    ("read", |part, with| read(&part.from, with) + read(&part.to, with)),
    ("write", |part, with| write(&mut part.from, BYTE, with) + write(&mut part.to, BYTE, with)),
    ("non-temporal write", |part, with| {
        write_past_caches(&mut part.from, BYTE, with) + write_past_caches(&mut part.to, BYTE, with)
    }),
    ("copy", |part, with| 2 * copy(&part.from, &mut part.to, with)),
    ("non-temporal copy", |part, with| 2 * copy_past_caches(&part.from, &mut part.to, with)),
];
/// The part of a value's time in which registers are compared.
const TRIAL: u32 = 5;
const UNIT: &str = "GB/s";

/// Measures the bandwidth of all pairs of nodes.
pub(crate) fn measure(ground: &Ground<'_>, result: &mut BenchResult) {
    let rows: Vec<u32> = ground.places.iter().map(|place| place.node).collect();
    let matrix = |(name, _): &(&str, Pass)| {
        PairMatrix::new(&format!("bandwidth, {name}"), UNIT, false, rows.clone(), ground.memories.clone())
    };
    let mut fastest = [None; PASSES.len()];
    let mut matrices: Vec<PairMatrix> = PASSES.iter().map(matrix).collect();
    for (row, place) in ground.places.iter().enumerate() {
        for (column, &node) in ground.memories.iter().enumerate() {
            if ground.is_stopped() {
                break;
            }
            let mut seats = match seats(ground, place, &[node]) {
                Ok(seats) => seats,
                Err(Misplaced(why)) => {
                    result.leave_out(format!("CPUs of node {} with memory of node {node}", place.node), why);
                    continue;
                }
            };
            for (((name, pass), matrix), fastest) in PASSES.iter().zip(&mut matrices).zip(&mut fastest) {
                ground.now(format!("bandwidth: {name}, CPUs of node {}, memory of node {node}", place.node));
                match rate(ground, &mut seats, *pass, fastest) {
                    Ok(value) => matrix.set(row, column, value),
                    Err(Misplaced(why)) => result.leave_out(format!("CPUs of node {}", place.node), why),
                }
            }
        }
    }
    result.matrices = matrices;
    together(ground, &mut fastest, result);
    let with = |(name, _): &(&str, Pass), vectors: &Option<Vectors>| {
        Some(format!("{name} {}", vectors.as_ref()?.name()))
    };
    let with: Vec<String> =
        PASSES.iter().zip(&fastest).filter_map(|(pass, vectors)| with(pass, vectors)).collect();
    result.remarks.push(format!("one thread for each core, with the fastest registers: {}", with.join(", ")));
    result.remarks.push(
        "a copy counts bytes read and written; a write does not count that caches read what it replaces"
            .to_owned(),
    );
    if !Vectors::widest().bypasses() {
        result.remarks.push(
            "this CPU has no non-temporal writes that numa knows; they are as ordinary ones".to_owned(),
        );
    }
}

/// Measures all nodes at the same time: each one with its own memory, and each one with the memory of all nodes.
fn together(ground: &Ground<'_>, fastest: &mut [Option<Vectors>; PASSES.len()], result: &mut BenchResult) {
    if ground.places.len() * ground.memories.len() < 2 {
        return result.leave_out("all pairs at once", "there is only one pair of CPUs and memory");
    }
    type Choice<'a> = (&'static str, &'a dyn Fn(&NodeCpus) -> Vec<u32>);
    let own = |place: &NodeCpus| ground.memories.iter().copied().filter(|node| *node == place.node).collect();
    let rotated = |place: &NodeCpus| {
        // No two nodes begin with the memory of the same node.
        let first = ground.memories.iter().position(|node| *node == place.node).unwrap_or(0);
        ground.memories.iter().cycle().skip(first).take(ground.memories.len()).copied().collect()
    };
    let choices: [Choice<'_>; 2] = [("all nodes at once, own memory", &own), ("all pairs at once", &rotated)];
    for (name, memories) in choices {
        if ground.is_stopped() {
            return;
        }
        let all: Result<Vec<Vec<Passing>>, Misplaced> =
            ground.places.iter().map(|place| seats(ground, place, &memories(place))).collect();
        let mut all: Vec<Passing> = match all {
            Ok(all) => all.into_iter().flatten().filter(|seat| !seat.work.is_empty()).collect(),
            Err(Misplaced(why)) => {
                result.leave_out(name, why);
                continue;
            }
        };
        for ((what, pass), fastest) in PASSES.into_iter().zip(fastest.iter_mut()) {
            ground.now(format!("bandwidth: {what}, {name}"));
            match rate(ground, &mut all, pass, fastest) {
                Ok(value) => result.values.extend(value.map(|value| NamedValue {
                    name: format!("{what}, {name}"),
                    unit: UNIT.to_owned(),
                    value,
                    best: None,
                })),
                Err(Misplaced(why)) => result.leave_out(name, why),
            }
        }
    }
}

/// Bytes that all threads move for each nanosecond, which is GB/s, and the registers with which that is fastest.
fn rate(
    ground: &Ground<'_>,
    seats: &mut [Passing],
    pass: Pass,
    known: &mut Option<Vectors>,
) -> Result<Option<Quantiles>, Misplaced> {
    let mut with = |vectors: Vectors, time: Duration| {
        let all = |parts: &mut Vec<Part>| parts.iter_mut().map(|part| pass(part, vectors)).sum();
        let rates = team::rates(ground, seats, Rounds { least: MIN_SAMPLES, time }, |_| (), all)?;
        Ok(Quantiles::of(rates))
    };
    let vectors = match *known {
        Some(vectors) => vectors,
        None => {
            let best = fastest(Vectors::available(), |vectors| with(vectors, ground.time() / TRIAL))?;
            *known.insert(best.unwrap_or_else(Vectors::widest))
        }
    };
    with(vectors, ground.time())
}

/// A seat for each CPU of a node, with a share of the memory of each of these nodes.
fn seats(ground: &Ground<'_>, place: &NodeCpus, memories: &[u32]) -> Result<Vec<Passing>, Misplaced> {
    let size = ground.size_beyond(ground.caches_of(place.node));
    let share = size / (place.cpus.len() * memories.len()).max(1) as u64;
    if let Some(why) = memories.iter().find_map(|&node| ground.lacks(node, size / memories.len() as u64)) {
        return Err(Misplaced(why));
    }
    let seat = |&cpu: &u32| {
        let parts = memories.iter().map(|&node| Part::on(ground, node, share)).collect::<Result<_, _>>()?;
        Ok(Seat { cpu, work: parts })
    };
    place.cpus.iter().map(seat).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::on_this_machine;

    #[test]
    fn every_pass_moves_what_it_says() {
        on_this_machine(|ground| {
            let mut part = Part::on(ground, ground.memories[0], 1 << 18).unwrap();
            for (name, pass) in PASSES {
                for vectors in Vectors::available() {
                    assert_eq!(pass(&mut part, vectors), 1 << 18, "{name} {vectors:?}");
                }
            }
        });
    }

    #[test]
    fn all_pairs_are_measured() {
        on_this_machine(|ground| {
            let mut result = BenchResult::default();
            measure(ground, &mut result);
            let pairs = ground.places.len() * ground.memories.len();
            assert_eq!(result.matrices.len(), PASSES.len());
            for matrix in &result.matrices {
                assert_eq!(
                    matrix.values().filter(|value| value.median > 0.0).count(),
                    pairs,
                    "{:?}",
                    result.left_out
                );
            }
            let together = if pairs > 1 { 2 * PASSES.len() } else { 0 };
            assert_eq!((result.values.len(), result.left_out.is_empty()), (together, pairs > 1));
        });
    }
}
