//! How much it matters which physical pages a program gets: the time of a load in fresh memory that a cache could hold,
//! measured again and again. The kernel takes any free pages. If more pages than the cache has ways compete for the same
//! sets, the cache does not hold them.

use crate::ground::Ground;
use crate::ground::placed::{self, Misplaced};
use crate::latency::{chain, chase};
use crate::results::quantiles::Quantiles;
use crate::results::short::{ShortRow, ShortTable, table};
use crate::results::{Axis, BenchResult, Curve};
use crate::sampled;
use numakit_model::numbers::{NumberStyle, counted};
use numakit_sys::loops::{Advice, Chain, HUGE_PAGE};
use std::collections::VecDeque;

/// The name of the curves' axis.
pub(crate) const SHARE: &str = "share of runs";
/// Maximum number of runs, and the time that they may take together, in multiples of the time of a value.
const RUNS: usize = 40;
const TIMES: u32 = 10;
/// Bytes of earlier runs' memory that are kept, so that the kernel does not give the same pages again.
const KEPT: usize = 128 << 20;
const SEED: u64 = 0xb529_7a4d_9f3b_1c63;
/// The shares of the runs that are points of the curve: tenths.
const SHARES: usize = 10;
/// A smaller factor between the slowest and the fastest tenth is not worth a word.
const WORTH: f64 = 1.1;
/// The share of the time of a load from memory that is more than any cache takes.
const MISSES: f64 = 0.4;

const PAGES: [(&str, Advice); 2] = [("small pages", Advice::Small), ("huge pages", Advice::Huge)];

/// Measures each cache from the second level on.
pub(crate) fn measure(ground: &Ground<'_>, node: u32, cpu: u32, result: &mut BenchResult) {
    let memory = memory_time(ground, node, cpu);
    for level in 2..=4 {
        let cache = ground.topology.caches_of_level(level).find(|cache| cache.cpus.contains(cpu));
        let Some((size, cpus)) = cache.and_then(|cache| Some((cache.size?, &cache.cpus))) else { continue };
        let (bytes, share) = part(size, cpus.iter().any(|other| !is_of_core(ground, cpu, other)));
        let words = NumberStyle::Bytes.words(bytes as f64);
        let what = format!("{words}, {share} of L{level}");
        if ground.settings.size.is_some_and(|most| most < bytes) {
            result.leave_out(format!("pages of {what}"), format!("give --size {words} or more"));
            continue;
        }
        for (pages, advice) in PAGES {
            if ground.is_stopped() {
                return;
            }
            ground.now(format!("assoc: {what} in {pages}"));
            let (runs, refused) = runs(ground, node, cpu, bytes as usize, advice);
            let count = runs.len();
            add(&format!("{what}, in fresh {pages}"), runs, memory, result);
            if let Some(Misplaced(why)) = refused {
                result.leave_out(format!("more than {} of {what} in {pages}", counted(count, "run")), why);
            }
        }
    }
}

/// The time of a load from memory, in ns; none where little memory is to be used.
fn memory_time(ground: &Ground<'_>, node: u32, cpu: u32) -> Option<f64> {
    let (size, cache) = (ground.size_beyond(ground.last_level_cache()), ground.last_level_cache());
    if size < 2 * cache || ground.is_stopped() {
        return None;
    }
    ground.now("assoc: a load from memory".to_owned());
    let chain = chain(ground, node, size).ok()?;
    let loads = placed::on_cpu(cpu, || chase(ground, &chain, ground.time() / 10)).ok()?;
    sampled::quantiles(&loads, |load| load.ns).map(|value| value.median)
}

/// The part of a cache that is used: a smaller part if other CPUs use the cache too.
fn part(size: u64, is_shared: bool) -> (u64, &'static str) {
    if is_shared { (size / 2, "half") } else { (size / 4 * 3, "3/4") }
}

fn is_of_core(ground: &Ground<'_>, cpu: u32, other: u32) -> bool {
    cpu == other
        || ground.topology.cores.iter().any(|core| core.cpus.contains(cpu) && core.cpus.contains(other))
}

/// The time of a load in each run, in ns, and the reason if there are fewer runs than wanted.
fn runs(
    ground: &Ground<'_>,
    node: u32,
    cpu: u32,
    bytes: usize,
    advice: Advice,
) -> (Vec<Quantiles>, Option<Misplaced>) {
    let whole = if advice == Advice::Huge { bytes.next_multiple_of(HUGE_PAGE) } else { bytes };
    let mut kept = VecDeque::new();
    let (mut refused, mut left) = (None, RUNS);
    let mut once = || {
        let mut region = placed::memory(ground, node, whole as u64, advice)?;
        if advice == Advice::Huge && region.huge_bytes().is_some_and(|huge| huge < whole as u64) {
            return Err(Misplaced("the kernel gives no huge pages for it".to_owned()));
        }
        let chain = placed::beside(ground, node, || Chain::over(region, bytes, SEED))?;
        let loads = placed::on_cpu(cpu, || chase(ground, &chain, ground.time() / 50))?;
        region = chain.into_region();
        kept.push_back(region);
        if kept.len() * whole > KEPT {
            kept.pop_front();
        }
        Ok(sampled::quantiles(&loads, |load| load.ns))
    };
    let runs = sampled::repeat(ground.time() * TIMES, || {
        left = left.checked_sub(1).filter(|_| !ground.is_stopped())?;
        once().map_err(|error| refused = Some(error)).ok()?
    });
    (runs, refused)
}

