//! Short tables in place of curves of which few values say all: those of `alias` and `assoc`.

use crate::caches::{alias, assoc, coloring};
use crate::results::quantiles::Quantiles;
use crate::results::{BenchResult, Curve};

/// A table that says in short what curves say.
#[derive(Debug, Clone, PartialEq)]
pub struct ShortTable {
    /// What it shows.
    pub name: String,
    /// The unit of the values.
    pub unit: String,
    /// Headings of a row's words, and then of its values.
    pub headings: Vec<&'static str>,
    /// In the order of the curves.
    pub rows: Vec<ShortRow>,
    /// The number of the curves' values.
    pub of: usize,
}

/// A row of a short table.
#[derive(Debug, Clone, PartialEq)]
pub struct ShortRow {
    /// The words that say what the row is about.
    pub words: Vec<String>,
    /// Values with the same heading in each row.
    pub values: Vec<f64>,
}

/// The short tables of a result, and the curves that have none.
pub fn short(result: &BenchResult) -> (Vec<ShortTable>, Vec<&Curve>) {
    let tables = [
        (alias::OFFSET, alias::short as fn(&[&Curve]) -> Option<ShortTable>),
        (assoc::ARRAYS, assoc::short),
        (coloring::SHARE, coloring::short),
    ];
    let mut others: Vec<&Curve> = result.curves.iter().collect();
    let mut found = Vec::new();
    for (axis, table) in tables {
        let (of_axis, rest): (Vec<&Curve>, Vec<&Curve>) =
            others.iter().partition(|curve| curve.x.name == axis);
        if let Some(table) = table(&of_axis) {
            found.push(table);
            others = rest;
        }
    }
    (found, others)
}

/// A table with such a row for each of these curves; `None` if there are no rows, or if a curve has a different unit.
pub(crate) fn table(
    name: &str,
    headings: Vec<&'static str>,
    curves: &[&Curve],
    rows: Vec<ShortRow>,
) -> Option<ShortTable> {
    let unit = curves.first()?.unit.clone();
    let is_one = !rows.is_empty() && curves.iter().all(|curve| curve.unit == unit);
    let of = curves.iter().map(|curve| curve.points.len()).sum();
    is_one.then(|| ShortTable { name: name.to_owned(), unit, headings, rows, of })
}

/// The three numbers of a value.
pub(crate) fn numbers(value: &Quantiles) -> Vec<f64> {
    vec![value.median, value.low, value.high]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Axis;

    #[test]
    fn curves_of_other_axes_have_no_short_table() {
        let value = Some(Quantiles { median: 1.0, low: 1.0, high: 1.0, samples: 1 });
        let mut curve = Curve::new("by threads", "ns", true, Axis::threads());
        curve.add(1.0, value);
        let axis = |name: &str| Axis { name: name.into(), unit: "x".into(), logarithmic: false };
        let mut strange = Curve::new("not named as assoc does", "ns", true, axis(assoc::ARRAYS));
        strange.add(2.0, value);
        let mut share = Curve::new("load latency, it", "ns", true, axis(coloring::SHARE));
        (0..11).for_each(|at| share.add(f64::from(at) * 10.0, value));
        let result = BenchResult { curves: vec![curve, strange, share], ..BenchResult::default() };
        let (tables, others) = short(&result);
        let names: Vec<_> = others.iter().map(|curve| &*curve.name).collect();
        assert_eq!(names, ["by threads", "not named as assoc does"]);
        assert_eq!((tables.len(), tables[0].of, tables[0].rows[0].values.len()), (1, 11, 3));
    }
}
