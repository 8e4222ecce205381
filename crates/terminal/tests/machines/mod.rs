//! Generated recordings of machines with any number of nodes.

use numakit_model::label::RecorderEvent;
use numakit_model::topology::{Core, Node, Package};
use numakit_model::{CpuSet, Instance, Kind, Metric, Series, Topology, Unavailable, Unit};
use numakit_recording::{AbsentMetric, Batch, Header};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

pub const MS: u64 = 1_000_000;
const START: u64 = 1_795_202_974_000 * MS;
const GIB_IN_KB: u64 = 1 << 20;

const GAUGES: [&str; 3] = ["node.MemFree", "node.MemTotal", "self.wakeup"];
const OF_NODES: [&str; 8] = [
    "node.local_node",
    "node.other_node",
    "node.numa_hit",
    "node.numa_miss",
    "node.numa_foreign",
    "node.interleave_hit",
    "node.MemFree",
    "node.MemTotal",
];
const OF_MACHINE: [&str; 12] = [
    "vmstat.pgfault",
    "vmstat.pgmajfault",
    "vmstat.thp_fault_alloc",
    "vmstat.thp_fault_fallback",
    "vmstat.pgmigrate_success",
    "vmstat.numa_hint_faults",
    "vmstat.numa_hint_faults_local",
    "pressure.memory_some",
    "self.cpu",
    "self.process_cpu",
    "self.wakeup",
    "self.lost",
];

/// A growing recording: the current value of each series by name.
pub struct Machine {
    pub header: Header,
    pub batches: Vec<Batch>,
    pub values: HashMap<String, Option<u64>>,
    pub time: u64,
}

impl Machine {
    /// A machine of `nodes` nodes with 4 CPUs and 32 GiB each.
    pub fn new(nodes: u32) -> Self {
        let mut series = Vec::new();
        for node in 0..nodes {
            series.extend(OF_NODES.map(|name| of(name, Instance::Node(node))));
        }
        series.extend(OF_MACHINE.map(|name| of(name, Instance::Machine)));
        for cpu in 0..4 * nodes {
            series.extend(["cpu.user", "cpu.system", "cpu.idle"].map(|name| of(name, Instance::Cpu(cpu))));
        }
        let header = Header {
            topology: Some(topology(nodes)),
            host: "big".into(),
            kernel: "6.12.0".into(),
            program: "numa 0.1.0".into(),
            started: START,
            interval: 10 * MS,
            page_size: 4096,
            series,
            ..Header::default()
        };
        let mut values: HashMap<String, Option<u64>> =
            header.series.iter().map(|s| (s.name(), Some(0))).collect();
        for node in 0..nodes {
            values.insert(format!("node.MemTotal@node{node}"), Some(32 * GIB_IN_KB));
            values.insert(format!("node.MemFree@node{node}"), Some(30 * GIB_IN_KB));
        }
        Self { header, batches: Vec::new(), values, time: START }
    }

    /// Counters of the memory of each node, of links between packages, and of the memory that the program uses.
    pub fn with_counters(mut self) -> Self {
        let nodes = self.header.topology.as_ref().map_or(0, |t| t.nodes.len() as u32);
        let memory = ["uncore.dram_read_local", "uncore.dram_read_remote", "uncore.dram_capacity"];
        let links = ["uncore.link_busy_out", "uncore.link_capacity_out", "uncore.link_data_out"];
        let uses = ["access.near", "access.far", "access.clusters"];
        let mut more: Vec<Series> = Vec::new();
        for node in 0..nodes {
            more.extend(memory.map(|name| of(name, Instance::Node(node))));
            more.extend(uses.map(|name| of(name, Instance::Node(node))));
        }
        more.extend(links.map(|name| of(name, Instance::Link(0, 1))));
        self.values.extend(more.iter().map(|s| (s.name(), Some(0))));
        self.header.series.extend(more);
        self
    }

    /// CPU time of the observed program.
    #[allow(dead_code)]
    pub fn with_program(mut self) -> Self {
        let cpu = of("task.cpu", Instance::Machine);
        self.values.insert(cpu.name(), Some(0));
        self.header.series.push(cpu);
        self
    }

    /// Pages that the program uses by node, in the place of the time that it waits.
    pub fn with_pages_in_use(mut self) -> Self {
        let is_time = |s: &Series| s.metric.sensor() == "access";
        self.header.series.retain(|s| !is_time(s));
        self.values.retain(|name, _| !name.starts_with("access."));
        let nodes = self.header.topology.as_ref().map_or(0, |t| t.nodes.len() as u32);
        let names = ["access.pages_near", "access.pages_far"];
        let more: Vec<Series> =
            (0..nodes).flat_map(|node| names.map(|name| of(name, Instance::Node(node)))).collect();
        self.values.extend(more.iter().map(|s| (s.name(), Some(0))));
        self.header.series.extend(more);
        self
    }

