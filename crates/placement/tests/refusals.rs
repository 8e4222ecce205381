//! What is refused says what was wrong, what there is, and what to do.
#![allow(clippy::unwrap_used)]

use numakit_model::{CpuSet, Topology};
use numakit_placement::{Cores, PlacementRequest, Taken, plan};

fn machine(text: &str) -> Topology {
    numakit_topology::synthetic::parse(text).unwrap()
}

fn set(list: &str) -> CpuSet {
    CpuSet::parse_list(list).unwrap()
}

fn cores(count: u32) -> PlacementRequest {
    PlacementRequest { cores: Some(Cores::Count(count)), ..PlacementRequest::default() }
}

/// The error, and whether waiting can help.
fn refused(topology: &Topology, request: &PlacementRequest, taken: &Taken) -> (String, bool) {
    let error = plan(topology, request, taken).unwrap_err();
    (error.to_string(), error.is_temporary())
}

#[test]
fn more_cores_than_there_are() {
    let (error, is_temporary) = refused(&machine("package:2 core:4"), &cores(9), &Taken::default());
    assert_eq!(error, "9 cores are requested, and this machine has 8; request at most 8");
    assert!(!is_temporary);
    // Who holds cores does not matter then.
    let taken = Taken { registered: vec![(set("0-7"), "namd of alice".into())], ..Taken::default() };
    assert_eq!(refused(&machine("package:2 core:4"), &cores(9), &taken), (error, false));
    assert!(plan(&machine("core:4"), &cores(5), &Taken::default()).unwrap_err().is_impossible());
    assert!(!plan(&machine("core:4 allowed=0-1"), &cores(4), &Taken::default()).unwrap_err().is_impossible());
}

#[test]
fn too_few_free_cores_name_the_holders() {
    let taken = Taken {
        isolated: set("0"),
        registered: vec![(set("2-3"), "namd of alice".into()), (set("4"), "python of bob".into())],
        busy: vec![(5, 97)],
        explicit: set("1"),
    };
    let topology = machine("package:2 core:4");
    let (error, is_temporary) = refused(&topology, &cores(4), &taken);
    assert_eq!(
        error,
        "4 cores are requested, but 2 of this machine's 8 are free: 1 excluded by the configuration, 1 isolated, \
         2 held by namd of alice (CPUs 2-3), 1 held by python of bob (CPUs 4), \
         1 busy (CPU 5 at 97 %); request at most 2 or wait for the others (--wait) or share them (--share)"
    );
    assert!(is_temporary);
    let (error, is_temporary) = refused(&topology, &cores(7), &taken);
    assert!(error.ends_with("; request at most 2 or name the isolated ones in --cpus"), "{error}");
    assert!(!is_temporary);
}

#[test]
fn a_core_is_taken_as_a_whole() {
    let taken = Taken { registered: vec![(set("8"), "namd of alice".into())], ..Taken::default() };
    let (error, _) = refused(&machine("package:2 core:4 pu:2 numbering=interleaved"), &cores(8), &taken);
    assert!(error.contains("7 of this machine's 8 are free: 1 held by namd of alice (CPUs 8)"), "{error}");
}

#[test]
fn all_cores_are_refused_while_somebody_holds_one() {
    let taken = Taken { registered: vec![(set("2-3"), "namd of alice".into())], ..Taken::default() };
    let request = PlacementRequest { cores: Some(Cores::All), ..PlacementRequest::default() };
    let topology = machine("package:2 core:4");
    let (error, is_temporary) = refused(&topology, &request, &taken);
    assert_eq!(
        error,
        "all cores are requested, but 6 of this machine's 8 are free: 2 held by namd of alice (CPUs 2-3); request \
         those that are free (-c auto), wait for the others (--wait) or share them (--share)"
    );
    assert!(is_temporary);
    let busy = Taken { busy: vec![(1, 80)], ..Taken::default() };
    let all = plan(&topology, &request, &busy).unwrap();
    assert_eq!(all.cpus().to_string(), "0-7");
    assert_eq!(all.warnings, ["programs run already on CPU 1 at 80 %"]);
}

