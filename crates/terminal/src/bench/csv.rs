//! All values as one table of comma-separated values (RFC 4180): a line for each.

use numakit_bench::{BenchResults, Quantiles};
use std::borrow::Cow;
use std::fmt::Write;

const HEAD: &str = "benchmark,kind,name,row,column,x,x_unit,unit,median,low,high,samples,best\r\n";

/// What a line has in front of its value.
#[derive(Debug, Default)]
struct Line<'a> {
    kind: &'a str,
    name: &'a str,
    pair: Option<(Cow<'a, str>, Cow<'a, str>)>,
    x: Option<f64>,
    x_unit: &'a str,
    unit: &'a str,
    best: Option<f64>,
}

/// The table. Fields that a kind does not have are empty.
pub fn csv(results: &BenchResults) -> String {
    let mut text = HEAD.to_owned();
    for result in &results.benchmarks {
        let mut put = |line: Line<'_>, value: &Quantiles| put(&mut text, &result.name, &line, value);
        for matrix in &result.matrices {
            let line = |pair| Line {
                kind: "matrix",
                name: &matrix.name,
                unit: &matrix.unit,
                pair: Some(pair),
                ..Line::default()
            };
            for (row, cells) in matrix.rows.iter().zip(&matrix.cells) {
                let there = matrix
                    .columns
                    .iter()
                    .zip(cells)
                    .filter_map(|(column, cell)| Some((column, cell.as_ref()?)));
                let numbers = |row: &u32, column: &u32| (row.to_string().into(), column.to_string().into());
                there.for_each(|(column, value)| put(line(numbers(row, column)), value));
            }
        }
        for table in &result.tables {
            for (row, column, value) in table.values() {
                let (name, unit, pair) = (&*table.name, &*table.unit, Some((row.into(), column.into())));
                put(Line { kind: "table", name, unit, pair, ..Line::default() }, value);
            }
        }
        for curve in &result.curves {
            for point in &curve.points {
                let (name, unit, x, x_unit) = (&*curve.name, &*curve.unit, Some(point.x), &*curve.x.unit);
                put(Line { kind: "curve", name, unit, x, x_unit, ..Line::default() }, &point.value);
            }
        }
        for one in &result.values {
            let (name, unit, best) = (&*one.name, &*one.unit, one.best);
            put(Line { kind: "value", name, unit, best, ..Line::default() }, &one.value);
        }
    }
    text
}

fn put(text: &mut String, benchmark: &str, line: &Line<'_>, value: &Quantiles) {
    let or_empty = |number: Option<f64>| number.map(|number| number.to_string()).unwrap_or_default();
    let (row, column) = line.pair.as_ref().map_or(("", ""), |(row, column)| (&**row, &**column));
    // Writing to a string cannot fail.
    _ = write!(
        text,
        "{},{},{},{},{},{},{},{},{},{},{},{},{}\r\n",
        quoted(benchmark),
        line.kind,
        quoted(line.name),
        quoted(row),
        quoted(column),
        or_empty(line.x),
        quoted(line.x_unit),
        quoted(line.unit),
        value.median,
        value.low,
        value.high,
        value.samples,
        or_empty(line.best)
    );
}

/// A text as a field.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
