//! `vmstat`: every line of /proc/vmstat, under the kernel's own name.
//!
//! Events are exact when read. Levels and counts of zones and nodes (all that the kernel
//! prints before its events) are kept per CPU and added up when a CPU's share passes a
//! threshold, or every `vm.stat_interval` seconds: they lag behind by a few dozen per CPU.

use crate::Scene;
use crate::keyed::Keyed;
use crate::known::{VMSTAT, unknown};
use crate::layout::{Entry, entries};
use crate::sensor::{Absent, Probed, SensorEntry, fix_for};
use crate::switches::{ALLOCATION, BALANCING, Switches};
use crate::watched::Watched;
use numakit_model::{Instance, Kind, Metric, Scope, Series, Unavailable};
use std::collections::HashSet;
use std::sync::Arc;

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
    let root = scene.root;
    let unavailable =
        |seen: String| Unavailable::new("memory counters of the machine", seen, fix_for(root, PATH));
    let mut file = Watched::open(root, PATH).map_err(|e| unavailable(e.to_string()))?;
    let mut content = Vec::new();
    if !file.read(&mut content) {
        return Err(unavailable(file.failure().map_or_else(String::new, ToString::to_string)));
    }
    let switches = Switches::look(root);
    let mut sensor = Keyed::default();
    let mut columns = Vec::new();
    let mut order = Order::default();
    let mut names = HashSet::new();
    for entry in entries(&content).filter(|e| names.insert(e.name)) {
        let metric = describe(&entry, &mut order, SENSOR, Scope::Machine, PATH);
        match switches.why_off(entry.name) {
            Some(why) => sensor.add_absent(Absent { metric, why: why.clone() }),
            None => columns.push((entry.key, Series::new(&Arc::new(metric), Instance::Machine))),
        }
    }
    if columns.is_empty() {
        return Err(unavailable(format!("{PATH} has no line 'NAME NUMBER'")));
    }
    add_not_shown(&mut sensor, &content, &switches);
    sensor.add(file, &content, columns);
    Ok(Box::new(sensor))
}

/// Groups of counters of which the kernel shows none.
fn add_not_shown(sensor: &mut Keyed, content: &[u8], switches: &Switches) {
    for (group, why) in
        [(ALLOCATION, switches.allocation_not_shown(PATH)), (BALANCING, switches.balancing_not_shown(PATH))]
    {
        if !entries(content).any(|e| group.contains(&e.name)) {
            for line in group.iter().filter_map(|name| VMSTAT.get(name)) {
                let metric = line.metric(SENSOR, Scope::Machine, PATH);
                sensor.add_absent(Absent { metric, why: why.clone() });
            }
        }
    }
}

/// Where in a vmstat file a line stands.
#[derive(Debug, Default)]
pub struct Order {
    past_levels: bool,
}

/// What a line of a vmstat file is. The kernel prints what it keeps for zones and nodes
/// first, and its events from `pgpgin` on.
pub fn describe(entry: &Entry<'_>, order: &mut Order, sensor: &str, scope: Scope, path: &str) -> Metric {
    order.past_levels |= entry.name == "pgpgin";
    let mut metric = match VMSTAT.get(entry.name) {
        Some(line) => line.metric(sensor, scope, path),
        None if entry.name.starts_with("nr_") && !order.past_levels => {
            unknown(entry, sensor, scope, path, Kind::Gauge)
        }
        None => unknown(entry, sensor, scope, path, Kind::COUNTER),
    };
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
