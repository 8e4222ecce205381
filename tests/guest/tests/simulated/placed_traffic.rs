//! What libnumaplace is worth: lines that go between the nodes, beside a runtime that only pins.

use numakit_guest::{Failure, Guest, Lines, Part, Shape, Simulation, programs};
use numakit_skips::rounds;
use std::time::Duration;

const LIBRARY: &str = "/usr/lib/libnumaplace.so";
const PLACES: &str = "OMP_PROC_BIND=close 'OMP_PLACES={0}:8'";
const LLVM: &str = "LD_LIBRARY_PATH=/usr/lib/llvm";

/// Of whose counts the median is taken.
fn repeats() -> usize {
    rounds(1, 3)
}

/// As the launcher starts a program on all cores.
const PLACED: &str = "numactl --preferred=0 env NUMA_PLACE=0-7 NUMA_MASK=0-7 'NUMA_NODES=0:0-1;1:2-3;2:4-5;3:6-7' \
                      NUMA_MEMORY=default LD_PRELOAD=/usr/lib/libnumaplace.so";

const HUGE: &str = "echo always > /sys/kernel/mm/transparent_hugepage/enabled;";
const SMALL: &str = "echo never > /sys/kernel/mm/transparent_hugepage/enabled;";

/// Name and command; each has one region.
fn experiments() -> [(&'static str, String); 9] {
    [
        // All of it, from the launcher to the last thread, as it is installed: with huge pages.
        ("whole", format!("{HUGE} GOMP_CPU_AFFINITY=0-7 whole ep; {SMALL}")),
        ("whole-placed", format!("{HUGE} whole numa run --busy off -c 8 -- ep; {SMALL}")),
        // The same in a container of Docker, which refuses memory policies and moving of pages.
        ("whole-filtered", format!("{HUGE} whole filtered numa run --busy off -c 8 -- ep; {SMALL}")),
        ("gomp", "GOMP_CPU_AFFINITY=0-7 ep".to_owned()),
        ("gomp-placed", format!("{PLACED} {PLACES} ep")),
        ("llvm", format!("env {PLACES} {LLVM} ep")),
        ("llvm-placed", format!("{PLACED} {PLACES} {LLVM} ep")),
        ("stacks", "stacks parent 7".to_owned()),
        ("stacks-placed", format!("{PLACED} stacks free 7")),
    ]
}

pub fn guest() -> Result<Guest, Failure> {
    let numactl = programs::of_host("numactl").ok_or_else(|| Failure::NotFound("numactl".to_owned()))?;
    let mut guest = Guest::new(Shape::named("four")?)
        .simulate(Simulation::new())
        .program(&numactl)
        .program(&programs::numa()?)
        .file(&programs::libomp()?, "/usr/lib/llvm/libgomp.so.1")
        .file(&programs::libnumaplace()?, LIBRARY)
        .timeout(Duration::from_secs(1200));
    // Threads that wait must not keep a CPU: there are more of them here than real ones.
    for (name, value) in [("OMP_WAIT_POLICY", "passive"), ("GOMP_SPINCOUNT", "0"), ("KMP_BLOCKTIME", "0")] {
        guest = guest.env(name, value);
    }
    for name in ["stacks", "ep", "whole", "filtered"] {
        guest = guest.program(&programs::compiled(name)?.unwrap());
    }
    for repeat in 0..repeats() {
        for (name, words) in experiments() {
            guest = guest.step_of_regions(&format!("{name}{repeat}"), 1, &["sh", "-c", &words]);
        }
    }
    Ok(guest)
}

fn part() -> Option<Part> {
    super::PARTS.part("placed_traffic")
}

/// What each repeat of an experiment counted; nothing where the test is skipped.
fn counted(name: &str) -> Option<Vec<&'static Lines>> {
    let part = part()?;
    Some((0..repeats()).map(|repeat| &part.regions(&format!("{name}{repeat}"))[0]).collect())
}

/// The median of the lines that left their node.
fn remote(name: &str) -> Option<u64> {
    let mut remote: Vec<u64> = counted(name)?.iter().map(|lines| lines.local_and_remote().1).collect();
    println!("{name}: {remote:?} lines remote");
    remote.sort_unstable();
    Some(remote[repeats() / 2])
}

/// How many times fewer there are with the library.
fn gain(alone: &str) -> Option<f64> {
    let (alone, placed) = (remote(alone)?, remote(&format!("{alone}-placed"))?);
    let ratio = alone as f64 / placed as f64;
    println!("{ratio:.1} times fewer");
    Some(ratio)
}

#[test]
fn parallel_programs_of_gcc_stay_on_their_nodes() {
    let Some(gain) = gain("gomp") else { return };
    assert!(gain >= 12.0, "{gain}");
}

#[test]
fn parallel_programs_of_llvm_stay_on_their_nodes() {
    let Some(gain) = gain("llvm") else { return };
    let text = part().unwrap()["llvm-placed0"].succeeded();
    assert!(text.contains("openmp llvm\n") && text.contains("verified yes\n"), "{text}");
    assert!(gain >= 12.0, "{gain}");
}

#[test]
fn stacks_that_the_parent_touched_come_along() {
    let Some(gain) = gain("stacks") else { return };
    assert!(gain >= 50.0, "{gain}");
}

#[test]
fn a_whole_command_stays_on_its_nodes_with_huge_pages() {
    let Some(gain) = gain("whole") else { return };
    assert!(gain >= 25.0, "{gain}");
}

#[test]
fn a_whole_command_in_a_container_stays_on_its_nodes_as_well() {
    let (Some(placed), Some(filtered)) = (remote("whole-placed"), remote("whole-filtered")) else { return };
    println!("{:.2} times the lines of an unfiltered command", filtered as f64 / placed as f64);
    assert!(filtered as f64 <= 1.15 * placed as f64, "{filtered} and {placed}");
}
