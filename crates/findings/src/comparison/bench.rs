//! What differs between two results beyond noise.
//!
//! Two values differ if the intervals from their 10 % to their 90 % quantile do not overlap. Intervals of several runs cover the
//! noise between runs; those of one run do not.

use numakit_bench::Quantiles;
use numakit_bench::{BenchResult, BenchResults, less_is_better};
use serde::Serialize;
use std::collections::BTreeMap;

/// The version of a comparison's form.
pub const COMPARISON_VERSION: u32 = 1;

/// Two results compared with each other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchComparison {
    /// [`COMPARISON_VERSION`].
    pub version: u32,
    /// False if the keys of the machines differ.
    pub same_machine: bool,
    /// Runs of the first results, and of the second. With one, differences between runs are not known.
    pub runs: [u32; 2],
    /// Conditions that differ.
    pub unlike: Vec<UnlikeCondition>,
    /// Why values may be wrong: of the first results, and of the second.
    pub doubts: [Vec<BenchDoubt>; 2],
    /// How many values both results have.
    pub compared: usize,
    /// The values that differ beyond noise. The largest factor comes first.
    pub changes: Vec<BenchChange>,
    /// What only the first results have.
    pub only_first: Vec<UnmatchedValues>,
    /// What only the second results have.
    pub only_second: Vec<UnmatchedValues>,
}

/// A warning of a benchmark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BenchDoubt {
    /// The benchmark.
    pub benchmark: String,
    /// The warning.
    pub warning: String,
}

/// A condition that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnlikeCondition {
    /// Which.
    pub what: &'static str,
    /// In the first results.
    pub first: String,
    /// In the second.
    pub second: String,
}

/// A value that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchChange {
    /// The benchmark.
    pub benchmark: String,
    /// What was measured.
    pub name: String,
    /// Which value of a matrix, a table or a curve; empty for a single value.
    pub place: String,
    /// The unit.
    pub unit: String,
    /// In the first results.
    pub first: Quantiles,
    /// In the second.
    pub second: Quantiles,
    /// By how much the median changed, in percent of the first; null if that is 0.
    pub change_percent: Option<f64>,
    /// Whether the second is better; null where that is not known.
    pub is_better: Option<bool>,
}

/// Values of one name that only one of the results has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnmatchedValues {
    /// The benchmark.
    pub benchmark: String,
    /// What was measured.
    pub name: String,
    /// How many values have no partner.
    pub count: usize,
    /// How many values there are.
    pub of: usize,
}

/// What distinguishes a value from all others of its results.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ValueKey<'a> {
    benchmark: &'a str,
    name: &'a str,
    unit: &'a str,
    place: ValuePlace<'a>,
}

/// Where a value is. Numbers on an axis are compared by their bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ValuePlace<'a> {
    Pair(u32, u32),
    Names(&'a str, &'a str),
    Point(u64),
    Single,
}

/// A value, its unit, and whether less of it is better.
#[derive(Debug, Clone)]
struct FoundValue {
    value: Quantiles,
    place: String,
    less_is_better: Option<bool>,
}

type FoundValues<'a> = BTreeMap<ValueKey<'a>, FoundValue>;

/// Compares two results.
pub fn compare(first: &BenchResults, second: &BenchResults) -> BenchComparison {
    let (before, after) = (values(first), values(second));
    let pairs: Vec<_> = before.iter().filter_map(|(key, one)| Some((key, one, after.get(key)?))).collect();
    let mut changes: Vec<BenchChange> =
        pairs.iter().filter_map(|(key, one, other)| change(key, one, other)).collect();
    changes.sort_by(|one, other| factor(other).total_cmp(&factor(one)));
    BenchComparison {
        version: COMPARISON_VERSION,
        same_machine: first.machine_key == second.machine_key,
        runs: [first.runs, second.runs],
        unlike: unlike(first, second),
        doubts: [doubts(first), doubts(second)],
        compared: pairs.len(),
        changes,
        only_first: unmatched(&before, &after),
        only_second: unmatched(&after, &before),
    }
}

