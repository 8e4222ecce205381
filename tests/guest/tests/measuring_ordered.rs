//! Threads that share data sit together: a program whose default order has all sharers on different nodes is observed, and its cure
//! brings them together, with what the simulator counts.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::{Boot, Failure, Guest, Lines, Shape, Simulation, or_skipped, programs};
use std::time::Duration;

const KERNELS: [&str; 2] = ["openmp", "threads"];
/// Nodes of the program. The observer's is the next one.
const NODES: usize = 4;

fn guest() -> Result<Guest, Failure> {
    let program = programs::compiled("paired")?.ok_or_else(|| Failure::NotFound("paired".to_owned()))?;
    let mut guest = Guest::new(Shape::named("watched")?)
        .program(&programs::numa()?)
        .program(&program)
        .timeout(Duration::from_secs(600));
    // Threads that wait must not keep a CPU: there are more of them here than real ones.
    for (name, value) in [("OMP_NUM_THREADS", "8"), ("OMP_WAIT_POLICY", "passive"), ("GOMP_SPINCOUNT", "0")] {
        guest = guest.env(name, value);
    }
    // The kernel's balancing would move pages meanwhile, and huge pages lie across the arrays of several pairs.
    let small =
        "echo never >/sys/kernel/mm/transparent_hugepage/enabled; echo 0 >/proc/sys/kernel/numa_balancing";
    Ok(guest.step("small", &["sh", "-c", small]))
}

/// Observes each kernel from a node of the observer's own. Nothing is counted: the simulator slows an observer down so much that it sees
/// little.
fn observe() -> Result<Boot, Failure> {
    let mut guest = guest()?;
    for kernel in KERNELS {
        let command = format!(
            "taskset -p 300 $$ >/dev/null; exec numa explain -F 997 --cure /out/{kernel}.cure --json /out/{kernel}.json taskset ff \
             paired {kernel} broken 3000"
        );
        guest = guest.step(kernel, &["sh", "-c", &command]);
    }
    guest.boot()
}

/// Runs each kernel as it is, with its cure, and repaired.
fn boot() -> Result<Boot, Failure> {
    let observed = observe()?;
    let mut guest = guest()?.simulate(Simulation::new());
    for kernel in KERNELS {
        println!("{}", observed[kernel].succeeded());
        let cure = format!("/root/{kernel}.cure");
        guest = guest.file(&observed.out.join(format!("{kernel}.cure")), &cure);
        let steps = [
            ("plain", "", "broken"),
            ("cured", &format!("--apply {cure}"), "broken"),
            ("repaired", "", "repaired"),
        ];
        for (step, apply, variant) in steps {
            let run = format!("taskset -p ff $$ >/dev/null; exec numa run {apply} paired {kernel} {variant}");
            guest = guest.step(&format!("{kernel}-{step}"), &["sh", "-c", &run]);
        }
    }
    guest.boot()
}

fn remote(lines: &Lines) -> u64 {
    let pairs = (0..NODES).flat_map(|from| (0..NODES).map(move |to| (from, to)));
    pairs
        .filter(|(from, to)| from != to)
        .map(|(from, to)| lines.fetches[from][to] + lines.transfers[from][to])
        .sum()
}

#[test]
#[ignore = "thorough: two programs observed and run in the simulator, 4 minutes"]
fn threads_that_share_data_are_brought_together() {
    let result = boot();
    let Some(boot) = or_skipped(&result) else { return };
    let mut each = boot.traffic.as_ref().unwrap().each.iter();
    for kernel in KERNELS {
        let [plain, cured, repaired] = ["plain", "cured", "repaired"].map(|step| {
            let step = &boot[format!("{kernel}-{step}").as_str()];
            step.succeeded();
            println!("{}", step.errors());
            remote(each.next().unwrap())
        });
        println!("{kernel}: {plain} remote lines, {cured} with its cure, {repaired} repaired");
        assert!(cured * 10 <= plain, "{kernel}");
        let said = boot[format!("{kernel}-cured").as_str()].errors();
        assert!(said.contains("threads that share data"), "{said}");
    }
}
