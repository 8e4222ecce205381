//! Several runs as one result: each value with the noise between runs.
//!
//! Values of the same name and place belong together. Sentences are those of the first run that has them, with the number of
//! runs that say the same in other figures.

use crate::results::less_is_better;
use crate::results::quantiles::Quantiles;
use crate::results::{BenchResult, Curve, NamedTable, NamedValue, NotMeasured, PairMatrix};

/// A part of one run's result, such as a table, that other runs may have too.
struct Part<'a, T> {
    /// The number of the run, from 0.
    run: usize,
    part: &'a T,
}

/// The parts of all runs that have the same key and are the n-th with this key in their run.
struct Group<'a, T, K> {
    key: K,
    nth: usize,
    parts: Vec<Part<'a, T>>,
}

impl<T, K> Group<'_, T, K> {
    fn has(&self, run: usize) -> bool {
        self.parts.iter().any(|part| part.run == run)
    }
}

/// Merges the results that a benchmark had in each run.
pub(crate) fn merged(runs: &[BenchResult]) -> BenchResult {
    let (Some(first), count) = (runs.first(), runs.len()) else { return BenchResult::default() };
    if count == 1 {
        return first.clone();
    }
    let matrices = grouped(runs, |run| &run.matrices, |m| [m.name.clone(), m.unit.clone()]);
    let tables = grouped(runs, |run| &run.tables, |t| [t.name.clone(), t.unit.clone()]);
    let curves = grouped(runs, |run| &run.curves, |c| [c.name.clone(), c.unit.clone(), c.x.name.clone()]);
    let values = grouped(runs, |run| &run.values, |v| [v.name.clone(), v.unit.clone()]);
    let mut remarks = sentences(runs, |run| &run.remarks);
    let rare = |name: &str, parts: usize| (parts < count).then(|| format!("{name} ({parts})"));
    let mut rarely: Vec<String> = Vec::new();
    rarely.extend(matrices.iter().filter_map(|parts| rare(&parts.first()?.part.name, parts.len())));
    rarely.extend(tables.iter().filter_map(|parts| rare(&parts.first()?.part.name, parts.len())));
    rarely.extend(curves.iter().filter_map(|parts| rare(&parts.first()?.part.name, parts.len())));
    rarely.extend(values.iter().filter_map(|parts| rare(&parts.first()?.part.name, parts.len())));
    if !rarely.is_empty() {
        remarks.push(format!("not in all {count} runs, but in this number of them: {}", shortened(&rarely)));
    }
    BenchResult {
        name: first.name.clone(),
        matrices: matrices.iter().filter_map(|parts| matrix(parts)).collect(),
        tables: tables.iter().filter_map(|parts| table(parts)).collect(),
        curves: curves.iter().filter_map(|parts| curve(parts)).collect(),
        values: values.iter().filter_map(|parts| value(parts)).collect(),
        remarks,
        left_out: left_out(runs),
        warnings: sentences(runs, |run| &run.warnings),
    }
}

/// Maximum number of names in a sentence.
const NAMES: usize = 8;

fn shortened(names: &[String]) -> String {
    let shown = names.iter().take(NAMES).cloned().collect::<Vec<_>>().join("; ");
    match names.len().checked_sub(NAMES) {
        Some(more) if more > 0 => format!("{shown}; {more} more"),
        _ => shown,
    }
}

/// The parts of all runs by key, in the order in which keys appear. If a key occurs several times in a run, its n-th part
/// belongs to the n-th part with that key in the other runs.
fn grouped<'a, T, K: PartialEq>(
    runs: &'a [BenchResult],
    of: impl Fn(&'a BenchResult) -> &'a Vec<T>,
    key: impl Fn(&T) -> K,
) -> Vec<Vec<Part<'a, T>>> {
    let mut groups: Vec<Group<'a, T, K>> = Vec::new();
    for (run, result) in runs.iter().enumerate() {
        for part in of(result) {
            let (key, one) = (key(part), Part { run, part });
            let nth = groups.iter().filter(|group| group.key == key && group.has(run)).count();
            match groups.iter_mut().find(|group| group.key == key && group.nth == nth) {
                Some(group) => group.parts.push(one),
                None => groups.push(Group { key, nth, parts: vec![one] }),
            }
        }
    }
    groups.into_iter().map(|group| group.parts).collect()
}

