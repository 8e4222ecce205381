//! Threads that share data sit together: a program whose default order has all sharers on different nodes is observed, and its cure
//! brings them together, with what the simulator counts.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_guest::{Boot, Failure, Guest, Lines, Shape, Simulation, or_skipped, programs};
use serde_json::{Value, json};
use std::time::Duration;

const KERNELS: [&str; 2] = ["openmp", "threads"];
/// Nodes of the program. The observer's is the next one.
const NODES: usize = 4;
/// A sharing pair has an eighth of all uses, a stray sample next to nothing.
const MUCH: f64 = 0.05;

fn guest() -> Result<Guest, Failure> {
    Ok(Guest::new(Shape::named("watched")?)
        .program(&programs::numa()?)
        .timeout(Duration::from_secs(600))
        .eight_threads()
        .compiled(&["paired"])?
        .small_pages()
        .without_balancing())
}

/// Observes each kernel as it is and with its cure, from a node of the observer's own. Nothing is counted: the simulator slows an observer
/// down so much that it sees little.
fn observe() -> Result<Boot, Failure> {
    let mut guest = guest()?;
    for kernel in KERNELS {
        let observed = |step: &str, result: &str, run: &str| {
            let command = format!(
                "taskset -p 300 $$ >/dev/null; exec numa explain -F 997 {result} --json /out/{kernel}-{step}.json taskset ff {run} \
                 paired {kernel} broken 3000"
            );
            (format!("{kernel}-{step}"), command)
        };
        let cure = format!("/out/{kernel}.cure");
        for (step, command) in [
            observed("plain", &format!("--cure {cure}"), ""),
            observed("cured", "", &format!("numa run --apply {cure}")),
        ] {
            guest = guest.step(&step, &["sh", "-c", &command]);
        }
    }
    guest.boot()
}

/// The sharers are named, and no more once they are together; then little is remote.
fn check_observed(observed: &Boot) {
    for kernel in KERNELS {
        for (step, are_apart) in [("plain", true), ("cured", false)] {
            let name = format!("{kernel}-{step}");
            let text = observed[name.as_str()].succeeded();
            println!("{text}");
            assert_eq!(
                text.contains("0 and 4, 1 and 5, 2 and 6, 3 and 7 use the same data"),
                are_apart,
                "{name}"
            );
            let result = std::fs::read_to_string(observed.out.join(format!("{name}.json"))).unwrap();
            let result: Value = serde_json::from_str(&result).unwrap();
            let pairs = result["sharing"]["pairs"].as_array().unwrap().iter();
            let pairs =
                pairs.filter(|pair| pair["share"].as_f64().unwrap() >= MUCH).map(|pair| &pair["threads"]);
            assert!(pairs.eq([[0, 4], [1, 5], [2, 6], [3, 7]].map(|pair| json!(pair)).iter()), "{name}");
            let cells = result["traffic"]["pages"].as_array().unwrap().iter();
            let pages = |cell: &Value| cell["pages"].as_u64().unwrap();
            let all: u64 = cells.clone().map(pages).sum();
            let far: u64 = cells.filter(|cell| cell["cpu_node"] != cell["memory_node"]).map(pages).sum();
            assert_eq!(far as f64 > 0.2 * all as f64, are_apart, "{name}: {far} of {all} pages");
        }
    }
}

/// Runs each kernel as it is, with its cure, and repaired.
fn boot() -> Result<Boot, Failure> {
    let observed = observe()?;
    check_observed(&observed);
    let mut guest = guest()?.simulate(Simulation::new());
    for kernel in KERNELS {
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
#[ignore = "thorough: two programs observed and run in the simulator, 3 minutes"]
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
