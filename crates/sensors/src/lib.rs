//! What numakit measures: one file per sensor, one table ([`SENSORS`]) of all.

pub mod checkup;
pub mod cpu;
pub mod events;
pub mod glob;
mod keyed;
pub mod known;
pub mod layout;
mod node;
pub mod pmu;
pub mod pressure;
mod probe;
pub mod scene;
pub mod select;
mod self_cost;
mod sensor;
mod switches;
#[cfg(test)]
mod testing;
mod vmstat;
pub mod watched;

pub use keyed::Keyed;
pub use probe::Probe;
pub use scene::{Scene, Target};
pub use select::{SelectError, Selection};
pub use sensor::{ANOTHER_KERNEL, Absent, Probed, Sensor, SensorEntry, Tick, fix_for, metric, narrow};

/// Every sensor. A sensor is its own file and one line here. The last one is read last, so
/// that it sees the cost of all others.
pub static SENSORS: &[SensorEntry] =
    &[vmstat::ENTRY, node::ENTRY, cpu::ENTRY, pressure::ENTRY, self_cost::ENTRY];
