//! The first block of a file, which describes the others.

use crate::wire::{ComparedInfo, Ns, RangeFindings, SourceInfo, WireLabel};
use serde::Serialize;
#[cfg(test)]
use ts_rs::TS;

/// The content of a standalone file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct Contents {
    /// Version of this format.
    pub format: u32,
    /// The recordings. Their index is their number.
    pub sources: Vec<Contained>,
    /// Each pair of them compared.
    pub comparisons: Vec<ContainedComparison>,
}

/// Two recordings of a standalone file compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct ContainedComparison {
    /// The number of A.
    pub first: u32,
    /// The number of B.
    pub second: u32,
    /// What differs.
    pub compared: ComparedInfo,
}

/// A recording in a standalone file. Its blocks are consecutive: for each stretch of time a block
/// with the times of its rows, if every row is kept, and a frame for each group of series.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct Contained {
    /// The source, as a server describes it.
    pub info: SourceInfo,
    /// Its labels.
    pub labels: Vec<WireLabel>,
    /// What is found in all of it.
    pub found: RangeFindings,
    /// Time of its first row.
    pub from_ns: Ns,
    /// Time of its last row.
    pub to_ns: Ns,
    /// Length of a bucket; 0 if every row is kept.
    pub step_ns: Ns,
    /// Number of series per frame.
    pub group: u32,
    /// Number of its first block.
    pub block: u32,
    /// In ascending order.
    pub stretches: Vec<Stretch>,
}

/// A stretch of time with samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct Stretch {
    /// Time of its first row, or start of its first bucket.
    pub from_ns: Ns,
    /// Its end: just after the last row, or the end of the last bucket.
    pub to_ns: Ns,
    /// Number of rows or buckets.
    pub rows: u32,
}
