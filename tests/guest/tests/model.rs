//! The simulator's model and cards without QEMU, and what the documents say of them.
#![allow(clippy::unwrap_used)]

use numakit_guest::Shape;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SIMULATOR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/simulator");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/simulated-machine.md");
const GUEST_PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/without-numa.md");

/// A fresh folder for one test.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

fn check_program(folder: &Path) -> PathBuf {
    let program = folder.join("check");
    let sources = ["test/check.c", "machine.c", "model.c", "flows.c", "cards.c"];
    let status = Command::new("cc")
        .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
        .arg(&program)
        .args(sources.map(|name| format!("{SIMULATOR}/{name}")))
        .status()
        .unwrap();
    assert!(status.success());
    program
}

/// Three nodes of 16 MiB, two CPUs on the first, a card on each.
fn machine_file(folder: &Path) -> PathBuf {
    let mut text = String::new();
    for node in 0..3 {
        let card = folder.join(format!("card{node}"));
        fs::write(&card, vec![0; 1 << 20]).unwrap();
        text += &format!("node {node} {} {}\n", 16 << 20, card.display());
    }
    text += "cpu 0 0\ncpu 1 0\ncpu 2 1\ncpu 3 2\n";
    let path = folder.join("machine");
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn the_model_and_the_cards_do_what_they_should() {
    let folder = folder("model");
    let output = Command::new(check_program(&folder)).arg(machine_file(&folder)).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("ok ")).count(), 49, "{text}");
}

#[test]
fn a_machine_that_cannot_be_simulated_is_refused_in_words() {
    let folder = folder("refused");
    let program = check_program(&folder);
    let cases = [
        ("", "has 0 nodes and 0 CPUs"),
        ("node 0 16777216\n", "1 nodes and 0 CPUs"),
        ("node 1 16777216\n", "not a line of a machine: node 1 16777216"),
        ("node 0 16777216\ncpu 0 3\n", "not a line of a machine: cpu 0 3"),
        ("node 0 16777216\ncpu 0 0\ndistance 0 0 5\n", "not a line of a machine: distance 0 0 5"),
        ("node 0 4294967296\ncpu 0 0\n", "at most 3071 MiB"),
        ("node 0 16777216 /nowhere/card\ncpu 0 0\n", "cannot map the card of node 0: /nowhere/card"),
    ];
    for (text, message) in cases {
        let path = folder.join("machine");
        fs::write(&path, text).unwrap();
        let output = Command::new(&program).arg(&path).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(said.contains(message), "{text}: {said}");
    }
}

/// The rows of a table of the guide between two comments, cells without blanks around them.
fn table(name: &str) -> Vec<Vec<String>> {
    let page = fs::read_to_string(PAGE).unwrap();
    let (_, rest) = page.split_once(&format!("<!-- {name} -->")).unwrap();
    let (table, _) = rest.split_once(&format!("<!-- /{name} -->")).unwrap();
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

#[test]
fn the_guide_lists_every_counter_that_the_model_feeds() {
    let source = fs::read_to_string(format!("{SIMULATOR}/flows.c")).unwrap();
    let fed: Vec<_> = source.split("{0x").skip(1).filter_map(|row| row.split_once(", FLOW")).collect();
    let fed: Vec<_> = fed.into_iter().map(|(offset, _)| format!("0x{offset}")).collect();
    let mut told: Vec<_> = table("flows").into_iter().map(|row| row[1].clone()).collect();
    assert_eq!(told.pop().unwrap(), "0x398 to 0x470");
    assert_eq!(told.remove(0), "0x000");
    assert_eq!(fed, told);
}

#[test]
fn the_guide_has_the_sizes_of_the_model() {
    let source = fs::read_to_string(format!("{SIMULATOR}/model.h")).unwrap();
    let value = |name: &str| {
        let (_, rest) = source.split_once(&format!("{name} = ")).unwrap();
        rest.split([',', '\n']).next().unwrap().trim().to_owned()
    };
    let rows = table("model");
    let text = |part: &str| &rows.iter().find(|row| row[0].starts_with(part)).unwrap()[1];
    assert_eq!(value("PRIVATE_BYTES"), "128 << 10");
    assert!(text("private cache").starts_with(&format!("128 KiB, {} ways", value("PRIVATE_WAYS"))));
    assert_eq!(value("NODE_BYTES"), "512 << 10");
    assert!(text("cache of a node").starts_with(&format!("512 KiB, {} ways", value("NODE_WAYS"))));
    assert!(text("wait in").starts_with(&format!("{} cycles", value("NODE_CACHE_WAIT"))));
    assert!(text("wait for").starts_with(&format!("{} cycles", value("MEMORY_WAIT"))));
}

#[test]
fn the_guide_lists_every_shape() {
    let page = fs::read_to_string(GUEST_PAGE).unwrap();
    let row = |shape: &Shape| {
        let (nodes, cpus, mib) = (shape.nodes.len(), shape.cpus(), shape.memory_mib());
        format!("| `{}` | {nodes} | {cpus} | {mib} MiB | {} |", shape.name, shape.about)
    };
    let rows: Vec<String> = Shape::all().unwrap().iter().map(row).collect();
    let told: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(told, rows);
}
