//! STREAM by its rules: copy, scale, add and triad in turn over arrays that no cache holds, the best of at least ten, and
//! the result checked; by numbers of threads, on near cores first or spread over the nodes.

use crate::ground::Ground;
use crate::placed::{self, Misplaced};
use crate::quantiles::Quantiles;
use crate::results::{BenchResult, NamedValue};
use crate::team::{self, Rounds, Seat};
use numakit_sys::kernels::{Advice, Region, stream_add, stream_copy, stream_scale, stream_triad};

/// Of each loop, at least.
const TIMES: usize = 10;
/// With this scalar, the three arrays have the same values after every turn: STREAM's grow beyond all numbers.
const SCALAR: f64 = std::f64::consts::SQRT_2 - 1.0;
/// The first values of the three arrays.
const FIRST: [f64; 3] = [1.0, 2.0, 0.0];

/// A thread's pieces of the three arrays, and how many loops have been over them.
struct Arrays {
    a: Region,
    b: Region,
    c: Region,
    loops: usize,
}

/// A loop, on arrays and on single numbers; it returns the bytes that STREAM counts.
struct Loop {
    name: &'static str,
    run: fn(&mut Arrays) -> usize,
    one: fn(&mut [f64; 3]),
}

const LOOPS: [Loop; 4] = [
    Loop {
        name: "copy",
        run: |arrays| {
            stream_copy(arrays.c.doubles_mut(), arrays.a.doubles());
            2 * arrays.a.bytes()
        },
        one: |[a, _, c]| *c = *a,
    },
    Loop {
        name: "scale",
        run: |arrays| {
            stream_scale(arrays.b.doubles_mut(), arrays.c.doubles(), SCALAR);
            2 * arrays.a.bytes()
        },
        one: |[_, b, c]| *b = SCALAR * *c,
    },
    Loop {
        name: "add",
        run: |arrays| {
            stream_add(arrays.c.doubles_mut(), arrays.a.doubles(), arrays.b.doubles());
            3 * arrays.a.bytes()
        },
        one: |[a, b, c]| *c = *a + *b,
    },
    Loop {
        name: "triad",
        run: |arrays| {
            stream_triad(arrays.a.doubles_mut(), arrays.b.doubles(), arrays.c.doubles(), SCALAR);
            3 * arrays.a.bytes()
        },
        one: |[a, b, c]| *a = *b + SCALAR * *c,
    },
];

impl Arrays {
    fn on(ground: &Ground<'_>, node: u32, bytes: u64) -> Result<Self, Misplaced> {
        let array = |first: f64| {
            let mut region = placed::memory(ground, node, bytes, Advice::Huge)?;
            placed::beside(ground, node, || region.doubles_mut().fill(first))?;
            Ok(region)
        };
        Ok(Self { a: array(FIRST[0])?, b: array(FIRST[1])?, c: array(FIRST[2])?, loops: 0 })
    }

    /// The next loop.
    fn next(&mut self) -> usize {
        let next = &LOOPS[self.loops % LOOPS.len()];
        self.loops += 1;
        (next.run)(self)
    }

    /// Whether every element has the value that the same loops give a single number.
    fn is_right(&self) -> bool {
        let mut expected = FIRST;
        (0..self.loops).for_each(|at| (LOOPS[at % LOOPS.len()].one)(&mut expected));
        let all = |region: &Region, value: f64| region.doubles().iter().all(|element| *element == value);
        all(&self.a, expected[0]) && all(&self.b, expected[1]) && all(&self.c, expected[2])
    }
}

/// Measures it.
pub(crate) fn measure(ground: &Ground<'_>, result: &mut BenchResult) {
    let usable = ground.places.iter().filter(|place| ground.memories.contains(&place.node));
    let places: Vec<(u32, &[u32])> = usable.map(|place| (place.node, place.cpus.as_slice())).collect();
    if places.is_empty() {
        return result.leave_out("STREAM", "no node has both CPUs and memory that can be used");
    }
    let caches = places.iter().map(|(node, _)| ground.caches_of(*node)).sum();
    let array = ground.size_beyond(caches);
    result.remarks.push(format!(
        "each array has {} MiB over all threads, each piece is on its thread's node; the scalar is the root of 2, less 1, so \
         that values stay",
        array >> 20
    ));
    let compact = compact(&places);
    let mut orders = vec![("compact", compact.clone())];
    let scatter = scatter(&places);
    if scatter != compact {
        orders.push(("scatter", scatter));
    }
    for (order, cpus) in orders {
        for count in counts(cpus.len()) {
            if ground.is_stopped() {
                return;
            }
            ground.now(format!("stream: {count} threads, {order}"));
            let name = format!("{count} {}, {order}", if count == 1 { "thread" } else { "threads" });
            if let Err(Misplaced(why)) = threads(ground, &cpus[..count], array, &name, result) {
                result.leave_out(name, why);
            }
        }
    }
}

