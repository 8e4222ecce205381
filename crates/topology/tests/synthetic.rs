//! Descriptions, and the machines that they describe.
#![allow(clippy::unwrap_used)]

use numakit_model::{CpuSet, Topology};
use numakit_sys::SysRoot;
use numakit_testing::sysfs;
use numakit_topology::{json, read, synthetic};
use proptest::prelude::*;

fn machine(description: &str) -> Topology {
    synthetic::parse(description).unwrap_or_else(|error| panic!("{error}"))
}

fn cpus(sets: impl IntoIterator<Item = CpuSet>) -> Vec<String> {
    sets.into_iter().map(|set| set.to_string()).collect()
}

fn rows(description: &str) -> Vec<Vec<u32>> {
    machine(description).distances.unwrap().rows
}

fn boards(description: &str) -> Vec<String> {
    cpus(machine(description).boards)
}

/// Writes it as files in memory and reads those.
fn reread(topology: &Topology) -> Topology {
    let tree = sysfs::tree(topology);
    let copy = read(&SysRoot::of_tree(tree)).unwrap();
    Topology { origin: topology.origin.clone(), notes: topology.notes.clone(), ..copy }
}

const MACHINES: [&str; 10] = [
    "pu:1",
    "package:2 node:2 core:4 pu:2",
    "board:6 package:3 node:2(mem=32G) core:8 dist=10/16/100",
    "package:2 node:1(mem=64G) core:4(l1=48K,l2=2M) pu:2 node:2(cpuless,mem=64G)",
    "package:2 die:2 l3:1(size=16M) node:2 l2:2 core:2 pu:2 numbering=interleaved",
    "node:4(mem=0) core:3 numbering=roundrobin",
    "node:2 package:2 core:2 offline=1,4-5 allowed=0,6",
    "package:2 node:2 core:2 network@node3 pci@node0 storage@node1",
    "node:2(mem=1G) core:2 node:3(cpuless,mem=2T,far=30) dist=10/20",
    "board:2 package:2 node:1 core:2 pu:4 dist=10/16/100 numbering=roundrobin",
];

#[test]
fn parts_nest_in_tree_order() {
    let t = machine("package:2 node:2 core:4 pu:2");
    assert_eq!((t.packages.len(), t.nodes.len(), t.cores.len(), t.online.len()), (2, 4, 16, 32));
    assert_eq!(
        cpus(t.nodes.iter().map(|n| n.cpus.clone())),
        ["0-3,16-19", "4-7,20-23", "8-11,24-27", "12-15,28-31"]
    );
    assert_eq!(t.cores[1].cpus.to_string(), "1,17");
    assert_eq!(t.nodes[0].memory_kb, Some(16 << 20));
    assert_eq!(t.origin, "synthetic package:2 node:2 core:4 pu:2");
}

#[test]
fn parts_that_are_left_out() {
    let t = machine("core:4");
    assert_eq!((t.packages.len(), t.nodes.len(), t.cores.len()), (1, 1, 4));
    // Without packages in the description, each node is one.
    assert_eq!(machine("node:4 core:2").packages.len(), 4);
    let t = machine("board:2 core:2");
    assert_eq!((t.nodes.len(), t.packages.len()), (2, 2));
    assert_eq!(machine("package:4").nodes.len(), 1);
    assert_eq!(machine("package:2 pu:4").cores.len(), 2);
}

#[test]
fn numberings() {
    let first = |description: &str| cpus(machine(description).cores.into_iter().map(|c| c.cpus));
    let package = |description: &str| machine(description).packages[0].cpus.to_string();
    let shape = "package:2 core:2 pu:2";
    assert_eq!(first(&format!("{shape} numbering=sequential")), ["0-1", "2-3", "4-5", "6-7"]);
    assert_eq!(first(shape), ["0,4", "1,5", "2,6", "3,7"]);
    assert_eq!(first(&format!("{shape} numbering=interleaved")), ["0,4", "1,5", "2,6", "3,7"]);
    assert_eq!(package(&format!("{shape} numbering=interleaved")), "0-1,4-5");
    assert_eq!(first(&format!("{shape} numbering=roundrobin")), ["0,4", "1,5", "2,6", "3,7"]);
    assert_eq!(package(&format!("{shape} numbering=roundrobin")), "0,2,4,6");
}

