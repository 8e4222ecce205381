//! What was found in a range of a source, as the page shows it.

use super::Ns;
use serde::Serialize;
#[cfg(test)]
use ts_rs::TS;

/// What was found in a range, the most important first.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct RangeFindings {
    /// Start of the range: not before the first sample.
    pub from_ns: Ns,
    /// Its end: not after the last sample.
    pub to_ns: Ns,
    /// What is wrong, or that nothing is.
    pub verdict: String,
    /// What it costs, or what is not known.
    pub cost: String,
    /// What to do next: a command, or words.
    pub action: String,
    /// Problems of the observed program, then of the machine.
    pub problems: Vec<FindingInfo>,
    /// What is worth knowing and is no problem.
    pub remarks: Vec<FindingInfo>,
    /// What cannot be told, and why.
    pub untold: Vec<UntoldInfo>,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct FindingInfo {
    /// The name of the rule.
    pub rule: String,
    /// Whose it is: `program`, `machine`, `node 2`, `CPU 7`, `recording`.
    pub subject: String,
    /// One sentence.
    pub says: String,
    /// When it began.
    pub since_ns: Ns,
    /// When it ended; `null`: it lasts to the end of the range.
    pub until_ns: Option<Ns>,
    /// What it costs, in words.
    pub cost: String,
    /// The share of time that is lost, in percent; `null` if it cannot be told.
    pub percent: Option<f64>,
    /// `measured`, `likely` or `possible`.
    pub certainty: String,
    /// The numbers that support it.
    pub evidence: Vec<EvidenceInfo>,
    /// What to do, in words.
    pub remedy: String,
    /// Commands that do it, the first one first.
    pub commands: Vec<String>,
}

/// A number that supports a finding.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct EvidenceInfo {
    /// Name of the metric or formula, with its place: `remote_time_share@node2`.
    pub series: String,
    /// The metrics that it is computed from, if it is not a series of the source.
    pub inputs: Vec<String>,
    /// In words.
    pub says: String,
}

/// What cannot be told.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(TS))]
pub struct UntoldInfo {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}
