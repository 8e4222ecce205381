//! Results from a file, which a stranger may have written: whatever is in it, the result can be shown.

use crate::results::quantiles::Quantiles;
use crate::results::{BenchResult, BenchResults, Curve, NamedTable, PairMatrix, VERSION};
use crate::settings::MAX_RUNS;
use numakit_topology::json::{self, ContentError, MAX_CPUS};
use serde::Deserialize;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use thiserror::Error;

/// The largest file. A matrix of 512 nodes has 20 MiB.
const MAX_FILE: u64 = 64 << 20;
/// Cells, points and values together.
const MAX_VALUES: usize = 1 << 19;
const MAX_BENCHMARKS: usize = 256;
/// Matrices, tables, curves, values, remarks, warnings and what was left out, each of a benchmark.
const MAX_PARTS: usize = 1 << 16;
/// Bytes of a name or a sentence.
const MAX_TEXT: usize = 4096;
/// Larger and smaller values are no measurements.
const MAX_NUMBER: f64 = 1e30;

/// Why a file is not read.
#[derive(Debug, Error)]
pub enum BenchReadError {
    /// The file cannot be opened or read.
    #[error("{path}: {error}; give a file that 'numa bench --json' wrote")]
    Unreadable {
        /// The file.
        path: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// The file contains something else.
    #[error("{path}: {error}")]
    Content {
        /// The file.
        path: String,
        /// What is wrong.
        error: BenchContentError,
    },
}

/// Why a text is no results.
#[derive(Debug, Error)]
pub enum BenchContentError {
    /// The file is too long to have results.
    #[error("it is longer than {} MiB; give a file that 'numa bench --json' wrote", MAX_FILE >> 20)]
    Long,
    /// The file is not JSON, or a field is of a different kind.
    #[error("it has no results of numa bench: {0}; write them with 'numa bench all --json > FILE'")]
    Syntax(#[from] serde_json::Error),
    /// The results have a different version.
    #[error(
        "its results have version {0}, and this numa reads version {VERSION}; read it with the numa that wrote it"
    )]
    Version(u64),
    /// More than any machine has.
    #[error("{what}: {count} are more than {most}; measure fewer at once")]
    Many {
        /// The kind of parts.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many are permitted.
        most: usize,
    },
    /// No run, or more than can be asked for.
    #[error("it is of {0} runs, and there are 1 to {MAX_RUNS}; do not edit results")]
    Runs(u32),
    /// A matrix or table whose cells do not have its rows and columns.
    #[error("'{0}': its cells do not have {1} rows and {2} columns; do not edit results")]
    Shape(String, usize, usize),
    /// A value that no measurement has.
    #[error("'{0}' has a value that is no measurement: {1}; do not edit results")]
    Value(String, String),
    /// Letters that would command a terminal.
    #[error("a text has control characters: '{0}'; do not edit results")]
    Control(String),
    /// A machine that cannot be.
    #[error("its topology: {0}")]
    Topology(#[from] ContentError),
}

/// The field that all versions of results have.
#[derive(Deserialize)]
struct AnyVersion {
    version: u64,
}

impl BenchResults {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, BenchReadError> {
        let shown = || path.display().to_string();
        let mut text = Vec::new();
        File::open(path)
            .and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut text))
            .map_err(|error| BenchReadError::Unreadable { path: shown(), error })?;
        Self::parse(&text).map_err(|error| BenchReadError::Content { path: shown(), error })
    }

    /// Reads the content of a file.
    pub fn parse(text: &[u8]) -> Result<Self, BenchContentError> {
        if text.len() as u64 > MAX_FILE {
            return Err(BenchContentError::Long);
        }
        let AnyVersion { version } = serde_json::from_slice(text)?;
        if version != u64::from(VERSION) {
            return Err(BenchContentError::Version(version));
        }
        let mut results: Self = serde_json::from_slice(text)?;
        results.topology = results.topology.map(json::checked).transpose()?;
        results.check()?;
        Ok(results)
    }

    fn check(&self) -> Result<(), BenchContentError> {
        if !(1..=MAX_RUNS).contains(&self.runs) {
            return Err(BenchContentError::Runs(self.runs));
        }
        at_most("benchmarks", self.benchmarks.len(), MAX_BENCHMARKS)?;
        let conditions = &self.conditions;
        let texts = [&self.machine_key, &conditions.processor, &conditions.kernel, &conditions.machine];
        let others = [
            &conditions.governor,
            &conditions.huge_pages,
            &conditions.policies_refused,
            &conditions.unverified,
            &conditions.verified_by,
        ];
        texts.into_iter().chain(others.into_iter().flatten()).try_for_each(|text| plain(text))?;
        let of = |result: &BenchResult| {
            let cells = |matrix: &PairMatrix| matrix.rows.len().saturating_mul(matrix.columns.len());
            let cells = result.matrices.iter().map(cells).fold(0, usize::saturating_add);
            let named = |table: &NamedTable| table.rows.len().saturating_mul(table.columns.len());
            let cells = result.tables.iter().map(named).fold(cells, usize::saturating_add);
            let points: usize =
                result.curves.iter().map(|curve| curve.points.len() + curve.marks.len()).sum();
            cells.saturating_add(points + result.values.len())
        };
        let values = self.benchmarks.iter().map(of).fold(0, usize::saturating_add);
        at_most("values", values, MAX_VALUES)?;
        self.benchmarks.iter().try_for_each(check_result)
    }
}

