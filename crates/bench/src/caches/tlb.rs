//! How much memory the TLB reaches, and what a miss costs: loads of one line of each page, by number of pages and by their
//! size, against loads of as many lines side by side, which fill the caches alike.

use crate::caches::tlb_levels::{Cost, Level, levels, next_pages};
use crate::ground::Ground;
use crate::ground::placed::{self, Misplaced, STOPPED};
use crate::latency::{LoadTime, SEED, chase, in_ticks};
use crate::results::quantiles::Quantiles;
use crate::results::{Axis, BenchResult, Curve, CurveMark, NamedValue};
use crate::sampled;
use numakit_model::numbers::NumberStyle;
use numakit_sys::loops::{Advice, Chain, HUGE_PAGE, Region};
use numakit_sys::sched;

/// The largest pages that programs can have.
const GIANT_PAGE: usize = 1 << 30;
/// The first number of pages, which every TLB has entries for; with fewer there is nothing to see.
const FIRST: usize = 8;
/// Points that are measured to find where costs jump.
const REFINED: usize = 24;
/// Bytes of a line.
const LINE: usize = 64;

/// A size of pages, and how much memory of it is used at most, with `--quick` and without.
#[derive(Debug, Clone, Copy)]
struct Kind {
    page: usize,
    most: [u64; 2],
}

/// Loads with a number of pages.
struct Point {
    pages: usize,
    /// Time of a load from a line of each page.
    apart: Quantiles,
    /// Time of a load from as many lines side by side.
    beside: Quantiles,
    /// How many ticks longer a load of the first kind takes, if there is a counter of ticks.
    ticks: Option<f64>,
}

/// Memory of which loads are measured.
struct Probe<'a> {
    ground: &'a Ground<'a>,
    cpu: u32,
    apart: Chain,
    beside: &'a mut Chain,
    points: Vec<Point>,
}

/// Measures the TLB on the first node that has CPUs and memory.
pub(crate) fn measure(ground: &Ground<'_>, result: &mut BenchResult) {
    let Some((node, cpu)) = ground.near() else {
        return result.leave_out("the TLB", "no node has both CPUs and memory that can be used");
    };
    let small = sched::page_size() as usize;
    let kinds = [
        Kind { page: small, most: [256 << 20, 1 << 30] },
        Kind { page: HUGE_PAGE, most: [1 << 30, 8 << 30] },
        Kind { page: GIANT_PAGE, most: [64 << 30, 64 << 30] },
    ];
    let lines = kinds.iter().map(|kind| pages(ground, *kind)).max().unwrap_or(FIRST).max(FIRST);
    let mut beside = match placed::memory(ground, node, (lines * LINE) as u64, Advice::Huge) {
        Ok(region) => Chain::over(region, lines * LINE, SEED),
        Err(Misplaced(why)) => return result.leave_out("the TLB", why),
    };
    let mut remark =
        format!("CPU {cpu}, memory of node {node}; a miss costs what a load of a line of each page");
    remark += " takes longer than one of as many lines side by side";
    result.remarks.push(remark);
    let mut most = Vec::new();
    for kind in kinds {
        if ground.is_stopped() {
            break;
        }
        let name = format!("{} pages", words(kind.page));
        ground.now(format!("tlb: {name}"));
        let measured = memory(ground, node, kind).and_then(|region| {
            let all = region.bytes() / kind.page;
            let apart = Chain::by_page_unless(region, kind.page, all, SEED, &|| ground.is_stopped())
                .ok_or_else(|| Misplaced(STOPPED.to_owned()))?;
            let mut probe = Probe { ground, cpu, apart, beside: &mut beside, points: Vec::new() };
            let levels = probe.sweep(all)?;
            Ok((probe.points, levels))
        });
        match measured {
            Ok((points, levels)) => {
                describe(&name, kind.page, &points, &levels, result);
                most = if points.len() > most.len() { points } else { most };
            }
            Err(Misplaced(why)) => result.leave_out(name, why),
        }
    }
    let mut curve = Curve::new("load latency, lines side by side", "ns", true, Axis::pages());
    let coarse = counts(most.last().map_or(FIRST, |point| point.pages));
    let few = most.iter().filter(|point| coarse.contains(&point.pages));
    few.for_each(|point| curve.add(point.pages as f64, Some(point.beside)));
    result.curves.push(curve);
}

fn words(bytes: usize) -> String {
    NumberStyle::Bytes.words(bytes as f64)
}

/// Pages of a kind that are used at most.
fn pages(ground: &Ground<'_>, kind: Kind) -> usize {
    let most = kind.most[usize::from(!ground.settings.quick)];
    let bytes = ground.settings.size.map_or(most, |size| size.min(most));
    usize::try_from(bytes).unwrap_or(usize::MAX) / kind.page
}

