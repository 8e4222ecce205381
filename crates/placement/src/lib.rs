//! From a request and a topology to a plan, and from a plan to the lines that launchers want.
//! Pure: what is taken already comes in as a value.

mod amount;
mod capacity;
pub mod check;
mod crowded;
mod deal;
mod devices;
mod error;
pub mod launchers;
pub mod lists;
mod machine;
mod memory;
mod nodes;
pub mod numbering;
mod pool;
mod quota;
pub mod request;
mod spread;
mod steps;
mod taken;
mod why;

pub use error::{PlanError, Shortage};
pub use lists::{ListError, NumberList};
pub use request::{CorePolicy, Cores, Level, MemoryRequest, PlacementRequest, RequestError};
pub use taken::Taken;

use numakit_model::{Plan, Topology};

/// Places what the request asks for on the cores that are not taken.
pub fn plan(topology: &Topology, request: &PlacementRequest, taken: &Taken) -> Result<Plan, PlanError> {
    explained(topology, request, taken).map(|(plan, _)| plan)
}

/// A plan with the reasons for the whole of it: which nodes were looked at, and why these.
pub fn explained(
    topology: &Topology,
    request: &PlacementRequest,
    taken: &Taken,
) -> Result<(Plan, Vec<String>), PlanError> {
    steps::plan(topology, request, taken)
}
