//! The machine as text and as a drawing, for machines of every kind.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_model::Topology;
use numakit_sys::SysRoot;
use numakit_terminal::topology::{TreeStyle, hardware, svg, tree};
use numakit_topology::{json, synthetic};
use std::path::PathBuf;
use std::process::Command;

const SOCKETS: &str =
    "package:2 node:1(mem=64G) l3:1(size=32M) core:4(l1=48K,l2=2M) pu:2 numbering=interleaved network@node1";
const DIES: &str = "package:2 die:2 node:1(mem=8G) l3:2(size=16M) core:2 pu:1";
const BOARDS: &str = "board:6 package:3 node:2(mem=32G) core:8 dist=10/16/100";
const FAR: &str = "package:2 node:1(mem=64G) core:4 pu:2 node:2(cpuless,mem=256G) offline=3,7-9 allowed=0-11 numbering=sequential";
const UNITS: &str = "package:2 node:2(mem=16G) l3:1(size=6M) unit:4 core:2(l1=16K) dist=10/16/22";
const LARGE: &str = "board:8 package:4 node:4(mem=16G) l3:1 core:16 pu:2 dist=10/14/100";
const RING: &str = "package:64 node:2(mem=16G) l3:1 core:16(l1=32K,l2=1M) pu:2 dist=10/12/32";

fn machine(description: &str) -> Topology {
    synthetic::parse(description).unwrap_or_else(|error| panic!("{error}"))
}

fn golden_folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/topology"))
}

fn from_file(name: &str) -> Topology {
    json::parse(&std::fs::read_to_string(golden_folder().join(name)).unwrap()).unwrap()
}

/// Compares with a file, or writes it when UPDATE=1 is set.
fn golden(name: &str, text: &str) {
    let path = golden_folder().join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{name}; UPDATE=1 writes it");
}

fn plain(t: &Topology) -> String {
    tree(t, TreeStyle { color: false, width: 100 })
}

#[test]
fn trees() {
    golden("sockets.tree", &plain(&machine(SOCKETS)));
    golden("dies.tree", &plain(&machine(DIES)));
    golden("boards.tree", &plain(&machine(BOARDS)));
    golden("far.tree", &plain(&machine(FAR)));
    golden("units.tree", &plain(&machine(UNITS)));
    golden("tiers.tree", &plain(&from_file("tiers.json")));
    golden("hybrid.tree", &plain(&from_file("hybrid.json")));
}

/// Two packages whose CPUs list different caches, L1, L2 or both, though they share them.
#[test]
fn every_cache_that_a_cpu_lists_is_in_the_tree() {
    let Some(archive) = numakit_captures::case("sound-asymcaches.tar.bz2") else { return };
    golden("uneven-caches.tree", &plain(&numakit_topology::read(&SysRoot::open(&archive).unwrap()).unwrap()));
}

#[test]
fn trees_fit_the_screen() {
    for description in [SOCKETS, DIES, BOARDS, FAR, UNITS, LARGE, RING] {
        for line in plain(&machine(description)).lines() {
            assert!(line.chars().count() <= 100, "{description}: {line}");
        }
    }
}

#[test]
fn colour_changes_only_colour() {
    let coloured = tree(&machine(SOCKETS), TreeStyle { color: true, width: 100 });
    assert!(coloured.contains("\x1b[1mpackage 0\x1b[0m"));
    assert_eq!(coloured.replace("\x1b[1m", "").replace("\x1b[0m", ""), plain(&machine(SOCKETS)));
}

#[test]
fn what_this_process_may_not_use_is_grey() {
    let mut t = machine(SOCKETS);
    let first = t.packages[0].cpus.clone();
    t.allowed = t.allowed.minus(&first);
    let coloured = tree(&t, TreeStyle { color: true, width: 100 });
    assert!(coloured.contains("\x1b[90mpackage 0  "), "{coloured}");
    assert!(coloured.contains("\x1b[1mpackage 1\x1b[0m"), "{coloured}");
}

#[test]
fn a_matrix_too_wide_for_the_screen_is_cut_into_blocks() {
    let mut t = machine("node:24 core:1");
    // All nodes differ, so that rows cannot be merged.
    let rows = &mut t.distances.as_mut().unwrap().rows;
    for (from, row) in rows.iter_mut().enumerate() {
        for (to, value) in row.iter_mut().enumerate() {
            *value = 10 + from.abs_diff(to) as u32;
        }
    }
    let text = plain(&t);
    let matrix = &text[text.find("distances").unwrap()..];
    assert_eq!(matrix.lines().filter(|line| line.starts_with("  node")).count(), 2);
    assert!(matrix.lines().all(|line| line.len() <= 100));
}

