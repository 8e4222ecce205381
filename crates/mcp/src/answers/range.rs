//! The rows of a range of time.

use crate::error::ToolError;
use numakit_recording::Batch;

/// A range in ns since the first row.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowRange {
    from: u64,
    to: u64,
    /// The first row of the recording and the last one.
    first: Option<u64>,
    last: u64,
    rows: usize,
}

impl RowRange {
    /// That of the arguments `from_seconds` and `to_seconds`.
    pub(super) fn new(from: Option<f64>, to: Option<f64>) -> Result<Self, ToolError> {
        let time = |name: &'static str, given: Option<f64>, default: u64| match given {
            None => Ok(default),
            Some(seconds) if seconds >= 0.0 => Ok((seconds * 1e9) as u64),
            Some(seconds) => Err(ToolError::NegativeTime { name, seconds }),
        };
        let (from, to) = (time("from_seconds", from, 0)?, time("to_seconds", to, u64::MAX)?);
        if from >= to {
            return Err(ToolError::BackwardRange { from: from as f64 / 1e9, to: to as f64 / 1e9 });
        }
        Ok(Self { from, to, first: None, last: 0, rows: 0 })
    }

    /// The rows of a batch that are in the range.
    pub(super) fn cut(&mut self, batch: Batch) -> Batch {
        let Some(&begin) = batch.time.first() else { return batch };
        let first = *self.first.get_or_insert(begin);
        self.last = batch.time.iter().fold(self.last, |last, time| time.saturating_sub(first).max(last));
        let is_in = |time: &u64| (self.from..=self.to).contains(&time.saturating_sub(first));
        let from = batch.time.iter().position(is_in).unwrap_or(batch.len());
        let to = batch.time.iter().rposition(is_in).map_or(from, |last| last + 1);
        self.rows += to - from;
        if to - from == batch.len() { batch } else { batch.slice(from..to) }
    }

    /// An error unless there were rows.
    pub(super) fn check(&self) -> Result<(), ToolError> {
        if self.rows > 0 {
            return Ok(());
        }
        match self.first {
            None => Err(ToolError::NoSamples),
            Some(_) => Err(ToolError::EmptyRange { end: self.last as f64 / 1e9 }),
        }
    }
}
