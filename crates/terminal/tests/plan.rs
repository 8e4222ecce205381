//! Plans as text and as drawings.

#![allow(clippy::unwrap_used)]

use numakit_model::plan::{Memory, Mode, Plan, Step};
use numakit_model::{CpuSet, Topology};
use numakit_placement::PlacementRequest;
use numakit_terminal::plan::{comparison, explanation, json, overlay, table};
use numakit_terminal::topology::{Overlay, svg, svg_with};
use numakit_topology::synthetic;
use std::path::PathBuf;

const MACHINE: &str = "package:2 node:2(mem=32G) core:4 pu:2 numbering=interleaved allowed=0-29";

fn machine(description: &str) -> Topology {
    synthetic::parse(description).unwrap()
}

fn set(list: &str) -> CpuSet {
    CpuSet::parse_list(list).unwrap()
}

/// Processes of `threads` threads on the CPUs from 0, `stride` apart.
fn plan(t: &Topology, processes: u32, threads: u32, stride: u32) -> Plan {
    let step = |at: u32| {
        let cpu = at * stride;
        let node = t.node_of_cpu(cpu).unwrap().os_index;
        let memory = Memory { mode: Mode::Local, nodes: CpuSet::range(node, node) };
        let because = format!("core {} of node {node}", cpu % 4);
        Step { process: at / threads, thread: at % threads, cpu, node, memory, because }
    };
    let steps: Vec<Step> = (0..processes * threads).map(step).collect();
    let cpus: CpuSet = steps.iter().map(|step| step.cpu).collect();
    let cores = t.cores.iter().filter(|core| core.cpus.intersects(&cpus));
    let held = cores.fold(CpuSet::new(), |all, core| all.or(&core.cpus));
    Plan { machine: t.origin.clone(), steps, held, ..Plan::default() }
}

/// Compares with a file, or writes it when UPDATE=1 is set.
fn golden(name: &str, text: &str) {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/plan")).join(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{name}; UPDATE=1 writes it");
}

#[test]
fn tables() {
    let t = machine(MACHINE);
    let mut warned = plan(&t, 2, 6, 1);
    warned.warnings = vec!["process 0 is on 2 nodes".to_owned()];
    warned.steps[6..].iter_mut().for_each(|step| {
        step.memory = Memory { mode: Mode::Interleave, nodes: set("1-2") };
    });
    let reasons = ["nodes 0 to 2 are the nearest that have 12 free cores".to_owned()];
    let mut scattered = plan(&t, 1, 8, 1);
    scattered.steps.iter_mut().for_each(|step| {
        step.cpu = step.thread % 4 * 4 + step.thread / 4;
        step.node = step.thread % 4;
    });
    let text = [
        ("one thread", table(&plan(&t, 1, 1, 1))),
        ("eight processes", table(&plan(&t, 8, 1, 2))),
        ("two processes, with a warning", table(&warned)),
        ("threads over nodes", table(&scattered)),
        ("the reasons", explanation(&warned, &reasons)),
        ("the reasons of one thread", explanation(&plan(&t, 1, 1, 1), &[])),
    ];
    golden("tables.txt", &text.map(|(name, text)| format!("## {name}\n{text}")).join("\n"));
}

#[test]
fn the_json_has_the_request_and_the_plan() {
    let t = machine(MACHINE);
    let text = json(&PlacementRequest::default(), &plan(&t, 1, 2, 1), &["why".to_owned()]);
    golden("plan.json", &text);
    let read: serde_json::Value = serde_json::from_str(&text).unwrap();
    let plan: Plan = serde_json::from_value(read["plan"].clone()).unwrap();
    assert_eq!((plan.steps[1].cpu, plan.held.to_string().as_str()), (1, "0-1,16-17"));
}

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[test]
fn drawings_show_the_threads() {
    let t = machine(MACHINE);
    let drawing = svg_with(&t, &overlay(&plan(&t, 2, 3, 1)));
    for label in ["r0.t0", "r0.t2", "r1.t0", "r1.t2"] {
        assert_eq!(count(&drawing, &format!(">{label}<")), 1, "{label}");
    }
    assert!(drawing.contains("process 1: CPUs 3-5") && drawing.contains("held, without a thread"));
    // Six siblings, two that are not allowed, and the legend's square of each kind.
    assert_eq!((count(&drawing, "class=\"held\""), count(&drawing, "class=\"shut\"")), (7, 3));
    assert_eq!(count(&drawing, "class=\"idle\""), 32 - 6 - 6 - 2 + 1);
    assert!(svg_with(&t, &overlay(&plan(&t, 4, 1, 1))).contains(">r3<"));
    assert!(svg_with(&t, &overlay(&plan(&t, 1, 4, 1))).contains(">t3<"));
    assert_eq!(svg(&t), svg_with(&t, &Overlay::default()));
}

#[test]
fn drawings_of_large_machines_are_well_formed() {
    for (description, processes) in
        [("package:16 node:2 core:8", 64), ("board:8 package:4 node:4 core:16 pu:2", 128)]
    {
        let t = machine(description);
        let drawing = svg_with(&t, &overlay(&plan(&t, processes, 1, 4)));
        for tag in ["g", "text"] {
            assert_eq!(count(&drawing, &format!("<{tag} ")), count(&drawing, &format!("</{tag}>")), "{tag}");
        }
        assert!(drawing.contains("processes 0, 10, ...") && !drawing.contains("NaN"));
        assert!(drawing.len() < 800 << 10, "{} bytes", drawing.len());
    }
}

#[test]
fn a_comparison_says_whose_plan_and_each_difference() {
    assert_eq!(
        comparison(7, 1, true, &[]),
        "process 7: its thread is where the plan of 'numa run' has them\n"
    );
    assert_eq!(comparison(7, 3, false, &[]), "process 7: its 3 threads are where this plan has them\n");
    let differences = ["one".to_owned(), "two".to_owned()];
    assert_eq!(comparison(7, 3, false, &differences), "process 7 differs from this plan:\n  one\n  two\n");
}
