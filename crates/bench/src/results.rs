//! What was measured, as plain values.

pub(crate) mod agreement;
pub(crate) mod conditions;
pub mod distances;
pub mod kept;
pub(crate) mod peak;
pub(crate) mod quantiles;
pub(crate) mod read;
pub(crate) mod short;
pub(crate) mod weights;

use crate::results::conditions::BenchConditions;
use crate::results::quantiles::Quantiles;
use numakit_model::Topology;
use numakit_model::numbers::NumberStyle;
use serde::{Deserialize, Serialize};

/// The version of the form of results. A reader refuses other versions.
pub const VERSION: u32 = 1;

/// All that a run has measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchResults {
    /// [`VERSION`].
    pub version: u32,
    /// A name for the machine: of equal processor, nodes, CPUs and memory.
    pub machine_key: String,
    /// The machine, and what it was doing.
    pub conditions: BenchConditions,
    /// The parts of the machine, as `numa topo --json` writes them; a file may be without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<Topology>,
    /// One for each benchmark.
    pub benchmarks: Vec<BenchResult>,
    /// How often they ran. Of several runs, a value is the median of their medians, and its quantiles cover the runs.
    #[serde(default = "once")]
    pub runs: u32,
    /// False if the run was interrupted.
    pub complete: bool,
}

fn once() -> u32 {
    1
}

/// What a benchmark has measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchResult {
    /// The benchmark.
    pub name: String,
    /// Values by pair.
    pub matrices: Vec<PairMatrix>,
    /// Values by two names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<NamedTable>,
    /// Values by another quantity.
    pub curves: Vec<Curve>,
    /// Single values.
    pub values: Vec<NamedValue>,
    /// Conclusions from the values, in sentences.
    pub remarks: Vec<String>,
    /// What was not measured.
    pub left_out: Vec<NotMeasured>,
    /// Why a value may be wrong.
    pub warnings: Vec<String>,
}

/// A value for each pair of a row and a column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PairMatrix {
    /// What was measured.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Whether less is better.
    pub less_is_better: bool,
    /// What a row is, such as `CPUs of node`.
    pub row: String,
    /// What a column is.
    pub column: String,
    /// The kernel's numbers of the rows.
    pub rows: Vec<u32>,
    /// The kernel's numbers of the columns.
    pub columns: Vec<u32>,
    /// `cells[row][column]`; null if it was not measured.
    pub cells: Vec<Vec<Option<Quantiles>>>,
}

/// A value for each pair of names, such as an allocator and what it is used for. Values of different columns measure
/// different things, so only values of one column are compared with each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedTable {
    /// What was measured.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Whether less is better.
    pub less_is_better: bool,
    /// What a row is.
    pub row: String,
    /// What a column is.
    pub column: String,
    /// The names of the rows.
    pub rows: Vec<String>,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// `cells[row][column]`; null if it was not measured.
    pub cells: Vec<Vec<Option<Quantiles>>>,
}

/// Values by another quantity, such as the size of the memory or the number of threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// What was measured.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Whether less is better.
    pub less_is_better: bool,
    /// By what.
    pub x: Axis,
    /// The node of the CPUs, if the curve is of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
    /// The node of the memory, if the curve is of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u32>,
    /// The share of reads in the traffic of other cores, in percent, if the curve has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_percent: Option<u32>,
    /// In the order in which they are to be joined.
    pub points: Vec<CurvePoint>,
    /// Places on the axis that mean something, such as the sizes of caches, in ascending order.
    pub marks: Vec<CurveMark>,
}

/// The quantity by which values are given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// What it is: `size`, `threads`.
    pub name: String,
    /// Its unit: `bytes`, `threads`.
    pub unit: String,
    /// Whether equal factors are to have equal distances.
    pub logarithmic: bool,
}

/// A point of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Where it is on the axis.
    pub x: f64,
    /// The value.
    pub value: Quantiles,
}

/// A place on the axis of a curve, with its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CurveMark {
    /// Where it is.
    pub x: f64,
    /// What is there: `L2`.
    pub name: String,
}

/// A value with its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedValue {
    /// What was measured.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// The value.
    pub value: Quantiles,
    /// The best measurement, where that is what counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<f64>,
}

/// Something that was not measured.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NotMeasured {
    /// What: `memory of node 3`.
    pub what: String,
    /// Why, and what would change it.
    pub why: String,
}

impl PairMatrix {
    /// Makes a matrix without values.
    pub fn new(name: &str, unit: &str, less_is_better: bool, rows: Vec<u32>, columns: Vec<u32>) -> Self {
        let cells = vec![vec![None; columns.len()]; rows.len()];
        let (row, column) = ("CPUs of node".to_owned(), "memory of node".to_owned());
        Self {
            name: name.to_owned(),
            unit: unit.to_owned(),
            less_is_better,
            row,
            column,
            rows,
            columns,
            cells,
        }
    }

    /// Sets the value of a pair.
    pub fn set(&mut self, row: usize, column: usize, value: Option<Quantiles>) {
        if let Some(cell) = self.cells.get_mut(row).and_then(|row| row.get_mut(column)) {
            *cell = value;
        }
    }

    /// The value of a pair, by the kernel's numbers.
    pub fn of(&self, row: u32, column: u32) -> Option<&Quantiles> {
        let at = |numbers: &[u32], wanted| numbers.iter().position(|number| *number == wanted);
        self.cells.get(at(&self.rows, row)?)?.get(at(&self.columns, column)?)?.as_ref()
    }

    /// All values.
    pub fn values(&self) -> impl Iterator<Item = &Quantiles> {
        self.cells.iter().flatten().flatten()
    }
}