/// Memory that has pages of this kind only, in as many as there are.
fn memory(ground: &Ground<'_>, node: u32, kind: Kind) -> Result<Region, Misplaced> {
    let mut count = pages(ground, kind);
    if kind.page == GIANT_PAGE {
        return reserved(ground, node, kind.page, count.max(2));
    }
    let few = |count: usize| {
        let why = format!("there would be {count} of them, and {FIRST} are needed; give a larger --size");
        (count < FIRST).then_some(Misplaced(why))
    };
    few(count).map_or(Ok(()), Err)?;
    // Other programs need memory of this node too.
    while let Some(lack) = ground.lacks(node, 2 * (count * kind.page) as u64) {
        count /= 2;
        few(count).map_or(Ok(()), |_| Err(Misplaced(lack)))?;
    }
    let bytes = (count * kind.page) as u64;
    let advice = if kind.page == HUGE_PAGE { Advice::Huge } else { Advice::Small };
    let region = placed::memory(ground, node, bytes, advice)?;
    if kind.page != HUGE_PAGE {
        return Ok(region);
    }
    let huge = region.huge_bytes();
    if huge == Some(bytes) {
        return Ok(region);
    }
    drop(region);
    reserved(ground, node, kind.page, count).map_err(|Misplaced(why)| {
        let got = huge.map_or_else(|| "does not say how many".to_owned(), |h| format!("gave {}", h / kind.page as u64));
        Misplaced(format!(
            "of {count} transparent {} the kernel {got} (set /sys/kernel/mm/transparent_hugepage/enabled to madvise, or give \
             a smaller --size), and {why}",
            if count == 1 { "one" } else { "ones" }
        ))
    })
}

/// Pages of a pool that the administrator has filled, at most `most` of them.
fn reserved(ground: &Ground<'_>, node: u32, page: usize, most: usize) -> Result<Region, Misplaced> {
    let pool = format!("hugepages-{}kB", page >> 10);
    let read = |folder: String| {
        let text = ground.root.text(&format!("{folder}/{pool}/free_hugepages")).ok()?;
        text.trim().parse::<usize>().ok()
    };
    let here = read(format!("/sys/devices/system/node/node{node}/hugepages"));
    let free = here
        .or_else(|| read("/sys/kernel/mm/hugepages".to_owned()))
        .ok_or_else(|| Misplaced("this CPU or this kernel has none".to_owned()))?;
    if free < 2 {
        let folder = format!("/sys/devices/system/node/node{node}/hugepages/{pool}");
        let boot = if page == GIANT_PAGE {
            ", or hugepagesz=1G hugepages=8 on the kernel's command line"
        } else {
            ""
        };
        return Err(Misplaced(format!(
            "{free} of them are reserved and free on node {node}, and 2 are needed; as root: echo {FIRST} > \
             {folder}/nr_hugepages{boot}"
        )));
    }
    placed::reserved(ground, node, (free.min(most) * page) as u64, page)
}

/// Numbers of pages: powers of two and one and a half times these.
fn counts(most: usize) -> Vec<usize> {
    let first = FIRST.min(most);
    let powers = std::iter::successors(Some(first), |count| count.checked_mul(2));
    let mut counts: Vec<usize> =
        powers.flat_map(|count| [count, count + count / 2]).take_while(|count| *count < most).collect();
    counts.push(most);
    counts
}

impl Probe<'_> {
    /// Measures larger and larger numbers of pages, and then numbers between those where the cost jumps.
    fn sweep(&mut self, all: usize) -> Result<Vec<Level>, Misplaced> {
        for pages in counts(all) {
            self.add(pages)?;
        }
        for _ in 0..REFINED {
            let Some(pages) = next_pages(&self.costs()) else { break };
            if self.ground.is_stopped() {
                break;
            }
            self.add(pages)?;
        }
        Ok(levels(&self.costs()))
    }

    fn add(&mut self, pages: usize) -> Result<(), Misplaced> {
        let (ground, time) = (self.ground, self.ground.time() / 10);
        let loads = |chain: &mut Chain| {
            placed::on_cpu(self.cpu, || {
                chain.relink(pages, SEED);
                chase(ground, chain, time)
            })
        };
        let (apart, beside) = (loads(&mut self.apart)?, loads(self.beside)?);
        let ticks = in_ticks(&apart).zip(in_ticks(&beside)).map(|(apart, beside)| apart.low - beside.low);
        let ns = |loads: &[LoadTime]| sampled::quantiles(loads, |load| load.ns);
        if let Some((apart, beside)) = ns(&apart).zip(ns(&beside)) {
            let at = self.points.partition_point(|point| point.pages < pages);
            self.points.insert(at, Point { pages, apart, beside, ticks });
        }
        Ok(())
    }

    fn costs(&self) -> Vec<Cost> {
        costs(&self.points)
    }
}

