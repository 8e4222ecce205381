use super::*;
use crate::sampled::RowSum;
use crate::setup::MAX_ADDED;
use numakit_model::Topology;
use numakit_recording::Ring;
use numakit_sensors::{Scene, Tick};
use numakit_sys::SysRoot;
use numakit_testing::sysfs;
use numakit_topology::synthetic;
use std::collections::BTreeMap;

/// The text of a machine's first sample, without the times of this test.
fn scraped(
    root: &SysRoot,
    topology: &Topology,
    added: Option<&str>,
    dialect: Dialect,
) -> (ScrapePage, String) {
    let selection = added.map(|text| text.parse().unwrap());
    let mut setup = ScrapeSetup::new(&Scene::new(root, topology), selection.as_ref()).unwrap();
    let page = ScrapePage::new(&mut setup, "1.2");
    let columns = setup.header.series.len();
    let mut row = vec![None; columns];
    let mut rest = &mut row[..];
    for sensor in &mut setup.sensors {
        let (own, others) = rest.split_at_mut(sensor.series().len());
        sensor.read(&Tick::default(), own);
        rest = others;
    }
    let ring = Arc::new(Ring::in_memory(columns, 4).unwrap());
    let sum = RowSum::new(setup.lines.clone(), setup.added_columns.clone(), columns);
    assert!(page.text(dialect, &SamplerNumbers::default(), None).is_none());
    let thread = page.sampled.follow(Arc::clone(&ring), sum).unwrap();
    ring.push(1, 0, &row);
    ring.close();
    thread.join().unwrap();
    let numbers = SamplerNumbers { samples: 1, interval: 1_000_000_000, ..SamplerNumbers::default() };
    let text = page.text(dialect, &numbers, None).unwrap();
    (page, String::from_utf8(text).unwrap())
}

fn machine(description: &str) -> (SysRoot, Topology) {
    let topology = synthetic::parse(description).unwrap();
    (SysRoot::of_tree(sysfs::tree(&topology)), topology)
}

fn values(text: &str) -> BTreeMap<&str, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.rsplit_once(' ').unwrap()).map(|(name, n)| (name, n.parse().unwrap())).collect()
}

const STAT: &str = "cpu  9 0 0 0 0 0 0 0 0 0\ncpu0 100 20 3 400 5 0 1 2 0 0\ncpu1 1 0 0 0 0 0 0 0 0 0\n\
                    cpu2 7 0 0 0 0 0 0 0 0 0\ncpu3 8 0 0 0 0 0 0 0 0 0\nctxt 77\nprocs_running 3\n";

#[test]
fn values_are_summed_by_node_in_base_units() {
    let (root, topology) = machine("package:2 node:1 core:2");
    root.change(|tree| _ = tree.file("/proc/stat", STAT));
    root.change(|tree| {
        tree.file(
            "/sys/devices/system/node/node1/meminfo",
            "Node 1 MemTotal: 2048 kB\nNode 1 MemFree: 1024 kB\n",
        );
    });
    let (_, text) = scraped(&root, &topology, None, Dialect::Prometheus);
    let values = values(&text);
    let of = |name: &str| values.get(name).copied();
    assert_eq!(of("numakit_node_cpu_seconds_total{node=\"0\",mode=\"user\"}"), Some(1.21));
    assert_eq!(of("numakit_node_cpu_seconds_total{node=\"0\",mode=\"system\"}"), Some(0.04));
    assert_eq!(of("numakit_node_cpu_seconds_total{node=\"1\",mode=\"user\"}"), Some(0.15));
    assert_eq!(of("numakit_node_memory_bytes{node=\"1\",state=\"free\"}"), Some(1048576.0));
    assert_eq!(of("numakit_node_allocations_total{node=\"0\",kind=\"local\"}"), Some(100.0));
    assert_eq!(of("numakit_context_switches_total"), Some(77.0));
    assert_eq!(of("numakit_node_cpus{node=\"1\"}"), Some(2.0));
    assert_eq!(of("numakit_build_info{version=\"1.2\"}"), Some(1.0));
    // What is absent has a reason, and is never 0.
    assert!(text.contains("numakit_absent{what=\"numakit_pressure_seconds_total\",reason=\""), "{text}");
    assert!(!text.contains("numakit_pressure_seconds_total{"), "{text}");
    assert_eq!(of("numakit_scrapes_total"), Some(0.0));
}

