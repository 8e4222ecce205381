use super::*;
use numakit_explain::account::ThreadTimes;
use numakit_explain::code::CodeName;
use numakit_explain::share::ShareEstimate;
use numakit_explain::traffic::TrafficCell;
use numakit_explain::{Explanation, MissingSamples, SampleCounts, SampledObject, SampledThread};
use std::collections::{BTreeMap, BTreeSet};

fn code(function: &str, line: Option<u32>, near: u64, far: u64) -> CodeTime {
    CodeTime {
        name: CodeName {
            function: (!function.is_empty()).then(|| function.to_owned()),
            module: "app".to_owned(),
            file: line.map(|_| "app.c".to_owned()),
            line,
        },
        time: PlaceTimes { near, far, computing: 100, ..PlaceTimes::default() },
    }
}

fn user(thread: u32, offset: u64, loads: u64, stores: u64, atomics: u64) -> LineUser {
    let mut user = LineUser::new(thread);
    user.nodes = BTreeSet::from([thread]);
    user.offsets = BTreeMap::from([(offset, loads + stores)]);
    (user.loads, user.stores, user.atomics) = (loads, stores, atomics);
    user
}

fn report() -> ExplainReport {
    let line = ContendedLine {
        process: 0,
        address: 0x7000,
        object: 0,
        home: Some(0),
        sharing: Sharing::False,
        across_nodes: true,
        weight: 150,
        users: vec![user(0, 0, 0, 200, 200), user(1, 8, 90, 10, 0)],
        instructions: vec![(0x400, 150)],
    };
    let explanation = Explanation {
        samples: SampleCounts {
            total: 8201,
            memory: 6000,
            recovered: 5900,
            in_cache: 100,
            by_rule: BTreeMap::new(),
        },
        time: Some(TimeShares {
            computing: 0.1,
            cached: 0.05,
            near: 0.2,
            far: 0.4,
            unknown: 0.01,
            contended: 0.04,
            kernel: 0.05,
            runnable: 0.05,
            asleep: 0.1,
        }),
        threads: ThreadTimes { faults: 12345, ..ThreadTimes::default() },
        far_share: Some(ShareEstimate { share: 0.667, low: 0.64, high: 0.69 }),
        nodes: Vec::new(),
        traffic: None,
        lines: vec![line],
        functions: vec![code("sum<double>(double*)", None, 100, 300), code("", None, 50, 0)],
        source_lines: vec![code("sum", Some(7), 100, 300)],
        caches: numakit_explain::caches::CacheSizes::default(),
    };
    ExplainReport {
        version: 1,
        regime: Regime::Precise,
        road: "by performance events".to_owned(),
        road_reason: None,
        rate: 199.0,
        seconds: 5.0,
        program: "app".to_owned(),
        complete: true,
        exit_status: Some(0),
        missing: MissingSamples { lost: 3, ..MissingSamples::default() },
        explanation,
        threads_sampled: [11, 12]
            .map(|tid| SampledThread { pid: 11, tid, name: "worker".to_owned() })
            .to_vec(),
        objects: vec![SampledObject { pid: 11, address: 0x7000, size: 4096, name: "[heap]".to_owned() }],
    }
}

#[test]
fn the_text_is_that_of_the_golden_file() {
    let mut all = text(&report(), 10);
    let mut emulated = report();
    emulated.regime = Regime::Block;
    (emulated.explanation.time, emulated.explanation.far_share) = (None, None);
    let cell = |cpu_node, memory_node, pages| TrafficCell { cpu_node, memory_node, pages };
    let pages = vec![cell(0, 0, 1000), cell(1, 0, 900), cell(1, 1, 100)];
    emulated.explanation.traffic = Some(Traffic { pages, unknown: 7, cached: 0 });
    emulated.missing.threads = 2;
    emulated.road_reason =
        Some("samples by ptrace; not by performance events: kernel.perf_event_paranoid is 3".to_owned());
    all.push_str("-----\n");
    all.push_str(&text(&emulated, 10));
    let path = format!("{}/tests/golden/explain.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &all).unwrap();
    }
    assert_eq!(all, std::fs::read_to_string(&path).unwrap(), "write it with UPDATE=1");
}

#[test]
fn names_are_without_arguments() {
    for (name, short) in [
        ("std::map<int, std::pair<int, int> >::find(int const&) const", "std::map::find"),
        ("main", "main"),
        ("std::operator<<(std::ostream&, int)", "std::operator<<"),
        ("alloc::vec::Vec<T>::push", "alloc::vec::Vec::push"),
    ] {
        assert_eq!(shortened(name), short);
    }
}
