//! CPUs that cannot be used, and why.

use numakit_model::CpuSet;
use serde::{Deserialize, Serialize};

/// CPUs that a plan must not use. It uses no core that has a PU among these.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Taken {
    /// Isolated CPUs (isolcpus); used only if the request names them.
    pub isolated: CpuSet,
    /// CPUs that other programs hold, with the holder: `namd of alice`.
    pub registered: Vec<(CpuSet, String)>,
    /// CPUs that unregistered programs use, with their load in percent.
    pub busy: Vec<(u32, u32)>,
    /// CPUs that the configuration of this machine excludes.
    pub explicit: CpuSet,
}
