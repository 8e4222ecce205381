//! What it costs that all threads wait for each other: several kinds of barriers, by number of threads.

use crate::ground::Ground;
use crate::ground::placed::Misplaced;
use crate::results::quantiles::Quantiles;
use crate::results::{Axis, BenchResult, Curve, CurveMark};
use crate::sampled::MIN_SAMPLES;
use crate::sharing::barriers::{Barrier, Central, Dissemination, NodeAware, Tree};
use numakit_model::CpuSet;
use numakit_sys::loops::{OpenMp, PthreadBarrier};
use numakit_sys::{clock, sched};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Maximum number of barriers between two readings of the clock, and the time after which their number is large enough, in
/// ns.
const TURNS: u32 = 2048;
const ENOUGH: u64 = 100_000;

/// A node, and a CPU of it.
type Thread = (u32, u32);
type Made = Result<Box<dyn Barrier>, Misplaced>;

/// A kind of barrier, and the function that makes one for these threads.
struct Kind {
    name: &'static str,
    make: fn(&[Thread]) -> Made,
}

const KINDS: [Kind; 5] = [
    Kind {
        name: "pthread_barrier_wait",
        make: |threads| match PthreadBarrier::new(threads.len() as u32) {
            Ok(barrier) => Ok(Box::new(barrier)),
            Err(error) => Err(Misplaced(format!("the C library makes none: {error}"))),
        },
    },
    Kind { name: "central, sense-reversing", make: |threads| Ok(Box::new(Central::new(threads.len()))) },
    Kind { name: "tree, four children each", make: |threads| Ok(Box::new(Tree::new(threads.len()))) },
    Kind { name: "dissemination", make: |threads| Ok(Box::new(Dissemination::new(threads.len()))) },
    Kind {
        name: "node-aware",
        make: |threads| {
            let nodes: Vec<u32> = threads.iter().map(|(node, _)| *node).collect();
            Ok(Box::new(NodeAware::new(&nodes)))
        },
    },
];

/// Measures all kinds of barriers. Threads are first on the cores of one node.
pub(crate) fn measure(ground: &Ground<'_>, result: &mut BenchResult) {
    let of = |node: u32, cpus: &[u32]| cpus.iter().map(|cpu| (node, *cpu)).collect::<Vec<Thread>>();
    let threads: Vec<Thread> = ground.places.iter().flat_map(|place| of(place.node, &place.cpus)).collect();
    if threads.len() < 2 {
        return result.leave_out("barriers", "only one core can be used, and its threads would take turns");
    }
    for kind in &KINDS {
        let on_nodes = |count: usize| threads[..count].iter().any(|(node, _)| *node != threads[0].0);
        let counts: Vec<usize> = counts(threads.len())
            .into_iter()
            .filter(|count| kind.name != "node-aware" || on_nodes(*count))
            .collect();
        if counts.is_empty() {
            result.leave_out(
                format!("barrier, {}", kind.name),
                "all threads are on one node, where it is the central one",
            );
            continue;
        }
        curve(ground, kind.name, &threads, &counts, result, |chosen| {
            let barrier = (kind.make)(chosen)?;
            by_threads(ground, chosen, barrier.as_ref())
        });
    }
    match OpenMp::load() {
        Some(openmp) => {
            let name = format!("OpenMP ({})", openmp.library);
            let measure = |chosen: &[Thread]| by_openmp(ground, chosen, openmp);
            curve(ground, &name, &threads, &counts(threads.len()), result, measure);
        }
        None => result
            .leave_out("barrier, OpenMP", "this machine has no libgomp.so.1 or libomp.so; install libgomp1"),
    }
    result
        .remarks
        .push("threads wait busily, one on each core; pthread_barrier_wait sleeps in the kernel".to_owned());
    result.remarks.extend(fastest(&result.curves));
    result.warnings.extend(more_than(ground.topology.limits.cpus, threads.len()));
}

/// Which kind is the fastest with all threads, and which may be as fast: their intervals from the 10 % to the 90 % quantile
/// overlap.
fn fastest(curves: &[Curve]) -> Option<String> {
    let most = curves.iter().filter_map(|curve| Some(curve.points.last()?.x)).fold(0.0, f64::max);
    let last = |curve: &Curve| curve.points.last().filter(|point| point.x == most).map(|point| point.value);
    let mut times: Vec<(Quantiles, &str)> =
        curves.iter().filter_map(|curve| Some((last(curve)?, curve.name.as_str()))).collect();
    times.sort_by(|one, other| one.0.median.total_cmp(&other.0.median));
    let ((time, name), others) = times.split_first()?;
    let near: Vec<String> = others
        .iter()
        .filter(|(other, _)| !time.interval().is_below(other.interval()))
        .map(|(other, name)| format!("{name}, {:.0} ns", other.median))
        .collect();
    let best = format!("{name}, {:.0} ns", time.median);
    Some(match near.is_empty() {
        true => format!("the fastest with {most} threads: {best}"),
        false => format!("the fastest with {most} threads, within noise: {best}; {}", near.join("; ")),
    })
}