/// All loops by threads on these nodes and CPUs.
fn threads(
    ground: &Ground<'_>,
    cpus: &[(u32, u32)],
    array: u64,
    name: &str,
    result: &mut BenchResult,
) -> Result<(), Misplaced> {
    let piece = (array / cpus.len() as u64).max(1);
    for (node, _) in cpus {
        let here = cpus.iter().filter(|(other, _)| other == node).count() as u64;
        if let Some(why) = ground.lacks(*node, 3 * piece * here) {
            return Err(Misplaced(why));
        }
    }
    let seat = |&(node, cpu): &(u32, u32)| Ok(Seat { cpu, work: Arrays::on(ground, node, piece)? });
    let mut seats = cpus.iter().map(seat).collect::<Result<Vec<_>, Misplaced>>()?;
    let rounds = Rounds { least: LOOPS.len() * (TIMES + 1), ..Rounds::of(ground) };
    // The first turn is not counted; of the first loop team drops the rate already.
    let rates = team::rates(ground, &mut seats, rounds, |_| (), Arrays::next)?;
    let counted: Vec<(usize, f64)> = rates.into_iter().enumerate().map(|(at, rate)| (at + 1, rate)).collect();
    let counted = counted.get(LOOPS.len() - 1..).unwrap_or_default();
    for (at, one) in LOOPS.iter().enumerate() {
        let of = counted.iter().filter(|(loops, _)| loops % LOOPS.len() == at).map(|(_, rate)| *rate);
        let rates: Vec<f64> = of.collect();
        let best = rates.iter().copied().reduce(f64::max);
        result.values.extend(Quantiles::of(rates).map(|value| NamedValue {
            name: format!("{}, {name}", one.name),
            unit: "GB/s".to_owned(),
            value,
            best,
        }));
    }
    if seats.iter().any(|seat| !seat.work.is_right()) {
        result.warnings.push(format!("{name}: an array has a wrong value; the memory or the CPU is faulty"));
    }
    Ok(())
}

/// Node and CPU, node after node.
fn compact(places: &[(u32, &[u32])]) -> Vec<(u32, u32)> {
    places.iter().flat_map(|(node, cpus)| cpus.iter().map(|cpu| (*node, *cpu))).collect()
}

/// Node and CPU, each from the next node.
fn scatter(places: &[(u32, &[u32])]) -> Vec<(u32, u32)> {
    let most = places.iter().map(|(_, cpus)| cpus.len()).max().unwrap_or(0);
    let turn = |at: usize| places.iter().filter_map(move |(node, cpus)| Some((*node, *cpus.get(at)?)));
    (0..most).flat_map(turn).collect()
}

/// 1, 2, 4, 8, and all.
fn counts(all: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1), |count| Some(count * 2)).take_while(|count| *count < all);
    powers.chain([all]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::on_this_machine;

    #[test]
    fn wrong_values_are_found() {
        on_this_machine(|ground| {
            let mut arrays = Arrays::on(ground, ground.memories[0], 1 << 16).unwrap();
            assert_eq!((0..8).map(|_| arrays.next() >> 16).collect::<Vec<_>>(), [2, 2, 3, 3, 2, 2, 3, 3]);
            assert!(arrays.is_right());
            arrays.b.doubles_mut()[8191] += 1e-15;
            assert!(!arrays.is_right());
        });
    }

    #[test]
    fn values_stay_after_many_turns() {
        let mut values = FIRST;
        (0..4000).for_each(|at| (LOOPS[at % 4].one)(&mut values));
        assert!((values[0] - 1.0).abs() < 1e-9, "{values:?}");
    }

    #[test]
    fn threads_fill_nodes_or_spread_over_them() {
        let places: [(u32, &[u32]); 2] = [(0, &[0, 1]), (3, &[6, 7, 8])];
        assert_eq!(compact(&places), [(0, 0), (0, 1), (3, 6), (3, 7), (3, 8)]);
        assert_eq!(scatter(&places), [(0, 0), (3, 6), (0, 1), (3, 7), (3, 8)]);
        assert_eq!([counts(1), counts(5)], [vec![1], vec![1, 2, 4, 5]]);
    }

    #[test]
    fn each_loop_is_measured_ten_times_or_more_with_each_number_of_threads() {
        on_this_machine(|ground| {
            let mut result = BenchResult::default();
            measure(ground, &mut result);
            let cpus: usize = ground.places.iter().map(|place| place.cpus.len()).sum();
            assert!(result.values.len() >= LOOPS.len() * counts(cpus).len(), "{result:?}");
            for value in &result.values {
                assert!(value.value.samples >= TIMES && value.best >= Some(value.value.high), "{value:?}");
            }
            assert_eq!(result.warnings, [""; 0]);
        });
    }
}
