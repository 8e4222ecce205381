//! Simulated machines, processes, performance counters and interconnect cards, waiting for conditions
//! and child processes with a timeout, and generated parts of the guide, for tests, examples and benchmarks.
//!
//! Crates use this one in their `[dev-dependencies]` only. It does not depend on the crates above
//! `topology`: their unit tests would see other types than this crate.

pub mod cards;
pub mod children;
pub mod counters;
pub mod guide;
pub mod machines;
pub mod processes;
pub mod sysfs;
pub mod wait;
