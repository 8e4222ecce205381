//! Whether the simulated machine can be believed: where lines belong, how well counts repeat, what
//! first touch and thread-local storage cost.

use numakit_guest::{Failure, Guest, Lines, Part, Shape, Simulation, programs};
use numakit_skips::rounds;
use std::time::Duration;

const MIB: u64 = 16;

fn repeats() -> usize {
    rounds(2, 5)
}

/// Step, command, regions.
const EXPERIMENTS: [(&str, &str, usize); 6] = [
    ("parent", "stacks parent", 1),
    ("own", "stacks own", 1),
    ("private", "private", 1),
    ("ep", "ep", 1),
    ("ep-own", "ep --tls own", 1),
    ("pingpong", "pingpong 0 2 1000 10", 1),
];
/// libomp binds threads of its own accord: where the program has bound the main thread, it gives that all CPUs while it creates
/// the others, so that the main thread may touch their storage from any node.
const LIBOMP: &str = "KMP_AFFINITY=disabled LD_LIBRARY_PATH=/usr/lib/llvm";
const LLVM: [(&str, &str, usize); 2] = [("llvm", "ep", 1), ("llvm-own", "ep --tls own", 1)];

/// Name of the step, command, regions, in order.
fn steps() -> Vec<(String, String, usize)> {
    let mut steps = vec![("stream".to_owned(), format!("stream all {MIB}"), 16)];
    for repeat in 0..repeats() {
        steps.extend(
            EXPERIMENTS.map(|(name, words, regions)| (format!("{name}{repeat}"), words.to_owned(), regions)),
        );
    }
    steps.extend(LLVM.map(|(name, words, regions)| (name.to_owned(), format!("{LIBOMP} {words}"), regions)));
    steps
}

pub fn guest() -> Result<Guest, Failure> {
    let mut guest = Guest::new(Shape::named("four")?)
        .simulate(Simulation::new())
        .file(&programs::libomp()?, "/usr/lib/llvm/libgomp.so.1")
        .timeout(Duration::from_secs(600));
    // Threads that wait must not keep a CPU: there are more of them here than real ones.
    for (name, value) in [("OMP_WAIT_POLICY", "passive"), ("GOMP_SPINCOUNT", "0"), ("KMP_BLOCKTIME", "0")] {
        guest = guest.env(name, value);
    }
    for name in ["stream", "stacks", "private", "ep", "pingpong"] {
        guest = guest.program(&programs::compiled(name)?.unwrap());
    }
    for (name, words, regions) in steps() {
        guest = guest.step_of_regions(&name, regions, &["sh", "-c", &words]);
    }
    Ok(guest)
}

fn part() -> Option<Part> {
    super::PARTS.part("believed")
}

fn regions(step: &str) -> Option<&'static [Lines]> {
    Some(part()?.regions(step))
}

/// Local and remote lines of an experiment, for each repeat.
fn counts(name: &str) -> Option<Vec<(u64, u64)>> {
    (0..repeats()).map(|repeat| Some(regions(&format!("{name}{repeat}"))?[0].local_and_remote())).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn a_stream_finds_its_lines_where_they_belong() {
    let Some(pairs) = regions("stream") else { return };
    let lines = MIB << 20 >> 6;
    println!("lines of a stream of {lines} over each pair of nodes, and the most anywhere else");
    for (pair, counted) in pairs.iter().enumerate() {
        let (cpu, memory) = (pair / 4, pair % 4);
        let found = counted.fetches[cpu][memory];
        let here = |(at, count): (usize, &u64)| (at != cpu * 4 + memory).then_some(*count);
        let elsewhere = counted.fetches.iter().flatten().enumerate().filter_map(here).max().unwrap();
        println!("CPU of node {cpu}, memory of node {memory}: {found} elsewhere {elsewhere}");
        assert!(found * 100 >= lines * 97 && found * 100 <= lines * 103, "{cpu} {memory}: {found}");
        // The kernel's timers tick meanwhile, more often where the emulator is slow.
        assert!(elsewhere * 50 < lines, "{cpu} {memory}: {elsewhere} elsewhere");
    }
}

#[test]
fn counts_repeat() {
    for (name, ..) in EXPERIMENTS {
        let Some(counts) = counts(name) else { return };
        let remote: Vec<f64> = counts.iter().map(|(_, remote)| *remote as f64).collect();
        let all = median(counts.iter().map(|(local, remote)| (local + remote) as f64).collect());
        let middle = median(remote.clone());
        let (least, most) =
            (remote.iter().copied().fold(f64::MAX, f64::min), remote.iter().copied().fold(0.0, f64::max));
        println!("{name}: remote {least} to {most}, {:.2} % of all lines", 100.0 * middle / all);
        let allowed = if middle > all / 2.0 { 0.05 * middle } else { (0.25 * middle).max(0.01 * all) };
        assert!(most - least <= allowed, "{name}: {remote:?}");
    }
}

#[test]
fn private_data_is_local() {
    let Some(counts) = counts("private") else { return };
    for (local, remote) in counts {
        assert!(remote * 100 < 2 * (local + remote), "{remote} of {local} lines are remote");
    }
}

#[test]
fn stacks_that_the_parent_touched_are_remote() {
    let (Some(parent), Some(own)) = (counts("parent"), counts("own")) else { return };
    let ratios = parent.iter().zip(own).map(|((_, parent), (_, own))| *parent as f64 / own as f64);
    let ratio = median(ratios.collect());
    println!("stacks touched by the parent: {ratio:.0} times the remote lines");
    assert!(ratio >= 50.0, "{ratio}");
}

#[test]
fn lines_that_change_hands_are_counted_as_such() {
    let Some(regions) = regions("pingpong0") else { return };
    // Each round takes every line there and back; the first time it comes from memory.
    let (there, back) = (regions[0].transfers[2][0], regions[0].transfers[0][2]);
    println!("transfers: {there} there, {back} back");
    assert!((10_000..10_500).contains(&there) && (9_000..9_500).contains(&back), "{there} {back}");
}

#[test]
fn thread_local_storage_of_the_parent_makes_a_parallel_program_remote() {
    let (Some(plain), Some(own)) = (counts("ep"), counts("ep-own")) else { return };
    let ratio =
        median(plain.iter().zip(&own).map(|((_, plain), (_, own))| *plain as f64 / *own as f64).collect());
    println!(
        "EP class S: {:?} lines remote, {:?} with its own storage: {ratio:.0} times",
        plain[0].1, own[0].1
    );
    assert!(ratio >= 15.6, "{ratio}");
    for (local, remote) in plain {
        assert!(remote > 2 * local, "{remote} of {local}");
    }
}

#[test]
fn so_it_does_under_another_openmp() {
    let (Some(plain), Some(own)) = (regions("llvm"), regions("llvm-own")) else { return };
    let boot = part().unwrap();
    for step in ["llvm", "llvm-own"] {
        let text = boot[step].succeeded();
        assert!(text.contains("openmp llvm\n") && text.contains("verified yes\n"), "{text}");
    }
    assert!(boot["ep0"].succeeded().contains("openmp gomp\n"));
    let ((local, remote), (_, remains)) = (plain[0].local_and_remote(), own[0].local_and_remote());
    println!("EP class S under libomp: {remote} lines remote, {remains} with its own storage");
    assert!(remote > 2 * local && remote > 15 * remains, "{local} {remote} {remains}");
}
