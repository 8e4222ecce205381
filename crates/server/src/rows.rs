//! Rows of a recording like live ones: rates, and formulas over them. They are computed column by
//! column, since most columns of a batch are constant.

use crate::layout::SeriesLayout;
use numakit_formulas::{BoundFormula, Catalog};
use numakit_history::{RowView, stored_value};
use numakit_recording::{Batch, Header, Rates};
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

/// Computes the rows of a recording.
pub struct RecordingRows {
    layout: SeriesLayout,
    rates: Rates,
    formulas: Arc<Catalog>,
    /// Rates of the columns that formulas need.
    needed: Vec<Option<Needed>>,
    /// One row of them.
    row: Vec<Option<f64>>,
}

#[derive(Default)]
struct Needed {
    values: Vec<Option<f64>>,
    stands_still: bool,
}

impl RecordingRows {
    /// For rows with this header.
    pub fn new(header: &Header, formulas: &Arc<Catalog>) -> Self {
        let layout = SeriesLayout::new(header, formulas);
        let mut needed: Vec<Option<Needed>> = header.series.iter().map(|_| None).collect();
        for column in layout.bound().iter().flat_map(BoundFormula::columns) {
            needed[column] = Some(Needed::default());
        }
        let row = vec![None; header.series.len()];
        Self { layout, rates: Rates::new(&header.series), formulas: Arc::clone(formulas), needed, row }
    }

    fn measured(&mut self, batch: &Batch, rows: Range<usize>, columns: &mut [Vec<f32>]) {
        for (&column, out) in self.layout.order().iter().zip(columns) {
            let Some(needed) = &mut self.needed[column] else {
                self.rates.column(column, batch, rows.clone(), |value| out.push(stored_value(value)));
                continue;
            };
            let values = &mut needed.values;
            values.clear();
            self.rates.column(column, batch, rows.clone(), |value| {
                out.push(stored_value(value));
                values.push(value);
            });
            needed.stands_still = values.windows(2).all(|w| w[0] == w[1]);
        }
    }

    fn computed(&mut self, rows: usize, columns: &mut [Vec<f32>]) {
        let mut moving = Vec::new();
        for (bound, out) in self.layout.bound().iter().zip(columns) {
            moving.clear();
            for column in bound.columns() {
                let Some(needed) = &self.needed[column] else { continue };
                self.row[column] = needed.values.first().copied().flatten();
                if !needed.stands_still {
                    moving.push((column, &needed.values));
                }
            }
            if moving.is_empty() {
                out.extend(std::iter::repeat_n(stored_value(bound.value(&self.row)), rows));
                continue;
            }
            for row in 0..rows {
                moving.iter().for_each(|(column, values)| self.row[*column] = values[row]);
                out.push(stored_value(bound.value(&self.row)));
            }
        }
    }
}

impl RowView for RecordingRows {
    fn series(&self) -> usize {
        self.layout.series()
    }

    fn rows(&mut self, batch: &Batch, rows: Range<usize>, columns: &mut [Vec<f32>]) {
        let (measured, computed) = columns.split_at_mut(self.layout.order().len());
        self.measured(batch, rows.clone(), measured);
        self.computed(rows.len(), computed);
    }

    fn label(&mut self, text: &str) {
        self.rates.label(text);
    }

    fn identity(&self) -> String {
        let mut text = self.layout.names().join(" ");
        for formula in self.formulas.all() {
            let _ = write!(text, "\n{} {} {}", formula.name, formula.quantity, formula.expr);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::header;

    #[test]
    fn columns_are_what_live_rows_are() {
        let header = header(&["a.x@node0", "a.x@node1", "a.y@node0", "b.z"]);
        let mut catalog = Catalog::default();
        let text = "all: count = a.x + b.z\nratio: ratio = a.x / a.y\n";
        if let Err(error) = catalog.add(text, "test", &|_| None) {
            panic!("{error}");
        }
        let catalog = Arc::new(catalog);
        let mut batch = Batch::empty(4);
        for row in 0..50u64 {
            let missing = (row != 7).then_some(row * row);
            batch.push_sample(row * 1_000_000, 0, &[Some(row), Some(5), missing, Some(row / 20)]);
        }
        let mut rows = RecordingRows::new(&header, &catalog);
        let mut columns = vec![Vec::new(); rows.series()];
        for part in [0..1, 1..20, 20..20, 20..50] {
            rows.rows(&batch, part, &mut columns);
        }

        let layout = SeriesLayout::new(&header, &catalog);
        let (mut rates, mut raw, mut live) = (Rates::new(&header.series), vec![None; 4], Vec::new());
        for row in 0..50 {
            batch.row(row, &mut raw);
            layout.row(rates.push(batch.time[row], &raw), &mut live);
            assert_eq!(live.len(), columns.len());
            for (value, column) in live.iter().zip(&columns) {
                assert_eq!(stored_value(*value).to_bits(), column[row].to_bits());
            }
        }
    }
}
