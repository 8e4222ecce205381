//! Two sources compared, as the page shows them: the words of `numa show A B`.

use super::Ns;
use serde::{Deserialize, Serialize};
#[cfg(test)]
use ts_rs::TS;

/// A range of a source that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(TS))]
pub struct ComparedRange {
    /// The source.
    pub source: u32,
    /// Start.
    pub from_ns: Ns,
    /// End.
    pub to_ns: Ns,
}

/// Two sources compared: A, the first one, and B.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct ComparedInfo {
    /// Whether this is about all of two recordings, and not about the ranges that were asked for.
    pub whole: bool,
    /// Whether B is better.
    pub verdict: String,
    /// By how much.
    pub change: String,
    /// What to do next: a command, or words.
    pub action: String,
    /// What A is.
    pub first: String,
    /// What B is.
    pub second: String,
    /// Why they may differ for other reasons than the program.
    pub cautions: Vec<String>,
    /// How many values were compared, and how many differ.
    pub compared: String,
    /// What of the program differs beyond noise, the clearest first.
    pub program: Vec<DifferenceInfo>,
    /// What of the machine does.
    pub machine: Vec<DifferenceInfo>,
    /// Findings of A that B does not have.
    pub gone: Vec<String>,
    /// Findings of B that A does not have.
    pub new: Vec<String>,
    /// Findings of both.
    pub kept: Vec<String>,
}

/// A value that differs, in words.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct DifferenceInfo {
    /// Name of the metric or formula, with its place.
    pub series: String,
    /// The same in words, with the number of others that changed by the same.
    pub what: String,
    /// In A.
    pub before: String,
    /// In B.
    pub after: String,
    /// The change.
    pub change: String,
    /// A change up to this is noise.
    pub noise: String,
    /// What B is: `better`, `worse` or `equal`; empty: neither.
    pub verdict: String,
    /// Others that changed by the same.
    pub alike: Vec<String>,
}