/// All values by their keys. The first of two equal keys counts.
fn values(results: &BenchResults) -> FoundValues<'_> {
    let mut found = FoundValues::new();
    for result in &results.benchmarks {
        let mut put = |name, unit, place, value: FoundValue| {
            found.entry(ValueKey { benchmark: &result.name, name, unit, place }).or_insert(value);
        };
        for matrix in &result.matrices {
            for (row, cells) in matrix.rows.iter().zip(&matrix.cells) {
                for (column, cell) in matrix.columns.iter().zip(cells) {
                    let Some(value) = *cell else { continue };
                    let place = format!("{} {row}, {} {column}", matrix.row, matrix.column);
                    let less_is_better = Some(matrix.less_is_better);
                    put(
                        &matrix.name,
                        &matrix.unit,
                        ValuePlace::Pair(*row, *column),
                        FoundValue { value, place, less_is_better },
                    );
                }
            }
        }
        for table in &result.tables {
            for (row, column, value) in table.values() {
                let (place, less_is_better) = (format!("{row}, {column}"), Some(table.less_is_better));
                let found = FoundValue { value: *value, place, less_is_better };
                put(&table.name, &table.unit, ValuePlace::Names(row, column), found);
            }
        }
        for curve in &result.curves {
            for point in &curve.points {
                let (place, less_is_better) = (curve.x.place(point.x), Some(curve.less_is_better));
                let found = FoundValue { value: point.value, place, less_is_better };
                put(&curve.name, &curve.unit, ValuePlace::Point(point.x.to_bits()), found);
            }
        }
        for one in &result.values {
            let less_is_better = less_is_better(&one.unit);
            let found = FoundValue { value: one.value, place: String::new(), less_is_better };
            put(&one.name, &one.unit, ValuePlace::Single, found);
        }
    }
    found
}

fn change(key: &ValueKey<'_>, first: &FoundValue, second: &FoundValue) -> Option<BenchChange> {
    let (before, after) = (first.value, second.value);
    if !before.interval().is_apart_from(after.interval()) {
        return None;
    }
    let change_percent =
        (before.median != 0.0).then(|| 100.0 * (after.median - before.median) / before.median.abs());
    Some(BenchChange {
        benchmark: key.benchmark.to_owned(),
        name: key.name.to_owned(),
        place: first.place.clone(),
        unit: key.unit.to_owned(),
        first: before,
        second: after,
        change_percent,
        is_better: first.less_is_better.map(|less| (after.median < before.median) == less),
    })
}

/// How many times as large as the other value one of the two is, at least 1.
fn factor(change: &BenchChange) -> f64 {
    let ratio = (change.second.median / change.first.median).abs();
    if ratio > 0.0 { ratio.max(1.0 / ratio) } else { f64::INFINITY }
}

fn unmatched(here: &FoundValues<'_>, there: &FoundValues<'_>) -> Vec<UnmatchedValues> {
    let mut names: BTreeMap<(&str, &str), (usize, usize)> = BTreeMap::new();
    for key in here.keys() {
        let (count, of) = names.entry((key.benchmark, key.name)).or_default();
        *count += usize::from(!there.contains_key(key));
        *of += 1;
    }
    let names = names.into_iter().filter(|(_, (count, _))| *count > 0);
    names
        .map(|((benchmark, name), (count, of))| UnmatchedValues {
            benchmark: benchmark.to_owned(),
            name: name.to_owned(),
            count,
            of,
        })
        .collect()
}

fn unlike(first: &BenchResults, second: &BenchResults) -> Vec<UnlikeCondition> {
    let of = |results: &BenchResults| {
        let conditions = results.conditions.clone();
        let or = |value: Option<String>, without: &str| value.unwrap_or_else(|| without.to_owned());
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        [
            ("processor", conditions.processor),
            ("parts", conditions.machine),
            ("kernel", conditions.kernel),
            ("virtual machine", yes(conditions.virtual_machine)),
            ("governor", or(conditions.governor, "not shown")),
            ("huge pages", or(conditions.huge_pages, "none")),
            ("memory policies", or(conditions.policies_refused, "permitted")),
            ("nodes of pages", or(conditions.unverified, "verified")),
            ("interrupted", yes(!results.complete)),
        ]
    };
    let pairs = of(first).into_iter().zip(of(second));
    let differ = pairs.filter(|((_, one), (_, other))| one != other);
    differ.map(|((what, first), (_, second))| UnlikeCondition { what, first, second }).collect()
}

fn doubts(results: &BenchResults) -> Vec<BenchDoubt> {
    let of = |result: &BenchResult| {
        let benchmark = result.name.clone();
        let with =
            move |warning: &String| BenchDoubt { benchmark: benchmark.clone(), warning: warning.clone() };
        result.warnings.iter().map(with).collect::<Vec<_>>()
    };
    results.benchmarks.iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests;
