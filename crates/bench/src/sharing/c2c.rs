//! The time for which a cache line travels from one CPU to another and back.

use crate::ground::Ground;
use crate::ground::placed::{self, Misplaced};
use crate::results::quantiles::Quantiles;
use crate::results::{BenchResult, PairMatrix};
use crate::sampled;
use crate::sharing::c2c_groups::{self, Pair};
use numakit_model::CpuSet;
use numakit_sys::{clock, sched};
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of CPUs that are compared with each other: that is 1,128 pairs.
const MAX_CPUS: usize = 48;
/// Maximum number of round trips between two readings of the clock, and the time after which their number is large enough,
/// in ns.
const TRIPS: u64 = 512;
const ENOUGH: f64 = 50_000.0;
/// Round trips before the first that counts.
const WARM_UP: u64 = 8;
/// Times that the line is looked at before another program may have the CPU.
const LOOKS: u32 = 100_000;
/// The value that the first thread writes to end the measurement.
const END: u64 = u64::MAX;

/// A value that has a cache line of its own; two lines, since some CPUs fetch pairs.
#[derive(Default)]
#[repr(align(128))]
struct Line(AtomicU64);

impl Line {
    /// Waits until the value is this one or [`END`].
    fn wait_for(&self, wanted: u64) -> u64 {
        let mut looks = 0;
        loop {
            let value = self.0.load(Ordering::Acquire);
            if value == wanted || value == END {
                return value;
            }
            // Out of the compiler's sight: in an unrolled loop the CPU runs ahead with many loads and has to drop them
            // all when the line comes, which takes half as long as the line itself. The instruction for waiting loops
            // takes longer still.
            looks = std::hint::black_box(looks + 1);
            if looks == LOOKS {
                looks = 0;
                std::thread::yield_now();
            }
        }
    }

    /// Writes one more than an even value, and waits for the next even one.
    fn trip(&self, even: u64) {
        self.0.store(even + 1, Ordering::Release);
        self.wait_for(even + 2);
    }

    /// Does the part of the second thread: answers each odd value with the next even one.
    fn answer(&self) {
        let mut odd = 1;
        while self.wait_for(odd) != END {
            self.0.store(odd + 1, Ordering::Release);
            odd += 2;
        }
    }
}

/// Measures it for every pair of CPUs, or for as many as can be compared.
pub(crate) fn measure(ground: &Ground<'_>, result: &mut BenchResult) {
    let cpus = chosen(ground, result);
    if cpus.len() < 2 {
        return result.leave_out("lines between CPUs", "only one CPU can be used");
    }
    let mut matrix =
        PairMatrix::new("cache line to another CPU and back", "ns", true, cpus.clone(), cpus.clone());
    (matrix.row, matrix.column) = ("CPU".to_owned(), "CPU".to_owned());
    let mut pairs = Vec::new();
    for (row, &one) in cpus.iter().enumerate() {
        for (column, &two) in cpus.iter().enumerate().skip(row + 1) {
            if ground.is_stopped() {
                break;
            }
            ground.now(format!("c2c: CPU {one} and CPU {two}"));
            match bounce(ground, one, two) {
                Ok(Some(value)) => {
                    matrix.set(row, column, Some(value));
                    matrix.set(column, row, Some(value));
                    pairs.push(Pair { cpus: (one, two), ns: value.median });
                }
                Ok(None) => {}
                Err(Misplaced(why)) => result.leave_out(format!("CPU {one} and CPU {two}"), why),
            }
        }
    }
    result.matrices.push(matrix);
    c2c_groups::describe(ground.topology, &pairs, result);
}

/// All CPUs in use, or some of each part of the machine.
fn chosen(ground: &Ground<'_>, result: &mut BenchResult) -> Vec<u32> {
    let all: Vec<u32> = ground.cpus.iter().collect();
    if all.len() <= MAX_CPUS {
        return all;
    }
    let firsts: Vec<u32> = ground.places.iter().flat_map(|place| place.cpus.iter().copied()).collect();
    let mut some: CpuSet = spread(&firsts, MAX_CPUS - 1).collect();
    // This adds a second hardware thread of the first core, so that such a pair is compared too.
    let first = some.first();
    let core = ground.topology.cores.iter().find(|core| first.is_some_and(|cpu| core.cpus.contains(cpu)));
    let sibling = core.and_then(|core| core.cpus.and(&ground.cpus).iter().find(|cpu| Some(*cpu) != first));
    sibling.into_iter().for_each(|cpu| some.insert(cpu));
    result.leave_out(
        format!("{} of {} CPUs", all.len() - some.len(), all.len()),
        format!("at most {MAX_CPUS} are compared with each other; name others with --cpus"),
    );
    some.iter().collect()
}

