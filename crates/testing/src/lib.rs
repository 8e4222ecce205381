//! Machines, performance counters and interconnect cards that do not exist, for tests, examples
//! and benchmarks.
//!
//! Crates use this one in their `[dev-dependencies]` only. It uses none of the crates that are
//! above `topology`, so that their unit tests see the same types as it does.

pub mod cards;
pub mod counters;
pub mod machines;
pub mod sysfs;
