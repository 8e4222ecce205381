//! The time of a load by how much others read and write meanwhile: for each pair of nodes and each share of reads, from
//! idle memory to saturated memory.

use crate::bandwidth::curve_knee::{is_saturated, knee, next_rate};
use crate::bandwidth::generators::{Gauges, Generators, Pace};
use crate::ground::placed::{self, Misplaced};
use crate::ground::{Ground, NodeCpus};
use crate::latency::{LoadTime, TURNS, chain, chase, chase_beside};
use crate::results::quantiles::Quantiles;
use crate::results::{Axis, BenchResult, Curve, CurveMark, NamedValue};
use crate::sampled;
use numakit_sys::loops::{Chain, Mix};

/// Points of a curve at most, with `--quick` and without.
const POINTS: [usize; 2] = [8, 16];
/// Pairs at most.
const PAIRS: [usize; 2] = [4, 16];
/// The share of the traffic that is asked of generators with which a point counts.
const REACHED: f64 = 0.8;
const RATE: &str = "GB/s";
const TIME: &str = "ns";

/// A place of a curve.
#[derive(Debug, Clone, PartialEq)]
struct Point {
    /// The rate that the generators were asked for; `None` if they had no limit.
    asked: Option<f64>,
    /// The rate that the generators reached.
    rate: Quantiles,
    load: Quantiles,
}

/// Measures the curves, one pair of nodes after the other.
pub(crate) fn measure(ground: &Ground<'_>, result: &mut BenchResult) {
    let pairs = pairs(ground, result);
    if pairs.is_empty() {
        return;
    }
    result.remarks.push(
        "bandwidth is what the other cores of the node move; a line that is written counts twice, as it is read before"
            .to_owned(),
    );
    for (place, node) in pairs {
        if ground.is_stopped() {
            return;
        }
        if let Err(Misplaced(why)) = pair(ground, place, node, result) {
            result.leave_out(words(place, node), why);
        }
    }
}

fn words(place: &NodeCpus, node: u32) -> String {
    format!("CPUs of node {} with memory of node {node}", place.node)
}

/// All pairs of nodes; if there is too little time, each node with its own memory, and as many of the other pairs as there
/// is time for.
fn pairs<'a>(ground: &'a Ground<'_>, result: &mut BenchResult) -> Vec<(&'a NodeCpus, u32)> {
    let with = |place: &'a NodeCpus| ground.memories.iter().map(move |&node| (place, node));
    let (mut pairs, others): (Vec<_>, Vec<_>) =
        ground.places.iter().flat_map(with).partition(|(place, node)| place.node == *node);
    pairs.extend(others);
    let most = PAIRS[usize::from(!ground.settings.quick)];
    if pairs.len() > most {
        let what = format!("{} of {} pairs of nodes", pairs.len() - most, pairs.len());
        result.leave_out(what, format!("at most {most} are measured; name others with --nodes"));
        pairs.truncate(most);
    }
    pairs
}

/// All shares of reads between the CPUs and the memory of two nodes.
fn pair(ground: &Ground<'_>, place: &NodeCpus, node: u32, result: &mut BenchResult) -> Result<(), Misplaced> {
    let pair = words(place, node);
    let (&cpu, others) = place.cpus.split_first().ok_or_else(|| Misplaced("it has no CPUs".to_owned()))?;
    ground.now(format!("curve: {pair}"));
    let mut generators =
        Generators::on(ground, others, node, ground.size_beyond(ground.caches_of(place.node)))?;
    let chain = chain(ground, node, ground.size_beyond(ground.last_level_cache()))?;
    let loads = placed::on_cpu(cpu, || chase(ground, &chain, ground.time()))?;
    let Some(idle) = sampled::quantiles(&loads, |load| load.ns) else { return Ok(()) };
    result.values.push(value(format!("idle, {pair}"), TIME, idle));
    for mix in Mix::ALL {
        if ground.is_stopped() {
            break;
        }
        let name = format!("{} % reads, {pair}", mix.read_percent());
        ground.now(format!("curve: {name}"));
        let (points, slow) = points(ground, cpu, &chain, &mut generators, mix)?;
        if slow > 0 {
            let why = "the other cores made less traffic than was asked: others used them";
            result.leave_out(format!("{slow} of the points of {name}"), why);
        }
        let curve = Curve::new(format!("load latency, {name}"), TIME, true, Axis::bandwidth());
        let curve = Curve { read_percent: Some(mix.read_percent()), ..curve.between(place.node, node) };
        describe(name, curve, idle, &points, result);
    }
    Ok(())
}

