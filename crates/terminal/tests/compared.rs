//! Generated recordings compared with each other.

#![allow(clippy::unwrap_used, clippy::expect_used)]

#[allow(dead_code)]
mod machines;

use machines::{MS, Machine};
use numakit_findings::comparison::{Comparison, ComparisonOutcome, compare};
use numakit_findings::profile;
use numakit_formulas::Catalog;
use numakit_model::label::RecorderEvent;
use numakit_terminal::report::{PageStyle, comparison_page};

/// A program on two nodes; each 10 ms, its threads on node 1 wait that many ms for memory of node 0.
fn solver(command: &str, seconds: u64, far: impl Fn(u64) -> u64) -> Machine {
    let mut machine = Machine::new(2).with_counters().with_program();
    machine.header.command = Some(command.into());
    machine.sample();
    machine.event(RecorderEvent::CommandStarted(command.into()));
    for tick in 0..100 * seconds {
        let far = far(tick).min(10);
        machine.add("task.cpu", 20 * MS);
        (0..2).for_each(|n| machine.add(&format!("access.clusters@node{n}"), u64::from(tick % 10 == 0)));
        machine.add("access.near@node0", 10 * MS);
        machine.add("access.far@node1", far * MS);
        machine.add("access.near@node1", (10 - far) * MS);
        machine.add("vmstat.pgfault", 20 + tick * 7919 % 13);
        machine.sample();
    }
    machine.event(RecorderEvent::CommandEnded(0));
    machine.sample();
    machine
}

fn compared(before: &Machine, after: &Machine) -> Comparison {
    let of = |machine: &Machine| {
        profile(&machine.header, machine.batches.clone(), None, Catalog::built_in()).unwrap()
    };
    compare(&of(before), &of(after))
}

/// Between 7 and 9 of 10 ms, without an order.
fn mostly(tick: u64) -> u64 {
    7 + tick * 7919 % 101 % 3
}

#[test]
fn placed_threads_are_better_and_the_guide_shows_them() {
    let before = solver("./solver", 12, mostly);
    let after = solver("numa run -- ./solver", 9, |_| 0);
    let comparison = compared(&before, &after);
    assert_eq!(comparison.outcome, ComparisonOutcome::Better);
    assert_eq!(comparison.gone.iter().map(|finding| finding.rule).collect::<Vec<_>>(), ["remote-use"]);
    let style = PageStyle { color: false, terminal: None, all: false };
    let page = comparison_page(&comparison, style);
    let path = format!("{}/tests/golden/compared.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(page, std::fs::read_to_string(&path).unwrap_or_default(), "run again with UPDATE=1");
    assert!(page.lines().all(|line| line.chars().count() <= 100), "{page}");
    for line in comparison_page(&comparison, PageStyle { terminal: Some(44), ..style }).lines() {
        assert!(line.chars().count() <= 44 || line.starts_with("Do "), "{line}");
    }
}

#[test]
fn the_same_program_with_other_chances_is_equal() {
    let shifted = |by: u64| solver("./solver", 12, move |tick| mostly(tick * 31 + by));
    for by in 0..8 {
        let comparison = compared(&shifted(0), &shifted(by));
        assert_eq!(comparison.outcome, ComparisonOutcome::Equal, "{by}: {:?}", comparison.program);
        assert!(comparison.machine.is_empty(), "{by}: {:?}", comparison.machine);
        assert!(comparison.gone.is_empty() && comparison.new.is_empty() && comparison.kept.len() == 1);
    }
}

#[test]
fn json_of_a_comparison_has_the_answer_first() {
    let comparison = compared(&solver("a", 12, mostly), &solver("b", 12, |_| 1));
    let json = serde_json::to_value(&comparison).unwrap();
    assert_eq!(json["outcome"], "better");
    assert!(json["headline"]["verdict"].as_str().unwrap().starts_with("B is better: "), "{json}");
    assert!(json["program"][0]["noise"].as_f64().unwrap() > 0.0);
    assert!(json["run_time"]["change_percent"].as_f64().unwrap().abs() < 1.0);
}
