//! What is shown of a machine: its places, and the formulas of their meters, ready for rows.

use numakit_findings::series::{bind_metric, index};
use numakit_formulas::{BoundFormula, Catalog, Index};
use numakit_model::Instance;
use numakit_model::numbers::NumberStyle;
use numakit_recording::Header;
use std::collections::BTreeSet;

/// A machine as the screen shows it.
#[derive(Debug)]
pub struct MachineMeters {
    /// Its name.
    pub host: String,
    /// The observed command.
    pub command: Option<String>,
    /// Its nodes.
    pub nodes: Vec<NodePlace>,
    /// All CPUs, in the order of the nodes.
    pub cpus: Vec<u32>,
    /// What is not shown, and why.
    pub absent: Vec<(&'static str, String)>,
    /// What the column of local shares is about: the first of these that has a value.
    pub local_of: Vec<&'static str>,
    gauges: Vec<NodeGauges>,
    loads: Vec<Option<BoundFormula>>,
    observed: Option<ObservedGauges>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePlace {
    /// The kernel's number.
    pub number: u32,
    /// Position of its package among all.
    pub package: Option<usize>,
    /// Positions of its CPUs in the list of all.
    pub cpus: std::ops::Range<usize>,
}

#[derive(Debug)]
struct NodeGauges {
    idle: Option<BoundFormula>,
    total: Option<BoundFormula>,
    free: Option<BoundFormula>,
    file: Option<BoundFormula>,
    /// The first one that has a value.
    local: Vec<BoundFormula>,
    bandwidth: Option<BoundFormula>,
    utilisation: Option<BoundFormula>,
}

/// The observed program.
#[derive(Debug)]
struct ObservedGauges {
    cpu: Option<BoundFormula>,
    faults: Option<BoundFormula>,
    moved: Option<BoundFormula>,
    far: Option<BoundFormula>,
    resident: Vec<Option<BoundFormula>>,
}

/// The values of a moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Moment {
    /// ns since 1970.
    pub time: u64,
    /// One for each node.
    pub nodes: Vec<NodeMoment>,
    /// The load of each CPU in percent.
    pub cpus: Vec<Option<f64>>,
    /// The observed program.
    pub observed: Option<ObservedMoment>,
}

/// The meters of a node; shares in percent, memory in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct NodeMoment {
    /// Busy CPU time.
    pub busy: Option<f64>,
    /// All memory.
    pub total: Option<f64>,
    /// Memory in use, without page cache.
    pub used: Option<f64>,
    /// Page cache.
    pub file: Option<f64>,
    /// Local share.
    pub local: Option<f64>,
    /// Bytes per second.
    pub bandwidth: Option<f64>,
    /// Bandwidth as a share of its maximum.
    pub utilisation: Option<f64>,
}

/// The observed program with its descendants.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObservedMoment {
    /// CPU time in percent of a CPU.
    pub cpu: Option<f64>,
    /// Page faults per second.
    pub faults: Option<f64>,
    /// Migrated pages per second, of the whole machine.
    pub moved: Option<f64>,
    /// Far share of its time at memory or of its pages in use, in percent.
    pub far: Option<f64>,
    /// Bytes on each node.
    pub memory: Vec<Option<f64>>,
}

/// The formulas of the local share, the best one first, with what they are about.
const LOCAL: [(&str, &str); 4] = [
    ("use_locality", "time at memory"),
    ("page_locality", "pages in use"),
    ("local_share", "accesses"),
    ("locality", "allocations"),
];