/// Measures points of a curve. The first one is full traffic; each further one is where the latency changes most between two
/// known points. Also returns the number of points that do not count because the generators were too slow for the rate.
fn points(
    ground: &Ground<'_>,
    cpu: u32,
    chain: &Chain,
    generators: &mut Generators,
    mix: Mix,
) -> Result<(Vec<Point>, usize), Misplaced> {
    let mut at = |asked: Option<f64>| {
        let pace = asked.map_or(Pace::Full, Pace::At);
        let beside = |gauges: &Gauges| chase_beside(ground, chain, ground.time(), gauges);
        let loads = generators.around(mix, pace, cpu, beside)?;
        let of = |field: fn(&LoadTime) -> f64| sampled::quantiles(&loads, field);
        Ok(of(|load| load.ns).zip(of(|load| load.beside)).map(|(load, rate)| Point { asked, rate, load }))
    };
    let full = match at(None)? {
        Some(full) => full,
        None if ground.is_stopped() => return Ok((Vec::new(), 0)),
        None => return Err(Misplaced(TURNS.to_owned())),
    };
    let most = full.rate.median;
    let (mut points, mut slow) = (vec![full], 0);
    // Little traffic is nearly idle.
    let mut next = Some(most / 8.0);
    while let Some(rate) = next.filter(|_| !ground.is_stopped()) {
        if let Some(point) = at(Some(rate))?.filter(|point| point.rate.median >= REACHED * rate) {
            let place = points.partition_point(|other| other.asked.is_some_and(|asked| asked < rate));
            points.insert(place, point);
            let known = points.iter().map(|point| (point.asked.unwrap_or(most), point.load.median));
            next = next_rate(&known.collect::<Vec<_>>());
        } else {
            slow += 1;
        }
        if points.len() + slow >= POINTS[usize::from(!ground.settings.quick)] {
            break;
        }
    }
    Ok((points, slow))
}

/// Adds a curve, and the numbers that follow from it, to the result.
fn describe(name: String, mut curve: Curve, idle: Quantiles, points: &[Point], result: &mut BenchResult) {
    let Some(full) = points.last() else { return };
    curve.add(0.0, Some(idle));
    points.iter().for_each(|point| curve.add(point.rate.median, Some(point.load)));
    let all: Vec<(f64, f64)> = curve.points.iter().map(|point| (point.x, point.value.median)).collect();
    match knee(&all).and_then(|at| points.get(at.checked_sub(1)?)) {
        Some(point) => {
            curve.marks.push(CurveMark { x: point.rate.median, name: "knee".to_owned() });
            result.values.push(value(format!("knee, {name}"), RATE, point.rate));
            result.values.push(value(format!("latency, knee, {name}"), TIME, point.load));
        }
        None => result.remarks.push(format!(
            "{name}: no knee: {:.0} ns idle and {:.0} ns beside full traffic, without a bend",
            idle.median, full.load.median
        )),
    }
    let most = points.iter().max_by(|a, b| a.rate.median.total_cmp(&b.rate.median)).unwrap_or(full);
    let word = if is_saturated(idle.median, full.load.median) { "saturated" } else { "full traffic" };
    result.values.push(value(format!("{word}, {name}"), RATE, most.rate));
    result.values.push(value(format!("latency, {word}, {name}"), TIME, full.load));
    result.curves.push(curve);
}