#[test]
fn formats_differ_as_their_standards_say() {
    let (root, topology) = machine("package:1 node:1 core:2");
    let (_, plain) = scraped(&root, &topology, None, Dialect::Prometheus);
    let (_, open) = scraped(&root, &topology, None, Dialect::OpenMetrics);
    assert!(plain.contains("# TYPE numakit_page_faults_total counter\n") && !plain.contains("# EOF"));
    assert!(open.contains("# TYPE numakit_page_faults counter\n") && open.ends_with("# EOF\n"));
    assert!(open.contains("# UNIT numakit_node_memory_bytes bytes\n"));
    assert!(values(&plain).keys().eq(values(&open).keys()));
    for text in [plain, open] {
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let value = line.rsplit_once("} ").or_else(|| line.split_once(' ')).unwrap().1;
            assert!(!value.contains(' '), "a timestamp: {line}");
        }
    }
}

#[test]
fn every_machine_has_at_most_300_series() {
    for description in [
        "package:1 node:1 core:2",
        "package:4 node:4 core:2",
        "package:4 node:8 core:2",
        "package:128 node:1 core:16 pu:2",
    ] {
        let (root, topology) = machine(description);
        root.change(|tree| _ = tree.file("/proc/stat", STAT));
        let (page, text) = scraped(&root, &topology, None, Dialect::Prometheus);
        let count = values(&text).len();
        assert!(count <= 300 && page.series() <= 280, "{description}: {count} {}", page.series());
        assert_eq!(topology.nodes.len() > 16, text.contains("what=\"values by node\""), "{description}");
    }
}

#[test]
fn added_series_have_the_names_of_exports_and_a_wrong_one_is_an_error() {
    let (root, topology) = machine("package:2 node:1 core:2");
    root.change(|tree| _ = tree.file("/proc/stat", STAT));
    let (_, text) = scraped(&root, &topology, Some("cpu.user,vmstat.numa_hit"), Dialect::Prometheus);
    let values = values(&text);
    assert_eq!(values.get("numakit_cpu_user_seconds_total{cpu=\"3\"}"), Some(&0.08));
    assert_eq!(values.get("numakit_vmstat_numa_hit_total"), Some(&100.0));
    let wrong = "nonsense".parse().unwrap();
    let error = ScrapeSetup::new(&Scene::new(&root, &topology), Some(&wrong)).err().unwrap();
    assert!(error.to_string().contains("unknown event 'nonsense'"), "{error}");
    assert!(values.len() < MAX_ADDED);
}

#[test]
fn the_format_is_that_of_the_accept_header() {
    for (accept, open) in [
        (None, false),
        (Some("*/*"), false),
        (Some("text/plain;version=0.0.4"), false),
        (
            Some(
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            ),
            true,
        ),
        (Some("text/plain, application/openmetrics-text; q=0.5"), false),
        (Some("application/openmetrics-text; q=0"), false),
        (Some("application/openmetrics-text; q=NaN"), false),
    ] {
        assert_eq!(dialect_of(accept) == Dialect::OpenMetrics, open, "{accept:?}");
    }
}

#[test]
fn what_is_absent_is_printable_and_bounded() {
    let fix = numakit_model::Fix::CommandLine("x\n".to_owned());
    let why = Unavailable::new("a", "\x1b[2J\"\\".repeat(100), fix);
    let (labels, _) = absent("w\nhat", &why);
    assert!(labels.starts_with("{what=\"w?hat\",reason=\"?[2J\\\"\\\\"), "{labels}");
    assert!(labels.chars().count() < 2 * MAX_TEXT + 100, "{}", labels.len());
}
