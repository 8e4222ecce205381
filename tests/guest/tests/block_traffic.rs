//! What it is worth that blocks belong to nodes: lines that go between the nodes with libnumalloc, beside the allocators of
//! others, where the threads of a program begin and end.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::runtimes::{Allocator, allocators};
use numakit_guest::{Boot, Failure, Guest, Lines, Shape, Simulation, or_skipped, programs};
use std::sync::LazyLock;
use std::time::Duration;

const KINDS: [&str; 2] = ["pairs", "mesh"];
const REPEATS: usize = 3;
const SETUP: &str = "echo never > /sys/kernel/mm/transparent_hugepage/enabled";

static ALLOCATORS: LazyLock<Result<Vec<Allocator>, Failure>> = LazyLock::new(allocators);

static BOOT: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| {
    let all = ALLOCATORS.as_ref().map_err(|failure| Failure::Request(failure.to_string()))?;
    let mut guest = Guest::new(Shape::named("four")?)
        .simulate(Simulation::new())
        .program(&programs::compiled("blocks")?.unwrap())
        .timeout(Duration::from_secs(900))
        .step("setup", &["sh", "-c", SETUP]);
    for Allocator { files, .. } in all {
        guest = files.put_into(guest);
    }
    for kind in KINDS {
        for Allocator { name, preload, .. } in all {
            for repeat in 0..REPEATS {
                let command = format!("LD_PRELOAD={preload} blocks {kind}");
                guest = guest.step(&format!("{kind} {name} {repeat}"), &["sh", "-c", &command]);
            }
        }
    }
    guest.boot()
});

/// Of the repeats the one with the median of lines that left their node, for each allocator; nothing where the test is
/// skipped.
fn counted(kind: &str) -> Option<Vec<(&'static str, &'static Lines)>> {
    let boot = or_skipped(&BOOT)?;
    let names: Vec<&str> = ALLOCATORS.as_ref().unwrap().iter().map(|allocator| allocator.name).collect();
    let each = &boot.traffic.as_ref().unwrap().each;
    assert_eq!(each.len(), KINDS.len() * names.len() * REPEATS);
    let first = KINDS.iter().position(|known| *known == kind).unwrap() * names.len();
    let of = |(at, name): (usize, &&'static str)| {
        for repeat in 0..REPEATS {
            let step = &boot[format!("{kind} {name} {repeat}").as_str()];
            step.succeeded();
            assert_eq!(step.errors(), "", "{name}");
        }
        let from = (first + at) * REPEATS;
        let mut lines: Vec<&Lines> = each[from..from + REPEATS].iter().collect();
        lines.sort_by_key(|lines| lines.local_and_remote().1);
        (*name, lines[REPEATS / 2])
    };
    Some(names.iter().enumerate().map(of).collect())
}

/// Lines that a node's CPUs got from memory and caches of each node.
fn row(lines: &Lines, from: usize) -> Vec<u64> {
    lines.fetches[from].iter().zip(&lines.transfers[from]).map(|(fetched, passed)| fetched + passed).collect()
}

fn print(kind: &str, counted: &[(&str, &Lines)]) {
    println!("{kind}: lines that CPUs of a node (rows) got from each node (columns)");
    for (name, lines) in counted {
        let (local, remote) = lines.local_and_remote();
        println!("{name:<12} {local:>9} local, {remote:>8} remote");
        for from in 0..lines.fetches.len() {
            let cells: String = row(lines, from).iter().map(|count| format!("{count:>10}")).collect();
            println!("  node {from} {cells}");
        }
    }
}

/// How many times more lines left their node with the other allocator than with ours, at least.
fn compare(kind: &str, least: f64) {
    let Some(counted) = counted(kind) else { return };
    print(kind, &counted);
    let remote = |lines: &Lines| lines.local_and_remote().1 as f64;
    let (ours, ours_lines) = counted[0];
    assert_eq!(ours, "libnumalloc");
    for (name, lines) in &counted[1..] {
        let ratio = remote(lines) / remote(ours_lines);
        println!("{kind}, {name}: {ratio:.1} times more lines leave their node");
        assert!(*name != "mimalloc" || ratio >= least, "{kind}: {ratio}");
    }
}

#[test]
fn producers_and_consumers_of_a_node_have_objects_of_it() {
    compare("pairs", 5.0);
}

#[test]
fn an_adaptive_mesh_stays_on_its_nodes() {
    compare("mesh", 5.0);
}
