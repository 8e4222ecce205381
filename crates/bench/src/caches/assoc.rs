//! Arrays that begin at the same place of the caches' ways, beside arrays whose starts are staggered: a cache holds only as many
//! lines of a place as it has ways.

use crate::caches::coloring;
use crate::ground::Ground;
use crate::ground::placed::{self, Misplaced};
use crate::results::quantiles::Quantiles;
use crate::results::short::{ShortRow, ShortTable, table};
use crate::results::{Axis, BenchResult, Curve};
use crate::sampled;
use numakit_model::numbers::NumberStyle;
use numakit_sys::clock;
use numakit_sys::loops::{Advice, HUGE_PAGE, Region, Together};
use std::time::Duration;

/// The name of the curves' axis.
pub(crate) const ARRAYS: &str = "arrays";
/// Between the size of the arrays and their layout, in the name of a curve.
const STARTS_AT: &str = ", starts ";
/// The words in front of the size in a curve's name.
const ARRAYS_OF: &str = "arrays of ";
/// The layout that others are compared with.
const STAGGERED: &str = "staggered";
/// Bytes of an array.
const SIZES: [usize; 3] = [16 << 10, 128 << 10, 1 << 20];
/// Numbers of arrays: below and above those of the ways that caches have.
const COUNTS: [usize; 12] = [2, 4, 6, 8, 9, 10, 12, 16, 18, 20, 24, 32];
/// The distances at which libnumalloc begins large blocks, and how many there are.
const STAGGER: usize = 1024 + 64;
const STARTS: usize = 16;
/// A smaller difference is not worth a word.
const WORTH: f64 = 1.05;

/// A layout of arrays: where each of them begins.
struct Layout {
    name: String,
    /// The distance of two starts.
    distance: usize,
    /// Whether the starts of the arrays are staggered.
    staggers: bool,
}

impl Layout {
    /// The layouts that are compared, with the staggered one last. `way` is the size of a way of the second cache.
    fn all(way: Option<usize>, size: usize) -> Vec<Self> {
        let of = |name: String, distance, staggers| Self { name, distance, staggers };
        let in_ways = way.map(|way| (way, size.next_multiple_of(way) + way)).filter(|way| way.1 < HUGE_PAGE);
        let aligned =
            |(way, distance)| of(format!("multiples of a way of L2 ({})", bytes(way)), distance, false);
        let mut all = vec![of(format!("multiples of {}", bytes(HUGE_PAGE)), HUGE_PAGE, false)];
        all.extend(in_ways.map(aligned));
        all.push(of(STAGGERED.to_owned(), HUGE_PAGE, true));
        all
    }

    fn starts(&self, count: usize) -> Vec<usize> {
        let stagger = |at: usize| if self.staggers { at % STARTS * STAGGER } else { 0 };
        (0..count).map(|at| at * self.distance + stagger(at)).collect()
    }
}

/// A difference between two layouts that is larger than the differences among measurements of one layout.
#[derive(Debug, Clone, PartialEq)]
struct Conflict {
    factor: f64,
    what: String,
}

fn bytes(bytes: usize) -> String {
    NumberStyle::Bytes.words(bytes as f64)
}

/// Measures all layouts on the first node that has CPUs and memory.
pub(crate) fn measure(ground: &Ground<'_>, result: &mut BenchResult) {
    let near = ground.places.iter().find(|place| ground.memories.contains(&place.node));
    let Some((node, Some(&cpu))) = near.map(|place| (place.node, place.cpus.first())) else {
        return result.leave_out("arrays", "no node has both CPUs and memory that can be used");
    };
    if let Err(Misplaced(why)) = arrays(ground, node, cpu, result) {
        result.leave_out("arrays", why);
    }
    coloring::measure(ground, node, cpu, result);
}

/// All sizes and numbers of arrays.
fn arrays(ground: &Ground<'_>, node: u32, cpu: u32, result: &mut BenchResult) -> Result<(), Misplaced> {
    let most = ground.settings.size.map_or(usize::MAX, |size| size as usize / HUGE_PAGE);
    let counts: Vec<usize> = COUNTS.into_iter().filter(|count| *count <= most).collect();
    let Some(largest) = counts.last() else {
        return Err(Misplaced(format!(
            "each has a huge page of its own; give --size {} or more",
            bytes(2 * HUGE_PAGE)
        )));
    };
    let mut region = placed::memory(ground, node, (largest * HUGE_PAGE) as u64, Advice::Huge)?;
    result.remarks.push(format!("memory of the arrays: {}", placed::pages(&region)));
    let mut worst: Option<Conflict> = None;
    for size in SIZES {
        let layouts = Layout::all(way(ground, cpu), size);
        let name = |layout: &Layout| format!("{ARRAYS_OF}{}{STARTS_AT}{}", bytes(size), layout.name);
        let mut curves: Vec<Curve> =
            layouts.iter().map(|layout| Curve::new(name(layout), "ns an access", true, axis())).collect();
        for &count in &counts {
            if ground.is_stopped() {
                break;
            }
            ground.now(format!("assoc: {count} arrays of {}", bytes(size)));
            let values = placed::on_cpu(cpu, || side_by_side(ground, &mut region, &layouts, count, size))?;
            let found = conflict(&layouts, &values, &format!("{count} arrays of {}", bytes(size)));
            worst = found.into_iter().chain(worst).max_by(|one, other| one.factor.total_cmp(&other.factor));
            curves.iter_mut().zip(values).for_each(|(curve, value)| curve.add(count as f64, value));
        }
        curves.into_iter().for_each(|curve| result.add_curve(curve));
    }
    if !ground.is_stopped() {
        result.remarks.push(verdict(worst));
    }
    Ok(())
}