#[test]
fn the_assumed_numbering_is_said_where_it_matters() {
    let [note] = &machine("package:2 core:2 pu:2").notes[..] else { panic!() };
    assert!(
        note.contains("core 0 is CPUs 0,4;") && note.contains("CPUs 0-1: numbering=sequential"),
        "{note}"
    );
    for stated in
        ["package:2 core:2", "core:4 pu:2 numbering=sequential", "core:4 pu:2 numbering=interleaved"]
    {
        assert_eq!(machine(stated).notes, Vec::<String>::new(), "{stated}");
    }
}

#[test]
fn processes_on_two_packages_share_no_core() {
    // Two processes of 128 threads on machines of 128 cores a package; CPU c is a thread of core c % 256.
    let t = machine("package:2 node:1(mem=768G) l3:16(size=32M) core:8(l1=48K,l2=1M) pu:2");
    let cores = |node: usize| t.nodes[node].cpus.iter().map(|cpu| cpu % 256).collect::<CpuSet>();
    assert_eq!((cores(0).to_string(), cores(1).to_string()), ("0-127".into(), "128-255".into()));
}

#[test]
fn distances_are_given_from_the_inside_out() {
    assert_eq!(rows("node:2"), [[10, 20], [20, 10]]);
    assert_eq!(rows("node:2 dist=10/21"), [[10, 21], [21, 10]]);
    let row = |description: &str| rows(description)[0].clone();
    assert_eq!(row("package:2 node:2 dist=10/12/32"), [10, 12, 32, 32]);
    // Fewer values than steps: the inner steps share the first remote one.
    assert_eq!(row("board:2 package:2 node:2 dist=10/16/100"), [10, 16, 16, 16, 100, 100, 100, 100]);
    assert_eq!(row("board:2 package:2 node:2 dist=10/12/16/100"), [10, 12, 16, 16, 100, 100, 100, 100]);
    assert_eq!(row("board:2 package:2 node:2"), [10, 20, 20, 20, 100, 100, 100, 100]);
    assert_eq!(row("node:2 dist=10"), [10, 10]);
}

#[test]
fn nodes_without_cpus_belong_to_a_package() {
    // As the firmware of an emulated machine shows it: two packages of two nodes with one far node each.
    let t = machine("package:2 node:2(mem=512M) core:1 node:2(cpuless,mem=1G) dist=10/20/40");
    let expected = [
        [10, 20, 40, 40, 30, 50],
        [20, 10, 40, 40, 30, 50],
        [40, 40, 10, 20, 50, 30],
        [40, 40, 20, 10, 50, 30],
        [30, 30, 50, 50, 10, 60],
        [50, 50, 30, 30, 60, 10],
    ];
    assert_eq!(t.distances.unwrap().rows, expected);
    assert!(t.nodes[4].cpus.is_empty() && t.nodes[5].cpus.is_empty());
    assert_eq!((t.nodes[0].memory_kb, t.nodes[4].memory_kb), (Some(512 << 10), Some(1 << 20)));
    assert_eq!(rows("core:4 node(cpuless,mem=64G,far=4)"), [[10, 14], [14, 10]]);
}

#[test]
fn boards_follow_from_distances() {
    let six = boards("board:6 package:3 node:2(mem=32G) core:8 dist=10/16/100");
    assert_eq!(six, ["0-5", "6-11", "12-17", "18-23", "24-29", "30-35"]);
    assert_eq!(boards("package:2 node:2 core:2 dist=10/16/100"), ["0-1", "2-3"]);
    assert_eq!(boards("board:2 package:2 node:1 core:2 dist=10/16/100"), ["0-1", "2-3"]);
    assert_eq!(boards("board:2 node:2 core:2 dist=10/16/100"), ["0-1", "2-3"]);
    for flat in ["package:2 node:2 dist=10/20", "node:8 dist=10/20", "node:2 dist=10/100", "node:1"] {
        assert_eq!(boards(flat), Vec::<String>::new(), "{flat}");
    }
    // Nodes inside packages are near each other without being boards.
    assert_eq!(boards("package:2 node:4 dist=10/12/32"), Vec::<String>::new());
    assert_eq!(boards("package:2 node:2 dist=10/11/21"), Vec::<String>::new());
    // Memory without CPUs joins the nearest board and is no board itself.
    assert_eq!(boards("board:2 node:2 core:1 node:2(cpuless,mem=1G) dist=10/16/100"), ["0-1,4", "2-3,5"]);
    assert_eq!(boards("node:2 core:1 node:2(cpuless,mem=1G,far=90) dist=10/20"), Vec::<String>::new());
}

