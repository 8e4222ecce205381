//! The description of a recording.

use numakit_model::{Series, Topology, Unavailable};
use serde::{Deserialize, Serialize};

/// Everything about a recording except its rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Header {
    /// The columns, in order.
    pub series: Vec<Series>,
    /// The machine; `None` in recordings of other programs.
    pub topology: Option<Topology>,
    /// Host name.
    pub host: String,
    /// Kernel release.
    pub kernel: String,
    /// The observed command, as one line.
    pub command: Option<String>,
    /// The program that recorded, with its version.
    pub program: String,
    /// Start, ns since 1970 UTC.
    pub started: u64,
    /// How many minutes the local time of the machine was ahead of UTC at the start; `None`: unknown.
    pub utc_offset: Option<i32>,
    /// Interval at the start in ns; 0 if unknown.
    pub interval: u64,
    /// Base page size in bytes.
    pub page_size: u64,
    /// Metrics that could not be read, and why.
    pub absent: Vec<AbsentMetric>,
}

/// A metric or sensor that was unavailable when the recording began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AbsentMetric {
    /// `sensor` or `sensor.metric`.
    pub name: String,
    /// Why.
    pub why: Unavailable,
}
