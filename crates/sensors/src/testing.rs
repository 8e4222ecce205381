//! Shared code of sensor tests.

use crate::{Scene, Sensor, SensorEntry, Tick};
use numakit_model::Topology;
use numakit_sys::SysRoot;
pub use numakit_testing::sysfs::{nodes, root};
use std::collections::BTreeMap;

/// Values of one read, by series name.
pub type Values = BTreeMap<String, Option<u64>>;

/// Opens a sensor that must be available.
pub fn sensor(entry: &SensorEntry, root: &SysRoot, topology: &Topology) -> Box<dyn Sensor> {
    (entry.probe)(&Scene::new(root, topology)).unwrap_or_else(|why| panic!("{why}"))
}

/// One read.
pub fn read(sensor: &mut dyn Sensor) -> Values {
    let mut out = vec![None; sensor.series().len()];
    sensor.read(&Tick::default(), &mut out);
    sensor.series().iter().map(|s| s.name()).zip(out).collect()
}

/// Names and reasons of unavailable metrics.
pub fn absent(sensor: &dyn Sensor) -> Vec<(String, String)> {
    sensor.absent().iter().map(|a| (a.metric.name.clone(), a.why.to_string())).collect()
}