#[test]
fn offline_allowed_and_devices() {
    let t = machine("node:2 core:4 offline=4-7 allowed=0-1 network@node1");
    assert_eq!(
        (t.online.to_string(), t.offline.to_string(), t.allowed.to_string()),
        ("0-3".into(), "4-7".into(), "0-1".into())
    );
    assert_eq!((t.nodes.len(), t.packages.len(), t.cores.len()), (2, 1, 4));
    assert_eq!((t.devices[0].class.as_str(), t.devices[0].node), ("network", Some(1)));
}

#[test]
fn mistakes_are_pointed_at() {
    let cases = [
        ("", 0, "no level"),
        ("package:2 nod:2", 10, "did you mean 'node'?"),
        ("package:x", 8, "write package:N"),
        ("package:0", 8, "write package:N"),
        ("node:2(mem=32Q)", 7, "mem=32K"),
        ("node:2(mem)", 7, "mem=32K"),
        ("node:2(size=1G)", 7, "a node can have"),
        ("package:2(mem=1G)", 10, "attributes"),
        ("node:2(mem=1G", 6, "write (NAME=VALUE"),
        ("core:2 package:2", 7, "put 'package' before 'core'"),
        ("pu:2 core:2", 5, "put 'core' before 'pu'"),
        ("node:2 node:3", 7, "once"),
        ("node:2 dist=10/x", 15, "1 to 255"),
        ("node:2 dist=10/20/30", 12, "at most 2"),
        ("node:2 pci@node2", 7, "0 to 1"),
        ("node:2 pci@socket0", 11, "pci@node0"),
        ("node:2 usb@node0", 7, "devices are"),
        ("node:2 numbering=random", 17, "roundrobin"),
        ("node:2 offline=0-1", 15, "fewer CPUs"),
        ("node:2 allowed=5", 15, "name some of"),
        ("node:2 allowed=3-1", 15, "0-3,8"),
        ("node:4097", 0, "at most 4096 nodes"),
        ("node:4096 core:16 pu:2", 18, "at most 65536 CPUs"),
        ("core:1 node:5000(cpuless)", 7, "at most 4096 nodes"),
        ("core:65537", 5, "from 1 to 65536"),
        ("é:2", 0, "levels are"),
    ];
    for (description, at, fix) in cases {
        let error = synthetic::parse(description).expect_err(description);
        assert_eq!(error.at(), at, "{error}");
        assert!(error.to_string().contains(fix), "{error}");
    }
    let shown = synthetic::parse("package:2 nod:2").unwrap_err().to_string();
    assert_eq!(
        shown,
        "'nod' is unknown at column 11\n  package:2 nod:2\n            ^\ndid you mean 'node'?"
    );
}

#[test]
fn files_and_json_give_the_same_machine() {
    for description in MACHINES {
        let t = machine(description);
        assert_eq!(reread(&t), t, "{description}");
        assert_eq!(json::parse(&json::text(&t)).unwrap(), t, "{description}");
    }
}

