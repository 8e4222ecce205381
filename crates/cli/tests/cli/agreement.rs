//! One recording has one answer: in the report, the page, top, the answers to agents, the export and the comparison with itself.

#[allow(dead_code)]
#[path = "../../../terminal/tests/machines/mod.rs"]
mod machines;

use crate::mcp::{INITIALIZE, asked};
use crate::runner::{Done, Folder};
use crate::top::AtTerminal;
use machines::{MS, Machine};
use numakit_formulas::Catalog;
use numakit_model::thresholds::REMOTE;
use numakit_recording::Recorder;
use numakit_server::recordings;
use numakit_testing::until;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// Ticks of 10 ms. No number of buckets of a page divides them.
const TICKS: u64 = 1237;
/// Ms in which the threads of a node wait for memory in each tick.
const WAITED: f64 = 10.0;

/// A program on two nodes, whose threads on node 1 use memory of node 0 for such a part of their time in each tick.
fn waiting(remote: impl Fn(u64) -> f64) -> Machine {
    let mut machine = Machine::new(2).with_counters().with_program();
    machine.sample();
    for tick in 0..TICKS {
        let far = (2.0 * WAITED * MS as f64 * remote(tick)) as u64;
        machine.add("task.cpu", 30 * MS);
        (0..2).for_each(|node| machine.add(&format!("access.clusters@node{node}"), 1));
        machine.add("access.near@node0", WAITED as u64 * MS);
        machine.add("access.far@node1", far);
        machine.add("access.near@node1", WAITED as u64 * MS - far.min(WAITED as u64 * MS));
        machine.add("vmstat.pgfault", 20 + tick * 7919 % 13);
        machine.sample();
    }
    machine
}

/// The same where time cannot be told, and pages in use are counted.
fn using(remote: f64) -> Machine {
    let mut machine = Machine::new(2).with_pages_in_use().with_program();
    machine.sample();
    for _ in 0..TICKS {
        machine.add("task.cpu", 30 * MS);
        machine.add("access.pages_near@node0", 100);
        machine.add("access.pages_far@node1", (200.0 * remote) as u64);
        machine.add("access.pages_near@node1", 100 - (200.0 * remote) as u64);
        machine.sample();
    }
    machine
}

/// Only allocations are known, and for a second nothing was sampled.
fn allocating() -> Machine {
    let mut machine = Machine::new(2);
    machine.sample();
    for tick in 0..TICKS {
        machine.allocate(0, 40 + tick % 3, 160, 0);
        machine.allocate(1, 100, 10, 0);
        machine.sample();
        if tick == 700 {
            machine.time += 1000 * MS;
        }
    }
    machine
}

/// Name, recording, and whether remote memory is a problem in it.
fn recorded() -> [(&'static str, Machine, bool); 5] {
    [
        ("below", waiting(|_| REMOTE - 0.02), false),
        ("above", waiting(|_| REMOTE + 0.02), true),
        ("later", waiting(|tick| if tick < TICKS / 3 { 0.0 } else { 0.45 }), true),
        ("pages", using(REMOTE + 0.1), true),
        ("allocated", allocating(), true),
    ]
}

fn write(machine: &Machine, path: &Path) {
    let recorder = Recorder::create(path, &machine.header, false).unwrap();
    for batch in &machine.batches {
        for (row, &time) in batch.time.iter().enumerate() {
            let values: Vec<Option<u64>> = batch.columns.iter().map(|column| column.get(row)).collect();
            until!({
                recorder.ring().push(time, 0, &values);
                recorder.ring().take_dropped() == 0
            });
        }
    }
    recorder.finish().unwrap();
}

/// What all of them say of a problem: the rule, the sentence, how sure it is, and the numbers that support it, in words.
fn problem(finding: &Value) -> Value {
    let evidence = finding["evidence"].as_array().unwrap().iter();
    let evidence: Vec<&Value> = evidence.map(|one| &one["says"]).collect();
    json!([finding["rule"], finding["says"], finding["certainty"], evidence])
}

fn problems(findings: &Value) -> Vec<Value> {
    findings["problems"].as_array().unwrap().iter().map(problem).collect()
}

fn parsed(done: &Done) -> Value {
    assert_eq!(done.code, 0, "{}", done.err);
    serde_json::from_str(&done.out).unwrap()
}

/// The findings that `numa mcp` answers with.
fn answered(folder: &Folder, recording: &str) -> Value {
    let lines = format!(
        "{INITIALIZE}{}\n{}\n",
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
               "params": {"name": "findings", "arguments": {"recording": recording}}})
    );
    let done = asked(folder, ".", &lines);
    let mut answers = done.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let answer = answers.find(|answer| answer["id"] == 2).unwrap();
    serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap()
}

fn shown(path: &Path) -> Value {
    let formulas = Arc::new(Catalog::built_in().clone());
    let opened = recordings::read(path, "it", 64 << 20, &formulas).unwrap();
    serde_json::to_value(opened.findings(|_| ())).unwrap()
}

#[test]
fn a_recording_has_one_answer_wherever_it_is_asked_for() {
    let folder = Folder::new("agreement");
    for (name, machine, is_remote) in recorded() {
        let file = format!("{name}.arrows");
        write(&machine, &folder.path(&file));
        let report = parsed(&folder.run(&format!("show --json {file}")));
        let found = problems(&report["findings"]);
        let first = found.first().map(|problem| problem[0].as_str().unwrap().to_owned());
        assert_eq!(first.is_some_and(|rule| rule.starts_with("remote-")), is_remote, "{name}: {found:?}");

        let answered = answered(&folder, &file);
        assert_eq!(problems(&answered), found, "{name}: mcp");
        assert_eq!(answered["headline"], report["findings"]["headline"], "{name}: mcp");
        let exported = parsed(&folder.run(&format!("export --to findings {file}")));
        assert_eq!(problems(&exported["findings"]), found, "{name}: export");
        let page = shown(&folder.path(&file));
        assert_eq!(problems(&page), found, "{name}: page");
        assert_eq!(page["verdict"], report["findings"]["headline"]["verdict"], "{name}: page");
        let mut top = AtTerminal::start(&folder, 200, 40, &format!("top --replay {file}"), &[]);
        top.shows("Verdict");
        // Its findings are of the last minute: at the end, of the whole recording.
        top.press("t1min\r");
        top.shows(page["verdict"].as_str().unwrap());
        top.press("q");
        assert_eq!(top.ends().0, 0, "{name}: top");
        let itself = parsed(&folder.run(&format!("show --json {file} {file}")));
        let kept: Vec<Value> = itself["kept"].as_array().unwrap().iter().map(problem).collect();
        assert_eq!(kept, found, "{name}: comparison with itself");
        assert!(itself["program"].as_array().unwrap().is_empty(), "{name}: {itself}");
    }
}