#[test]
fn numactl_format() {
    golden("sockets.hardware", &hardware(&machine(SOCKETS)));
    golden("tiers.hardware", &hardware(&from_file("tiers.json")));
    golden("hybrid.hardware", &hardware(&from_file("hybrid.json")));
    golden("boards.hardware", &hardware(&machine(BOARDS)));
}

/// The lines that scripts parse.
#[test]
fn numactl_format_keeps_its_order() {
    let text = hardware(&machine(FAR));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "available: 4 nodes (0-3)");
    for node in 0..4 {
        let at = 1 + 3 * node;
        assert!(lines[at].starts_with(&format!("node {node} cpus:")));
        assert!(lines[at + 1].starts_with(&format!("node {node} size: ")) && lines[at + 1].ends_with(" MB"));
        assert!(lines[at + 2].starts_with(&format!("node {node} free: ")));
    }
    let last = lines.iter().rfind(|line| line.starts_with("node")).unwrap();
    assert_eq!(*last, "node   0   1   2   3 ");
}

#[test]
fn numactl_prints_the_same() {
    let Ok(output) = Command::new("numactl").arg("--hardware").output() else {
        numakit_skips::TOOLS.skip("numactl is not installed");
        return;
    };
    let expected = String::from_utf8(output.stdout).unwrap();
    if !output.status.success() || !expected.starts_with("available") {
        numakit_skips::MACHINE.skip(format_args!("numactl shows no NUMA machine here: {expected}"));
        return;
    }
    // Memory may change between the two.
    let steady = |text: &str| -> String {
        let mask = |line: &str| match line.split_once(" size: ").or(line.split_once(" free: ")) {
            Some((node, _)) => format!("{node} MB\n"),
            None => format!("{line}\n"),
        };
        text.lines().map(mask).collect()
    };
    let printed = hardware(&numakit_topology::read(&SysRoot::host()).unwrap());
    assert_eq!(steady(&printed), steady(&expected));
}

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[test]
fn drawings_are_well_formed_and_of_reasonable_size() {
    let files = ["tiers.json", "hybrid.json"].map(from_file);
    let described =
        [SOCKETS, DIES, BOARDS, FAR, UNITS, LARGE, RING, "node:1500", "node:1 core:20000"].map(machine);
    for t in files.iter().chain(&described) {
        let drawing = svg(t);
        assert!(drawing.starts_with("<svg xmlns") && drawing.ends_with("</svg>\n"));
        for tag in ["g", "text"] {
            assert_eq!(count(&drawing, &format!("<{tag} ")), count(&drawing, &format!("</{tag}>")), "{tag}");
        }
        assert_eq!(count(&drawing, "\"") % 2, 0);
        assert!(!drawing.contains("NaN") && !drawing.contains("inf"));
        let limit = if t.nodes.len() > 1000 { 16 << 20 } else { 800 << 10 };
        assert!(drawing.len() < limit, "{}: {} bytes", t.origin, drawing.len());
    }
}

#[test]
fn drawings_show_every_part() {
    let drawing = svg(&machine(FAR));
    for words in ["package 1", "node 3", "256 GiB", "no CPUs", "offline", "not allowed", "distances"] {
        assert!(drawing.contains(words), "{words}");
    }
    // PUs and the legend's square of each kind.
    assert_eq!(count(&drawing, "class=\"pu\""), 12 - 5 + 1 + 1);
    assert_eq!(count(&drawing, "class=\"shut\""), 4 + 1);
    // And the box of offline PUs.
    assert_eq!(count(&drawing, "class=\"off\""), 4 + 1 + 1);
    let large = svg(&machine(LARGE));
    assert!((0..128).all(|node| large.contains(&format!(">node {node}<"))));
    assert!(large.contains(">10/14<") && large.contains(">112-127<"));
}

#[test]
fn interleave_weights_are_shown_if_they_differ() {
    let mut t = machine("package:2 node:1 core:2");
    t.nodes.iter_mut().for_each(|node| node.interleave_weight = Some(1));
    assert!(!plain(&t).contains("interleaving"));
    t.nodes[0].interleave_weight = Some(5);
    assert!(plain(&t).contains("├─ 5 pages in a row in weighted interleaving\n"), "{}", plain(&t));
}

#[test]
fn drawings_show_shared_units() {
    let drawing = svg(&machine(UNITS));
    assert_eq!((count(&drawing, ">unit<"), count(&drawing, ">L2 2 MiB<")), (16, 16));
}

#[test]
fn names_are_escaped() {
    let t = Topology { origin: "capture <&>".to_owned(), ..machine("node:1") };
    let drawing = svg(&t);
    assert!(drawing.contains("capture &lt;&amp;&gt;") && !drawing.contains("<&>"));
}