fn matrix(parts: &[Part<'_, PairMatrix>]) -> Option<PairMatrix> {
    let mut merged = parts.first()?.part.clone();
    for (row, cells) in merged.rows.iter().zip(&mut merged.cells) {
        for (column, cell) in merged.columns.iter().zip(cells) {
            *cell = Quantiles::of_runs(parts.iter().filter_map(|one| one.part.of(*row, *column).copied()));
        }
    }
    Some(merged)
}

/// Merges tables. The result has the rows and columns of all runs.
fn table(parts: &[Part<'_, NamedTable>]) -> Option<NamedTable> {
    let first = parts.first()?.part;
    let all = |names: fn(&NamedTable) -> &Vec<String>| {
        let mut known: Vec<String> = Vec::new();
        for name in parts.iter().flat_map(|one| names(one.part)) {
            if !known.contains(name) {
                known.push(name.clone());
            }
        }
        known
    };
    let (rows, columns) = (all(|table| &table.rows), all(|table| &table.columns));
    let cell = |row: &String, column: &String| {
        let values = parts.iter().flat_map(|one| one.part.values());
        Quantiles::of_runs(values.filter(|value| (value.0, value.1) == (row, column)).map(|value| *value.2))
    };
    let cells = rows.iter().map(|row| columns.iter().map(|column| cell(row, column)).collect()).collect();
    Some(NamedTable { rows, columns, cells, ..first.clone() })
}

/// Merges curves. The result has the points of all runs. If places on the axis are measured too, it has those of the first
/// run: the values of other runs are interpolated there.
fn curve(parts: &[Part<'_, Curve>]) -> Option<Curve> {
    let mut merged = parts.first()?.part.clone();
    let is_measured = merged.x.is_measured();
    if !is_measured {
        for point in parts.iter().flat_map(|one| &one.part.points) {
            if !merged.points.iter().any(|known| known.x == point.x) {
                let at = merged.points.partition_point(|known| known.x < point.x);
                merged.points.insert(at, *point);
            }
        }
    }
    for (at, point) in merged.points.iter_mut().enumerate() {
        let of = |one: &Part<'_, Curve>| match (is_measured, one.run) {
            (true, run) if run == parts.first()?.run => Some(one.part.points.get(at)?.value),
            (true, _) => between(one.part, point.x),
            (false, _) => one.part.points.iter().find(|other| other.x == point.x).map(|other| other.value),
        };
        point.value = Quantiles::of_runs(parts.iter().filter_map(of)).unwrap_or(point.value);
    }
    // Marks are merged as values with the same name are.
    for mark in &mut merged.marks {
        let marks =
            parts.iter().filter_map(|one| one.part.marks.iter().find(|other| other.name == mark.name));
        let exact = marks.map(|other| Quantiles { median: other.x, low: other.x, high: other.x, samples: 1 });
        mark.x = Quantiles::of_runs(exact).map_or(mark.x, |all| all.median);
    }
    merged.marks.sort_by(|one, other| one.x.total_cmp(&other.x));
    Some(merged)
}

/// The value of a curve at a place between two of its points.
fn between(curve: &Curve, x: f64) -> Option<Quantiles> {
    let mut points = curve.points.clone();
    points.sort_by(|one, other| one.x.total_cmp(&other.x));
    let pair = points.windows(2).find(|pair| pair[0].x <= x && x <= pair[1].x)?;
    let (from, to) = (pair[0], pair[1]);
    let share = if to.x > from.x { (x - from.x) / (to.x - from.x) } else { 0.0 };
    let at = |of: fn(&Quantiles) -> f64| of(&from.value) + share * (of(&to.value) - of(&from.value));
    let samples = from.value.samples.min(to.value.samples);
    Some(Quantiles { median: at(|v| v.median), low: at(|v| v.low), high: at(|v| v.high), samples })
}

fn value(parts: &[Part<'_, NamedValue>]) -> Option<NamedValue> {
    let first = parts.first()?.part;
    let better = match less_is_better(&first.unit) {
        Some(true) => f64::min,
        _ => f64::max,
    };
    let value = Quantiles::of_runs(parts.iter().map(|one| one.part.value))?;
    let best = parts.iter().filter_map(|one| one.part.best).reduce(better);
    Some(NamedValue { value, best, ..first.clone() })
}

/// The sentence without numbers: sentences that differ only in numbers are merged.
fn without_figures(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_ascii_digit() && *letter != '.').collect()
}

fn sentences(runs: &[BenchResult], of: impl Fn(&BenchResult) -> &Vec<String>) -> Vec<String> {
    let groups = grouped(runs, of, |text| without_figures(text));
    let sentence = |parts: &Vec<Part<'_, String>>| {
        let first = parts.first()?;
        let is_equal = parts.iter().all(|one| one.part == first.part);
        Some(format!("{}{}", first.part, said_by(parts.len(), runs.len(), (!is_equal).then_some(first.run))))
    };
    groups.iter().filter_map(sentence).collect()
}

/// How many runs say something, and which run its numbers are from.
fn said_by(count: usize, runs: usize, figures: Option<usize>) -> String {
    match figures {
        None if count == runs => String::new(),
        None => format!(" ({count} of {runs} runs)"),
        Some(run) => format!(" ({count} of {runs} runs; figures of run {})", run + 1),
    }
}

fn left_out(runs: &[BenchResult]) -> Vec<NotMeasured> {
    let key = |one: &NotMeasured| [without_figures(&one.what), without_figures(&one.why)];
    let groups = grouped(runs, |run| &run.left_out, key);
    let one = |parts: &Vec<Part<'_, NotMeasured>>| {
        let first = parts.first()?;
        let is_equal = parts.iter().all(|one| one.part == first.part);
        let said = said_by(parts.len(), runs.len(), (!is_equal).then_some(first.run));
        Some(NotMeasured { what: first.part.what.clone(), why: format!("{}{said}", first.part.why) })
    };
    groups.iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Axis, CurveMark};

    fn at(median: f64) -> Quantiles {
        Quantiles { median, low: median - 1.0, high: median + 1.0, samples: 3 }
    }

    /// A run whose values are all this.
    fn run(median: f64) -> BenchResult {
        let mut matrix = PairMatrix::new("m", "ns", true, vec![0, 1], vec![0]);
        matrix.set(0, 0, Some(at(median)));
        let mut curve = Curve::new("c", "ns", true, Axis::threads());
        [1.0, 2.0].into_iter().for_each(|x| curve.add(x, Some(at(median))));
        let named = |name: &str, unit: &str| NamedValue {
            name: name.into(),
            unit: unit.into(),
            value: at(median),
            best: Some(median),
        };
        BenchResult {
            name: "all".into(),
            matrices: vec![matrix],
            curves: vec![curve],
            values: vec![named("time", "ms"), named("rate", "GB/s")],
            ..BenchResult::default()
        }
    }

    #[test]
    fn values_are_medians_and_their_quantiles_cover_the_runs() {
        let whole = merged(&[run(10.0), run(30.0), run(20.0)]);
        let all: Vec<_> = whole.all().map(|(_, value)| *value).collect();
        assert_eq!(all, [Quantiles { median: 20.0, low: 9.0, high: 31.0, samples: 9 }; 5]);
        assert_eq!(whole.matrices[0].of(1, 0), None);
        assert_eq!([whole.values[0].best, whole.values[1].best], [Some(10.0), Some(30.0)]);
        assert_eq!((merged(&[run(7.0)]), whole.remarks.len()), (run(7.0), 0));
    }

    #[test]
    fn what_only_some_runs_have_is_kept_and_said() {
        let mut other = run(10.0);
        other.values.remove(0);
        other.values.push(NamedValue { name: "knee".into(), ..other.values[0].clone() });
        other.curves[0].points.remove(0);
        other.curves[0].add(4.0, Some(at(5.0)));
        let whole = merged(&[run(20.0), other]);
        let names: Vec<_> = whole.values.iter().map(|value| (&*value.name, value.value.samples)).collect();
        assert_eq!(names, [("time", 3), ("rate", 6), ("knee", 3)]);
        let points: Vec<_> = whole.curves[0].points.iter().map(|p| (p.x, p.value.samples)).collect();
        assert_eq!(points, [(1.0, 3), (2.0, 6), (4.0, 3)]);
        assert_eq!(whole.remarks, ["not in all 2 runs, but in this number of them: time (1); knee (1)"]);
    }

    #[test]
    fn tables_have_the_names_of_all_runs() {
        let of = |row: &str, median: f64| {
            let mut table = NamedTable::new(
                "t",
                "ns",
                true,
                ("allocator", vec![row.into()]),
                ("work", vec!["small".into()]),
            );
            table.set(0, 0, Some(at(median)));
            BenchResult { tables: vec![table], ..BenchResult::default() }
        };
        let whole = merged(&[of("one", 10.0), of("two", 5.0), of("one", 20.0)]);
        let values: Vec<_> = whole.tables[0].values().map(|(row, _, value)| (row, value.median)).collect();
        assert_eq!((values, whole.tables.len()), (vec![("one", 15.0), ("two", 5.0)], 1));
    }

    #[test]
    fn places_that_were_measured_are_those_of_the_first_run() {
        let of = |points: &[(f64, f64)]| {
            let mut curve = Curve::new("c", "ns", true, Axis::bandwidth());
            points.iter().for_each(|(x, ns)| curve.add(*x, Some(at(*ns))));
            BenchResult { curves: vec![curve], ..BenchResult::default() }
        };
        let whole =
            merged(&[of(&[(0.0, 100.0), (10.0, 110.0), (40.0, 300.0)]), of(&[(0.0, 100.0), (20.0, 140.0)])]);
        let points: Vec<_> = whole.curves[0].points.iter().map(|p| (p.x, p.value)).collect();
        assert_eq!(points[0], (0.0, Quantiles { samples: 6, ..at(100.0) }));
        // Half way between 100 and 140 in the second run, and beyond it.
        assert_eq!((points[1].1.low, points[1].1.high), (109.0, 121.0));
        assert_eq!(points[2], (40.0, at(300.0)));
    }

    #[test]
    fn a_mark_is_where_the_value_of_its_name_is() {
        let of = |reach: f64| {
            let mut curve = Curve::new("c", "ns", true, Axis::pages());
            curve.add(8.0, Some(at(1.0)));
            curve.marks = vec![CurveMark { x: reach, name: "the reach of level 1".into() }];
            let value = NamedValue {
                name: "reach of level 1".into(),
                unit: "pages".into(),
                value: at(reach),
                best: None,
            };
            BenchResult { curves: vec![curve], values: vec![value], ..BenchResult::default() }
        };
        let whole = merged(&[of(96.0), of(64.0), of(72.0)]);
        assert_eq!((whole.curves[0].marks[0].x, whole.values[0].value.median), (72.0, 72.0));
    }

    #[test]
    fn sentences_that_differ_in_figures_are_one() {
        let of = |remarks: &[&str]| BenchResult {
            remarks: remarks.iter().map(|remark| (*remark).to_owned()).collect(),
            left_out: vec![NotMeasured { what: "node 1".into(), why: "no memory".into() }],
            ..BenchResult::default()
        };
        let both = ["node 0: small", "node 1: small"];
        let whole = merged(&[
            of(&[both[0], both[1], "slower by 1.5", "same", "once"]),
            of(&[both[0], both[1], "slower by 2.25", "same"]),
        ]);
        assert_eq!(
            whole.remarks,
            [both[0], both[1], "slower by 1.5 (2 of 2 runs; figures of run 1)", "same", "once (1 of 2 runs)"]
        );
        assert_eq!(whole.left_out, of(&[]).left_out);
    }
}
