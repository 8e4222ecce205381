//! Parts of a batch.

use numakit_recording::{Batch, Column, Header};
use std::sync::Arc;

/// Whether the last description that was sent is that of rows with this header.
pub fn are_described_by(last: Option<&Arc<Header>>, header: &Arc<Header>) -> bool {
    last.is_some_and(|last| Arc::ptr_eq(last, header) || last == header)
}

/// Without the values of some columns.
pub fn without(mut batch: Batch, is_out: impl Fn(usize) -> bool) -> Batch {
    for (index, column) in batch.columns.iter_mut().enumerate() {
        if is_out(index) {
            column.valid.iter_mut().for_each(|valid| *valid = false);
        }
    }
    batch
}

/// The columns that have a value.
pub fn filled(batch: &Batch) -> Vec<usize> {
    let has_any = |column: &Column| column.valid.iter().any(|valid| *valid);
    let columns = batch.columns.iter().enumerate();
    columns.filter(|(_, column)| has_any(column)).map(|(index, _)| index).collect()
}

/// Sets the time of the first value of each column that has none yet.
pub fn note_first(batch: &Batch, first: &mut Vec<Option<u64>>) {
    first.resize(batch.columns.len(), None);
    for (time, column) in first.iter_mut().zip(&batch.columns).filter(|(time, _)| time.is_none()) {
        *time = column.valid.iter().position(|valid| *valid).and_then(|row| batch.time.get(row)).copied();
    }
}

/// The number of values and labels.
pub fn values(batch: &Batch) -> u64 {
    let values = batch.columns.iter().map(|column| column.valid.iter().filter(|valid| **valid).count());
    values.sum::<usize>() as u64 + batch.labels() as u64
}