/// Why threads may not run at the same time: there are more of them than CPUs that the process may use at once.
fn more_than(cpus: Option<f64>, threads: usize) -> Option<String> {
    let cpus = cpus.filter(|cpus| *cpus < threads as f64)?;
    Some(format!(
        "the control group of this process may use {cpus:.1} CPUs, fewer than {threads} threads: the kernel stops those that wait, too"
    ))
}

/// All numbers of threads with one kind.
fn curve(
    ground: &Ground<'_>,
    name: &str,
    threads: &[Thread],
    counts: &[usize],
    result: &mut BenchResult,
    measure: impl Fn(&[Thread]) -> Result<Vec<f64>, Misplaced>,
) {
    let mut curve = Curve::new(format!("barrier, {name}"), "ns", true, Axis::threads());
    curve.marks = marks(threads);
    for &count in counts {
        if ground.is_stopped() {
            break;
        }
        ground.now(format!("barrier: {name}, {count} threads"));
        match measure(&threads[..count]) {
            Ok(times) => curve.add(count as f64, Quantiles::of(times)),
            Err(Misplaced(why)) => result.leave_out(format!("barrier, {name}, {count} threads"), why),
        }
    }
    result.add_curve(curve);
}

/// Marks at the numbers of threads that use all cores of one or several nodes and none of the others.
fn marks(threads: &[Thread]) -> Vec<CurveMark> {
    let ends = (1..threads.len()).filter(|&at| threads[at].0 != threads[at - 1].0);
    let mark =
        |at: usize| CurveMark { x: at as f64, name: format!("the last core of node {}", threads[at - 1].0) };
    ends.map(mark).collect()
}

/// 2, 4, 8, and all.
fn counts(all: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(2), |count| Some(count * 2)).take_while(|count| *count < all);
    powers.chain([all]).collect()
}

/// The times of a barrier with threads of ours.
fn by_threads(ground: &Ground<'_>, chosen: &[Thread], barrier: &dyn Barrier) -> Result<Vec<f64>, Misplaced> {
    let trial = Trial::new(ground);
    std::thread::scope(|scope| {
        for (me, &(_, cpu)) in chosen.iter().enumerate() {
            let trial = &trial;
            scope.spawn(move || trial.take_part(me, cpu, barrier));
        }
    });
    trial.times()
}

/// The times of a barrier with OpenMP's threads, which end with the thread that calls it.
fn by_openmp(ground: &Ground<'_>, chosen: &[Thread], openmp: OpenMp) -> Result<Vec<f64>, Misplaced> {
    let trial = Trial::new(ground);
    let member = |me: usize, all: usize| match chosen.get(me) {
        Some(&(_, cpu)) if all == chosen.len() => trial.take_part(me, cpu, &openmp),
        _ => trial.refuse(format!("OpenMP gives {all} threads; is OMP_THREAD_LIMIT or OMP_DYNAMIC set?")),
    };
    std::thread::scope(|scope| {
        scope.spawn(|| openmp.parallel(chosen.len() as u32, &member));
    });
    trial.times()
}

/// What the threads of a measurement share. The first one reads the clock and decides; the others read its decision after
/// the next barrier.
struct Trial<'a> {
    ground: &'a Ground<'a>,
    time: Duration,
    turns: AtomicU32,
    over: AtomicBool,
    times: Mutex<Vec<f64>>,
    refused: Mutex<Option<Misplaced>>,
}

impl<'a> Trial<'a> {
    fn new(ground: &'a Ground<'a>) -> Self {
        Self {
            ground,
            time: ground.time() / 5,
            turns: AtomicU32::new(1),
            over: AtomicBool::new(false),
            times: Mutex::default(),
            refused: Mutex::default(),
        }
    }

    fn refuse(&self, why: String) {
        if let Ok(mut refused) = self.refused.lock() {
            *refused = Some(Misplaced(why));
        }
    }

    fn times(self) -> Result<Vec<f64>, Misplaced> {
        match self.refused.into_inner() {
            Ok(Some(refused)) => Err(refused),
            _ => Ok(self.times.into_inner().unwrap_or_default()),
        }
    }

    /// Binds the calling thread to its CPU and waits with the others again and again. A thread that cannot be bound takes part
    /// too, as the others wait for it.
    fn take_part(&self, me: usize, cpu: u32, barrier: &dyn Barrier) {
        if let Err(error) = sched::set_affinity(&CpuSet::range(cpu, cpu)) {
            self.refuse(format!("a thread cannot be bound to CPU {cpu}: {error}"));
        }
        let mut turn = 0;
        let mut wait = || {
            turn += 1;
            barrier.wait(me, turn);
        };
        let end = clock::monotonic() + self.time.as_nanos() as u64;
        loop {
            wait();
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            let turns = self.turns.load(Ordering::Relaxed);
            let begin = clock::monotonic();
            (0..turns).for_each(|_| wait());
            if me == 0 {
                self.decide(turns, clock::monotonic() - begin, end);
            }
        }
    }