#[test]
fn a_directory_gives_the_same_machine() {
    let t = machine(MACHINES[2]);
    let folder = std::env::temp_dir().join(format!("numakit-fabricated-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    sysfs::write(&sysfs::tree(&t), &folder).unwrap();
    let copy = read(&SysRoot::open(&folder).unwrap()).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(Topology { origin: t.origin.clone(), notes: t.notes.clone(), ..copy }, t);
}

#[test]
fn json_by_hand_is_completed() {
    let t = json::parse(r#"{"nodes": [{"os_index": 0, "cpus": "0-3"}, {"os_index": 2, "cpus": ""}], "distances": [[10, 20], [20, 10]]}"#)
        .unwrap();
    assert_eq!((t.online.to_string(), t.allowed.to_string(), t.cores.len()), ("0-3".into(), "0-3".into(), 4));
    assert_eq!((t.allowed_nodes.to_string(), t.page_size), ("0,2".into(), 4096));
    assert_eq!(t.distances.unwrap().between(0, 2), Some(20));
}

#[test]
fn json_that_contradicts_itself_is_refused() {
    let cases = [
        ("5", "does not describe a machine"),
        ("{}", "there are no nodes"),
        (r#"{"nodes": [{"os_index": 0}]}"#, "no CPU is online"),
        (r#"{"nodes": [{"os_index": 0, "cpus": "0-99999"}]}"#, "beyond 65535"),
        (r#"{"nodes": [{"os_index": 1, "cpus": "0"}, {"os_index": 0}]}"#, "ascending order"),
        (r#"{"nodes": [{"os_index": 0, "cpus": "0"}], "distances": [[10, 20]]}"#, "give one per node"),
        (r#"{"nodes": [{"os_index": 0, "cpus": "0"}], "distances": []}"#, "one row per node"),
        (r#"{"online": "0", "nodes": [{"os_index": 0, "cpus": "0-1"}]}"#, "not in \"online\""),
        (
            r#"{"nodes": [{"os_index": 0, "cpus": "0"}], "core_list": [{"cpus": "0"}, {"cpus": "0"}]}"#,
            "one core",
        ),
        (r#"{"nodes": [{"os_index": 0, "cpus": "0"}], "core_list": [{"cpus": "0", "kind": 1}]}"#, "kinds"),
        (
            r#"{"nodes": [{"os_index": 0, "cpus": "0"}], "devices": [{"name": "x", "node": 4}]}"#,
            "does not exist",
        ),
        (r#"{"schema": 99}"#, "newer numa"),
    ];
    for (text, words) in cases {
        let error = json::parse(text).expect_err(text).to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn what_is_in_json() {
    let text = json::text(&machine("package:2 node:1(mem=1G) core:2 pu:2 allowed=0-3 numbering=sequential"));
    assert!(text.starts_with("{\n  \"schema\": 1,\n  \"origin\": \"synthetic package:2"), "{text}");
    assert!(
        text.contains("\n  \"distances\": [\n    [10, 20],\n    [20, 10]\n  ],\n  \"boards\": [],\n"),
        "{text}"
    );
    assert!(
        text.contains("\n    {\"os_index\": 1, \"cpus\": \"4-7\"}\n  ],\n") && text.ends_with("]\n}\n"),
        "{text}"
    );
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&value["cores"], &value["pus"]), (&4.into(), &8.into()));
    assert_eq!(value["core_list"].as_array().unwrap().len(), 4);
    let pus = value["pu_list"].as_array().unwrap();
    assert_eq!(
        pus[5],
        serde_json::json!({"os_index": 5, "node": 1, "package": 1, "core": 2, "allowed": false})
    );
    assert_eq!(value["not_allowed"], "4-7");
    assert_eq!(value["distances"], serde_json::json!([[10, 20], [20, 10]]));
}

proptest! {
    #[test]
    fn any_description_that_is_understood_is_read_back(
        board in 1u32..3, package in 1u32..4, node in 1u32..4, core in 1u32..4, pu in 1u32..4,
        numbering in prop::sample::select(vec!["sequential", "interleaved", "roundrobin"]),
    ) {
        let t = machine(&format!("board:{board} package:{package} node:{node} core:{core} pu:{pu} numbering={numbering}"));
        let total = board * package * node * core * pu;
        prop_assert_eq!(t.online.len() as u32, total);
        // Every CPU is in one core, one node and one package.
        prop_assert_eq!(t.cores.iter().map(|c| c.cpus.len()).sum::<usize>() as u32, total);
        prop_assert_eq!(t.nodes.iter().map(|n| n.cpus.len()).sum::<usize>() as u32, total);
        prop_assert_eq!(reread(&t), t);
    }

    #[test]
    fn no_text_breaks_the_parser(text in "(board|package|node|core|pu|dist|pci|l3|[:=@(),/0-9a-z ]){0,12}") {
        if let Ok(t) = synthetic::parse(&text) {
            prop_assert!(t.online.len() <= 65_536 && t.nodes.len() <= 4096);
        }
    }
}
