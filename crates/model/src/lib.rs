//! Values that every numakit crate shares. Nothing here does I/O or reads a clock.

pub mod cpuset;
mod fix;
pub mod interval;
pub mod label;
pub mod measured;
pub mod metric;
pub mod numbers;
pub mod plan;
pub mod share;
pub mod suggest;
pub mod thresholds;
pub mod time;
pub mod topology;
mod unavailable;

pub use cpuset::{CpuSet, ParseSetError};
pub use fix::Fix;
pub use measured::MeasuredMemory;
pub use metric::{Confidence, Instance, Kind, Metric, Scope, Series, Unit};
pub use plan::Plan;
pub use topology::Topology;
pub use unavailable::Unavailable;
