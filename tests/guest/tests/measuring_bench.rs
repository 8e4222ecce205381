//! Whether `numa bench` touches the pairs of nodes that it claims, by what the simulator counts.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::{Boot, Failure, Guest, Lines, Shape, Simulation, or_skipped, programs};
use serde_json::Value;
use std::sync::LazyLock;
use std::time::Duration;

/// Step, what `numa bench` is asked for, and the nodes with the CPUs and with the memory that it should use.
const STEPS: [(&str, &str, &[usize], &[usize]); 5] = [
    ("latency of a node", "latency --nodes 1", &[1], &[1]),
    ("latency of a CPU", "latency --cpus 4", &[2], &[0, 1, 2, 3]),
    ("curve of a node", "curve --nodes 2", &[2], &[2]),
    ("bandwidth of a CPU", "bandwidth --cpus 6-7", &[3], &[0, 1, 2, 3]),
    ("bandwidth of two nodes", "bandwidth --nodes 0,3", &[0, 3], &[0, 3]),
];
/// What is counted of a run that measures nothing: starting numa, and reading the topology.
const START: (&str, &str) = ("start", "counted numa topo --json");
/// Of a node's memory: beyond its caches.
const SIZE: &str = "--size 16M --time 1ms --json";

static BOOT: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| {
    let mut guest = Guest::new(Shape::named("four")?)
        .simulate(Simulation::new())
        .program(&programs::numa()?)
        .program(&programs::compiled("counted")?.unwrap())
        .timeout(Duration::from_secs(900));
    guest = guest.step(START.0, &["sh", "-c", START.1]);
    for (name, words, ..) in STEPS {
        guest = guest.step(name, &["sh", "-c", &format!("counted numa bench {words} {SIZE}")]);
    }
    guest.boot()
});

/// All benchmarks, without the simulator.
static ALL: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| {
    Guest::new(Shape::named("four")?)
        .program(&programs::numa()?)
        .timeout(Duration::from_secs(600))
        .step("all", &["sh", "-c", "numa bench all --quick --size 4M --time 10ms --json"])
        .boot()
});

/// Pairs without load beside traffic: QEMU lets CPUs take turns.
fn turns(result: &Value) -> usize {
    let turns = |left: &&Value| left["why"].as_str().unwrap().contains("take turns");
    result["left_out"].as_array().unwrap().iter().filter(turns).count()
}

/// Whether its values are of loads beside traffic, of which there are few for the same reason.
fn is_loaded(matrix: &Value) -> bool {
    matrix["name"] == "load latency, loaded"
}

#[test]
#[ignore = "thorough: all benchmarks and the simulator, 4 minutes"]
fn all_matrices_of_four_nodes_are_complete() {
    let Some(boot) = or_skipped(&ALL) else { return };
    let printed: Value = serde_json::from_str(&boot["all"].succeeded()).unwrap();
    assert_eq!(printed["complete"], true);
    for result in printed["benchmarks"].as_array().unwrap() {
        for matrix in result["matrices"].as_array().unwrap() {
            let cells = matrix["cells"].as_array().unwrap().iter().flat_map(|row| row.as_array().unwrap());
            let measured = cells.filter(|cell| !cell.is_null()).count();
            // Eight CPUs with each other, four nodes with all.
            let expected = if result["name"] == "c2c" { 8 * 7 } else { 4 * 4 };
            let turns = if is_loaded(matrix) { turns(result) } else { 0 };
            assert_eq!(measured + turns, expected, "{matrix} {}", result["left_out"]);
        }
        let left = result["left_out"].as_array().unwrap();
        // An emulated machine makes little traffic, and of sixteen pairs of nodes four have curves.
        let reasons =
            ["take turns", "less traffic than was asked", "at most 4 are measured", "no pages of 64 KiB"];
        let is_known = |left: &Value| reasons.iter().any(|why| left["why"].as_str().unwrap().contains(why));
        assert!(left.iter().all(is_known), "something else is left out: {left:?}");
        let idle = |value: &&Value| value["name"].as_str().unwrap().starts_with("idle");
        let curves = result["curves"].as_array().unwrap();
        let points = |at: usize| curves[at]["points"].as_array().unwrap().len();
        match result["name"].as_str().unwrap() {
            // Four shares of reads of the nodes with their own memory: idle memory, full traffic, and what is between.
            "curve" => {
                assert_eq!(result["values"].as_array().unwrap().iter().filter(idle).count(), 4, "{result}");
                assert!(curves.len() + 4 * turns(result) >= 16, "{result}");
                assert!((0..curves.len()).all(|at| points(at) >= 2), "{result}");
            }
            // 4 MiB have 1024 small pages, but not 8 huge ones.
            "tlb" => assert!(curves.len() == 2 && points(0) >= 15 && points(1) >= 15, "{result}"),
            _ => {}
        }
        println!("{}: {} {}", result["name"], result["remarks"], result["left_out"]);
    }
}