impl MachineMeters {
    /// The machine of rows with this header.
    pub fn new(header: &Header, formulas: &Catalog) -> Self {
        let index = index(header);
        let bind = Binder { header, index: &index, formulas };
        let (nodes, cpus) = places(header);
        let alone = nodes.len() == 1;
        let works = |name: &str| nodes.iter().any(|n| bind.formula(name, Instance::Node(n.number)).is_some());
        let local: Vec<_> = LOCAL.into_iter().filter(|(name, _)| !alone && works(name)).collect();
        let mut absent = Vec::new();
        match local.is_empty() {
            false => {}
            true if alone => {
                absent.push(("local share", "cannot tell, because the machine has one node".into()))
            }
            true => absent.push(("local share", bind.why("locality"))),
        }
        for (what, name) in [("CPU time", "idle"), ("memory", "free"), ("bandwidth", "dram_bandwidth")] {
            if !works(name) {
                absent.push((what, bind.why(name)));
            }
        }
        let gauges = nodes.iter().map(|n| bind.node(Instance::Node(n.number), &local)).collect();
        let loads = cpus.iter().map(|&cpu| bind.formula("idle", Instance::Cpu(cpu))).collect();
        Self {
            host: header.host.clone(),
            command: header.command.clone(),
            observed: bind.observed(&nodes),
            nodes,
            cpus,
            absent,
            local_of: local.iter().map(|(_, of)| *of).collect(),
            gauges,
            loads,
        }
    }

    /// The values of a row.
    pub fn moment(&self, time: u64, row: &[Option<f64>]) -> Moment {
        let busy = |idle: &Option<BoundFormula>| Some(100.0 - idle.as_ref()?.value(row)?);
        Moment {
            time,
            nodes: self
                .gauges
                .iter()
                .map(|gauges| NodeMoment { busy: busy(&gauges.idle), ..gauges.read(row) })
                .collect(),
            cpus: self.loads.iter().map(busy).collect(),
            observed: self.observed.as_ref().map(|gauges| gauges.read(row)),
        }
    }

    /// The number of packages.
    pub fn packages(&self) -> usize {
        self.nodes.iter().filter_map(|node| node.package).max().map_or(0, |last| last + 1)
    }

    /// Why something is absent.
    pub fn why_absent(&self, what: &str) -> Option<&str> {
        self.absent.iter().find(|(name, _)| *name == what).map(|(_, why)| why.as_str())
    }
}

impl NodeGauges {
    fn read(&self, row: &[Option<f64>]) -> NodeMoment {
        let value = |formula: &Option<BoundFormula>| formula.as_ref()?.value(row);
        let (total, free, file) = (value(&self.total), value(&self.free), value(&self.file));
        let used = total.zip(free).map(|(total, free)| total - free - file.unwrap_or(0.0));
        NodeMoment {
            busy: None,
            total,
            used: used.map(|used| used.max(0.0)),
            file,
            local: self.local.iter().find_map(|formula| formula.value(row)),
            bandwidth: value(&self.bandwidth),
            utilisation: value(&self.utilisation),
        }
    }
}

impl ObservedGauges {
    fn read(&self, row: &[Option<f64>]) -> ObservedMoment {
        let value = |formula: &Option<BoundFormula>| formula.as_ref()?.value(row);
        ObservedMoment {
            cpu: value(&self.cpu).map(|cpus| 100.0 * cpus),
            faults: value(&self.faults),
            moved: value(&self.moved),
            far: value(&self.far),
            memory: self.resident.iter().map(value).collect(),
        }
    }
}

/// Binds formulas of one header.
struct Binder<'a> {
    header: &'a Header,
    index: &'a Index<'a>,
    formulas: &'a Catalog,
}

impl Binder<'_> {
    fn formula(&self, name: &str, place: Instance) -> Option<BoundFormula> {
        self.index.bind(self.formulas, self.formulas.get(name)?, place).ok()
    }

    fn bytes(&self, metric: &str, place: Instance) -> Option<BoundFormula> {
        bind_metric(self.index, metric, NumberStyle::Bytes, place)
    }

    fn node(&self, place: Instance, local: &[(&str, &str)]) -> NodeGauges {
        NodeGauges {
            idle: self.formula("idle", place),
            total: self.bytes("node.MemTotal", place),
            free: self.bytes("node.MemFree", place),
            file: self.bytes("node.FilePages", place),
            local: local.iter().filter_map(|(name, _)| self.formula(name, place)).collect(),
            bandwidth: self.formula("dram_bandwidth", place),
            utilisation: self.formula("dram_util", place),
        }
    }

    fn observed(&self, nodes: &[NodePlace]) -> Option<ObservedGauges> {
        let cpu = self.formula("task_cpu", Instance::Machine)?;
        let minor = bind_metric(self.index, "task.minor_faults", NumberStyle::Rate, Instance::Machine);
        let far = ["remote_time_share", "remote_pages_share"];
        Some(ObservedGauges {
            cpu: Some(cpu),
            faults: minor,
            moved: self.formula("moved", Instance::Machine),
            far: far.into_iter().find_map(|name| self.formula(name, Instance::Machine)),
            resident: nodes.iter().map(|n| self.bytes("task.resident", Instance::Node(n.number))).collect(),
        })
    }

    /// Why a formula is absent: what the sensors say, or which series are missing.
    fn why(&self, name: &str) -> String {
        let Some(formula) = self.formulas.get(name) else { return format!("there is no formula '{name}'") };
        let names = self.formulas.names(formula);
        let covers = |absent: &str| names.iter().any(|n| *n == absent || n.split('.').next() == Some(absent));
        let said = self.header.absent.iter().find(|absent| covers(&absent.name));
        said.map_or_else(|| "its series are not sampled".to_owned(), |absent| absent.why.to_string())
    }
}