    pub fn set(&mut self, name: &str, value: Option<u64>) {
        *self.values.get_mut(name).unwrap_or_else(|| panic!("no series {name}")) = value;
    }

    pub fn add(&mut self, name: &str, by: u64) {
        let value = self.values.get_mut(name).unwrap_or_else(|| panic!("no series {name}"));
        *value = value.map(|v| v + by);
    }

    /// A node's allocations: by its own CPUs, by others, with the misses among them.
    pub fn allocate(&mut self, node: u32, local: u64, other: u64, miss: u64) {
        self.add(&format!("node.local_node@node{node}"), local);
        self.add(&format!("node.other_node@node{node}"), other);
        self.add(&format!("node.numa_miss@node{node}"), miss);
        self.add(&format!("node.numa_hit@node{node}"), local + other - miss);
    }

    /// A row, 10 ms after the last one, with the cost of taking it.
    pub fn sample(&mut self) {
        self.add("self.cpu", 50_000);
        self.add("self.process_cpu", 60_000);
        let wakeup = if self.time == START { 900_000 } else { 10_000 };
        self.set("self.wakeup", Some(wakeup));
        let row: Vec<Option<u64>> = self.header.series.iter().map(|s| self.values[&s.name()]).collect();
        let time = self.time;
        self.open_batch().push_sample(time, 80_000, &row);
        self.time += 10 * MS;
    }

    pub fn label(&mut self, text: &str) {
        let time = self.time - 5 * MS;
        self.open_batch().push_label(time, text);
    }

    pub fn event(&mut self, event: RecorderEvent) {
        self.label(&event.text());
    }

    pub fn absent(&mut self, names: &[&str], why: &Unavailable) {
        let absent = names.iter().map(|name| AbsentMetric { name: (*name).to_owned(), why: why.clone() });
        self.header.absent.extend(absent);
    }

    /// Removes the series whose names contain these words.
    pub fn without(&mut self, words: &[&str]) {
        self.header.series.retain(|s| !words.iter().any(|w| s.name().contains(w)));
    }

    /// Small batches, so that every run crosses batch boundaries.
    fn open_batch(&mut self) -> &mut Batch {
        if self.batches.last().is_none_or(|b| b.len() >= 7) {
            self.batches.push(Batch::empty(self.header.series.len()));
        }
        self.batches.last_mut().unwrap()
    }
}

pub fn of(name: &str, instance: Instance) -> Series {
    let unit = match name {
        "node.MemFree" | "node.MemTotal" => Unit::Kibibytes,
        "pressure.memory_some" => Unit::Microseconds,
        "vmstat.pgmigrate_success" => Unit::Pages,
        "self.cpu" | "self.process_cpu" | "self.wakeup" => Unit::Nanoseconds,
        _ if name.starts_with("task.") => Unit::Nanoseconds,
        _ if name.starts_with("uncore.") || name.starts_with("resctrl.") => Unit::Bytes,
        _ if name.starts_with("cpu.") => Unit::Ticks,
        _ => Unit::Count,
    };
    let metric = Metric {
        name: name.into(),
        unit,
        kind: if GAUGES.contains(&name) { Kind::Gauge } else { Kind::COUNTER },
        scope: instance.scope(),
        help: String::new(),
        source: String::new(),
        confidence: None,
        maximum: None,
        resolution: if unit == Unit::Ticks { Duration::from_millis(10) } else { Duration::ZERO },
    };
    Series::new(&Arc::new(metric), instance)
}

fn topology(nodes: u32) -> Topology {
    let node = |os_index: u32| Node {
        os_index,
        cpus: CpuSet::range(4 * os_index, 4 * os_index + 3),
        memory_kb: Some(32 * GIB_IN_KB),
        ..Node::default()
    };
    let core = |n: u32| Core { cpus: CpuSet::range(2 * n, 2 * n + 1), ..Core::default() };
    let packages = nodes.div_ceil(2);
    Topology {
        page_size: 4096,
        online: CpuSet::range(0, 4 * nodes - 1),
        nodes: (0..nodes).map(node).collect(),
        packages: (0..packages).map(|_| Package::default()).collect(),
        cores: (0..2 * nodes).map(core).collect(),
        ..Topology::default()
    }
}