fn check_result(result: &BenchResult) -> Result<(), BenchContentError> {
    let left_out = result.left_out.iter().flat_map(|left| [&left.what, &left.why]);
    let sentences = result.remarks.iter().chain(&result.warnings).chain(left_out);
    at_most("sentences", sentences.clone().count(), MAX_PARTS)?;
    let parts = result.matrices.len() + result.tables.len() + result.curves.len();
    at_most("matrices, tables and curves", parts, MAX_PARTS)?;
    std::iter::once(&result.name).chain(sentences).try_for_each(|text| plain(text))?;
    result.matrices.iter().try_for_each(check_matrix)?;
    result.tables.iter().try_for_each(check_table)?;
    result.curves.iter().try_for_each(check_curve)?;
    for value in &result.values {
        [&value.name, &value.unit].into_iter().try_for_each(|text| plain(text))?;
        check_value(&value.name, &value.value)?;
        value.best.map_or(Ok(()), |best| check_number(&value.name, best))?;
    }
    Ok(())
}

fn check_matrix(matrix: &PairMatrix) -> Result<(), BenchContentError> {
    let texts = [&matrix.name, &matrix.unit, &matrix.row, &matrix.column];
    texts.into_iter().try_for_each(|text| plain(text))?;
    let largest = matrix.rows.iter().chain(&matrix.columns).max().map_or(0, |largest| *largest as usize);
    at_most("the largest number of a row or column", largest, MAX_CPUS as usize)?;
    check_shape(&matrix.name, &matrix.cells, matrix.rows.len(), matrix.columns.len())?;
    matrix.values().try_for_each(|value| check_value(&matrix.name, value))
}

fn check_table(table: &NamedTable) -> Result<(), BenchContentError> {
    let texts = [&table.name, &table.unit, &table.row, &table.column];
    let names = table.rows.iter().chain(&table.columns);
    at_most("rows and columns of a table", names.clone().count(), MAX_PARTS)?;
    texts.into_iter().chain(names).try_for_each(|text| plain(text))?;
    check_shape(&table.name, &table.cells, table.rows.len(), table.columns.len())?;
    table.values().try_for_each(|(_, _, value)| check_value(&table.name, value))
}

fn check_shape(
    name: &str,
    cells: &[Vec<Option<Quantiles>>],
    rows: usize,
    columns: usize,
) -> Result<(), BenchContentError> {
    if cells.len() != rows || cells.iter().any(|row| row.len() != columns) {
        return Err(BenchContentError::Shape(name.to_owned(), rows, columns));
    }
    Ok(())
}

fn check_curve(curve: &Curve) -> Result<(), BenchContentError> {
    let texts = [&curve.name, &curve.unit, &curve.x.name, &curve.x.unit];
    texts.into_iter().chain(curve.marks.iter().map(|mark| &mark.name)).try_for_each(|text| plain(text))?;
    let largest = curve.from.max(curve.memory).map_or(0, |largest| largest as usize);
    at_most("the number of a node", largest, MAX_CPUS as usize)?;
    at_most("the share of reads in percent", curve.read_percent.unwrap_or(0) as usize, 100)?;
    let places = curve.points.iter().map(|point| point.x).chain(curve.marks.iter().map(|mark| mark.x));
    places.into_iter().try_for_each(|x| check_number(&curve.name, x))?;
    curve.points.iter().try_for_each(|point| check_value(&curve.name, &point.value))
}

fn check_value(name: &str, value: &Quantiles) -> Result<(), BenchContentError> {
    [value.low, value.median, value.high].into_iter().try_for_each(|number| check_number(name, number))?;
    if value.low <= value.median && value.median <= value.high && value.samples > 0 {
        return Ok(());
    }
    let Quantiles { median, low, high, samples } = value;
    let shown = format!("median {median}, low {low}, high {high} of {samples} samples");
    Err(BenchContentError::Value(name.to_owned(), shown))
}

fn check_number(name: &str, number: f64) -> Result<(), BenchContentError> {
    if number.abs() <= MAX_NUMBER {
        return Ok(());
    }
    Err(BenchContentError::Value(name.to_owned(), number.to_string()))
}

/// A text that can be printed.
fn plain(text: &str) -> Result<(), BenchContentError> {
    at_most("bytes of a text", text.len(), MAX_TEXT)?;
    if text.chars().any(char::is_control) {
        return Err(BenchContentError::Control(text.escape_debug().to_string()));
    }
    Ok(())
}

fn at_most(what: &'static str, count: usize, most: usize) -> Result<(), BenchContentError> {
    if count > most { Err(BenchContentError::Many { what, count, most }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
