//! STREAM by its rules: copy, scale, add and triad in turn over arrays that no cache holds, the best of at least ten, and
//! the result checked; by numbers of threads in several orders of the cores.

use crate::bandwidth::fastest::fastest;
use crate::bandwidth::stream_orders::{Order, Thread, orders};
use crate::ground::Ground;
use crate::ground::placed::{self, Misplaced};
use crate::ground::team::{self, Rounds, Seat};
use crate::results::quantiles::Quantiles;
use crate::results::{Axis, BenchResult, Curve, NamedValue};
use numakit_model::numbers::counted;
use numakit_sys::loops::{
    Advice, Region, Vectors, stream_add, stream_copy, stream_scale, stream_triad, stream_versions,
};
use std::time::Duration;

/// Minimum number of measurements of each loop.
const TIMES: usize = 10;
/// Turns of the four loops by which kinds of registers are compared; the first is not counted.
const TRIAL: usize = 4;
/// With this scalar, the three arrays have the same values after every turn. With STREAM's own scalar they grow without
/// bound.
const SCALAR: f64 = std::f64::consts::SQRT_2 - 1.0;
/// The first values of the three arrays.
const FIRST: [f64; 3] = [1.0, 2.0, 0.0];

/// A thread's pieces of the three arrays, the registers for which its loops are compiled, and how many loops have been over
/// them.
struct Arrays {
    a: Region,
    b: Region,
    c: Region,
    vectors: Vectors,
    loops: usize,
}

/// Bytes of an array over all threads, and the registers for which loops are compiled.
#[derive(Debug, Clone, Copy)]
struct Shape {
    array: u64,
    vectors: Vectors,
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
            stream_copy(arrays.c.doubles_mut(), arrays.a.doubles(), arrays.vectors);
            2 * arrays.a.bytes()
        },
        one: |[a, _, c]| *c = *a,
    },
    Loop {
        name: "scale",
        run: |arrays| {
            stream_scale(arrays.b.doubles_mut(), arrays.c.doubles(), SCALAR, arrays.vectors);
            2 * arrays.a.bytes()
        },
        one: |[_, b, c]| *b = SCALAR * *c,
    },
    Loop {
        name: "add",
        run: |arrays| {
            stream_add(arrays.c.doubles_mut(), arrays.a.doubles(), arrays.b.doubles(), arrays.vectors);
            3 * arrays.a.bytes()
        },
        one: |[a, b, c]| *c = *a + *b,
    },
    Loop {
        name: "triad",
        run: |arrays| {
            stream_triad(
                arrays.a.doubles_mut(),
                arrays.b.doubles(),
                arrays.c.doubles(),
                SCALAR,
                arrays.vectors,
            );
            3 * arrays.a.bytes()
        },
        one: |[a, b, c]| *a = *b + SCALAR * *c,
    },
];

