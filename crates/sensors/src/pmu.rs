//! Counts events of performance monitoring units (PMUs), for the sensors `perf` and `uncore`: PMUs,
//! event codes, groups, and sums of counts.

pub mod counting;
pub mod device;
pub mod format;
pub mod privilege;
pub mod terms;

pub use counting::{CounterRequest, Counting, Factor};
pub use device::{DEVICES, Devices, Pmu, devices};
pub use format::{EncodeError, FormatError, Formats};
pub use privilege::{Need, Privilege, try_event};
pub use terms::{TermError, Terms};