/// What a step printed, and what was counted of it; nothing where the test is skipped.
fn step(name: &str) -> Option<(Value, &'static Lines)> {
    let boot = or_skipped(&BOOT)?;
    let at = STEPS.iter().position(|(step, ..)| *step == name).unwrap();
    let printed = serde_json::from_str(&boot[name].succeeded()).unwrap();
    Some((printed, &boot.traffic.as_ref().unwrap().each[1 + at]))
}

/// Lines of starting numa.
fn start() -> Option<u64> {
    let boot = or_skipped(&BOOT)?;
    boot[START.0].succeeded();
    Some(boot.traffic.as_ref().unwrap().each[0].fetches.iter().flatten().sum())
}

#[test]
#[ignore = "thorough: all benchmarks and the simulator, 4 minutes"]
fn lines_move_between_the_nodes_that_are_measured() {
    let Some(start) = start() else { return };
    for (name, _, cpus, memories) in STEPS {
        let Some((printed, lines)) = step(name) else { return };
        let all: u64 = lines.fetches.iter().flatten().sum();
        let claimed: u64 =
            cpus.iter().flat_map(|cpu| memories.iter().map(move |memory| lines.fetches[*cpu][*memory])).sum();
        println!(
            "{name}: {claimed} of {all} lines are between its nodes, {start} are of starting; {:?}",
            lines.fetches
        );
        // Starting is done on any CPU.
        let measured = all.saturating_sub(start).max(1);
        assert!(
            claimed * 100 >= measured * 97 && claimed > 4 * start,
            "{name}: {claimed} of {all}: {:?}",
            lines.fetches
        );
        let result = &printed["benchmarks"][0];
        for matrix in result["matrices"].as_array().unwrap() {
            let cells = || matrix["cells"].as_array().unwrap().iter().flat_map(|row| row.as_array().unwrap());
            assert_eq!(cells().count(), cpus.len() * memories.len(), "{name}: {matrix}");
            let least = if is_loaded(matrix) { 1 } else { 4 };
            assert!(cells().all(|cell| cell["samples"].as_u64() >= Some(least)), "{name}: {result}");
        }
    }
}

#[test]
#[ignore = "thorough: all benchmarks and the simulator, 4 minutes"]
fn pairs_are_used_alike() {
    for (name, _, cpus, memories) in STEPS.into_iter().filter(|(name, ..)| name.starts_with("bandwidth")) {
        let Some((_, lines)) = step(name) else { return };
        let pairs: Vec<(usize, usize)> =
            cpus.iter().flat_map(|cpu| memories.iter().map(move |memory| (*cpu, *memory))).collect();
        // With the first pair registers are compared, and a node's own memory is measured twice.
        let others = || {
            pairs[1..]
                .iter()
                .filter(|(cpu, memory)| cpu != memory)
                .map(|(cpu, memory)| lines.fetches[*cpu][*memory])
        };
        let (least, most) = (others().min().unwrap(), others().max().unwrap());
        println!("{name}: {least} to {most}");
        assert!(least > 0 && most * 10 <= least * 11, "{name}: {:?}", lines.fetches);
        let each = pairs.iter().map(|(cpu, memory)| lines.fetches[*cpu][*memory]);
        assert!(each.min().unwrap() * 10 >= least * 9, "{name}: {:?}", lines.fetches);
    }
}