/// This number of values at equal distances, or all.
fn spread(values: &[u32], count: usize) -> impl Iterator<Item = u32> + '_ {
    let count = count.min(values.len());
    (0..count).map(move |at| values[at * values.len() / count])
}

/// Lets a line go from one CPU to another and back; `None` if the user ends the run.
fn bounce(ground: &Ground<'_>, one: u32, two: u32) -> Result<Option<Quantiles>, Misplaced> {
    let (time, line) = (ground.time() / 10, Line::default());
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let bound = sched::set_affinity(&CpuSet::range(two, two));
            // This thread answers even if it cannot be bound, since the first thread waits for it.
            line.answer();
            bound.map_err(|error| Misplaced(format!("a thread cannot be bound to CPU {two}: {error}")))
        });
        let first = placed::on_cpu(one, || {
            let mut even = 0;
            let mut trips = |count: u64| {
                let begin = clock::monotonic();
                for _ in 0..count {
                    line.trip(even);
                    even += 2;
                }
                (clock::monotonic() - begin) as f64 / count as f64
            };
            // The first trips take longer, until both threads are on their CPUs.
            trips(WARM_UP);
            // A trip takes long if CPUs take turns, as those of an emulator do.
            let mut count = 1;
            while trips(count) * (count as f64) < ENOUGH && count < TRIPS {
                count *= 2;
            }
            sampled::repeat(time, || (!ground.is_stopped()).then(|| trips(count)))
        });
        line.0.store(END, Ordering::Release);
        match other.join() {
            Ok(bound) => bound?,
            Err(_) => return Err(Misplaced(format!("the thread on CPU {two} failed"))),
        }
        Ok(Quantiles::of(first?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::on_this_machine;
    use crate::interruptible::Watch;
    use crate::settings::BenchSettings;
    use numakit_sys::SysRoot;

    #[test]
    fn a_line_goes_back_and_forth_once_for_each_trip() {
        let line = Line::default();
        std::thread::scope(|scope| {
            scope.spawn(|| line.answer());
            (0..1000).for_each(|trip| line.trip(2 * trip));
            let last = line.0.load(Ordering::Acquire);
            // The other thread ends with that, whatever was found.
            line.0.store(END, Ordering::Release);
            assert_eq!(last, 2000);
        });
    }

    #[test]
    fn values_are_taken_at_equal_distances() {
        let values: Vec<u32> = (0..100).collect();
        assert_eq!(spread(&values, 4).collect::<Vec<_>>(), [0, 25, 50, 75]);
        assert_eq!(spread(&values[..3], 10).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn a_large_machine_is_measured_in_part_and_says_so() {
        let topology = numakit_topology::synthetic::parse("package:2 node:2 core:16 pu:2").unwrap();
        let (settings, watch) = (BenchSettings::default(), Watch::default());
        let ground = Ground::new(SysRoot::host(), &topology, &settings, true, &watch);
        let mut result = BenchResult::default();
        let cpus = chosen(&ground, &mut result);
        assert_eq!(cpus.len(), MAX_CPUS);
        assert!(
            topology.nodes.iter().all(|node| cpus.iter().any(|cpu| node.cpus.contains(*cpu))),
            "{cpus:?}"
        );
        assert_eq!(result.left_out[0].what, "80 of 128 CPUs");
    }

    #[test]
    fn every_pair_is_measured() {
        on_this_machine(|ground| {
            let mut result = BenchResult::default();
            measure(ground, &mut result);
            let Some(matrix) = result.matrices.first() else {
                assert_eq!(ground.cpus.len(), 1);
                return numakit_skips::MACHINE.skip("this machine has one CPU");
            };
            let count = matrix.rows.len();
            assert_eq!(matrix.values().count(), count * (count - 1), "{:?}", result.left_out);
            assert!(
                (0..count)
                    .all(|at| matrix.cells[at][at].is_none() && matrix.cells[0][at] == matrix.cells[at][0])
            );
            assert!(matrix.values().all(|value| value.median > 0.0));
            assert!(
                bounce(ground, 9999, 0).is_err()
                    && bounce(ground, ground.cpus.first().unwrap(), 9999).is_err()
            );
        });
    }
}