impl Arrays {
    fn on(ground: &Ground<'_>, node: u32, bytes: u64, vectors: Vectors) -> Result<Self, Misplaced> {
        let array = |first: f64| {
            let mut region = placed::memory(ground, node, bytes, Advice::Huge)?;
            placed::beside(ground, node, || region.doubles_mut().fill(first))?;
            Ok(region)
        };
        Ok(Self { a: array(FIRST[0])?, b: array(FIRST[1])?, c: array(FIRST[2])?, vectors, loops: 0 })
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

/// Measures STREAM with all orders of threads.
pub(crate) fn measure(ground: &Ground<'_>, result: &mut BenchResult) {
    let orders = orders(ground, result);
    if orders.is_empty() {
        return result.leave_out("STREAM", "no node has both CPUs and memory that can be used");
    }
    let places = ground.places.iter().filter(|place| ground.memories.contains(&place.node));
    let array = ground.size_beyond(places.map(|place| ground.caches_of(place.node)).sum());
    result.remarks.push(format!(
        "each array has {} MiB over all threads, each piece is on its thread's node; the scalar is the root of 2, less 1, so \
         that values stay",
        array >> 20
    ));
    let shape = Shape { array, vectors: fastest_registers(ground, &orders, array) };
    result.remarks.push(format!("compiled for {}, the fastest of what this CPU has", shape.vectors.name()));
    let mut measured = Vec::new();
    for order in &orders {
        let curve = |one: &Loop| {
            Curve::new(format!("{}, medians, {}", one.name, order.name), "GB/s", false, Axis::threads())
        };
        let mut curves: Vec<Curve> = LOOPS.iter().map(curve).collect();
        for count in counts(order.threads.len()) {
            if ground.is_stopped() {
                break;
            }
            let values = of_order(ground, order, count, shape, &mut measured, result);
            curves.iter_mut().zip(values).for_each(|(curve, value)| curve.add(count as f64, value));
        }
        curves.into_iter().for_each(|curve| result.add_curve(curve));
    }
}

/// The registers with which the first thread is fastest; the widest where memory for a trial is missing.
fn fastest_registers(ground: &Ground<'_>, orders: &[Order], array: u64) -> Vectors {
    let tried = orders.iter().find_map(|order| order.threads.first()).map(|&(node, cpu)| {
        if ground.lacks(node, 3 * array).is_some() {
            return Ok(None);
        }
        let mut seats = [Seat { cpu, work: Arrays::on(ground, node, array, Vectors::widest())? }];
        let rounds = Rounds { least: LOOPS.len() * TRIAL, time: Duration::ZERO };
        fastest(stream_versions(), |vectors| {
            ground.now(format!("stream: {}", vectors.name()));
            seats[0].work.vectors = vectors;
            Ok(Quantiles::of(team::rates(ground, &mut seats, rounds, |_| (), Arrays::next)?))
        })
    });
    tried.and_then(|tried: Result<_, Misplaced>| tried.ok().flatten()).unwrap_or_else(Vectors::widest)
}

/// The value of each loop.
type Values = [Option<Quantiles>; LOOPS.len()];

/// The first threads of an order; those that an earlier order had are not measured again.
fn of_order(
    ground: &Ground<'_>,
    order: &Order,
    count: usize,
    shape: Shape,
    measured: &mut Vec<(Vec<Thread>, Values)>,
    result: &mut BenchResult,
) -> Values {
    let chosen = &order.threads[..count];
    let mut key = chosen.to_vec();
    key.sort_unstable();
    if let Some((_, values)) = measured.iter().find(|(threads, _)| *threads == key) {
        return *values;
    }
    let name = format!("{}, {}", counted(count, "thread"), order.name);
    ground.now(format!("stream: {name}"));
    let values = threads(ground, chosen, shape, &name, result).unwrap_or_else(|Misplaced(why)| {
        result.leave_out(name, why);
        Values::default()
    });
    measured.push((key, values));
    values
}

/// Measures all loops with threads on these nodes and CPUs.
fn threads(
    ground: &Ground<'_>,
    chosen: &[Thread],
    shape: Shape,
    name: &str,
    result: &mut BenchResult,
) -> Result<Values, Misplaced> {
    let piece = (shape.array / chosen.len() as u64).max(1);
    for (node, _) in chosen {
        let here = chosen.iter().filter(|(other, _)| other == node).count() as u64;
        if let Some(why) = ground.lacks(*node, 3 * piece * here) {
            return Err(Misplaced(why));
        }
    }
    let seat =
        |&(node, cpu): &Thread| Ok(Seat { cpu, work: Arrays::on(ground, node, piece, shape.vectors)? });
    let mut seats = chosen.iter().map(seat).collect::<Result<Vec<_>, Misplaced>>()?;
    let rounds = Rounds { least: LOOPS.len() * (TIMES + 1), ..Rounds::of(ground) };
    // The first turn is not counted; of the first loop team drops the rate already.
    let rates = team::rates(ground, &mut seats, rounds, |_| (), Arrays::next)?;
    let counted: Vec<(usize, f64)> = rates.into_iter().enumerate().map(|(at, rate)| (at + 1, rate)).collect();
    let counted = counted.get(LOOPS.len() - 1..).unwrap_or_default();
    let mut values = Values::default();
    for (at, one) in LOOPS.iter().enumerate() {
        let of = counted.iter().filter(|(loops, _)| loops % LOOPS.len() == at).map(|(_, rate)| *rate);
        let rates: Vec<f64> = of.collect();
        let best = rates.iter().copied().reduce(f64::max);
        values[at] = Quantiles::of(rates);
        result.values.extend(values[at].map(|value| NamedValue {
            name: format!("{}, {name}", one.name),
            unit: "GB/s".to_owned(),
            value,
            best,
        }));
    }
    if seats.iter().any(|seat| !seat.work.is_right()) {
        result.warnings.push(format!("{name}: an array has a wrong value; the memory or the CPU is faulty"));
    }
    Ok(values)
}

/// The numbers of threads: 1, 2, 4, 8 and so on, and all.
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
            let mut arrays = Arrays::on(ground, ground.memories[0], 1 << 16, Vectors::Plain).unwrap();
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
    fn numbers_of_threads_double_up_to_all() {
        assert_eq!([counts(1), counts(5)], [vec![1], vec![1, 2, 4, 5]]);
    }

    #[test]
    fn threads_that_were_measured_in_an_earlier_order_are_not_measured_again() {
        on_this_machine(|ground| {
            let thread = (ground.memories[0], ground.cpus.first().unwrap());
            let order = |name: &str| Order { name: name.to_owned(), threads: vec![thread] };
            let (mut result, mut measured) = (BenchResult::default(), Vec::new());
            let shape = Shape { array: 1 << 17, vectors: Vectors::Plain };
            let mut values = |name| of_order(ground, &order(name), 1, shape, &mut measured, &mut result);
            let (one, two) = (values("one"), values("two"));
            assert!(one.iter().all(Option::is_some) && one == two, "{one:?} {two:?}");
            assert_eq!((result.values.len(), measured.len()), (LOOPS.len(), 1));
        });
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
            let curves: Vec<_> =
                result.curves.iter().map(|curve| (&*curve.name, curve.points.len())).collect();
            let compact = |one: &Loop| (format!("{}, medians, compact", one.name), counts(cpus).len());
            for (name, points) in LOOPS.iter().map(compact) {
                assert!(curves.contains(&(name.as_str(), points)), "{curves:?}");
            }
            assert_eq!(result.curves[0].points[0].value, result.values[0].value);
            assert_eq!(result.warnings, [""; 0]);
        });
    }
}
