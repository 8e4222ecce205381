//! What the kernel says of its PMUs: `/sys/bus/event_source/devices/NAME`.

use super::format::Formats;
use numakit_model::CpuSet;
use std::collections::BTreeMap;

/// Where PMUs are.
pub const DEVICES: &str = "/sys/bus/event_source/devices";

/// A PMU.
#[derive(Debug, Clone, PartialEq)]
pub struct Device {
    /// Name of its folder: `uncore_imc_3`.
    pub name: String,
    /// The kernel's number for it.
    pub kind: u32,
    /// The CPUs to open its events on, one for each place that it counts for. Empty for the
    /// PMU of the cores, which counts on every CPU.
    pub cpus: CpuSet,
    /// The fields of its events.
    pub formats: Formats,
    /// Events that the kernel names, with their terms.
    pub events: BTreeMap<String, String>,
}
