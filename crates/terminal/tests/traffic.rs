//! Memory traffic of recordings against what was measured of the machine.

#![allow(clippy::unwrap_used, dead_code)]

mod machines;

use machines::{MS, Machine, of};
use numakit_findings::analyse;
use numakit_findings::report::Report;
use numakit_formulas::Catalog;
use numakit_model::measured::{LatencyMatrix, LoadCurve, LoadPoint, MeasuredNode};
use numakit_model::{Instance, MeasuredMemory};
use numakit_terminal::report::{PageStyle, page};

const STYLE: PageStyle = PageStyle { color: false, terminal: None, all: false };
/// Bytes in a sample of 10 ms at 1 GB/s.
const GB: u64 = 10_000_000;

/// Nodes with a peak of 65 GB/s; node 0 has a curve.
fn measured(nodes: u32) -> MeasuredMemory {
    let points = [(2e9, 82.0), (40e9, 128.0), (42e9, 132.0), (64e9, 300.0)];
    let curve = |node| match node {
        0 => points.map(|(bandwidth, ns)| LoadPoint { bandwidth, ns }).to_vec(),
        _ => Vec::new(),
    };
    let node =
        |node| MeasuredNode { node, bandwidth: Some(65e9), curve: curve(node), ..MeasuredNode::default() };
    let all: Vec<u32> = (0..nodes).collect();
    let row = |from: &u32| all.iter().map(|to| Some(if from == to { 82.0 } else { 140.0 })).collect();
    let ns = all.iter().map(row).collect();
    MeasuredMemory {
        nodes: (0..nodes).map(node).collect(),
        latency: LatencyMatrix { from: all.clone(), to: all.clone(), ns },
        doubts: Vec::new(),
    }
}

/// Ten samples in which these series grow by these numbers of GB/s.
fn recorded(nodes: u32, traffic: &[(&str, u64)], measured: Option<MeasuredMemory>) -> Machine {
    let mut machine = Machine::new(nodes);
    if let Some(topology) = &mut machine.header.topology {
        topology.measured = measured;
    }
    for (name, _) in traffic {
        let (metric, place) = name.split_once('@').unwrap();
        let series = of(metric, Instance::parse(place).unwrap());
        machine.values.insert(series.name(), Some(0));
        machine.header.series.push(series);
    }
    machine.sample();
    for _ in 0..100 {
        traffic.iter().for_each(|(name, rate)| machine.add(name, rate * GB));
        machine.sample();
    }
    machine
}

fn report(machine: &Machine) -> Report {
    analyse(&machine.header, machine.batches.clone(), None, Catalog::built_in()).unwrap()
}

/// The section of the page, without line breaks.
fn section(report: &Report) -> Option<String> {
    let text = page(report, STYLE).replace("\n    ", " ");
    let at = text.find("\nMemory traffic\n")? + 1;
    let end = text[at..].find("\n\n").map_or(text.len(), |end| at + end);
    Some(text[at..end].to_owned())
}

const TWO: [(&str, u64); 4] = [
    ("uncore.dram_read@node0", 30),
    ("uncore.dram_write@node0", 11),
    ("uncore.dram_read@node1", 50),
    ("uncore.dram_write@node1", 10),
];

#[test]
fn traffic_is_a_share_of_the_measured_peak_and_a_point_on_the_curve() {
    let report = report(&recorded(2, &TWO, Some(measured(2))));
    assert_eq!(
        section(&report).unwrap(),
        "Memory traffic\n  node 0 at 41.0 GB/s, 63.1 % of its measured 65.0 GB/s; loads take about 130 ns there, 82 ns idle\n  \
         node 1 at 60.0 GB/s, 92.3 % of its measured 65.0 GB/s; a load takes 82 ns idle"
    );
    let finding = &report.findings.problems[0];
    assert_eq!(
        (finding.rule, finding.says.as_str()),
        ("memory-bandwidth", "Node 1 uses 92.3 % of its measured memory bandwidth")
    );
    assert!(finding.evidence[0].says.ends_with("92.3 % of the measured peak"), "{finding:?}");
}

#[test]
fn a_load_is_on_the_curve_with_the_nearest_share_of_reads() {
    let mut memory = measured(2);
    let curve =
        |(read_percent, ns)| LoadCurve { read_percent, points: vec![LoadPoint { bandwidth: 60e9, ns }] };
    memory.nodes[0].by_reads = [(100, 130.0), (75, 150.0), (50, 190.0)].map(curve).to_vec();
    let whole = report(&recorded(2, &TWO, Some(memory.clone())));
    let text = section(&whole).unwrap();
    assert!(text.contains("loads take about 150 ns there (measured with 75 % reads), 82 ns idle"), "{text}");
    let node = &whole.traffic.places[0];
    assert_eq!((node.read_percent.map(f64::round), node.load_read_percent), (Some(73.0), Some(75)));
    // Of caches, reads are not known.
    let caches = [("resctrl.mbm_total_bytes@node0", 41)];
    memory.nodes.truncate(1);
    let one = report(&recorded(1, &caches, Some(memory)));
    assert_eq!((one.traffic.places[0].read_percent, one.traffic.places[0].load_read_percent), (None, None));
}

#[test]
fn without_a_measured_peak_only_the_traffic_is_known() {
    let report = report(&recorded(2, &TWO, None));
    let text = section(&report).unwrap();
    assert!(text.contains("  node 0 at 41.0 GB/s\n"), "{text}");
    assert!(text.ends_with("'numa bench all' measures it, and recordings after it have it"), "{text}");
    assert_eq!(report.findings.problems.len(), 0, "a share of nothing is no finding");
}

#[test]
fn without_counters_the_peak_is_shown_and_no_traffic() {
    let mut memory = measured(1);
    memory.doubts = vec!["bandwidth: busy".to_owned(), "latency: busy".to_owned()];
    let whole = report(&recorded(1, &[], Some(memory)));
    let text = section(&whole).unwrap();
    assert!(text.contains("  node 0: measured peak 65.0 GB/s, idle latency 82 ns\n"), "{text}");
    assert!(text.contains("cannot tell: no counters of memory traffic: not in the recording"), "{text}");
    assert!(text.ends_with("do not rely on the measured values: bandwidth: busy; and 1 more"), "{text}");
    assert_eq!((whole.traffic.places[0].per_second, whole.traffic.places[0].percent), (None, None));
    assert_eq!(section(&report(&recorded(1, &[], None))), None);
}

#[test]
fn traffic_of_caches_is_no_load_of_one_node() {
    let traffic = [("resctrl.mbm_total_bytes@node0", 41), ("resctrl.mbm_local_bytes@node0", 40)];
    let two = section(&report(&recorded(2, &traffic, Some(measured(2))))).unwrap();
    assert!(
        two.contains(
            "the caches of node 0 at 41.0 GB/s, 63.1 % of its memory's measured 65.0 GB/s; a load takes"
        ),
        "{two}"
    );
    let one = section(&report(&recorded(1, &traffic, Some(measured(1))))).unwrap();
    assert!(one.contains("loads take about 130 ns there"), "{one}");
}

#[test]
fn a_recording_keeps_what_was_measured() {
    let machine = recorded(2, &[], Some(measured(2)));
    let json = machine.header.metadata();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let again: numakit_model::Topology = serde_json::from_value(value["topology"].clone()).unwrap();
    assert_eq!(again.measured, Some(measured(2)));
    let without = recorded(2, &[], None).header.metadata();
    assert!(!without.contains("measured"), "nothing is written of nothing");
    assert_eq!(machine.time % MS, 0);
}
