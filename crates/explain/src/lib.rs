//! Where the time of a program goes, from samples of its threads: to computing, to caches, to near and far memory, to
//! lines that threads contend for; by function, line and object.
//!
//! All here is computed from [`Observation`]s. Taking samples and finding what they waited for is done by
//! `numakit-sampling` and `numakit-operand`.

pub mod account;
pub mod caches;
pub mod code;
pub mod collector;
pub mod contended;
pub mod explainer;
mod explanation;
pub mod footprint;
pub mod observation;
pub mod perf_map;
pub mod place;
pub mod processes;
mod report;
pub mod share;
pub mod symbols;
pub mod tally;
#[cfg(test)]
mod tests;
pub mod threads;
pub mod traffic;

pub use explanation::{Explanation, NodeTime, SampleCounts, Surveyed, TimeShares};
pub use observation::{Observation, ObservedAccess, Waited};
pub use report::{ExplainReport, MissingSamples, Regime, SampledObject, SampledThread};