/// The nodes, and the CPUs in their order; a machine without a topology has those of its series.
fn places(header: &Header) -> (Vec<NodePlace>, Vec<u32>) {
    let mut all = Vec::new();
    let mut nodes = Vec::new();
    let mut add = |number: u32, package: Option<usize>, cpus: &mut dyn Iterator<Item = u32>| {
        let from = all.len();
        all.extend(cpus);
        nodes.push(NodePlace { number, package, cpus: from..all.len() });
    };
    match &header.topology {
        Some(topology) => {
            for node in &topology.nodes {
                let package = topology.packages.iter().position(|p| p.cpus.intersects(&node.cpus));
                add(node.os_index, package, &mut node.cpus.and(&topology.online).iter());
            }
        }
        None => {
            let numbers: BTreeSet<u32> = header.series.iter().filter_map(|s| node_of(s.instance)).collect();
            numbers.into_iter().for_each(|number| add(number, None, &mut std::iter::empty()));
        }
    }
    (nodes, all)
}

fn node_of(place: Instance) -> Option<u32> {
    if let Instance::Node(node) = place { Some(node) } else { None }
}

#[cfg(test)]
mod tests {
    use crate::testing::{header, machine_of};

    #[test]
    fn a_row_becomes_meters_and_what_is_not_measured_stays_absent() {
        let header = header("package:2 node:1 core:2");
        let machine = machine_of(&header);
        assert_eq!(
            (machine.nodes.len(), machine.packages(), machine.cpus.as_slice()),
            (2, 2, &[0, 1, 2, 3][..])
        );
        assert_eq!((machine.nodes[1].cpus.clone(), &machine.local_of), (2..4, &vec!["allocations"]));
        let mut row = vec![None; header.series.len()];
        for (value, series) in row.iter_mut().zip(&header.series) {
            *value = match series.name().as_str() {
                "cpu.user@cpu2" => Some(75.0),
                "cpu.idle@cpu2" => Some(25.0),
                "node.MemTotal@node0" => Some(1024.0),
                "node.MemFree@node0" => Some(256.0),
                _ => None,
            };
        }
        let moment = machine.moment(7, &row);
        let near = moment.cpus.iter().map(|load| load.map(f64::round)).collect::<Vec<_>>();
        assert_eq!(near, [None, None, Some(75.0), None]);
        assert_eq!((moment.nodes[0].busy, moment.nodes[1].busy.map(f64::round)), (None, Some(75.0)));
        let memory = (moment.nodes[0].used, moment.nodes[0].file, moment.nodes[1].used);
        assert_eq!(memory, (Some(768.0 * 1024.0), None, None));
        assert_eq!((moment.nodes[0].bandwidth, &moment.observed), (None, &None));
        assert!(machine.why_absent("bandwidth").is_some(), "{:?}", machine.absent);
    }

    #[test]
    fn on_one_node_the_local_share_cannot_be_told() {
        let machine = machine_of(&header("node:1 core:2"));
        assert_eq!(machine.why_absent("local share"), Some("cannot tell, because the machine has one node"));
        let row = vec![Some(1.0); header("node:1 core:2").series.len()];
        assert_eq!(machine.moment(0, &row).nodes[0].local, None);
    }
}
