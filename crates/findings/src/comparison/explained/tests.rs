use super::*;
use proptest::prelude::*;
use saved::{SavedProcess, SavedResultError};
use std::path::Path;

/// A result that is made up: remote memory, the share of one array, and a contended line.
pub(super) fn text(far: f64, array: f64, line: u64) -> String {
    let near = 0.6 - far;
    let (low, high) = ((far - 0.03).max(0.0), far + 0.03);
    let lines = match line {
        0 => String::new(),
        weight => {
            format!(r#"{{"process": 0, "object": 1, "sharing": "false", "weight": {weight}, "users": []}}"#)
        }
    };
    format!(
        r#"{{"version": 1, "regime": "precise", "road": "by perf", "seconds": 10.0, "program": "./a", "complete": true,
        "samples": {{"total": 8000, "memory": 5000, "by_rule": {{}}}},
        "time": {{"computing": 0.3, "cached": 0.0, "local": {near}, "remote": {far}, "unknown": 0.0, "contended": 0.0,
            "kernel": 0.1, "runnable": 0.0, "asleep": 0.0}},
        "threads": {{"user": 36000000000, "kernel": 4000000000, "runnable": 0, "asleep": 0, "faults": 9}},
        "remote_share": {{"share": {far}, "low": {low}, "high": {high}}}, "lines": [{lines}],
        "functions": [{{"function": "f", "module": "a", "time": {{"computing": 100, "private_cache": 0, "shared_cache": 0,
            "contended": 0, "near": 100, "far": 0, "unknown": 0}}}}],
        "caches": {{"private": 1048576, "last_level": 33554432}},
        "objects": [{{"name": "array", "time_share": {array}, "remote": {{"share": {far}, "low": {low}, "high": {high}}}}},
            {{"name": "counters", "time_share": 0.1, "remote": null}}]}}"#
    )
}

fn read(text: &str) -> Result<SavedResult, SavedResultError> {
    SavedResult::parse(Path::new("r.json"), text.as_bytes())
}

pub(super) fn result(far: f64, array: f64, line: u64) -> SavedResult {
    read(&text(far, array, line)).unwrap()
}

fn changed(before: &SavedResult, after: &SavedResult) -> Vec<ChangedShare> {
    compare(before, after).changes.into_iter().map(|change| change.what).collect()
}

#[test]
fn what_changed_beyond_noise_is_named_in_order() {
    let (before, after) = (result(0.5, 0.8, 100), result(0.05, 0.2, 0));
    let expected = [
        ChangedShare::Time("local memory"),
        ChangedShare::Time("remote memory"),
        ChangedShare::Far,
        ChangedShare::Object("array".into()),
        ChangedShare::Remote("array".into()),
        ChangedShare::Line("counters".into(), Sharing::False),
    ];
    assert_eq!(changed(&before, &after), expected);
    let comparison = compare(&before, &after);
    assert_eq!((comparison.compared, comparison.unlike, comparison.absent), (15, vec![], BTreeSet::new()));
    assert_eq!(comparison.cpu_time, (40_000_000_000, 40_000_000_000));
}

#[test]
fn objects_are_the_same_at_another_address() {
    let at = |address: &str, share| {
        let mut result = result(0.3, share, 0);
        result.objects[0].name = format!("anonymous memory at {address} (7 pieces)");
        result
    };
    assert_eq!(changed(&at("0x7f5b72a1e000", 0.5), &at("0x7fd5da1ba000", 0.5)), []);
    let name = "anonymous memory (7 pieces)".to_owned();
    assert_eq!(changed(&at("0x1", 0.8), &at("0x2", 0.2)), [ChangedShare::Object(name)]);
}

