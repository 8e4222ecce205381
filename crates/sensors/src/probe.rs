//! Finds what can be measured here.

use crate::sensor::{Absent, Sensor};
use crate::{SENSORS, Scene, SensorEntry};
use numakit_model::{Series, Unavailable};

/// The sensors of this machine, and the unavailable ones.
pub struct Probe {
    /// The available sensors, in the order of [`SENSORS`].
    pub sensors: Vec<Box<dyn Sensor>>,
    /// Unavailable sensors.
    pub unavailable: Vec<(&'static SensorEntry, Unavailable)>,
}

impl Probe {
    /// Probes every sensor.
    pub fn new(scene: &Scene<'_>) -> Self {
        Self::of(scene, SENSORS)
    }

    /// Probes these sensors only.
    pub fn of(scene: &Scene<'_>, entries: impl IntoIterator<Item = &'static SensorEntry>) -> Self {
        let mut found = Self { sensors: Vec::new(), unavailable: Vec::new() };
        for entry in entries {
            match (entry.probe)(scene) {
                Ok(sensor) => found.sensors.push(sensor),
                Err(why) => found.unavailable.push((entry, why)),
            }
        }
        found
    }

    /// Every series that can be read.
    pub fn series(&self) -> impl Iterator<Item = &Series> {
        self.sensors.iter().flat_map(|s| s.series())
    }

    /// Unavailable metrics of available sensors.
    pub fn absent(&self) -> impl Iterator<Item = &Absent> {
        self.sensors.iter().flat_map(|s| s.absent())
    }

    /// Everything that is unavailable, for a recording: sensors and `sensor.metric` names.
    pub fn missing(&self) -> impl Iterator<Item = (String, &Unavailable)> {
        let sensors = self.unavailable.iter().map(|(entry, why)| (entry.name.to_owned(), why));
        sensors.chain(self.absent().map(|a| (a.metric.name.clone(), &a.why)))
    }

    /// Number of files that stay open if everything is read.
    pub fn files(&self) -> usize {
        self.sensors.iter().map(|s| s.files()).sum()
    }
}
