//! A machine of two nodes with two CPUs each, by the means of its series over ten seconds.

use numakit_findings::finding::Findings;
use numakit_findings::range::{RangeMeans, RangeRules};
use numakit_formulas::Catalog;
use numakit_model::topology::{Core, Node, Package};
use numakit_model::{CpuSet, Instance, Metric, Series, Topology};
use numakit_recording::Header;
use numakit_sensors::SENSORS;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

const BUCKETS: usize = 100;
const STEP: u64 = 100_000_000;
/// What is there when nothing happens: each CPU computes half of the time.
const IDLE: &str = "cpu.user@cpu0 50\ncpu.idle@cpu0 50\ncpu.user@cpu1 50\ncpu.idle@cpu1 50\n\
    cpu.user@cpu2 50\ncpu.idle@cpu2 50\ncpu.user@cpu3 50\ncpu.idle@cpu3 50\n\
    cpu.system@cpu0 0\ncpu.irq@cpu0 0\ncpu.softirq@cpu0 0\ncpu.steal@cpu0 0\n\
    cpu.irq@cpu1 0\ncpu.softirq@cpu1 0\ncpu.irq@cpu2 0\ncpu.softirq@cpu2 0\ncpu.irq@cpu3 0\ncpu.softirq@cpu3 0\n\
    node.local_node@node0 500\nnode.other_node@node0 5\nnode.numa_hit@node0 505\nnode.numa_foreign@node0 0\n\
    node.local_node@node1 500\nnode.other_node@node1 5\nnode.numa_hit@node1 505\nnode.numa_foreign@node1 0\n\
    node.MemFree@node0 2e7\nnode.MemFree@node1 2e7\nvmstat.pgfault 100\nvmstat.pgmajfault 0\n\
    pressure.memory_some 0\npressure.io_some 0\npressure.cpu_some 0";

/// The declaration of each metric that a sensor knows.
static METRICS: LazyLock<HashMap<String, Arc<Metric>>> = LazyLock::new(|| {
    let known = SENSORS.iter().flat_map(|sensor| (sensor.known)());
    known.map(|metric| (metric.name.clone(), Arc::new(metric))).collect()
});

pub struct Machine {
    series: Vec<Series>,
    means: Vec<Vec<f32>>,
}

impl Machine {
    pub fn idle() -> Self {
        let mut machine = Self { series: Vec::new(), means: Vec::new() };
        machine.set(IDLE);
        machine
    }

    /// Sets series by lines of `SERIES VALUE` or `SERIES FROM..TO`.
    pub fn set(&mut self, lines: &str) {
        for line in lines.lines() {
            let (name, value) = line.trim().split_once(' ').unwrap();
            let (from, to) = value.split_once("..").unwrap_or((value, value));
            let (from, to): (f32, f32) = (from.parse().unwrap(), to.parse().unwrap());
            let course = (0..BUCKETS).map(|at| from + (to - from) * at as f32 / (BUCKETS - 1) as f32);
            let at = self.series.iter().position(|series| series.name() == name).unwrap_or_else(|| {
                self.series.push(series(name));
                self.means.push(Vec::new());
                self.means.len() - 1
            });
            self.means[at] = course.collect();
        }
    }

    pub fn findings(&self) -> Findings {
        let header = Header {
            series: self.series.clone(),
            topology: Some(topology()),
            interval: STEP,
            page_size: 4096,
            command: Some("./program".to_owned()),
            ..Header::default()
        };
        let range = RangeMeans { from: 1_000_000_000, step: STEP, means: &self.means };
        RangeRules::new(&header, Arc::new(Catalog::built_in().clone())).findings(&header, &range, [])
    }
}

fn series(name: &str) -> Series {
    let (metric, place) = name.split_once('@').unwrap_or((name, ""));
    let known = METRICS.get(metric).unwrap_or_else(|| panic!("no sensor has {metric}"));
    let place = if place.is_empty() { Some(Instance::Machine) } else { Instance::parse(place) };
    Series::new(known, place.unwrap_or_else(|| panic!("{name} is at no place")))
}

fn topology() -> Topology {
    let node = |os_index: u32| Node {
        os_index,
        cpus: CpuSet::range(2 * os_index, 2 * os_index + 1),
        memory_kb: Some(32 << 20),
        ..Node::default()
    };
    let core = |n: u32| Core { cpus: CpuSet::range(n, n), ..Core::default() };
    Topology {
        page_size: 4096,
        online: CpuSet::range(0, 3),
        nodes: (0..2).map(node).collect(),
        packages: (0..2).map(|_| Package::default()).collect(),
        cores: (0..4).map(core).collect(),
        ..Topology::default()
    }
}
