//! From a request and a topology to a plan, and from a plan to the configuration of launchers. No I/O: CPUs that are in
//! use are an argument.

mod amount;
mod assign;
mod capacity;
pub mod check;
mod crowded;
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
mod room;
mod spread;
mod steps;
mod taken;
mod why;

pub use error::{PlanError, Shortage};
pub use lists::{ListError, NumberList};
pub use request::{CorePolicy, Cores, Level, MemoryRequest, PlacementRequest, RequestError};
pub use taken::Taken;
pub use why::{idle_nodes, weights};

use numakit_model::{Plan, Topology};

/// Plans a request on the cores that are not taken.
pub fn plan(topology: &Topology, request: &PlacementRequest, taken: &Taken) -> Result<Plan, PlanError> {
    explained(topology, request, taken).map(|(plan, _)| plan)
}

/// A plan, with its reasons: which nodes were considered, and why these were selected.
pub fn explained(
    topology: &Topology,
    request: &PlacementRequest,
    taken: &Taken,
) -> Result<(Plan, Vec<String>), PlanError> {
    steps::plan(topology, request, taken)
}
