use super::*;
use crate::explain::tests::{finding, object, report, step};
use numakit_explain::objects::ObjectKind;
use numakit_explain::share::ShareEstimate;
use numakit_explain::traffic::{Traffic, TrafficCell};
use numakit_explain::waits::LockHolder;
use numakit_findings::explained::JudgedProjection;
use numakit_findings::finding::{CostBasis, Finding, FindingSubject};
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
        command: format!("numa run ./app {}", words(60)),
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
        NextKind::Remedy {
            expect: None,
            machine: Some(machine.clone()),
            is_incomplete: true,
            is_in_container: false,
        },
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
        assert_eq!(lines.next(), Some("next:   numa run --memory interleave ./app"), "{shown}");
        assert!(lines.next().is_some_and(|line| line.starts_with("        ") && line.len() > 20), "{shown}");
    }
    let proof = NextStep { kind: NextKind::Proof, worth: None, why: None, ..step() };
    steps.next =
        vec![step(), NextStep { command: "numa explain --compare ./app".to_owned(), ..proof.clone() }];
    let shown = screen(&steps, 100, true);
    assert!(shown.contains("\ndo:     Initialise") && shown.contains("\nthen:   numa explain"), "{shown}");
    assert!(
        shown.contains("\nworth:  at most 20.0 % of the CPU time: remote memory takes twice as long\nnext:"),
        "{shown}"
    );
}

#[test]
fn two_changes_that_one_command_proves_have_it_once() {
    let mut steps = report();
    let proof = |change: &str| NextStep { kind: NextKind::Proof, r#do: Some(change.to_owned()), ..step() };
    steps.next = vec![proof("Pad it"), proof("Sort it")];
    let shown = screen(&steps, 100, true);
    let at = |words: &str| shown.find(words).unwrap();
    assert!(at("\ndo:     Pad it") < at("\ndo:     Sort it"), "{shown}");
    assert_eq!(shown.matches("numa run --memory interleave").count(), 1, "{shown}");
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

/// The result of a program with contended lines whose CPUs others use; `others` is what that costs, in percent.
fn beside_others(others: f64) -> JudgedReport {
    let mut busy = report();
    let cost =
        |percent, of| numakit_findings::finding::FindingCost::Share { of, percent, low: 0.0, high: percent };
    let says = "Other programs use the CPUs: 2 busy threads wait for one".to_owned();
    let others = Finding {
        rule: "cpus-used-by-others",
        subject: FindingSubject::Program,
        says,
        cost: cost(others, CostBasis::WallTime),
        ..finding()
    };
    let own = Finding { cost: cost(20.0, CostBasis::CpuTime), ..finding() };
    busy.findings = if others.cost.percent() > Some(60.0) { vec![others, own] } else { vec![own, others] };
    busy
}

#[test]
fn what_others_do_stands_beside_what_is_wrong_with_the_program() {
    let own = "malloc in main (app.c:3): node 0 touched all of it first (a cure";
    let shown = screen(&beside_others(30.0), 100, true);
    assert!(shown.starts_with(own), "{shown}");
    assert!(shown.contains("\nOther programs use the CPUs: 2 busy threads wait for one.\n"), "{shown}");
    let shown = screen(&beside_others(90.0), 100, true);
    assert!(
        shown.starts_with(
            "Other programs use the CPUs: 2 busy threads wait for one.\nIn the program itself, malloc"
        ),
        "{shown}"
    );
    let whole = crate::explain::text(&beside_others(90.0), 5);
    assert!(whole.contains("In the program itself, malloc in main"), "{whole}");
}

#[test]
fn code_is_shown_in_place_of_memory_of_which_nothing_is_known() {
    let mut unknown = report();
    let object = &mut unknown.objects[0];
    (object.object.object.kind, object.object.object.name) =
        (ObjectKind::Mapping, "anonymous memory at 0x7f4ab (7 pieces)".to_owned());
    assert!(screen(&unknown, 100, true).contains("anonymous memory"), "it has a verdict");
    unknown.objects[0].finding = None;
    let shown = screen(&unknown, 100, true);
    assert!(!shown.contains("anonymous memory") && shown.contains("\n  CPU%  "), "{shown}");
    unknown.report.explanation.functions.clear();
    assert!(screen(&unknown, 100, true).contains("anonymous memory"));
}

#[test]
fn shares_of_few_samples_are_not_shown() {
    let mut few = report();
    assert!(screen(&few, 100, true).contains("MEM%"));
    few.report.explanation.samples.recovered = few.report.explanation.samples.in_cache + 3;
    assert!(!screen(&few, 100, true).contains("MEM%"));
    let whole = crate::explain::text(&few, 5);
    assert!(whole.contains("MEM% is uncertain: of 3 samples at memory"), "{whole}");
}

#[test]
fn objects_with_one_name_are_told_apart_by_their_sizes() {
    let mut twins = report();
    let other = object();
    twins.objects.push(other);
    let shown = screen(&twins, 100, true);
    assert!(shown.starts_with("malloc in main (app.c:3), 256 MiB: node 0"), "{shown}");
}

#[test]
fn what_working_threads_wait_for_is_shown_of_a_busy_program() {
    let mut pool = report();
    let waits = &mut pool.report.explanation.waits;
    waits.working = numakit_explain::waits::WorkingThreads {
        threads: 8,
        times: numakit_explain::account::ThreadTimes { user: 200, asleep: 800, ..Default::default() },
    };
    assert!(!screen(&pool, 100, true).contains("\nwaits:"));
    pool.report.explanation.waits.rows[0].of_working = 600;
    let shown = screen(&pool, 100, true);
    let expected = "\nwaits:  what its 8 threads that work wait for, as parts of their time:\n        60.0 % for a lock total_lock (in worker < main)\n";
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn source_files_have_no_folders_and_other_files_keep_them() {
    assert_eq!(brief("in /a/b.c:7 (main), of /data/file"), "in b.c:7 (main), of /data/file");
    assert_eq!(brief("malloc in f (/src/x.cpp:5): it is"), "malloc in f (x.cpp:5): it is");
    assert_eq!(brief("f /app/map.js:4:16 on http://host:80/x"), "f map.js:4:16 on http://host:80/x");
}
