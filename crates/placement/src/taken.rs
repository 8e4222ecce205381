//! What may not be used, and why.

use numakit_model::CpuSet;
use serde::{Deserialize, Serialize};

/// CPUs that a plan leaves alone. A core is left alone if one of its PUs is here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Taken {
    /// CPUs that the kernel was told to keep free; used only where the request names them.
    pub isolated: CpuSet,
    /// CPUs that the registry has for others, and for whom: `namd of alice`.
    pub registered: Vec<(CpuSet, String)>,
    /// CPUs on which programs run that nobody registered, with their load in percent.
    pub busy: Vec<(u32, u32)>,
    /// CPUs that the configuration of this machine keeps out.
    pub explicit: CpuSet,
}
