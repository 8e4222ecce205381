//! Values in rows and columns, by node or by name, as they are drawn.

use super::number;
use numakit_bench::{NamedTable, PairMatrix, Quantiles};
use numakit_model::numbers::ABSENT;

/// Colours from the best to the worst value.
pub const STEPS: usize = 7;
/// A ratio of the worst to the best value below which all are alike.
const ALIKE: f64 = 1.05;

/// A matrix or a table.
pub struct Grid<'a> {
    pub name: &'a str,
    pub unit: &'a str,
    pub less_is_better: bool,
    /// What rows and columns are.
    pub row: &'a str,
    pub column: &'a str,
    /// Their names.
    pub rows: Vec<String>,
    pub columns: Vec<String>,
    pub cells: &'a [Vec<Option<Quantiles>>],
    /// Whether rows have words for names, and only the values of a column can be compared.
    pub is_named: bool,
}

impl<'a> From<&'a PairMatrix> for Grid<'a> {
    fn from(matrix: &'a PairMatrix) -> Self {
        let names = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect();
        Self {
            name: &matrix.name,
            unit: &matrix.unit,
            less_is_better: matrix.less_is_better,
            row: &matrix.row,
            column: &matrix.column,
            rows: names(&matrix.rows),
            columns: names(&matrix.columns),
            cells: &matrix.cells,
            is_named: false,
        }
    }
}

impl<'a> From<&'a NamedTable> for Grid<'a> {
    fn from(table: &'a NamedTable) -> Self {
        Self {
            name: &table.name,
            unit: &table.unit,
            less_is_better: table.less_is_better,
            row: &table.row,
            column: &table.column,
            rows: table.rows.clone(),
            columns: table.columns.clone(),
            cells: &table.cells,
            is_named: true,
        }
    }
}

impl Grid<'_> {
    /// All values.
    pub fn values(&self) -> impl Iterator<Item = &Quantiles> {
        self.cells.iter().flatten().flatten()
    }

    /// The least and the largest median that those of each column are compared with.
    pub fn bounds(&self) -> Vec<(f64, f64)> {
        let of = |values: &mut dyn Iterator<Item = f64>| {
            values.fold((f64::MAX, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)))
        };
        let all = of(&mut self.values().map(|value| value.median));
        let column = |at: usize| {
            of(&mut self.cells.iter().filter_map(|row| row.get(at)?.as_ref()).map(|value| value.median))
        };
        (0..self.columns.len()).map(|at| if self.is_named { column(at) } else { all }).collect()
    }

    /// How far measurements were from the medians.
    pub fn spread(&self) -> Option<String> {
        let values = self.values().filter(|value| value.median > 0.0);
        let widest = values.max_by(|a, b| a.spread().total_cmp(&b.spread()))?;
        let [low, high] = [widest.low, widest.high].map(|v| 100.0 * (v / widest.median - 1.0));
        Some(format!("medians; the 10 % and 90 % quantiles are at most {low:+.0} % and {high:+.0} % away"))
    }
}

/// The median of a cell.
pub fn word(value: &Option<Quantiles>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), |value| number(value.median))
}

/// Whether the least and the largest value differ so little that colours would mislead.
pub fn are_alike((least, most): (f64, f64)) -> bool {
    most <= ALIKE * least
}

/// The colour of a value: 0 for the best, the last of [`STEPS`] for the worst.
pub fn step(value: f64, (least, most): (f64, f64), less_is_better: bool) -> usize {
    if are_alike((least, most)) {
        return 0;
    }
    let share = (value - least) / (most - least);
    let bad = if less_is_better { share } else { 1.0 - share };
    (bad.clamp(0.0, 1.0) * (STEPS - 1) as f64).round() as usize
}
