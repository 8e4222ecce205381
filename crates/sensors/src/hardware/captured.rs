//! The series of a machine that is only a capture: they are listed, and have no values.

use crate::sensor::{Absent, Sensor, Tick, narrow};
use numakit_model::Series;

/// The sensor.
#[derive(Debug)]
pub struct Captured {
    /// What there would be to read.
    pub series: Vec<Series>,
    /// What there would not.
    pub absent: Vec<Absent>,
    /// The name of the capture.
    pub name: String,
}

impl Sensor for Captured {
    fn series(&self) -> &[Series] {
        &self.series
    }

    fn absent(&self) -> &[Absent] {
        &self.absent
    }

    fn keep(&mut self, wanted: &dyn Fn(&Series) -> bool) {
        narrow(&mut self.series, wanted);
    }

    fn read(&mut self, _: &Tick, _: &mut [Option<u64>]) {}

    fn failure(&self) -> Option<String> {
        Some(format!("{} is a capture: it holds no counters; run it on that machine itself", self.name))
    }
}