/// The fastest run, the median and the slowest one of each curve.
pub(crate) fn short(curves: &[&Curve]) -> Option<ShortTable> {
    let row = |curve: &&Curve| {
        let of = |share: f64| Some(curve.points.iter().find(|point| point.x == share)?.value.median);
        let words = vec![curve.name.trim_start_matches("load latency, ").to_owned()];
        Some(ShortRow { words, values: vec![of(0.0)?, of(50.0)?, of(100.0)?] })
    };
    let rows: Vec<ShortRow> = curves.iter().map(row).collect::<Option<_>>()?;
    table("load latency of runs", vec!["", "fastest", "median", "slowest"], curves, rows)
}

/// Adds the distribution of runs as a curve, and what it shows. If even fast runs take as long as memory does, the cache
/// does not hold the memory, whichever pages it has.
fn add(name: &str, mut runs: Vec<Quantiles>, memory: Option<f64>, result: &mut BenchResult) {
    runs.sort_by(|one, other| one.median.total_cmp(&other.median));
    let Some(all) = Quantiles::of(runs.iter().map(|run| run.median).collect()) else { return };
    let axis = Axis { name: SHARE.to_owned(), unit: "%".to_owned(), logarithmic: false };
    let mut curve = Curve::new(format!("load latency, {name}"), "ns", true, axis);
    for share in 0..=SHARES {
        let at = (share * (runs.len() - 1)).div_ceil(SHARES);
        curve.add((100 * share / SHARES) as f64, runs.get(at).copied());
    }
    result.curves.push(curve);
    let factor = all.high / all.low;
    let about = match memory.filter(|memory| all.low > MISSES * memory) {
        Some(memory) => format!(
            "cannot tell whether it matters where its pages lie: the cache holds less than that, as a load from memory takes \
             {memory:.1} ns"
        ),
        None if factor >= WORTH => {
            format!("where its pages lie, or what else ran, makes a factor of {factor:.2}")
        }
        None => "it does not matter where its pages lie".to_owned(),
    };
    result.remarks.push(format!(
        "{name}: of {} a tenth took less than {:.1} ns a load and a tenth more than {:.1}: {about}",
        counted(all.samples, "run"),
        all.low,
        all.high
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::on_this_machine;

    fn run(median: f64) -> Quantiles {
        Quantiles { median, low: median, high: median, samples: 1 }
    }

    #[test]
    fn runs_are_sorted_and_their_shares_are_points() {
        let mut result = BenchResult::default();
        let memory = Some(100.0);
        add("it", (0..11).rev().map(|at| run(f64::from(at) + 1.0)).collect(), memory, &mut result);
        let points: Vec<_> = result.curves[0].points.iter().map(|p| (p.x, p.value.median)).collect();
        assert_eq!(points.len(), 11);
        assert!(points.iter().enumerate().all(|(at, point)| *point == (10.0 * at as f64, at as f64 + 1.0)));
        assert!(
            result.remarks[0].contains("of 11 runs a tenth took less than 2.0 ns"),
            "{}",
            result.remarks[0]
        );
        assert!(result.remarks[0].contains("a factor of 5.00"));
        let short = short(&[&result.curves[0]]).unwrap();
        assert_eq!((short.rows[0].words[0].as_str(), &*short.rows[0].values), ("it", &[1.0, 6.0, 11.0][..]));
        add("two", vec![run(2.0); 2], None, &mut result);
        assert!(result.remarks[1].contains("it does not matter"));
        add("none", Vec::new(), memory, &mut result);
        assert_eq!(result.curves.len(), 2);
    }

    #[test]
    fn loads_that_take_as_long_as_those_from_memory_say_nothing_about_pages() {
        for runs in [[143.5, 150.0, 158.2], [134.5, 140.0, 145.8]] {
            let mut result = BenchResult::default();
            add("half of L3", runs.map(run).to_vec(), Some(151.0), &mut result);
            let remark = &result.remarks[0];
            assert!(remark.contains("cannot tell") && remark.contains("151.0 ns"), "{remark}");
            assert!(!remark.contains("does not matter") && !remark.contains("factor"), "{remark}");
            assert_eq!(result.curves.len(), 1, "what was measured is shown");
        }
    }

    #[test]
    fn half_of_a_shared_cache_is_used() {
        assert_eq!([part(1 << 20, false), part(32 << 20, true)], [(768 << 10, "3/4"), (16 << 20, "half")]);
        on_this_machine(|ground| {
            let cpu = ground.cpus.first().unwrap();
            assert!(is_of_core(ground, cpu, cpu) && !is_of_core(ground, cpu, 9999));
        });
    }

    #[test]
    fn every_cache_that_may_be_filled_is_measured_in_fresh_memory() {
        on_this_machine(|ground| {
            let (node, cpu) = (ground.memories[0], ground.cpus.first().unwrap());
            let (runs, refused) = runs(ground, node, cpu, 256 << 10, Advice::Small);
            assert_eq!(refused, None);
            assert!((sampled::MIN_SAMPLES..=RUNS).contains(&runs.len()), "{}", runs.len());
            assert!(runs.iter().all(|run| run.median > 0.0));
            let mut result = BenchResult::default();
            measure(ground, node, cpu, &mut result);
            let caches = (2..=4).filter(|level| {
                ground
                    .topology
                    .caches_of_level(*level)
                    .any(|cache| cache.cpus.contains(cpu) && cache.size.is_some())
            });
            let caches = caches.count();
            let none =
                result.left_out.iter().filter(|left| left.what.starts_with("more than 0 runs")).count();
            let small = result.left_out.iter().filter(|left| left.why.contains("--size")).count();
            assert_eq!(result.curves.len() + none + 2 * small, 2 * caches, "{result:?}");
        });
    }
}