fn value(name: String, unit: &str, value: Quantiles) -> NamedValue {
    NamedValue { name, unit: unit.to_owned(), value, best: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::on_this_machine;
    use crate::interruptible::Watch;
    use crate::settings::BenchSettings;
    use numakit_model::CpuSet;
    use numakit_sys::SysRoot;

    fn at(value: f64) -> Quantiles {
        Quantiles { median: value, low: value, high: value, samples: 1 }
    }

    #[test]
    fn a_curve_has_its_figures() {
        let of = |pairs: &[(f64, f64)]| {
            let point = |&(rate, ns): &(f64, f64)| Point { asked: Some(rate), rate: at(rate), load: at(ns) };
            let mut result = BenchResult::default();
            let curve = Curve::new("load latency, x", TIME, true, Axis::bandwidth());
            describe(
                "x".to_owned(),
                curve,
                at(100.0),
                &pairs.iter().map(point).collect::<Vec<_>>(),
                &mut result,
            );
            result
        };
        let bent = of(&[(10.0, 105.0), (20.0, 120.0), (25.0, 400.0), (24.0, 600.0)]);
        let figures: Vec<_> = bent.values.iter().map(|value| (&*value.name, value.value.median)).collect();
        let expected = [
            ("knee, x", 20.0),
            ("latency, knee, x", 120.0),
            ("saturated, x", 25.0),
            ("latency, saturated, x", 600.0),
        ];
        assert_eq!(figures, expected);
        assert_eq!((bent.curves[0].points.len(), bent.curves[0].marks[0].x), (5, 20.0));
        let flat = of(&[(10.0, 105.0), (20.0, 110.0)]);
        assert_eq!((flat.values.len(), flat.curves[0].marks.len()), (2, 0));
        assert_eq!(flat.values[0].name, "full traffic, x");
        assert!(
            flat.remarks[0].contains("no knee") && flat.remarks[0].contains("110 ns"),
            "{:?}",
            flat.remarks
        );
    }

    #[test]
    fn near_pairs_come_first_and_what_is_left_out_is_said() {
        let topology = numakit_topology::synthetic::parse("package:3 node:1 core:2").unwrap();
        let (settings, watch) = (BenchSettings { quick: true, ..Default::default() }, Watch::default());
        let ground = Ground::new(SysRoot::host(), &topology, &settings, true, &watch);
        let mut result = BenchResult::default();
        let chosen: Vec<_> =
            pairs(&ground, &mut result).iter().map(|(place, node)| (place.node, *node)).collect();
        assert_eq!(chosen, [(0, 0), (1, 1), (2, 2), (0, 1)]);
        assert_eq!(result.left_out[0].what, "5 of 9 pairs of nodes");
    }

    #[test]
    fn measuring_every_share_of_reads_has_a_curve_or_there_is_a_reason() {
        on_this_machine(|ground| {
            let mut result = BenchResult::default();
            measure(ground, &mut result);
            let alone = ground.places.iter().filter(|place| place.cpus.len() == 1).count();
            let pairs = (ground.places.len() - alone) * ground.memories.len();
            assert_eq!(result.curves.len(), Mix::ALL.len() * pairs.min(PAIRS[1]), "{:?}", result.left_out);
            for curve in &result.curves {
                assert_eq!(curve.points[0].x, 0.0);
                // Results before these fields have them in the name.
                let old = Curve { from: None, memory: None, read_percent: None, ..curve.clone() };
                assert!(curve.from.is_some() && curve.read_percent.is_some(), "{curve:?}");
                assert_eq!((old.nodes(), old.reads()), (curve.nodes(), curve.reads()));
                assert!(curve.points.len() >= 2 && curve.points.len() <= POINTS[1] + 1, "{curve:?}");
                assert!(curve.points.iter().all(|point| point.value.median > 0.0));
            }
            let idle = result.values.iter().filter(|value| value.name.starts_with("idle")).count();
            assert_eq!(idle, pairs);
        });
    }

    #[test]
    fn one_core_makes_no_traffic() {
        let topology = numakit_topology::read(&SysRoot::host()).unwrap();
        let cpus = Some(topology.allowed.first().into_iter().collect::<CpuSet>());
        let (settings, watch) =
            (BenchSettings { cpus, size: Some(1 << 20), ..Default::default() }, Watch::default());
        let ground = Ground::new(SysRoot::host(), &topology, &settings, true, &watch);
        let mut result = BenchResult::default();
        measure(&ground, &mut result);
        assert!(result.curves.is_empty() && result.values.is_empty());
        assert!(result.left_out.iter().any(|left| left.why.contains("only one")), "{:?}", result.left_out);
    }
}
