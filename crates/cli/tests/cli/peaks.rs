//! Kept results of `numa bench` as the 100 % of other verbs.

use crate::runner::{Done, Folder};
use numakit_bench::{BenchResults, kept};
use numakit_sys::SysRoot;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

fn run(folder: &Folder, state: &Path, words: &str) -> Done {
    Done::of(folder.numa(words).env("XDG_STATE_HOME", state).output().unwrap())
}

/// A folder of state with results of this machine, changed in this way.
fn measured(folder: &Folder, name: &str, change: impl Fn(&mut BenchResults)) -> PathBuf {
    static RESULTS: OnceLock<String> = OnceLock::new();
    let results = RESULTS.get_or_init(|| folder.run("bench bandwidth --json --size 1M --time 1ms").out);
    let mut results: BenchResults = serde_json::from_str(results).unwrap();
    change(&mut results);
    let topology = numakit_topology::read(&SysRoot::host()).unwrap();
    let state = folder.path(name);
    let below = state.join("numakit/bench");
    std::fs::create_dir_all(&below).unwrap();
    let file = below.join(format!("{}.json", kept::key_of(&SysRoot::host(), &topology)));
    std::fs::write(file, serde_json::to_string(&results).unwrap()).unwrap();
    state
}

fn json(done: &Done) -> Value {
    serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {} {}", done.out, done.err))
}

#[test]
fn weights_are_those_of_the_results_of_this_machine() {
    let folder = Folder::new("weights");
    run(&folder, &folder.path("none"), "bench weights").says(2, "'numa bench all' measures it and keeps");
    let own = measured(&folder, "own", |_| {});
    let done = run(&folder, &own, "bench weights --json");
    assert_eq!(done.code, 0, "{}", done.err);
    let weights = json(&done);
    let topology = numakit_topology::read(&SysRoot::host()).unwrap();
    let with_memory = topology.nodes.iter().filter(|node| node.memory_kb != Some(0)).count();
    let nodes = weights["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), with_memory);
    assert!(
        nodes
            .iter()
            .all(|node| node["measured"].as_u64() > Some(0) && node["bandwidth"].as_f64() > Some(0.0))
    );
    let has_kernel = nodes.iter().all(|node| node["kernel"].is_u64());
    assert_eq!((weights["same"].is_boolean(), weights["not_compared"].is_null()), (has_kernel, has_kernel));
    let page = run(&folder, &own, "bench weights");
    assert!(
        page.out.contains("read GB/s")
            && page.out.contains("the kernel's weights") | page.out.contains("The kernel has")
    );
}

#[test]
fn results_of_another_machine_are_no_peak() {
    let folder = Folder::new("otherpeak");
    let other = measured(&folder, "other", |results| results.machine_key = "0123456789abcdef".to_owned());
    run(&folder, &other, "bench weights").says(2, "it is of another machine");
    let cut = measured(&folder, "cut", |results| results.complete = false);
    run(&folder, &cut, "bench weights").says(2, "the run was interrupted");
    let old = measured(&folder, "old", |results| results.version = 7);
    run(&folder, &old, "bench weights").says(2, "version 7, and this numa reads version 1");
    // A file that is named is no peak of this machine: its weights are shown, and not compared.
    let file = std::fs::read_dir(other.join("numakit/bench")).unwrap().next().unwrap().unwrap().path();
    let done = run(&folder, &other, &format!("bench weights {} --json", file.display()));
    assert_eq!(json(&done)["not_compared"], "the results are of another machine");
    let done = run(&folder, &other, "record -o other.arrows -i 10ms -v -e vmstat -- true");
    assert!(
        done.err.contains("no measured peaks of the memory: ") && done.err.contains("another machine"),
        "{}",
        done.err
    );
    let report = json(&run(&folder, &other, "show other.arrows --json"));
    assert_eq!(
        (&report["traffic"]["is_measured"], &report["traffic"]["places"]),
        (&Value::Bool(false), &Value::Array(vec![]))
    );
}

#[test]
fn a_recording_has_the_peaks_of_its_machine_wherever_it_is_read() {
    let folder = Folder::new("recordedpeak");
    let (own, none) = (measured(&folder, "own", |_| {}), folder.path("none"));
    run(&folder, &own, "record -o with.arrows -i 10ms -e vmstat -- true").says(0, "with.arrows");
    run(&folder, &none, "record -o without.arrows -i 10ms -e vmstat -- true").says(0, "without.arrows");
    let traffic = |state: &Path, file: &str| {
        json(&run(&folder, state, &format!("show {file} --json")))["traffic"].clone()
    };
    let recorded = traffic(&none, "with.arrows");
    assert!(recorded["places"][0]["peak_per_second"].as_f64() > Some(0.0), "{recorded}");
    assert_eq!(recorded["places"][0]["per_second"], Value::Null, "nothing counts traffic in it");
    assert_eq!(traffic(&none, "without.arrows")["is_measured"], false);
    // This machine made it, and has results now.
    assert_eq!(traffic(&own, "without.arrows")["places"], recorded["places"]);
    let page = run(&folder, &none, "show with.arrows");
    assert!(
        page.out.contains("node 0: measured peak") && page.out.contains("no counters of memory traffic"),
        "{}",
        page.out
    );
}

#[test]
fn a_weighted_policy_says_which_weights_the_kernel_uses() {
    let folder = Folder::new("weightedrun");
    let own = measured(&folder, "own", |_| {});
    let topology = numakit_topology::read(&SysRoot::host()).unwrap();
    let has_weights = topology.nodes.iter().all(|node| node.interleave_weight.is_some());
    for words in ["--dry-run", "--dry-run --explain"] {
        let done = run(&folder, &own, &format!("run --share --memory weighted {words} -- true"));
        assert_eq!(done.code, 0, "{}", done.err);
        assert_eq!(
            done.err.matches("the kernel's weights").count(),
            usize::from(has_weights),
            "{words}: {}",
            done.err
        );
        assert_eq!(done.err.contains("measured bandwidths"), has_weights, "{}", done.err);
    }
    let done = run(&folder, &own, "run --share --memory local --dry-run -- true");
    assert!(!done.err.contains("weights"), "{}", done.err);
}
