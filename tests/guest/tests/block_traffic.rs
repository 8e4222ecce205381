//! What it is worth that blocks belong to nodes: lines that go between the nodes with libnumalloc, beside the allocators of
//! others, where the threads of a program begin and end, and where they stay.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::runtimes::{Allocator, allocators};
use numakit_guest::{Boot, Failure, Guest, Lines, Shape, Simulation, or_skipped, programs};
use std::sync::LazyLock;
use std::time::Duration;

/// With six generations of threads, and with one.
const KINDS: [(&str, &str); 4] = [
    ("pairs", "blocks pairs"),
    ("mesh", "blocks mesh"),
    ("lasting pairs", "blocks pairs 1 6"),
    ("lasting mesh", "blocks mesh 1 6"),
];
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
    for (kind, command) in KINDS {
        for Allocator { name, preload, .. } in all {
            let command = format!("LD_PRELOAD={preload} {command}");
            guest = guest.step(&format!("{kind} {name}"), &["sh", "-c", &command]);
        }
    }
    guest.boot()
});

/// What was counted with each allocator; nothing where the test is skipped.
fn counted(kind: &str) -> Option<Vec<(&'static str, &'static Lines)>> {
    let boot = or_skipped(&BOOT)?;
    let names: Vec<&str> = ALLOCATORS.as_ref().unwrap().iter().map(|allocator| allocator.name).collect();
    let each = &boot.traffic.as_ref().unwrap().each;
    assert_eq!(each.len(), KINDS.len() * names.len());
    let first = KINDS.iter().position(|(known, _)| *known == kind).unwrap() * names.len();
    for name in &names {
        let step = &boot[format!("{kind} {name}").as_str()];
        step.succeeded();
        assert_eq!(step.errors(), "", "{name}");
    }
    Some(names.into_iter().zip(&each[first..]).collect())
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

/// How many times more lines left their node with mimalloc than with ours; nothing where there is none of them.
fn compared(kind: &str) -> Option<f64> {
    let counted = counted(kind)?;
    print(kind, &counted);
    let remote = |lines: &Lines| lines.local_and_remote().1 as f64;
    let (ours, ours_lines) = counted[0];
    assert_eq!(ours, "libnumalloc");
    let (local, left) = ours_lines.local_and_remote();
    assert!(left * 20 < local, "{kind}: {left} of {local}");
    for (name, lines) in &counted[1..] {
        let ratio = remote(lines) / remote(ours_lines);
        println!("{kind}, {name}: {ratio:.1} times the lines leave their node");
    }
    let Some(mimalloc) = counted.iter().find(|(name, _)| *name == "mimalloc") else {
        numakit_skips::RUNTIMES.skip_part(format_args!("{kind}: no mimalloc here to compare with"));
        return None;
    };
    Some(remote(mimalloc.1) / remote(ours_lines))
}

#[test]
#[ignore = "thorough: 16 programs in the simulator, 4 minutes"]
fn producers_and_consumers_of_a_node_have_objects_of_it() {
    let Some(ratio) = compared("pairs") else { return };
    assert!(ratio >= 5.0, "{ratio}");
}

#[test]
#[ignore = "thorough: 16 programs in the simulator, 4 minutes"]
fn an_adaptive_mesh_stays_on_its_nodes() {
    let Some(ratio) = compared("mesh") else { return };
    assert!(ratio >= 5.0, "{ratio}");
}

/// A thread that never ends has its own blocks again with every allocator; ours must not be worse.
#[test]
#[ignore = "thorough: 16 programs in the simulator, 4 minutes"]
fn threads_that_last_have_no_more_remote_lines_than_with_others() {
    for kind in ["lasting pairs", "lasting mesh"] {
        let Some(ratio) = compared(kind) else { return };
        assert!(ratio >= 0.8, "{kind}: {ratio}");
    }
}
