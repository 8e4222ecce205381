//! The newest rows, before they become a block.

use crate::answer::stored_value;
use crate::block::{Block, Builder};
use crate::level::GROUP;

/// Rows of a block of few series.
pub(crate) const ROWS: usize = 1024;
/// Maximum size of the rows of a block of many series while it is filled.
const BYTES: usize = 8 << 20;
/// Columns that are collected in one pass over the rows: one cache line of each row.
const PASS: usize = 16;

/// Whether the time since the last row is longer than a group of the rows before it: within a
/// group, such a gap would look as if it had been measured.
pub(crate) fn is_gap(times: &[u64], time: u64) -> bool {
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return false };
    let between = (times.len() - 1) as u64;
    between > 0 && time.saturating_sub(*last) / GROUP as u64 > (last - first) / between
}

/// Values row by row, in the order of arrival.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    pub times: Vec<u64>,
    values: Vec<f32>,
    series: usize,
    capacity: usize,
}

impl Open {
    pub fn new(series: usize) -> Self {
        let fit = BYTES / 4 / series.max(1) / GROUP * GROUP;
        Self { times: Vec::new(), values: Vec::new(), series, capacity: fit.clamp(GROUP, ROWS) }
    }

    pub fn series(&self) -> usize {
        self.series
    }

    /// Memory in use.
    pub fn size(&self) -> usize {
        self.times.capacity() * 8 + self.values.capacity() * 4
    }

    pub fn is_full(&self) -> bool {
        self.times.len() >= self.capacity
    }

    /// Whether a row at `time` needs a new block.
    pub fn is_gap(&self, time: u64) -> bool {
        is_gap(&self.times, time)
    }

    /// Appends a row. Values that are missing or not finite were not measured.
    pub fn push(&mut self, time: u64, values: &[Option<f64>]) {
        if self.times.len() == self.times.capacity() {
            self.times.reserve_exact(GROUP);
            self.values.reserve_exact(GROUP * self.series);
        }
        self.times.push(time);
        self.values.extend(values.iter().take(self.series).copied().map(stored_value));
        self.values.resize(self.times.len() * self.series, f32::NAN);
    }

    /// A series in these rows.
    pub fn column(&self, series: usize, rows: std::ops::Range<usize>) -> Vec<f32> {
        if series >= self.series {
            return vec![f32::NAN; rows.len()];
        }
        rows.map(|row| self.values[row * self.series + series]).collect()
    }

    /// Packs the rows and clears them. There must be at least one.
    pub fn seal(&mut self, first_row: u64) -> Block {
        let mut builder = Builder::new(first_row, &self.times, self.series);
        let mut columns = vec![Vec::new(); PASS];
        for first in (0..self.series).step_by(PASS) {
            let width = PASS.min(self.series - first);
            columns.iter_mut().for_each(Vec::clear);
            for row in self.values.chunks_exact(self.series) {
                for (column, value) in columns.iter_mut().zip(&row[first..first + width]) {
                    column.push(*value);
                }
            }
            columns[..width].iter().for_each(|column| builder.push(column));
        }
        self.times.clear();
        self.values.clear();
        builder.finish()
    }
}