fn axis() -> Axis {
    Axis { name: ARRAYS.to_owned(), unit: "arrays".to_owned(), logarithmic: false }
}

/// Bytes of a way of the second cache: lines at this distance compete.
fn way(ground: &Ground<'_>, cpu: u32) -> Option<usize> {
    let cache = ground.topology.caches_of_level(2).find(|cache| cache.cpus.contains(cpu))?;
    let ways = u64::from(cache.ways.filter(|ways| *ways > 0)?);
    usize::try_from(cache.size? / ways).ok().filter(|way| way.is_power_of_two())
}

/// The time of an access for each layout, which take turns.
fn side_by_side(
    ground: &Ground<'_>,
    region: &mut Region,
    layouts: &[Layout],
    count: usize,
    size: usize,
) -> Vec<Option<Quantiles>> {
    let mut turn = || -> Option<Vec<f64>> {
        let one = |layout: &Layout| {
            let mut arrays = Together::within(region, &layout.starts(count), size)?;
            // The caches have lines of the last layout.
            arrays.sum();
            let begin = clock::monotonic();
            let accesses = arrays.sum();
            Some((clock::monotonic() - begin) as f64 / accesses.max(1) as f64)
        };
        layouts.iter().map(one).collect()
    };
    let time: Duration = ground.time() / 10;
    let times = sampled::repeat(time, || if ground.is_stopped() { None } else { turn() });
    (0..layouts.len()).map(|at| sampled::quantiles(&times, |turn| turn[at])).collect()
}

/// How much slower the slowest aligned layout is than the staggered one, if it is beyond doubt.
fn conflict(layouts: &[Layout], values: &[Option<Quantiles>], what: &str) -> Option<Conflict> {
    let staggered = values.last().copied().flatten()?;
    let aligned = layouts.iter().zip(values).filter(|(layout, _)| !layout.staggers);
    let slower = aligned.filter_map(|(layout, value)| {
        let value = (*value).filter(|value| value.low > staggered.high)?;
        let what = format!("{what} at {}", layout.name);
        Some(Conflict { factor: value.median / staggered.median, what }).filter(|found| found.factor >= WORTH)
    });
    slower.max_by(|one, other| one.factor.total_cmp(&other.factor))
}

/// A table with the number of arrays, for each size, with which the aligned layout is slowest beside the staggered one.
pub(crate) fn short(curves: &[&Curve]) -> Option<ShortTable> {
    let parts =
        |curve: &&Curve| Some(curve.name.strip_prefix(ARRAYS_OF)?.split_once(STARTS_AT)?.0.to_owned());
    let mut sizes: Vec<String> = curves.iter().map(parts).collect::<Option<_>>()?;
    sizes.dedup();
    let rows = sizes.iter().map(|size| worst_of(curves, size)).collect::<Option<_>>()?;
    let headings = vec!["arrays of", "how many", "aligned", STAGGERED, "times"];
    table("arrays that begin at the same place (aligned), beside staggered ones", headings, curves, rows)
}

fn worst_of(curves: &[&Curve], size: &str) -> Option<ShortRow> {
    let of_size = format!("{ARRAYS_OF}{size}{STARTS_AT}");
    let of_size: Vec<_> = curves.iter().filter_map(|c| Some((c.name.strip_prefix(&of_size)?, *c))).collect();
    let (staggered, aligned): (Vec<_>, Vec<_>) =
        of_size.into_iter().partition(|(name, _)| *name == STAGGERED);
    let (_, staggered) = staggered.first()?;
    let points = aligned.iter().flat_map(|(_, curve)| &curve.points);
    let pairs = points.filter_map(|point| {
        let other = staggered.points.iter().find(|other| other.x == point.x)?.value.median;
        Some((point.x, point.value.median, other, point.value.median / other)).filter(|_| other > 0.0)
    });
    let (count, aligned, staggered, times) = pairs.max_by(|one, other| one.3.total_cmp(&other.3))?;
    let words = vec![size.to_owned(), format!("{count}")];
    Some(ShortRow { words, values: vec![aligned, staggered, times] })
}