#[test]
fn masks_strides_and_lists_are_reasons() {
    let topology = machine("package:2 core:4 allowed=2-7");
    let request = PlacementRequest { stride: 2, exclude: Some("6".parse().unwrap()), ..cores(4) };
    let (error, _) = refused(&topology, &request, &Taken::default());
    assert_eq!(
        error,
        "4 cores are requested, but 3 of this machine's 8 are free: 2 outside the inherited mask or cpuset, 1 \
         excluded by the request, 2 skipped by stride 2; request at most 3 or start with a wider mask or exclude \
         fewer or use a smaller stride"
    );
    let request = PlacementRequest {
        processes: 3,
        threads: Some(2),
        threads_per_core: 2,
        ..PlacementRequest::default()
    };
    let (error, _) = refused(&topology, &request, &Taken::default());
    assert_eq!(
        error,
        "2 threads per core are requested, and a core of this machine has 1 PU; request at most 1"
    );
}

#[test]
fn invalid_numbers_in_lists_are_errors() {
    let topology = machine("package:2 node:1 core:4 node:1(cpuless) offline=3 allowed=0-5");
    let with = |cpus: Option<&str>, nodes: Option<&str>| {
        let request = PlacementRequest {
            cpus: cpus.map(|list| list.parse().unwrap()),
            nodes: nodes.map(|list| list.parse().unwrap()),
            ..PlacementRequest::default()
        };
        refused(&topology, &request, &Taken::default()).0
    };
    for (error, expected) in [
        (with(Some("3"), None), "CPU 3 of the list '3' is offline; those that may be used are 0-2,4-5"),
        (with(Some("0,40"), None), "CPU 40 of the list '0,40' is not on this machine"),
        (with(Some("6-7"), None), "CPU 6-7 of the list '6-7' may not be used: the inherited mask or cpuset"),
        (with(Some("!all"), None), "the list '!all' is empty"),
        (
            with(None, Some("7")),
            "node 7 of the list '7' is not on this machine; those that may be used are 0-1",
        ),
        (with(None, Some("2")), "node 2 of the list '2' may not be used: it has no CPU"),
        (with(Some("0"), Some("1")), "none of CPUs 0 is on nodes 1; omit one of the two lists"),
    ] {
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn missing_distances_are_a_warning() {
    let topology = Topology { distances: None, ..machine("package:2 node:2 core:4") };
    let plan = plan(&topology, &cores(6), &Taken::default()).unwrap();
    assert_eq!(plan.nodes().to_string(), "0-1");
    assert!(plan.warnings[0].contains("does not report distances between nodes"), "{:?}", plan.warnings);
}

#[test]
fn isolated_cores_must_be_named() {
    let topology = machine("package:1 core:4");
    let taken = Taken { isolated: set("2-3"), ..Taken::default() };
    let request = PlacementRequest { cpus: Some("2-3".parse().unwrap()), ..PlacementRequest::default() };
    let named = plan(&topology, &request, &taken).unwrap();
    assert_eq!(named.cpus().to_string(), "2-3");
    assert_eq!(named.warnings, ["CPUs 2-3 are isolated: the kernel balances no load among them"]);
    let request = PlacementRequest { cpus: Some("!0".parse().unwrap()), ..PlacementRequest::default() };
    assert_eq!(plan(&topology, &request, &taken).unwrap().cpus().to_string(), "1");
}

#[test]
fn neighbours_within_a_stride_that_others_use_come_last() {
    let topology = machine("package:1 core:8");
    let taken = Taken { registered: vec![(set("0"), "namd of alice".into())], ..Taken::default() };
    let strided = |count| plan(&topology, &PlacementRequest { stride: 2, ..cores(count) }, &taken).unwrap();
    assert_eq!(strided(3).cpus().to_string(), "2,4,6");
    let all = strided(4);
    assert_eq!(all.cpus().to_string(), "1-2,4,6");
    assert_eq!(all.warnings, ["1 of the cores have a neighbour within stride 2 that others use"]);
}

#[test]
fn the_fastest_kind_comes_first_and_mixing_is_a_warning() {
    let mut topology = machine("package:1 core:6");
    let kind = |name: &str, cpus| numakit_model::topology::CoreKind { name: name.into(), cpus: set(cpus) };
    topology.kinds = vec![kind("cpu_atom", "0-3"), kind("cpu_core", "4-5")];
    let fast = plan(&topology, &cores(2), &Taken::default()).unwrap();
    assert_eq!((fast.cpus().to_string(), fast.warnings.len()), ("4-5".to_owned(), 0));
    let mixed = plan(&topology, &cores(3), &Taken::default()).unwrap();
    assert_eq!(mixed.steps.iter().map(|step| step.cpu).collect::<Vec<_>>(), [4, 5, 0]);
    assert_eq!(mixed.warnings, ["cores of different speed are mixed: cpu_core and cpu_atom"]);
}