#[test]
fn findings_that_are_gone_or_new_are_told() {
    let of = |found: &str| {
        let whole = text(0.3, 0.5, 0);
        let end = whole.rfind('}').unwrap();
        read(&format!("{}, \"findings\": [{found}]}}", &whole[..end])).unwrap()
    };
    let chain =
        r#"{"rule": "chain", "subject": {"kind": "object", "number": 0}, "says": "a chain", "cost": {}}"#;
    let others = r#"{"rule": "cpus-used-by-others", "subject": {"kind": "program"}, "says": "Others run"}"#;
    let comparison = compare(&of(&format!("{chain}, {others}")), &of(others));
    let gone = ComparedFinding { rule: "chain".into(), object: Some("array".into()), says: "a chain".into() };
    assert_eq!((comparison.gone, comparison.new), (vec![gone.clone()], vec![]));
    assert_eq!(compare(&of(""), &of(chain)).new, [gone]);
    // A result that does not tell its findings has not lost them.
    let comparison = compare(&of(chain), &result(0.3, 0.5, 0));
    assert_eq!((comparison.gone, comparison.absent), (vec![], BTreeSet::from(["findings"])));
}

#[test]
fn shares_are_of_the_cpu_time_however_long_threads_wait() {
    let waiting = |idle: f64| {
        let mut result = result(0.3, 0.5, 0);
        result.time = Some(TimeShares {
            computing: 0.6 * (1.0 - idle),
            local: 0.4 * (1.0 - idle),
            runnable: idle,
            ..TimeShares::default()
        });
        result
    };
    assert_eq!(changed(&waiting(0.1), &waiting(0.8)), [ChangedShare::Threads("runnable without a CPU")]);
}

#[test]
fn noise_is_no_change() {
    assert_eq!(changed(&result(0.3, 0.5, 100), &result(0.32, 0.53, 95)), []);
    // The same shares from one hundredth of the time say little.
    let short = |mut result: SavedResult| {
        result.threads.user = 300_000_000;
        result.threads.kernel = 100_000_000;
        result.remote_share = None;
        result.objects.clear();
        result
    };
    assert_eq!(changed(&short(result(0.5, 0.8, 0)), &short(result(0.2, 0.8, 0))), []);
}

#[test]
fn the_kernels_part_is_counted_so_that_short_runs_tell_it() {
    let with = |kernel: f64, cpu: u64| {
        let mut result = result(0.3, 0.5, 0);
        let time = result.time.as_mut().unwrap();
        (time.computing, time.kernel) = (0.4 - kernel, kernel);
        (result.threads.user, result.threads.kernel) = (cpu, 0);
        result
    };
    let kernel = ChangedShare::Time("kernel");
    assert!(changed(&with(0.35, 1_700_000_000), &with(0.02, 330_000_000)).contains(&kernel));
    assert!(!changed(&with(0.2, 1_700_000_000), &with(0.15, 330_000_000)).contains(&kernel));
}

#[test]
fn another_machine_method_regime_or_program_is_said() {
    let before = result(0.3, 0.5, 0);
    let mut after = before.clone();
    after.method = "by timers".into();
    after.caches.private = 2 << 20;
    after.program = "./b".into();
    after.complete = false;
    let caches = ["private caches of 1024 KiB", "private caches of 2048 KiB"].map(str::to_owned);
    assert_eq!(
        compare(&before, &after).unlike,
        [
            UnlikeResults::Program("./a".into(), "./b".into()),
            UnlikeResults::Machine(caches[0].clone(), caches[1].clone()),
            UnlikeResults::Method("by perf".into(), "by timers".into()),
            UnlikeResults::Incomplete(true, false),
        ]
    );
    let (mut one, mut other) = (before.clone(), before.clone());
    (one.machine, other.machine) = (Some("x".into()), Some("x".into()));
    other.caches.private = 0;
    assert_eq!(compare(&one, &other).unlike, []);
    other.machine = Some("y".into());
    assert_eq!(compare(&one, &other).unlike, [UnlikeResults::Machine("x".into(), "y".into())]);
}

#[test]
fn of_another_regime_only_what_both_have_is_compared() {
    let before = result(0.3, 0.5, 100);
    let mut after = result(0.3, 0.1, 0);
    after.regime = numakit_explain::Regime::Block;
    (after.time, after.remote_share) = (None, None);
    let comparison = compare(&before, &after);
    assert_eq!((comparison.compared, &comparison.unlike[..]), (0, &[UnlikeResults::Regime][..]));
    assert_eq!(comparison.absent, BTreeSet::from(["remote share", "shares of time"]));
}

