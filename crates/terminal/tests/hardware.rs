//! From counters to derived metrics on simulated machines: which formulas each machine can compute, and
//! their values for scripted counts. `UPDATE=1 cargo xtask test` writes the golden text.
#![allow(clippy::unwrap_used)]

use numakit_formulas::{Catalog, Index};
use numakit_model::{CpuSet, Instance, Series};
use numakit_recording::Rates;
use numakit_sensors::{Probe, Scene, Sensor, Tick};
use numakit_sys::SysRoot;
use numakit_sys::perf::PerfEvent;
use numakit_testing::counters::Script;
use numakit_testing::machines::{self, Machine};
use std::fmt::Write;
use std::sync::Arc;

const SECOND: u64 = 1_000_000_000;
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/hardware-formulas.txt");

/// Formulas whose values come from hardware.
const FORMULAS: [&str; 14] = [
    "remote_share",
    "load_remote_share",
    "link_out",
    "link_in",
    "link_util",
    "dram_read",
    "dram_write",
    "dram_bandwidth",
    "dram_util",
    "remote_bandwidth",
    "memory_latency",
    "latency_remote",
    "hitm_remote",
    "ipc",
];

/// The rates of two samples that are one second apart.
fn rates(machine: Machine) -> (Vec<Series>, Vec<Option<f64>>) {
    let script = Script::new();
    for pmu in &machine.pmus {
        script.pmu(pmu.kind, pmu.counters, &pmu.cpus.to_string());
    }
    script.pmu(PerfEvent::HARDWARE, 8, "");
    let packages: Vec<CpuSet> = machine.topology.packages.iter().map(|p| p.cpus.clone()).collect();
    script.costs(&packages, (0, 0));
    let root = SysRoot::of_tree(machine.tree).with_counters(Arc::new(script.clone()));
    let mut sensors = Probe::new(&Scene::new(&root, &machine.topology)).sensors;
    sensors.retain(|s| ["uncore", "perf"].contains(&s.series()[0].metric.sensor()));
    let series: Vec<Series> = sensors.iter().flat_map(|s| s.series().to_vec()).collect();
    let mut rates = Rates::new(&series);
    let mut last = Vec::new();
    // With multiplexing, all groups have been counted after some seconds.
    for second in 0..4u64 {
        let values = read(&mut sensors, second * SECOND);
        last = rates.push(second * SECOND, &values).to_vec();
        script.advance(SECOND);
    }
    (series, last)
}

fn read(sensors: &mut [Box<dyn Sensor>], now: u64) -> Vec<Option<u64>> {
    let tick = Tick { due: now + 1, woke: now + 1, lost: 0 };
    let mut all = Vec::new();
    for sensor in sensors {
        let mut out = vec![None; sensor.series().len()];
        sensor.read(&tick, &mut out);
        all.extend(out);
    }
    all
}

fn table(name: &str) -> String {
    let machine = machines::machine(name).unwrap();
    let topology = machine.topology.clone();
    let (series, values) = rates(machine);
    let index = Index::new(&series, Some(&topology), topology.page_size);
    let catalog = Catalog::built_in();
    let mut text = format!("{name}: {} series, {} measured\n", series.len(), values.iter().flatten().count());
    for formula in FORMULAS {
        let value = |place| {
            let bound = index.bind(catalog, catalog.get(formula).unwrap(), place).ok()?;
            bound.value(&values)
        };
        let shown = |place| value(place).map_or_else(|| "-".to_owned(), |v| format!("{v:.4e}"));
        let [machine, node] = [Instance::Machine, Instance::Node(0)].map(shown);
        _ = writeln!(text, "  {formula:<18} {machine:>12} {node:>12}");
    }
    text
}

#[test]
fn formulas_have_values_on_every_machine_with_counters() {
    let text: String = machines::names().map(table).collect();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(GOLDEN, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(GOLDEN).unwrap_or_default(), "run with UPDATE=1 if it is right");
}
