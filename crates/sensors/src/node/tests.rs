use super::*;
use crate::testing::{absent, nodes, read, root, sensor};
use numakit_model::Topology;
use numakit_model::Unit;
use std::io::ErrorKind;

const NUMASTAT: &str =
    "numa_hit 10\nnuma_miss 1\nnuma_foreign 2\ninterleave_hit 3\nlocal_node 8\nother_node 3\n";
const VMSTAT: &str = "nr_free_pages 50\nnuma_hit 999\nnuma_local 8\nnr_dirtied 4\n";

fn meminfo(node: u32, free: u64) -> String {
    format!(
        "Node {node} MemTotal:  4096 kB\nNode {node} MemFree: {free} kB\nNode {node} HugePages_Total:     2\n"
    )
}

fn machine() -> numakit_sys::SysRoot {
    let files: Vec<(String, String)> = [0, 2]
        .into_iter()
        .flat_map(|n| {
            let file = |name: &str, text: &str| (format!("{FOLDER}/node{n}/{name}"), text.to_owned());
            [
                file("numastat", NUMASTAT),
                file("vmstat", VMSTAT),
                file("meminfo", &meminfo(n, 100 + u64::from(n))),
            ]
        })
        .collect();
    root(&files.iter().map(|(p, t)| (p.as_str(), t.as_str())).collect::<Vec<_>>())
}

#[test]
fn three_files_of_every_node_become_series_with_the_nodes_number() {
    let mut sensor = sensor(&ENTRY, &machine(), &nodes(&[0, 2]));
    let values = read(&mut *sensor);
    assert_eq!(values.len(), 2 * 12);
    assert_eq!(values["node.MemFree@node2"], Some(102));
    assert_eq!(values["node.local_node@node0"], Some(8));
    assert_eq!(values["node.nr_dirtied@node2"], Some(4));
    assert_eq!(values["node.HugePages_Total@node0"], Some(2));
    assert_eq!(sensor.files(), 6);
}

#[test]
fn a_name_in_two_files_is_numastats() {
    let mut sensor = sensor(&ENTRY, &machine(), &nodes(&[0, 2]));
    assert_eq!(read(&mut *sensor)["node.numa_hit@node0"], Some(10));
    let hits: Vec<_> = sensor.series().iter().filter(|s| s.metric.bare() == "numa_hit").collect();
    assert_eq!(hits.len(), 2);
    assert!(hits[0].metric.source.ends_with("numastat"));
    assert!(Arc::ptr_eq(&hits[0].metric, &hits[1].metric));
}

#[test]
fn units_and_kinds_are_those_of_the_kernel() {
    let sensor = sensor(&ENTRY, &machine(), &nodes(&[0]));
    let metric =
        |name: &str| sensor.series().iter().find(|s| s.metric.bare() == name).unwrap().metric.clone();
    assert_eq!((metric("MemFree").unit, metric("MemFree").kind), (Unit::Kibibytes, Kind::Gauge));
    assert_eq!((metric("HugePages_Total").unit, metric("HugePages_Total").kind), (Unit::Count, Kind::Gauge));
    assert_eq!((metric("nr_dirtied").unit, metric("nr_dirtied").kind), (Unit::Pages, Kind::COUNTER));
    assert_eq!((metric("numa_hit").unit, metric("numa_hit").kind), (Unit::Count, Kind::COUNTER));
    assert!(sensor.series().iter().all(|s| s.metric.scope == Scope::Node));
}

#[test]
fn disabled_counters_are_absent_once() {
    let root = machine();
    root.change(|t| _ = t.file("/proc/sys/vm/numa_stat", "0\n"));
    let sensor = sensor(&ENTRY, &root, &nodes(&[0, 2]));
    let absent = absent(&*sensor);
    let names: Vec<&str> = absent.iter().map(|(n, _)| n.as_str()).collect();
    let expected = "numa_hit numa_miss numa_foreign interleave_hit local_node other_node numa_local";
    assert_eq!(names, expected.split(' ').map(|n| format!("node.{n}")).collect::<Vec<_>>());
    assert!(absent.iter().all(|(_, why)| why.ends_with("sysctl vm.numa_stat=1")));
    assert_eq!(sensor.series().len(), 2 * 5);
}

