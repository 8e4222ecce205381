//! Whether `numa bench` touches the pairs of nodes that it claims, by what the simulator counts.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::{Boot, Failure, Guest, Lines, Shape, Simulation, or_skipped, programs};
use serde_json::Value;
use std::sync::LazyLock;
use std::time::Duration;

/// Step, what `numa bench` is asked for, and the nodes with the CPUs and with the memory that it should use.
const STEPS: [(&str, &str, &[usize], &[usize]); 4] = [
    ("latency of a node", "latency --nodes 1", &[1], &[1]),
    ("latency of a CPU", "latency --cpus 4", &[2], &[0, 1, 2, 3]),
    ("bandwidth of a CPU", "bandwidth --cpus 6-7", &[3], &[0, 1, 2, 3]),
    ("bandwidth of two nodes", "bandwidth --nodes 0,3", &[0, 3], &[0, 3]),
];
/// Of a node's memory: beyond its caches.
const SIZE: &str = "--size 16M --time 1ms --json";

static BOOT: LazyLock<Result<Boot, Failure>> = LazyLock::new(|| {
    let mut guest = Guest::new(Shape::named("four")?)
        .simulate(Simulation::new())
        .program(&programs::numa()?)
        .program(&programs::compiled("counted")?.unwrap())
        .timeout(Duration::from_secs(900));
    for (name, words, ..) in STEPS {
        guest = guest.step(name, &["sh", "-c", &format!("counted numa bench {words} {SIZE}")]);
    }
    guest.boot()
});

/// What a step printed, and what was counted of it; nothing where the test is skipped.
fn step(name: &str) -> Option<(Value, &'static Lines)> {
    let boot = or_skipped(&BOOT)?;
    let at = STEPS.iter().position(|(step, ..)| *step == name).unwrap();
    let printed = serde_json::from_str(&boot[name].succeeded()).unwrap();
    Some((printed, &boot.traffic.as_ref().unwrap().each[at]))
}

#[test]
fn lines_move_between_the_nodes_that_are_measured() {
    for (name, _, cpus, memories) in STEPS {
        let Some((printed, lines)) = step(name) else { return };
        let all: u64 = lines.fetches.iter().flatten().sum();
        let claimed: u64 =
            cpus.iter().flat_map(|cpu| memories.iter().map(move |memory| lines.fetches[*cpu][*memory])).sum();
        println!("{name}: {claimed} of {all} lines are between its nodes; {:?}", lines.fetches);
        assert!(claimed * 100 >= all * 97, "{name}: {claimed} of {all}: {:?}", lines.fetches);
        let result = &printed["benchmarks"][0];
        for matrix in result["matrices"].as_array().unwrap() {
            let cells = || matrix["cells"].as_array().unwrap().iter().flat_map(|row| row.as_array().unwrap());
            assert_eq!(cells().count(), cpus.len() * memories.len(), "{name}: {matrix}");
            assert!(cells().all(|cell| cell["samples"].as_u64() >= Some(4)), "{name}: {result}");
        }
    }
}

#[test]
fn every_pair_is_used_as_much_as_the_others() {
    for (name, _, cpus, memories) in STEPS.into_iter().filter(|(name, ..)| name.starts_with("bandwidth")) {
        let Some((_, lines)) = step(name) else { return };
        let pairs = cpus.iter().flat_map(|cpu| memories.iter().map(move |memory| lines.fetches[*cpu][*memory]));
        let pairs: Vec<u64> = pairs.collect();
        let mean = pairs.iter().sum::<u64>() / pairs.len() as u64;
        println!("{name}: {pairs:?}");
        assert!(pairs.iter().all(|pair| pair * 2 > mean && *pair < mean * 2), "{name}: {pairs:?}");
    }
}
