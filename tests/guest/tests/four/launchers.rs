//! The lines of every launcher that can be had here: each rank and each thread gets the CPUs of the plan. On machines with
//! other numberings, `launchers` tries them.

use super::affinity::processes;
use super::comparison::{Rule, differences};
use super::launched;
use numakit_guest::{Failure, Guest};
use numakit_model::Plan;
use numakit_model::plan::{Memory, Step};

/// Launchers of a plan whose runtimes cannot be had here, and why.
const NOT_HERE: [(&str, &str); 7] = [
    ("nvhpc", "NVIDIA's compilers are not in a package that can be fetched"),
    ("cray", "Cray's compilers are sold with their machines"),
    ("openmpi1", "Open MPI 1 and 2 are in no archive of packages for today's systems"),
    ("slurm", "it needs its daemons with a configuration for this host"),
    ("systemd", "the guest has another first process"),
    ("docker", "the guest has no container engine"),
    ("kubernetes", "it needs a cluster"),
];
pub fn guest() -> Result<Guest, Failure> {
    launched::guest("four")
}

#[test]
fn threads_and_ranks_are_where_the_plan_says() {
    let Some(part) = super::PARTS.part("launchers") else { return };
    launched::check("four", &part);
}

#[test]
fn a_thread_that_is_elsewhere_is_seen() {
    let step = |(process, thread, cpu)| Step {
        process,
        thread,
        cpu,
        node: 0,
        memory: Memory::default(),
        because: String::new(),
    };
    let plan = Plan { steps: [(0, 0, 1), (0, 1, 0), (1, 0, 2)].map(step).to_vec(), ..Plan::default() };
    let with =
        |text: &str, rule, rising, smt| differences(&plan, &processes(text).unwrap(), rule, rising, smt);
    let right = "rank 1 thread 0 cpus 2\nrank 0 thread 0 cpus 1\nrank 0 thread 1 cpus 0\n";
    assert_eq!(with(right, Rule::Exact, false, 1), [""; 0]);
    assert_eq!(
        with(&right.replace("rank 0", "rank -").replace("rank 1", "rank -"), Rule::Exact, false, 1),
        [""; 0]
    );
    assert_eq!(with(right, Rule::Exact, true, 1), ["process 0: threads on 1 0, planned 0 1"]);
    assert_eq!(with(right, Rule::Cores, false, 2).len(), 2);
    assert_eq!(with(right, Rule::Process, false, 1), ["process 0: threads on 1 0, planned 0-1 0-1"]);
    let swapped = right.replace("rank 1", "rank 2").replace("rank 0", "rank 1").replace("rank 2", "rank 0");
    assert_eq!(with(&swapped, Rule::Exact, false, 1).len(), 2);
    assert_eq!(with("rank 0 thread 0 cpus 1\n", Rule::Exact, false, 1).len(), 2);
    assert_eq!(with("", Rule::Exact, false, 1), ["0 processes instead of 2"]);
    assert!(processes("rank 0 thread 1 cpus 0\n").is_err() && processes("rank 0\n").is_err());
}

#[test]
fn every_other_launcher_has_a_reason() {
    for (name, reason) in NOT_HERE {
        numakit_skips::LAUNCHERS
            .skip_part(format_args!("the lines for {name} are compared with files only: {reason}"));
        assert!(!launched::is_tried(name));
    }
}
