//! Sensors: one file each, one table of all ([`SENSORS`]).

mod access;
mod board;
pub mod checkup;
pub mod cpu;
pub mod events;
pub mod glob;
mod hardware;
pub mod keyed;
pub mod known;
pub mod layout;
mod node;
pub mod numaconnect2;
mod perf;
pub mod pmu;
pub mod pressure;
mod probe;
mod resctrl;
mod sample_source;
pub mod scene;
pub mod select;
mod self_cost;
mod sensor;
mod summed;
mod switches;
mod task;
#[cfg(test)]
mod testing;
pub mod totals;
mod uncore;
mod vmstat;

pub use keyed::Keyed;
pub use probe::Probe;
pub use sample_source::SampleSource;
pub use scene::{Scene, Target};
pub use select::{SelectError, Selected, Selection};
pub use sensor::{Absent, Probed, Sensor, SensorEntry, Tick, metric, narrow};
pub use summed::summed;
pub use switches::COUNT_ALLOCATIONS;

/// Every sensor. A sensor is its own file and one line here. The columns of a row have this order.
pub static SENSORS: &[SensorEntry] = &[
    vmstat::ENTRY,
    node::ENTRY,
    cpu::ENTRY,
    pressure::ENTRY,
    perf::ENTRY,
    uncore::ENTRY,
    resctrl::ENTRY,
    numaconnect2::ENTRY,
    task::ENTRY,
    access::ENTRY,
    self_cost::ENTRY,
];
