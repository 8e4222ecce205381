//! What the first block of a file tells of the others.

use crate::wire::{Label, Ns, SourceInfo};
use serde::Serialize;
#[cfg(test)]
use ts_rs::TS;

/// Everything that a standalone file holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct Contents {
    /// Version of this format.
    pub format: u32,
    /// The recordings, numbered by their places.
    pub sources: Vec<Contained>,
}

/// A recording in a standalone file. Its blocks follow each other: for each stretch of time
/// the times of its rows, where every row is kept, and a frame for each group of series.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct Contained {
    /// As a server tells it.
    pub info: SourceInfo,
    /// Its labels.
    pub labels: Vec<Label>,
    /// Its first row.
    pub from_ns: Ns,
    /// Its last.
    pub to_ns: Ns,
    /// Length of a bucket; 0 where every row is kept.
    pub step_ns: Ns,
    /// Series of a frame.
    pub group: u32,
    /// Its first block.
    pub block: u32,
    /// Rising.
    pub stretches: Vec<Stretch>,
}

/// A stretch of time: its first row, or the begin of its first bucket, and the end of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct Stretch {
    /// Begin.
    pub from_ns: Ns,
    /// What comes after its last row or bucket.
    pub to_ns: Ns,
    /// Rows or buckets.
    pub rows: u32,
}
