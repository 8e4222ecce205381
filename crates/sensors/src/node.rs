//! `node`: numastat, vmstat and meminfo of every node, under the kernel's own names.
//!
//! A name in both numastat and vmstat of a node means the one in numastat.

use crate::Scene;
use crate::keyed::Keyed;
use crate::known::{MEMINFO, NUMASTAT, NameTable, VMSTAT};
use crate::layout::{FileLine, entries};
use crate::sensor::{Absent, Probed, Sensor, SensorEntry};
use crate::switches::KernelSwitches;
use crate::vmstat::{LineOrder, describe};
use numakit_model::{Fix, Instance, Kind, Metric, Scope, Series, Unavailable};
use numakit_sys::root::Watched;
use numakit_sys::{ReadError, SysRoot};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

const FOLDER: &str = "/sys/devices/system/node";
const SENSOR: &str = "node";
const FILES: [&str; 3] = ["numastat", "vmstat", "meminfo"];

/// Line of the table of sensors.
pub const ENTRY: SensorEntry = SensorEntry {
    name: SENSOR,
    help: "Allocations, memory counters and gauges of each node.",
    default: |_| true,
    known: all_known,
    probe,
};

fn all_known() -> Vec<Metric> {
    // The vmstat of a node has the lines that are kept per node: those before the events.
    let of_nodes = |name: &str| VMSTAT.iter().take_while(|k| k.name != "pgpgin").any(|k| k.name == name);
    let mut names = HashSet::new();
    let tables: [(&str, &NameTable); 3] =
        [("numastat", &NUMASTAT), ("vmstat", &VMSTAT), ("meminfo", &MEMINFO)];
    tables
        .into_iter()
        .flat_map(|(file, table)| table.iter().map(move |line| (file, line)))
        .filter(|(file, line)| *file != "vmstat" || of_nodes(line.name))
        .filter(|(_, line)| names.insert(line.name))
        .map(|(file, line)| line.metric(SENSOR, Scope::Node, &source(file)))
        .collect()
}

fn source(file: &str) -> String {
    format!("{FOLDER}/nodeN/{file}")
}

fn probe(scene: &Scene<'_>) -> Probed {
    let (root, topology) = (scene.root, scene.topology);
    let missing = "counters and levels of nodes";
    let nodes: Vec<u32> = topology.nodes.iter().filter(|n| !n.implicit).map(|n| n.os_index).collect();
    if nodes.is_empty() {
        let seen = format!("{FOLDER} shows no node");
        let kernel = "that is built with CONFIG_NUMA; until then use the sensor vmstat";
        let fix = Fix::OtherKernel(kernel.to_owned());
        return Err(Unavailable::new(missing, seen, fix));
    }
    let mut builder = Builder { switches: KernelSwitches::read(root), ..Builder::default() };
    let mut failure = None;
    for &node in &nodes {
        let mut names = HashSet::new();
        for file in FILES {
            let path = format!("{FOLDER}/node{node}/{file}");
            if let Err(why) = builder.add(root, &path, file, node, &mut names) {
                if !why.is_missing() {
                    builder.sensor.add_unread(why.to_string());
                }
                failure.get_or_insert(why);
            }
        }
    }
    match (builder.sensor.series().is_empty(), failure) {
        (true, Some(why)) => Err(Unavailable::new(missing, why.to_string(), root.fix_for(&why.path))),
        (true, None) => {
            let seen = format!("no file in {FOLDER}/node{} has a line 'NAME NUMBER'", nodes[0]);
            Err(Unavailable::new(missing, seen, root.fix_for(FOLDER)))
        }
        _ => Ok(Box::new(builder.sensor)),
    }
}

#[derive(Default)]
struct Builder {
    switches: KernelSwitches,
    sensor: Keyed,
    // One metric for all nodes.
    metrics: HashMap<String, Arc<Metric>>,
    absent: HashSet<String>,
    content: Vec<u8>,
}

impl Builder {
    fn add(
        &mut self,
        root: &SysRoot,
        path: &str,
        file: &'static str,
        node: u32,
        names: &mut HashSet<String>,
    ) -> Result<(), ReadError> {
        let mut watched = Watched::open(root, path)?;
        let mut content = std::mem::take(&mut self.content);
        if !watched.read(&mut content) {
            return watched.failure().cloned().map_or(Ok(()), Err);
        }
        let mut order = LineOrder::default();
        let mut columns = Vec::new();
        for entry in entries(&content) {
            if !names.insert(entry.name.to_owned()) {
                continue;
            }
            if let Some(why) = self.switches.why_off(entry.name) {
                if self.absent.insert(entry.name.to_owned()) {
                    let metric = metric_of(&entry, &mut order, file);
                    self.sensor.add_absent(Absent { metric, why: why.clone() });
                }
                continue;
            }
            let metric = match self.metrics.get(entry.name) {
                Some(metric) => metric,
                None => {
                    let metric = Arc::new(metric_of(&entry, &mut order, file));
                    self.metrics.entry(entry.name.to_owned()).or_insert(metric)
                }
            };
            columns.push((entry.key, Series::new(metric, Instance::Node(node))));
        }
        self.sensor.add(watched, &content, columns);
        self.content = content;
        Ok(())
    }
}

fn metric_of(entry: &FileLine<'_>, order: &mut LineOrder, file: &str) -> Metric {
    let source = source(file);
    match file {
        "vmstat" => describe(entry, order, SENSOR, Scope::Node, &source),
        "numastat" => NUMASTAT.metric(entry, SENSOR, Scope::Node, &source, Kind::COUNTER),
        _ => MEMINFO.metric(entry, SENSOR, Scope::Node, &source, Kind::Gauge),
    }
}

#[cfg(test)]
mod tests;
