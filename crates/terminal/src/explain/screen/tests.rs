use super::*;
use crate::explain::tests::{finding, object, report, step};
use numakit_explain::share::ShareEstimate;
use numakit_explain::traffic::{Traffic, TrafficCell};
use numakit_explain::waits::LockHolder;
use numakit_findings::explained::JudgedProjection;
use numakit_findings::finding::{CostBasis, Finding};
use numakit_findings::next::{NextKind, NextStep};

/// The result of a program whose words are all as long as they get.
fn long() -> JudgedReport {
    let mut long = report();
    let words = |count: usize| vec!["words"; count].join(" ");
    long.objects = (0..5).map(|_| object()).collect();
    for judged in &mut long.objects {
        judged.object.time_share = 0.2;
        judged.object.object.name = format!("malloc in {} (/src/app.c:3)", words(40));
    }
    for row in &mut long.report.explanation.waits.rows {
        row.what = Some(words(20));
    }
    long.report.explanation.waits.locks = vec![held_lock(), held_lock()];
    let program = Finding { subject: FindingSubject::Program, says: words(90), ..finding() };
    long.findings.insert(0, program);
    let first = NextStep {
        r#do: Some(words(120)),
        command: format!("numa run -- ./app {}", words(60)),
        why: Some(words(60)),
        ..step()
    };
    long.next = vec![first.clone(), NextStep { r#do: None, ..first }];
    long
}

fn held_lock() -> LockTime {
    let report = report();
    let chain = report.report.explanation.waits.rows[0].chain.clone();
    let name = "worker".to_owned();
    let holders = vec![LockHolder { thread: 12, name, share: 0.5, runs: true, chain: chain.clone() }];
    let what = "total_lock".to_owned();
    LockTime { what, is_gil: false, time: 75, worked: 25, threads: 4, looks: 20, chain, holders }
}

#[test]
fn the_screen_is_that_of_the_golden_file() {
    let mut all = String::new();
    let mut emulated = report();
    emulated.report.regime = Regime::Block;
    (emulated.report.explanation.time, emulated.report.explanation.remote_share) = (None, None);
    let cell = |cpu_node, memory_node, pages| TrafficCell { cpu_node, memory_node, pages };
    let pages = vec![cell(0, 0, 1000), cell(1, 0, 900), cell(1, 1, 100)];
    emulated.report.explanation.traffic = Some(Traffic { pages, unknown: 7, ..Traffic::default() });
    let mut locked = report();
    locked.report.explanation.waits.locks = vec![held_lock()];
    for (judged, width) in [(report(), 100), (report(), 80), (locked, 100), (emulated, 100), (long(), 80)] {
        all.push_str(&format!("----- {width}\n{}", screen(&judged, width, true)));
    }
    let path = format!("{}/tests/golden/explain-screen.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &all).unwrap();
    }
    assert_eq!(all, std::fs::read_to_string(&path).unwrap(), "write it with UPDATE=1");
}

#[test]
fn whatever_is_found_fits_the_smallest_terminal_and_commands_stay_whole() {
    for judged in [report(), long()] {
        for width in [60, 80, 100, 300] {
            let shown = screen(&judged, width, true);
            assert!(shown.lines().count() <= HEIGHT, "{width}: {}\n{shown}", shown.lines().count());
            let longest = shown.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(longest <= width.min(WIDTH), "{width}: {longest}\n{shown}");
            let joined = shown.replace(" \\\n       ", "");
            assert!(joined.contains(&judged.next[0].command), "{shown}");
            assert!(!shown.contains("\nalso:"), "a second command that is so long is left out: {shown}");
            assert!(shown.ends_with("numa show\n"), "{shown}");
        }
    }
    assert!(screen(&report(), 100, false).ends_with("all of it: the same with --all\n"));
}

#[test]
fn the_screen_of_an_estimate_has_the_other_machine() {
    let mut there = report();
    let mut projection =
        numakit_explain::projection::Projection::impossible("EPYC 9755 x2", "no page faults were seen");
    there.projected = Some(JudgedProjection { projection: projection.clone(), objects: Vec::new() });
    let shown = screen(&there, 100, true);
    assert!(shown.contains("As on EPYC 9755 x2: not told, since no page faults were seen."), "{shown}");
    (projection.why_not, projection.threads) = (None, 4);
    projection.remote_share = Some(ShareEstimate { share: 0.75, low: 0.7, high: 0.8 });
    let mut object = object();
    object.object.object.name = "elsewhere".to_owned();
    there.projected = Some(JudgedProjection { projection, objects: vec![object] });
    let shown = screen(&there, 100, true);
    assert!(
        shown.contains("75.0 % would be at memory of other nodes") && shown.contains("elsewhere"),
        "{shown}"
    );
}

#[test]
fn every_step_says_what_it_is_for() {
    let mut steps = report();
    let share = 0.25;
    let (path, machine) = ("/home/u/app".to_owned(), "EPYC 9755 x2".to_owned());
    let kinds = [
        NextKind::Remedy { expect: None, machine: Some(machine.clone()), is_incomplete: true },
        NextKind::Proof,
        NextKind::MoreSamples,
        NextKind::MoreWork,
        NextKind::OtherMethod,
        NextKind::Calibration,
        NextKind::Privileges,
        NextKind::Symbols { path: path.clone(), share },
        NextKind::Rebuild { path, share },
        NextKind::RuntimeNames { share },
        NextKind::OtherMachine,
        NextKind::Placement { machine },
        NextKind::CallChains,
        NextKind::Details,
    ];
    for kind in kinds {
        let first = NextStep { kind, r#do: None, worth: None, why: None, ..step() };
        steps.next = vec![first];
        let shown = screen(&steps, 100, true);
        let mut lines = shown.lines().skip_while(|line| !line.starts_with("next:"));
        assert_eq!(lines.next(), Some("next:   numa run --memory interleave -- ./app"), "{shown}");
        assert!(lines.next().is_some_and(|line| line.starts_with("        ") && line.len() > 20), "{shown}");
    }
    steps.next = vec![step(), NextStep { kind: NextKind::Proof, worth: None, why: None, ..step() }];
    let shown = screen(&steps, 100, true);
    assert!(shown.contains("\ndo:     Initialise") && shown.contains("\nthen:   numa run"), "{shown}");
    assert!(
        shown.contains("\nworth:  at most 20.0 % of the CPU time; it spreads the load: remote"),
        "{shown}"
    );
}

#[test]
fn a_finding_about_the_program_stands_first_with_its_cost() {
    let mut slow = report();
    let cost = numakit_findings::finding::FindingCost::Share {
        of: CostBasis::WallTime,
        percent: 75.0,
        low: 0.0,
        high: 75.0,
    };
    let says = "4 threads wait for a lock".to_owned();
    let lock = Finding { rule: "contended-lock", subject: FindingSubject::Program, says, cost, ..finding() };
    slow.findings.insert(0, lock);
    slow.report.explanation.waits.locks = vec![held_lock()];
    let shown = screen(&slow, 100, true);
    assert!(
        shown.starts_with("4 threads wait for a lock (it costs at most 75.0 % of the time).\n"),
        "{shown}"
    );
    assert!(!shown.contains("\nwaits:"), "it is said already: {shown}");
    slow.findings.remove(0);
    let shown = screen(&slow, 100, true);
    let expected =
        "\nwaits:  75.0 % for total_lock: 4 threads in worker; thread 12 (worker) holds it, in worker\n";
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn source_files_have_no_folders_and_other_files_keep_them() {
    assert_eq!(brief("in /a/b.c:7 (main), of /data/file"), "in b.c:7 (main), of /data/file");
    assert_eq!(brief("malloc in f (/src/x.cpp:5): it is"), "malloc in f (x.cpp:5): it is");
    assert_eq!(brief("f /app/map.js:4:16 on http://host:80/x"), "f map.js:4:16 on http://host:80/x");
}
