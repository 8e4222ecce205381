//! Rows of a recording, column by column.

use std::ops::Range;

/// Consecutive rows. A row is either a sample or a label; both have a time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// Start of the acquisition, ns since 1970 UTC.
    pub time: Vec<u64>,
    /// Length of the acquisition in ns; 0 for labels.
    pub took: Vec<u64>,
    /// The text of label rows.
    pub label: Vec<Option<String>>,
    /// One column per series of the header, all as long as `time`.
    pub columns: Vec<Column>,
}

/// Raw values of one series.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Column {
    /// Raw words; meaningless where not valid.
    pub values: Vec<u64>,
    /// Whether the value was measured.
    pub valid: Vec<bool>,
}

impl Batch {
    /// No rows, `columns` columns.
    pub fn empty(columns: usize) -> Self {
        Self { columns: vec![Column::default(); columns], ..Self::default() }
    }

    /// Some of the rows.
    pub fn slice(&self, rows: Range<usize>) -> Self {
        let column = |column: &Column| Column {
            values: column.values[rows.clone()].to_vec(),
            valid: column.valid[rows.clone()].to_vec(),
        };
        Self {
            time: self.time[rows.clone()].to_vec(),
            took: self.took[rows.clone()].to_vec(),
            label: self.label[rows.clone()].to_vec(),
            columns: self.columns.iter().map(column).collect(),
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.time.len()
    }

    /// Number of rows that are labels.
    pub fn labels(&self) -> usize {
        self.label.iter().flatten().count()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }

    /// Appends a sample.
    pub fn push_sample(&mut self, time: u64, took: u64, values: &[Option<u64>]) {
        self.time.push(time);
        self.took.push(took);
        self.label.push(None);
        for (column, value) in self.columns.iter_mut().zip(values) {
            column.push(*value);
        }
    }

    /// Appends a label.
    pub fn push_label(&mut self, time: u64, text: impl Into<String>) {
        self.time.push(time);
        self.took.push(0);
        self.label.push(Some(text.into()));
        for column in &mut self.columns {
            column.push(None);
        }
    }

    /// Moves the last row up by `rows` rows.
    pub(crate) fn move_last(&mut self, rows: usize) {
        let from = self.len().saturating_sub(rows + 1);
        self.time[from..].rotate_right(1);
        self.took[from..].rotate_right(1);
        self.label[from..].rotate_right(1);
        for column in self.columns.iter_mut().filter(|_| rows > 0) {
            column.values[from..].rotate_right(1);
            column.valid[from..].rotate_right(1);
        }
    }

    /// Copies one row's values, one slot per column, into a buffer of that length.
    pub fn row(&self, row: usize, out: &mut [Option<u64>]) {
        for (slot, column) in out.iter_mut().zip(&self.columns) {
            *slot = column.get(row);
        }
    }
}

impl Column {
    /// The value that all these rows have, if they have one and the same.
    pub fn still(&self, rows: Range<usize>) -> Option<u64> {
        /// Values that are compared at once.
        const TOGETHER: usize = 64;
        let (values, valid) = (&self.values[rows.clone()], &self.valid[rows]);
        let first = *values.first()?;
        let differs = |chunk: &[u64]| chunk.iter().fold(0, |all, value| all | (value ^ first)) != 0;
        let is_absent = |chunk: &[bool]| chunk.iter().fold(false, |any, valid| any | !valid);
        let moves = values.chunks(TOGETHER).any(differs) || valid.chunks(TOGETHER).any(is_absent);
        (!moves).then_some(first)
    }

    /// The value, if it was measured.
    pub fn get(&self, row: usize) -> Option<u64> {
        (*self.valid.get(row)?).then(|| self.values[row])
    }

    /// Appends a value.
    pub fn push(&mut self, value: Option<u64>) {
        self.values.push(value.unwrap_or(0));
        self.valid.push(value.is_some());
    }
}
