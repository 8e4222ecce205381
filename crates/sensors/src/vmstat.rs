//! `vmstat`: every line of /proc/vmstat, under the kernel's own name.
//!
//! Events are exact when read. Levels and counts of zones and nodes (all that the kernel prints
//! before its events) are kept per CPU, and added to the total when a CPU's part exceeds a threshold
//! or every `vm.stat_interval` seconds: they lag behind by a few dozen per CPU.

use crate::Scene;
use crate::keyed::{self, Keyed};
use crate::known::VMSTAT;
use crate::layout::FileLine;
use crate::sensor::{Absent, Probed, Sensor, SensorEntry};
use crate::switches::{ALLOCATION, BALANCING, KernelSwitches};
use numakit_model::{Kind, Metric, Scope};

const PATH: &str = "/proc/vmstat";
const SENSOR: &str = "vmstat";

/// Line of the table of sensors.
pub const ENTRY: SensorEntry = SensorEntry {
    name: SENSOR,
    help: "Memory counters and gauges of the whole machine.",
    default: |_| true,
    known: || VMSTAT.iter().map(|line| line.metric(SENSOR, Scope::Machine, PATH)).collect(),
    probe,
};

fn probe(scene: &Scene<'_>) -> Probed {
    let switches = KernelSwitches::read(scene.root);
    let mut order = LineOrder::default();
    let mut sensor = keyed::of_file(scene.root, PATH, "memory counters of the machine", |entry| {
        let metric = describe(entry, &mut order, SENSOR, Scope::Machine, PATH);
        (metric, switches.why_off(entry.name).cloned())
    })?;
    add_not_shown(&mut sensor, &switches);
    Ok(Box::new(sensor))
}

/// Adds the groups of counters that the kernel does not show.
fn add_not_shown(sensor: &mut Keyed, switches: &KernelSwitches) {
    for (group, why) in
        [(ALLOCATION, switches.allocation_not_shown(PATH)), (BALANCING, switches.balancing_not_shown(PATH))]
    {
        let sampled = sensor.series().iter().map(|s| s.metric.bare());
        let mut shown = sampled.chain(sensor.absent().iter().map(|a| a.metric.bare()));
        if !shown.any(|name| group.contains(&name)) {
            for line in group.iter().filter_map(|name| VMSTAT.get(name)) {
                let metric = line.metric(SENSOR, Scope::Machine, PATH);
                sensor.add_absent(Absent { metric, why: why.clone() });
            }
        }
    }
}

/// The position in a vmstat file.
#[derive(Debug, Default)]
pub struct LineOrder {
    past_levels: bool,
}

/// The metric of a line of a vmstat file. The kernel prints counts of zones and nodes first, and
/// its events from `pgpgin` on.
pub fn describe(
    entry: &FileLine<'_>,
    order: &mut LineOrder,
    sensor: &str,
    scope: Scope,
    path: &str,
) -> Metric {
    order.past_levels |= entry.name == "pgpgin";
    let level = entry.name.starts_with("nr_") && !order.past_levels;
    let guess = if level { Kind::Gauge } else { Kind::COUNTER };
    let mut metric = VMSTAT.metric(entry, sensor, scope, path, guess);
    if !order.past_levels && !counted_when_read(entry.name) {
        metric.source.push_str(" (batched per CPU)");
    }
    metric
}

fn counted_when_read(name: &str) -> bool {
    ALLOCATION.contains(&name) || name.ends_with("_threshold") || name.starts_with("nr_memmap_")
}

#[cfg(test)]
mod tests;