fn verdict(worst: Option<Conflict>) -> String {
    let numalloc = format!(
        "libnumalloc begins blocks above 32 KiB at {STARTS} distances of {STAGGER} bytes, always; there is nothing to set"
    );
    match worst {
        Some(Conflict { factor, what }) => format!(
            "this CPU suffers from arrays that begin at the same place: {what} take {factor:.2} times as long as staggered ones; \
             {numalloc}"
        ),
        None => format!(
            "arrays that begin at the same place are not slower on this CPU, beyond noise; {numalloc}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interruptible::Watch;
    use crate::settings::BenchSettings;
    use numakit_sys::SysRoot;

    #[test]
    fn starts_are_those_of_libnumalloc() {
        let large = include_str!("../../../../native/alloc/large.c");
        assert!(
            large.contains("STAGGER = 1024 + 64,") && large.contains(&format!("MOST_STARTS = {STARTS},"))
        );
        let layouts = Layout::all(Some(64 << 10), 16 << 10);
        let starts: Vec<_> = layouts.iter().map(|layout| layout.starts(3)).collect();
        let page = HUGE_PAGE;
        assert_eq!(
            starts,
            [[0, page, 2 * page], [0, 128 << 10, 256 << 10], [0, page + 1088, 2 * page + 2176]]
        );
        assert_eq!(layouts[2].starts(17)[16], 16 * page);
        assert_eq!(Layout::all(None, 1).len(), 2);
        // The last of the largest arrays ends before its huge page does.
        assert!(SIZES.iter().all(|size| size + (STARTS - 1) * STAGGER <= page));
    }

    #[test]
    fn only_a_clear_difference_is_a_conflict() {
        let layouts = Layout::all(Some(64 << 10), 16 << 10);
        let value = |low, median| Some(Quantiles { median, low, high: median + 0.2, samples: 5 });
        let of = |aligned, in_way| conflict(&layouts, &[aligned, in_way, value(1.0, 1.0)], "9 arrays");
        assert_eq!((of(value(1.1, 3.0), value(1.0, 1.0)), of(None, None)), (None, None));
        let found = of(value(2.0, 2.0), value(1.5, 3.0)).unwrap();
        assert_eq!(
            (found.factor, found.what.as_str()),
            (3.0, "9 arrays at multiples of a way of L2 (64.0 KiB)")
        );
        assert!(verdict(Some(found)).contains("take 3.00 times"));
        assert!(verdict(None).contains("not slower"));
    }

    #[test]
    fn each_number_of_arrays_is_measured_in_each_layout() {
        let topology = numakit_topology::read(&SysRoot::host()).unwrap();
        let watch = Watch::default();
        let measured = |size: u64| {
            let time = Some(Duration::from_millis(1));
            let settings = BenchSettings { size: Some(size), time, ..BenchSettings::default() };
            let mut result = BenchResult::default();
            measure(&Ground::new(SysRoot::host(), &topology, &settings, true, &watch), &mut result);
            result
        };
        let result = measured(4 << 20);
        let curves: Vec<_> = result.curves.iter().filter(|curve| curve.x.name == "arrays").collect();
        assert!([6, 9].contains(&curves.len()), "{:?}", result.left_out);
        for curve in curves {
            assert!(curve.points.len() == 1 && curve.points[0].value.median > 0.0, "{curve:?}");
        }
        assert_eq!(result.remarks.iter().filter(|remark| remark.contains("libnumalloc")).count(), 1);
        let little = measured(1 << 20);
        assert!(
            little.left_out.iter().any(|left| left.why.contains("--size 4.00 MiB")),
            "{:?}",
            little.left_out
        );
    }

    #[test]
    fn each_size_has_a_row_with_the_worst_number_of_arrays() {
        let curve = |size: &str, layout: &str, values: [f64; 2]| {
            let mut curve = Curve::new(format!("{ARRAYS_OF}{size}{STARTS_AT}{layout}"), "ns", true, axis());
            let value = |median| Some(Quantiles { median, low: median, high: median, samples: 5 });
            [8.0, 12.0].into_iter().zip(values).for_each(|(x, median)| curve.add(x, value(median)));
            curve
        };
        let curves = [
            curve("16.0 KiB", "multiples of 2.00 MiB", [1.0, 3.0]),
            curve("16.0 KiB", "multiples of a way of L2 (64.0 KiB)", [1.5, 2.0]),
            curve("16.0 KiB", STAGGERED, [0.5, 2.0]),
            curve("1.00 MiB", "multiples of 2.00 MiB", [1.0, 6.0]),
            curve("1.00 MiB", STAGGERED, [1.0, 2.0]),
        ];
        let all: Vec<&Curve> = curves.iter().collect();
        let short = short(&all).unwrap();
        let row = |words: [&str; 2], values: [f64; 3]| ShortRow {
            words: words.map(str::to_owned).to_vec(),
            values: values.to_vec(),
        };
        let rows = [row(["16.0 KiB", "8"], [1.5, 0.5, 3.0]), row(["1.00 MiB", "12"], [6.0, 2.0, 3.0])];
        assert_eq!((short.rows.as_slice(), short.of), (&rows[..], 10));
        assert_eq!(super::short(&all[..2]), None, "nothing to compare with");
    }
}
