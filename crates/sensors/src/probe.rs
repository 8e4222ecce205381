//! Looking what can be measured here.

use crate::sensor::{Absent, Sensor};
use crate::{SENSORS, Scene, SensorEntry};
use numakit_model::{Series, Unavailable};

/// The sensors of this machine, and those that it does not have.
pub struct Probe {
    /// What can be read, in the order of [`SENSORS`].
    pub sensors: Vec<Box<dyn Sensor>>,
    /// Sensors that are missing as a whole.
    pub unavailable: Vec<(&'static SensorEntry, Unavailable)>,
}

impl Probe {
    /// Looks for every sensor.
    pub fn new(scene: &Scene<'_>) -> Self {
        Self::of(scene, SENSORS)
    }

    /// Looks for these sensors only.
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

    /// Single metrics that are missing although their sensor is there.
    pub fn absent(&self) -> impl Iterator<Item = &Absent> {
        self.sensors.iter().flat_map(|s| s.absent())
    }

    /// Everything that is missing, for a recording: sensors and `sensor.metric` names.
    pub fn missing(&self) -> impl Iterator<Item = (String, &Unavailable)> {
        let sensors = self.unavailable.iter().map(|(entry, why)| (entry.name.to_owned(), why));
        sensors.chain(self.absent().map(|a| (a.metric.name.clone(), &a.why)))
    }

    /// How many files stay open while all of it is read.
    pub fn files(&self) -> usize {
        self.sensors.iter().map(|s| s.files()).sum()
    }
}