    /// Decides for all threads, as the first one: increases the number of turns until reading the clock does not matter;
    /// then keeps times until there are enough.
    fn decide(&self, turns: u32, time: u64, end: u64) {
        let is_over = self.ground.is_stopped() || clock::monotonic() >= end;
        let Ok(mut times) = self.times.lock() else { return self.over.store(true, Ordering::Relaxed) };
        if time < ENOUGH && turns < TURNS && !self.ground.is_stopped() {
            self.turns.store(turns * 2, Ordering::Relaxed);
        } else {
            times.push(time as f64 / f64::from(turns));
            let enough = times.len() >= MIN_SAMPLES || self.ground.is_stopped();
            self.over.store(is_over && enough, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::on_this_machine;

    #[test]
    fn numbers_of_threads_double_and_nodes_are_marked() {
        assert_eq!([counts(2), counts(6), counts(8)], [vec![2], vec![2, 4, 6], vec![2, 4, 8]]);
        let marks = marks(&[(0, 0), (0, 1), (3, 2), (3, 3)]);
        assert_eq!(marks, [CurveMark { x: 2.0, name: "the last core of node 0".to_owned() }]);
    }

    #[test]
    fn the_fastest_has_all_threads() {
        let curve = |name: &str, points: &[(f64, f64)]| {
            let mut curve = Curve::new(name, "ns", true, Axis::threads());
            points.iter().for_each(|&(x, ns)| curve.add(x, Quantiles::of(vec![ns])));
            curve
        };
        let curves = [
            curve("one", &[(2.0, 50.0), (4.0, 300.0)]),
            curve("two", &[(2.0, 90.0), (4.0, 200.4)]),
            curve("interrupted", &[(2.0, 10.0)]),
            curve("none", &[]),
        ];
        assert_eq!(fastest(&curves).as_deref(), Some("the fastest with 4 threads: two, 200 ns"));
        assert_eq!(fastest(&[]), None);
        let wide = |low, median, high| Some(Quantiles { median, low, high, samples: 9 });
        let [mut near, mut far] = [curve("near", &[]), curve("far", &[])];
        near.add(4.0, wide(190.0, 220.0, 250.0));
        far.add(4.0, wide(210.0, 215.0, 250.0));
        let all = [curves[1].clone(), near, far];
        assert_eq!(
            fastest(&all).as_deref(),
            Some("the fastest with 4 threads, within noise: two, 200 ns; near, 220 ns")
        );
    }

    #[test]
    fn more_threads_than_cpu_time_is_a_warning() {
        assert_eq!([more_than(None, 64), more_than(Some(2.0), 2)], [None, None]);
        assert!(more_than(Some(1.5), 2).unwrap().contains("1.5 CPUs, fewer than 2 threads"));
    }

    #[test]
    fn every_kind_is_measured_or_has_a_reason() {
        on_this_machine(|ground| {
            let mut result = BenchResult::default();
            measure(ground, &mut result);
            let cpus: usize = ground.places.iter().map(|place| place.cpus.len()).sum();
            if cpus < 2 {
                assert_eq!(result.left_out.len(), 1);
                return numakit_skips::MACHINE.skip("this machine has one core");
            }
            assert_eq!(result.curves.len() + result.left_out.len(), KINDS.len() + 1, "{result:?}");
            // A machine may have no OpenMP library, and one node is no place for the last kind.
            let may_lack = |what: &str| {
                what == "barrier, OpenMP" || what == "barrier, node-aware" && ground.places.len() == 1
            };
            assert!(result.left_out.iter().all(|left| may_lack(&left.what)), "{:?}", result.left_out);
            for curve in result.curves.iter().filter(|curve| !curve.name.contains("node-aware")) {
                assert_eq!(curve.points.len(), counts(cpus).len(), "{curve:?}");
                assert!(curve.points.iter().all(|p| p.value.median > 0.0 && p.value.samples >= MIN_SAMPLES));
            }
        });
    }

    #[test]
    fn threads_on_several_nodes_have_a_barrier_between_them() {
        on_this_machine(|ground| {
            let cpu = ground.cpus.first().unwrap();
            // More threads than CPUs: those that wait let the others run.
            let threads = [(0, cpu), (0, cpu), (1, cpu), (1, cpu)];
            for kind in &KINDS {
                let barrier = (kind.make)(&threads).unwrap();
                let times = by_threads(ground, &threads, barrier.as_ref()).unwrap();
                assert!(times.len() >= MIN_SAMPLES && times.iter().all(|time| *time > 0.0), "{}", kind.name);
            }
            let barrier = (KINDS[1].make)(&[(0, cpu), (0, 9999)]).unwrap();
            let refused = by_threads(ground, &[(0, cpu), (0, 9999)], barrier.as_ref()).unwrap_err();
            assert!(refused.0.contains("CPU 9999"), "{refused}");
        });
    }
}
