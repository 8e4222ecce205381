//! `uncore`: counters of memory controllers, links between packages and shared caches, by package,
//! node or link.

use crate::Scene;
use crate::hardware::{self, KNOWN_OUTSIDE, outside_of_cores};
use crate::pmu::Counting;
use crate::pmu::counting::running;
use crate::sensor::{Probed, SensorEntry};

const SENSOR: &str = "uncore";

/// Line of the table of sensors.
pub const ENTRY: SensorEntry = SensorEntry {
    name: SENSOR,
    help: "Counters of memory controllers, links between packages and shared caches.",
    default: hardware::by_default,
    known: || KNOWN_OUTSIDE.iter().cloned().chain([running(SENSOR)]).collect(),
    probe,
};

fn probe(scene: &Scene<'_>) -> Probed {
    let mut found = hardware::find(scene, SENSOR, outside_of_cores);
    if let Some(why) = found.nothing.take() {
        return Err(why);
    }
    if scene.root.counters().is_none() {
        return Ok(found.listed(scene.root));
    }
    let mut counting = Counting::new(SENSOR, scene)?;
    found.add_to(&mut counting);
    Ok(counting.finish())
}