impl NamedTable {
    /// Makes a table without values. `row` and `column` are words for what the names are.
    pub fn new(
        name: &str,
        unit: &str,
        less_is_better: bool,
        (row, rows): (&str, Vec<String>),
        (column, columns): (&str, Vec<String>),
    ) -> Self {
        let cells = vec![vec![None; columns.len()]; rows.len()];
        let (name, unit, row, column) = (name.to_owned(), unit.to_owned(), row.to_owned(), column.to_owned());
        Self { name, unit, less_is_better, row, column, rows, columns, cells }
    }

    /// Sets the value of a pair.
    pub fn set(&mut self, row: usize, column: usize, value: Option<Quantiles>) {
        if let Some(cell) = self.cells.get_mut(row).and_then(|row| row.get_mut(column)) {
            *cell = value;
        }
    }

    /// All values, with the names of their rows and columns.
    pub fn values(&self) -> impl Iterator<Item = (&str, &str, &Quantiles)> {
        self.rows.iter().zip(&self.cells).flat_map(|(row, cells)| {
            let named = self.columns.iter().zip(cells);
            named.filter_map(move |(column, cell)| Some((row.as_str(), column.as_str(), cell.as_ref()?)))
        })
    }
}

impl Curve {
    /// Makes a curve without points.
    pub fn new(name: impl Into<String>, unit: &str, less_is_better: bool, x: Axis) -> Self {
        let (points, marks) = (Vec::new(), Vec::new());
        let (from, memory, read_percent) = (None, None, None);
        let (name, unit) = (name.into(), unit.to_owned());
        Self { name, unit, less_is_better, x, from, memory, read_percent, points, marks }
    }

    /// Notes that the curve is from the CPUs of one node to the memory of another or the same node.
    pub fn between(self, from: u32, memory: u32) -> Self {
        Self { from: Some(from), memory: Some(memory), ..self }
    }

    /// The node of the CPUs and the node of the memory. Earlier results have them in the name only.
    pub fn nodes(&self) -> Option<(u32, u32)> {
        let in_name = |words| number_after(&self.name, words);
        let (from, memory) = (self.from.or_else(|| in_name("CPUs of node ")), self.memory);
        from.zip(memory.or_else(|| in_name("memory of node ")))
    }

    /// The share of reads, in percent. Earlier results have it in the name only.
    pub fn reads(&self) -> Option<u32> {
        let in_name = || self.name.split(", ").find_map(|part| part.strip_suffix(" % reads")?.parse().ok());
        self.read_percent.or_else(in_name)
    }

    /// Adds a point, if it was measured.
    pub fn add(&mut self, x: f64, value: Option<Quantiles>) {
        self.points.extend(value.map(|value| CurvePoint { x, value }));
    }
}

/// The number that follows words.
fn number_after(text: &str, words: &str) -> Option<u32> {
    let (_, rest) = text.split_once(words)?;
    rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

impl Axis {
    /// Bytes of memory, by factors.
    pub fn size() -> Self {
        Self { name: "size".to_owned(), unit: "bytes".to_owned(), logarithmic: true }
    }

    /// Whether the places on the axis are measured too, so that no two runs have the same places.
    pub fn is_measured(&self) -> bool {
        *self == Self::bandwidth()
    }

    /// A place on the axis, with its unit.
    pub fn place(&self, x: f64) -> String {
        match self.unit.as_str() {
            "bytes" => NumberStyle::Bytes.words(x),
            unit if x == 1.0 && !unit.ends_with("/s") => format!("{x} {}", unit.trim_end_matches('s')),
            unit if x.fract() == 0.0 => format!("{x} {unit}"),
            unit => format!("{x:.2} {unit}"),
        }
    }

    /// The axis of bytes per second that other cores move.
    pub fn bandwidth() -> Self {
        Self { name: "bandwidth".to_owned(), unit: "GB/s".to_owned(), logarithmic: false }
    }

    /// Numbers of pages, by factors.
    pub fn pages() -> Self {
        Self { name: "pages".to_owned(), unit: "pages".to_owned(), logarithmic: true }
    }

    /// Numbers of threads.
    pub fn threads() -> Self {
        Self { name: "threads".to_owned(), unit: "threads".to_owned(), logarithmic: false }
    }
}

impl BenchResult {
    /// All values, with what they are.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Quantiles)> {
        let cells =
            self.matrices.iter().flat_map(|matrix| matrix.values().map(|value| (&*matrix.name, value)));
        let points =
            self.curves.iter().flat_map(|curve| curve.points.iter().map(|p| (&*curve.name, &p.value)));
        let named = self.tables.iter().flat_map(|t| t.values().map(|(_, _, value)| (&*t.name, value)));
        cells.chain(named).chain(points).chain(self.values.iter().map(|value| (&*value.name, &value.value)))
    }

    /// Adds a curve, unless nothing of it was measured.
    pub fn add_curve(&mut self, curve: Curve) {
        self.curves.extend(Some(curve).filter(|curve| !curve.points.is_empty()));
    }

    /// Adds that something was not measured, once.
    pub fn leave_out(&mut self, what: impl Into<String>, why: impl Into<String>) {
        let one = NotMeasured { what: what.into(), why: why.into() };
        if !self.left_out.contains(&one) {
            self.left_out.push(one);
        }
    }
}

/// Whether less of this unit is better: of times it is, of rates it is not.
pub fn less_is_better(unit: &str) -> Option<bool> {
    // A time may be that of something: `ns a page`.
    match unit.split(' ').next().unwrap_or_default() {
        "ns" | "us" | "ms" | "s" | "cycles" => Some(true),
        rate if rate.ends_with("/s") => Some(false),
        _ => None,
    }
}