#[test]
fn objects_without_a_share_are_absent_not_zero() {
    let before = result(0.3, 0.5, 0);
    let mut after = before.clone();
    after.objects[0].time_share = None;
    let comparison = compare(&before, &after);
    assert_eq!(comparison.absent, BTreeSet::from(["time at objects"]));
    assert_eq!(comparison.changes, []);
}

#[test]
fn damaged_and_foreign_files_are_refused() {
    let whole = text(0.3, 0.5, 1);
    for (bad, expected) in [
        (
            whole[..whole.len() / 2].to_owned(),
            "r.json is not a result of 'numa explain --json', or it is damaged: EOF",
        ),
        ("{}".to_owned(), "missing field `version`"),
        ("[1]".to_owned(), "damaged"),
        (whole.replace("\"remote_share\"", "\"x\"").replace("\"regime\"", "\"y\""), "missing field `regime`"),
        (whole.replace("\"version\": 1", "\"version\": 7"), "version 7 of the form; this numa reads 1"),
    ] {
        let error = read(&bad).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

proptest! {
    #[test]
    fn a_result_equals_itself_and_changes_have_no_direction(far in 0.0..0.6, array in 0.0..1.0, line in 0u64..400, other in 0.0..0.6) {
        let (before, after) = (result(far, array, line), result(other, 1.0 - array, 400 - line));
        prop_assert_eq!(compare(&before, &before).changes, vec![]);
        let (mut one, mut back) = (changed(&before, &after), changed(&after, &before));
        one.sort();
        back.sort();
        prop_assert_eq!(one, back);
    }
}

#[test]
fn results_of_other_programs_are_told() {
    let of = |program: &str, names: &[&str]| {
        let mut result = result(0.5, 0.5, 100);
        result.program = program.to_owned();
        result.processes =
            names.iter().map(|name| SavedProcess { pid: 0, name: (*name).to_owned() }).collect();
        result
    };
    let app = of("./app 7", &["app"]);
    assert!(app.is_of_program_of(&of("numa run --thp on -- ./app 8", &["numa", "app"])));
    assert!(!app.is_of_program_of(&of("python3 app.py", &["python3"])));
    // Both are run by a shell, or it is not known.
    assert!(!of("sh a", &["sh", "a"]).is_of_program_of(&of("sh b", &["sh", "b"])));
    assert!(app.is_of_program_of(&of("process 7", &[])));
}

#[test]
fn runs_of_one_command_line_or_process_need_no_caution() {
    let of = |program: &str, pid: u32| {
        let mut result = result(0.5, 0.5, 100);
        result.program = program.to_owned();
        result.processes = vec![SavedProcess { pid, name: "app".to_owned() }];
        result
    };
    let unlike = |one: &SavedResult, other: &SavedResult| compare(one, other).unlike;
    let app = of("./app 7", 1);
    assert_eq!(unlike(&app, &of("numa run --thp on -- ./app 7", 2)), []);
    assert_eq!(unlike(&of("numa run -- ./app 7", 2), &app), []);
    assert_eq!(unlike(&of("process 9", 9), &of("processes named app", 9)), [], "it is the same process");
    for other in ["./app 8", "./other-./app 7"] {
        assert!(matches!(unlike(&app, &of(other, 2))[..], [UnlikeResults::Program(..)]), "{other}");
    }
}

#[test]
fn on_one_node_a_remote_share_is_not_missed_and_a_comparison_is_json() {
    let mut one = result(0.0, 0.5, 100);
    one.remote_share = None;
    let mut other = result(0.0, 0.1, 100);
    other.remote_share = None;
    let comparison = compare(&one, &other);
    assert_eq!(comparison.absent, BTreeSet::new());
    let json = serde_json::to_value(&comparison).unwrap();
    assert_eq!(json["changes"][0]["what"], serde_json::json!({"kind": "object", "name": "array"}));
    assert_eq!(json["cpu_time"], serde_json::json!([40_000_000_000u64, 40_000_000_000u64]));
}