#[test]
fn a_removed_node_is_empty_and_comes_back() {
    let root = machine();
    let mut sensor = sensor(&ENTRY, &root, &nodes(&[0, 2]));
    root.change(|t| _ = t.remove(&format!("{FOLDER}/node2")));
    let values = read(&mut *sensor);
    assert!(values.iter().all(|(name, value)| value.is_some() == name.ends_with("@node0")), "{values:?}");
    let failure = sensor.failure().unwrap();
    assert_eq!(failure, format!("{FOLDER}/node2/numastat: no such file (and 2 more files)"));
    root.change(|t| {
        t.file(&format!("{FOLDER}/node2/numastat"), NUMASTAT)
            .file(&format!("{FOLDER}/node2/vmstat"), VMSTAT)
            .file(&format!("{FOLDER}/node2/meminfo"), meminfo(2, 77));
    });
    let back = (0..200).map(|_| read(&mut *sensor)).find(|v| v.values().all(Option::is_some));
    assert_eq!(back.unwrap()["node.MemFree@node2"], Some(77));
    assert_eq!(sensor.failure(), None);
}

#[test]
fn files_without_selected_series_are_not_read() {
    let root = machine();
    let mut sensor = sensor(&ENTRY, &root, &nodes(&[0, 2]));
    sensor.keep(&|s| s.name() == "node.MemFree@node2");
    assert_eq!(sensor.files(), 1);
    root.change(|t| _ = t.failing(&format!("{FOLDER}/node0/vmstat"), ErrorKind::PermissionDenied));
    assert_eq!(
        read(&mut *sensor).into_iter().collect::<Vec<_>>(),
        [("node.MemFree@node2".into(), Some(102))]
    );
    assert_eq!(sensor.failure(), None);
}

#[test]
fn a_node_with_fewer_files_has_fewer_series() {
    let root = machine();
    root.change(|t| _ = t.remove(&format!("{FOLDER}/node0/vmstat")));
    let sensor = sensor(&ENTRY, &root, &nodes(&[0, 2]));
    let of_node = |n| sensor.series().iter().filter(|s| s.instance == Instance::Node(n)).count();
    assert_eq!((of_node(0), of_node(2)), (9, 12));
}

#[test]
fn a_file_that_cannot_be_read_from_the_start_is_reported() {
    let root = machine();
    root.change(|t| _ = t.failing(&format!("{FOLDER}/node2/vmstat"), ErrorKind::PermissionDenied));
    let mut sensor = sensor(&ENTRY, &root, &nodes(&[0, 2]));
    assert!(read(&mut *sensor).values().all(Option::is_some));
    assert_eq!(sensor.failure().unwrap(), format!("{FOLDER}/node2/vmstat: permission denied"));
}

#[test]
fn without_nodes_there_is_a_reason() {
    let probe = |topology: &Topology| {
        (ENTRY.probe)(&crate::Scene::new(&machine(), topology)).err().unwrap().to_string()
    };
    let mut implicit = nodes(&[0]);
    implicit.nodes[0].implicit = true;
    for topology in [implicit, Topology::default()] {
        assert!(probe(&topology).contains("shows no node; boot a kernel that is built with CONFIG_NUMA"));
    }
    assert!(probe(&nodes(&[7])).contains("node7/numastat: no such file"));
}

#[test]
fn many_nodes_share_their_metrics() {
    let ids: Vec<u32> = (0..128).collect();
    let mut tree = numakit_sys::root::FileTree::new();
    for n in &ids {
        tree.file(&format!("{FOLDER}/node{n}/vmstat"), VMSTAT.replace("50", &(n * 3).to_string()));
    }
    let mut sensor = sensor(&ENTRY, &SysRoot::of_tree(tree), &nodes(&ids));
    assert_eq!(sensor.series().len(), 128 * 4);
    let metrics: HashSet<_> = sensor.series().iter().map(|s| Arc::as_ptr(&s.metric)).collect();
    assert_eq!(metrics.len(), 4);
    let values = read(&mut *sensor);
    assert!(ids.iter().all(|n| values[&format!("node.nr_free_pages@node{n}")] == Some(u64::from(n * 3))));
}