/// The cost at each point, by its tenth of measurements that were disturbed least.
fn costs(points: &[Point]) -> Vec<Cost> {
    let hit = points.first().map_or(0.0, |point| point.beside.low);
    points.iter().map(|point| Cost { pages: point.pages, more: point.more(), hit }).collect()
}

impl Point {
    /// How many ns longer a load takes from a line of each page.
    fn more(&self) -> f64 {
        self.apart.low - self.beside.low
    }
}

/// Adds the curve of a kind of pages, and the levels that it shows.
fn describe(name: &str, page: usize, points: &[Point], levels: &[Level], result: &mut BenchResult) {
    let mut curve =
        Curve::new(format!("load latency, a line of each page, {name}"), "ns", true, Axis::pages());
    points.iter().for_each(|point| curve.add(point.pages as f64, Some(point.apart)));
    for (at, level) in levels.iter().enumerate() {
        let level_name = format!("level {}", at + 1);
        curve.marks.push(CurveMark { x: level.reach as f64, name: format!("the reach of {level_name}") });
        let mut push = |what: &str, unit: &str, value: Option<Quantiles>| {
            result.values.extend(value.map(|value| NamedValue {
                name: format!("{what} {level_name}, {name}"),
                unit: unit.to_owned(),
                value,
                best: None,
            }));
        };
        push("reach of", "pages", Quantiles::of(vec![level.reach as f64]));
        push("reach of", "MiB", Quantiles::of(vec![(level.reach * page) as f64 / f64::from(1 << 20)]));
        let after = points.get(level.plateau.clone()).unwrap_or_default();
        let more = after.iter().map(Point::more);
        push("miss of", "ns", Quantiles::of(more.collect()));
        push("miss of", "cycles", Quantiles::of(after.iter().filter_map(|point| point.ticks).collect()));
    }
    if let Some(last) = points.last().filter(|_| levels.is_empty()) {
        result.remarks.push(format!(
            "{name}: the TLB reaches all {} that were used ({})",
            last.pages,
            words(last.pages * page)
        ));
    }
    result.curves.push(curve);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground::on_this_machine;

    #[test]
    fn numbers_of_pages_grow_to_all() {
        assert_eq!(counts(2), [2]);
        assert_eq!(counts(64), [8, 12, 16, 24, 32, 48, 64]);
        assert_eq!(counts(50), [8, 12, 16, 24, 32, 48, 50]);
    }

    #[test]
    fn every_kind_of_pages_is_measured_or_has_a_reason() {
        on_this_machine(|ground| {
            let mut result = BenchResult::default();
            measure(ground, &mut result);
            let small = sched::page_size() as usize;
            // 1 MiB has no 8 pages of 2 MiB.
            assert!(
                result
                    .left_out
                    .iter()
                    .any(|left| left.what == "2.00 MiB pages" && left.why.contains("--size"))
            );
            let giant = usize::from(!result.left_out.iter().any(|left| left.what == "1.00 GiB pages"));
            assert_eq!(result.curves.len(), 2 + giant, "{:?}", result.left_out);
            let (apart, beside) = (&result.curves[0], result.curves.last().unwrap());
            let has = |at: usize, pages: usize| apart.points[at].x == pages as f64;
            assert!(has(0, FIRST) && has(apart.points.len() - 1, (1 << 20) / small), "{apart:?}");
            assert!(apart.points.is_sorted_by(|one, other| one.x < other.x), "{apart:?}");
            assert!(apart.points.iter().all(|point| point.value.median > 0.0));
            assert_eq!(beside.points.len(), counts((1 << 20) / small).len());
            let reaches = result.values.iter().filter(|value| value.unit == "pages").count();
            assert_eq!(reaches, apart.marks.len(), "{result:?}");
        });
    }

    #[test]
    fn pages_that_are_not_reserved_have_the_fix() {
        on_this_machine(|ground| {
            let (node, _) = ground.near().unwrap();
            let why = |page| reserved(ground, node, page, 1 << 20).err().map(|Misplaced(why)| why);
            assert!(why(3 << 20).unwrap().contains("has none"));
            match why(HUGE_PAGE) {
                Some(why) => assert!(why.contains("nr_hugepages"), "{why}"),
                None => numakit_skips::MACHINE.skip_part("huge pages are reserved on this machine"),
            }
        });
    }
}
