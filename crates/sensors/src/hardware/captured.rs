//! The series of a capture: they are listed, and have no values.

use crate::sensor::{Absent, Sensor, Tick, narrow};
use numakit_model::Series;

/// A sensor without values.
#[derive(Debug)]
pub struct Captured {
    /// The series of the captured machine.
    pub series: Vec<Series>,
    /// Its unavailable metrics.
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
        Some(format!("{} is a capture: it holds no counters; run numa on the captured machine", self.name))
    }
}
