use super::*;
use numakit_explain::FlameGraphs;
use numakit_explain::account::ThreadTimes;
use numakit_explain::code::{CodeName, CodeTime, PlaceTimes};
use numakit_explain::contended::LineKey;
use numakit_explain::first_touch::TouchEvidence;
use numakit_explain::flame::ChainValues;
use numakit_explain::object_use::NodeShare;
use numakit_explain::objects::{BlockOrigins, ObjectKind};
use numakit_explain::projection::Projection;
use numakit_explain::python::{PythonTime, ScriptShares};
use numakit_explain::runtime::NamesReport;
use numakit_explain::share::ShareEstimate;
use numakit_explain::spins::Spins;
use numakit_explain::traffic::TrafficCell;
use numakit_explain::waits::{ThreadWaits, WaitKind, WaitTime};
use numakit_explain::{
    CodeShare, ExplainedObject, Explanation, MissingSamples, ObjectFacts, ObjectTouch, SampleCounts,
    SampledObject, SampledThread,
};
use numakit_findings::explained::{JudgedObject, JudgedProjection};
use numakit_findings::finding::{
    Certainty, CostBasis, Finding, FindingCost, FindingRemedy, FindingSubject, Worth,
};
use numakit_findings::next::{NextKind, NextStep};
use std::collections::{BTreeMap, BTreeSet};

fn code(function: &str, line: Option<u32>, near: u64, far: u64) -> CodeTime {
    CodeTime {
        name: CodeName {
            function: (!function.is_empty()).then(|| function.to_owned()),
            module: "app".to_owned(),
            file: line.map(|_| "app.c".to_owned()),
            line,
        },
        time: PlaceTimes { local: near, remote: far, computing: 100, ..PlaceTimes::default() },
    }
}

fn user(thread: u32, offset: u64, loads: u64, stores: u64, atomics: u64) -> LineUser {
    let mut user = LineUser::new(thread, thread, 0x7000);
    user.nodes = BTreeSet::from([thread]);
    user.offsets = BTreeMap::from([(offset, loads + stores)]);
    (user.loads, user.stores, user.atomics) = (loads, stores, atomics);
    user
}

pub(super) fn object() -> JudgedObject {
    let part = |node, share| NodeShare { node, share };
    let object = ExplainedObject {
        object: SampledObject {
            pid: 11,
            processes: vec![11],
            kind: ObjectKind::Allocated,
            pieces: 1,
            blocks: BlockOrigins::default(),
            size: 256 << 20,
            name: "malloc in main (app.c:3)".to_owned(),
        },
        home: vec![part(0, 1.0)],
        used_from: vec![part(0, 0.25), part(1, 0.75)],
        nodes: Vec::new(),
        time_share: 0.9,
        remote: Some(ShareEstimate { share: 0.75, low: 0.7, high: 0.8 }),
        in_cache: 0.0,
        contended: 0.0,
        hint_faults: None,
        first_touch: vec![ObjectTouch {
            thread: 11,
            node: Some(0),
            share: 0.98,
            known_by: TouchEvidence::PageFaults,
            chain: vec!["fill (app.c:12)".to_owned(), "main (app.c:30)".to_owned()],
        }],
        used_by: vec![CodeShare { name: code("sum", Some(7), 0, 0).name, share: 1.0 }],
        members: None,
        python_use: ScriptShares::default(),
        python_allocation: ScriptShares::default(),
        facts: ObjectFacts::default(),
    };
    JudgedObject { object, finding: Some(finding()) }
}

pub(super) fn finding() -> Finding {
    Finding {
        rule: "first-touch",
        subject: FindingSubject::Object(0),
        says: "node 0 touched all of it first".to_owned(),
        since_seconds: 0.0,
        until_seconds: None,
        cost: FindingCost::Unknown { why: String::new() },
        certainty: Certainty::Likely,
        evidence: Vec::new(),
        remedy: FindingRemedy {
            words: "Initialise it in parallel".to_owned(),
            commands: vec!["numa run --memory interleave ./app".to_owned()],
            expect: Some("spreads the load".into()),
            worth: Some(Worth { at_most: Some(0.2), why: "remote memory takes twice as long".to_owned() }),
        },
    }
}

fn line() -> ContendedLine {
    ContendedLine {
        key: LineKey::Own { process: 0, line: 0x7000 / 64 },
        process: 0,
        processes: BTreeSet::from([0]),
        address: 0x7000,
        object: 0,
        home: Some(0),
        sharing: Sharing::False,
        across_nodes: true,
        weight: 150,
        users: vec![user(0, 0, 0, 200, 200), user(1, 8, 90, 10, 0)],
        instructions: vec![(0x400, 150)],
    }
}

fn waits() -> ThreadWaits {
    let name = |function: &str| code(function, None, 0, 0).name;
    let row = |kind, what: Option<&str>, call: &str, time| WaitTime {
        kind,
        what: what.map(ToOwned::to_owned),
        peers: Vec::new(),
        call: Some(call.to_owned()),
        time,
        of_working: 0,
        threads: 2,
        processes: 1,
        chain: vec![name("worker"), name("main")],
    };
    let rows = vec![
        row(WaitKind::Lock, Some("total_lock"), "futex", 600),
        row(WaitKind::Timer, None, "clock_nanosleep", 400),
    ];
    ThreadWaits { threads: 9, busy: 2, rows, looks: 40, cost: 1_000_000, ..ThreadWaits::default() }
}

fn explanation() -> Explanation {
    Explanation {
        sharing: None,
        chains: ChainValues::new(),
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
            local: 0.2,
            remote: 0.4,
            unknown: 0.01,
            contended: 0.04,
            kernel: 0.05,
            runnable: 0.05,
            asleep: 0.1,
        }),
        threads: ThreadTimes {
            user: 4_000_000_000,
            kernel: 250_000_000,
            runnable: 250_000_000,
            asleep: 500_000_000,
            faults: 12345,
        },
        remote_share: Some(ShareEstimate { share: 0.667, low: 0.64, high: 0.69 }),
        nodes: Vec::new(),
        traffic: None,
        lines: vec![line()],
        functions: vec![code("sum<double>(double*)", None, 100, 300), code("", None, 50, 0)],
        source_lines: vec![code("sum", Some(7), 100, 300)],
        waits: waits(),
        kernel: Vec::new(),
        faulting: numakit_explain::FaultTime::default(),
        spins: Spins::default(),
        ranks: Vec::new(),
        teams: Vec::new(),
        python: PythonTime::default(),
        caches: numakit_explain::caches::CacheSizes::default(),
        uses: Vec::new(),
    }
}

pub(super) fn report() -> JudgedReport {
    let report = ExplainReport {
        flame: FlameGraphs::default(),
        sources: Vec::new(),
        names: NamesReport::default(),
        hint_faults: None,
        version: 1,
        regime: Regime::Precise,
        machine: "Processor, nodes 0-1, CPUs 0-7".to_owned(),
        method: "by performance events".to_owned(),
        method_reason: None,
        rate: 199.0,
        seconds: 5.0,
        program: "app".to_owned(),
        complete: true,
        exit_status: Some(0),
        missing: MissingSamples { lost: 3, ..MissingSamples::default() },
        explanation: explanation(),
        processes: vec![seen(11, "app")],
        threads_sampled: [11, 12]
            .map(|tid| SampledThread { pid: 11, tid, name: "worker".to_owned() })
            .to_vec(),
    };
    JudgedReport {
        report,
        objects: vec![object()],
        findings: vec![finding()],
        projected: None,
        next: vec![step()],
        cure: None,
    }
}

pub(super) fn step() -> NextStep {
    NextStep {
        kind: NextKind::Remedy {
            expect: Some("spreads the load".to_owned()),
            machine: None,
            is_incomplete: false,
            is_in_container: false,
        },
        r#do: Some("Initialise it in parallel".to_owned()),
        command: "numa run --memory interleave ./app".to_owned(),
        worth: Some(FindingCost::Share { of: CostBasis::CpuTime, percent: 20.0, low: 0.0, high: 20.0 }),
        why: Some("remote memory takes twice as long".to_owned()),
    }
}

fn seen(pid: u32, name: &str) -> SeenProcess {
    SeenProcess { pid, name: name.to_owned(), joined: false, ended: false }
}

#[test]
fn what_several_processes_use_is_one_row_with_their_number() {
    let mut report = report();
    assert!(!text(&report, 10).contains("PROCESS"), "one process has all objects");
    report.report.processes = vec![seen(11, "server"), seen(12, "server"), seen(13, "sh"), seen(14, "")];
    report.report.processes[3].joined = true;
    let object = |processes: &[u32]| {
        let mut object = object();
        object.object.object.processes = processes.to_vec();
        object
    };
    report.objects = [&[11, 12][..], &[13], &[11, 13], &[14]].map(object).into();
    let shown = text(&report, 10);
    let mut lines = shown.lines().skip_while(|line| !line.contains("OBJECT"));
    let column = lines.next().unwrap().find("PROCESS").unwrap();
    let words: Vec<&str> = lines.take(4).map(|line| line[column..column + 23].trim()).collect();
    assert_eq!(words, ["2 x server", "sh 13", "2 processes", "14"]);
    assert!(shown.contains("\n4 processes, 1 began meanwhile\n"), "{shown}");
}

#[test]
fn members_stand_below_the_row_of_their_object() {
    use numakit_explain::members::{ObjectMembers, UsedMember};
    let used = |name: &str, offset, share| UsedMember { name: name.to_owned(), offset, size: 8, share };
    let mut report = report();
    let used = vec![used(".x", 0, 0.98), used(".next", 8, 0.016), used(".tag", 16, 0.004)];
    report.objects[0].object.members =
        Some(ObjectMembers { r#type: "struct point[12000000]".to_owned(), element: 24, used });
    let shown = text(&report, 10);
    let line = shown.lines().skip_while(|line| !line.contains("OBJECT")).nth(2).unwrap();
    let expected =
        "    struct point[12000000]: 98.0 % in .x (offset 0, 8 B), 1.6 % in .next (offset 8, 8 B), 1 more";
    assert_eq!(line, expected);
}

#[test]
fn threads_of_a_line_have_their_process_if_these_are_several() {
    let mut report = report();
    assert!(!text(&report, 10).contains("of process"));
    report.report.explanation.lines[0].processes = BTreeSet::from([0, 1]);
    report.report.threads_sampled[1].pid = 12;
    let shown = text(&report, 10);
    let users: Vec<&str> = shown.lines().filter(|line| line.contains(" of process ")).collect();
    assert!(users.len() == 2 && users[1].contains(" of process 12 "), "{shown}");
}

#[test]
fn a_projection_says_what_would_be_far_or_why_that_is_not_told() {
    let mut projection = Projection::impossible("node:4", "no page faults were seen");
    let said = |projection: &Projection| {
        let mut report = report();
        report.projected = Some(JudgedProjection { projection: projection.clone(), objects: vec![object()] });
        let text = text(&report, 10);
        text.split("As on ").nth(1).unwrap().to_owned()
    };
    assert_eq!(said(&projection), "node:4: not told, since no page faults were seen.\n");
    (projection.why_not, projection.threads, projection.unknown) = (None, 4, 0.1);
    projection.remote_share = Some(ShareEstimate { share: 0.75, low: 0.7, high: 0.8 });
    let text = said(&projection);
    let first = "node:4, with its 4 threads spread over the nodes and pages where they are touched first: of the time at \
                 memory, 75.0 % would be at memory of other nodes (70.0 % to 80.0 %); 10.0 % more is at pages whose \
                 first touch was not seen, or at unknown addresses.\n";
    assert!(text.starts_with(first) && text.contains("OBJECT"), "{text}");
}

#[test]
fn the_text_is_that_of_the_golden_file() {
    let mut all = text(&report(), 10);
    let mut emulated = report();
    emulated.report.regime = Regime::Block;
    (emulated.report.explanation.time, emulated.report.explanation.remote_share) = (None, None);
    let cell = |cpu_node, memory_node, pages| TrafficCell { cpu_node, memory_node, pages };
    let pages = vec![cell(0, 0, 1000), cell(1, 0, 900), cell(1, 1, 100)];
    emulated.report.explanation.traffic = Some(Traffic { pages, unknown: 7, ..Traffic::default() });
    emulated.report.missing.threads = 2;
    emulated.report.method_reason =
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
fn it_is_said_by_what_a_first_touch_is_known() {
    let said = |known_by: TouchEvidence, chain: &[&str]| {
        let mut report = report();
        let touch = &mut report.objects[0].object.first_touch[0];
        (touch.known_by, touch.chain) = (known_by, chain.iter().map(ToString::to_string).collect());
        let text = text(&report, 10);
        text.lines().find(|line| line.starts_with("  touched")).unwrap().to_owned()
    };
    let start = "  touched  first by thread 11 on node 0, ";
    let counted = said(TouchEvidence::SampledFaults, &["fill (app.c:12)", "main (app.c:30)"]);
    let expected = "98.0 % of the page faults that its samples counted: fill (app.c:12) < main (app.c:30)";
    assert_eq!(counted, format!("{start}{expected}"));
    let homes = said(TouchEvidence::Homes, &[]);
    assert_eq!(homes, format!("{start}as it seems: it allocated it, and 98.0 % of its pages are there"));
}

#[test]
fn it_is_said_first_if_nothing_is_wrong() {
    let mut fine = report();
    fine.findings.clear();
    assert!(!text(&fine, 10).starts_with("Nothing"), "40 % of the time is at remote memory");
    let computing =
        TimeShares { computing: 0.8, local: 0.15, remote: 0.01, asleep: 0.04, ..TimeShares::default() };
    fine.report.explanation.time = Some(computing);
    let first = |report: &JudgedReport| text(report, 10).lines().next().unwrap().to_owned();
    let said = "Nothing is remote; 2 of 9 threads are busy; of their CPU time 83.3 % is computing, 72.4 % is in sum [app].";
    assert_eq!(first(&fine), said);
    // Threads that sleep do not change what is said of those that work.
    let asleep = |share: f64| share * 0.1;
    let TimeShares { computing, local: near, remote: far, .. } = computing;
    let idle = TimeShares {
        computing: asleep(computing),
        local: asleep(near),
        remote: asleep(far),
        asleep: 0.904,
        ..TimeShares::default()
    };
    fine.report.explanation.time = Some(idle);
    assert_eq!(first(&fine), said);
    fine.report.explanation.waits.busy = 0;
    let times = &mut fine.report.explanation.threads;
    (times.user, times.kernel, times.runnable) = (50_000_000, 0, 0);
    let waiting = "Nothing is remote; none of its 9 threads is busy (together 1.0 % of a CPU); it waits: 60.0 % for a lock total_lock \
                   (in worker), 40.0 % for a timer (in worker).";
    assert_eq!(first(&fine), waiting);
    fine.report.explanation.remote_share = None;
    assert!(first(&fine).ends_with("; no memory is remote on a machine of one node."));
    // The cause comes before what the program does.
    let faulty = report();
    let said = text(&faulty, 10);
    let mut lines = said.lines();
    assert!(
        lines.next().unwrap().starts_with(&format!("{}: ", faulty.objects[0].object.object.name)),
        "{said}"
    );
    assert!(lines.next().unwrap().starts_with("2 of 9 threads are busy; "), "{said}");
    let mut small = report();
    let remedy = &mut small.objects[0].finding.as_mut().unwrap().remedy;
    remedy.worth.as_mut().unwrap().at_most = Some(0.02);
    assert!(text(&small, 10).starts_with("2 of 9 threads are busy; "));
}

#[test]
fn hint_faults_have_a_table_and_their_side_effect_is_said() {
    use numakit_explain::hint_faults::{HintFaultCounts, ObjectHintFaults};
    let mut hinted = report();
    assert!(!text(&hinted, 10).contains("hint faults"));
    let counts = HintFaultCounts {
        pages: 4096,
        faults: 12345,
        seconds: 3.04,
        moved: 4000,
        moved_back: 3990,
        ..HintFaultCounts::default()
    };
    hinted.report.hint_faults = Some(counts);
    hinted.objects[0].object.hint_faults = Some(ObjectHintFaults {
        pages: 4090,
        faults: 12300,
        used_from: vec![NodeShare { node: 1, share: 0.4 }, NodeShare { node: 3, share: 0.6 }],
        remote: Some(ShareEstimate { share: 1.0, low: 0.99, high: 1.0 }),
    });
    let shown = text(&hinted, 10);
    let row = shown.split("USED FROM by hint faults").nth(1).unwrap().lines().nth(1).unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words[4..], ["4,090", "12,300", "1:40%", "3:60%", "100.0", "%", "(99", "to", "100)"], "{row}");
    assert!(shown.contains("the kernel moved 4,000 pages, of which 3,990 were moved back"), "{shown}");
    hinted.report.hint_faults = Some(HintFaultCounts { was_on: true, ..counts });
    assert!(text(&hinted, 10).contains("as it does anyway: balancing was on before"));
    hinted.report.hint_faults = Some(HintFaultCounts::default());
    assert!(text(&hinted, 10).contains("No hint faults: the program ended"));
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

#[test]
fn names_are_cut_in_the_middle_and_keep_their_function() {
    use super::objects::cut;
    assert_eq!(cut("malloc in fill (/home/me/project/source/fill.c:7)"), "malloc in fill (fill.c:7)");
    let long = cut("malloc in make_index (/a/b/answer.c:7), for main (/a/b/answer.c:11), call 2 of 3");
    assert_eq!(long, "malloc in make_index (answe...), call 2 of 3");
    assert_eq!(long.chars().count(), 44);
    let file = cut("/srv/models/of/a/very/large/language/model/weights-00001.safetensors");
    assert!(file.starts_with("...") && file.ends_with("weights-00001.safetensors"), "{file}");
    assert_eq!(cut("sum(double*, long)"), "sum(double*, long)");
    assert_eq!(cut("odd (name"), "odd (name");
}

#[test]
fn a_program_that_sleeps_is_told_by_what_it_waits_for_and_one_without_samples_has_no_shares() {
    let mut asleep = report();
    asleep.findings.clear();
    asleep.report.explanation.samples.total = 0;
    asleep.report.explanation.waits.busy = 0;
    (asleep.report.explanation.threads.user, asleep.report.explanation.threads.kernel) = (5_000_000, 0);
    asleep.report.explanation.threads.runnable = 0;
    let lines =
        |report: &JudgedReport| -> Vec<String> { text(report, 10).lines().map(str::to_owned).collect() };
    let said = lines(&asleep);
    assert!(
        said[0].starts_with(
            "None of its 9 threads is busy (together 0.1 % of a CPU); it waits: 60.0 % for a lock"
        ),
        "{said:?}"
    );
    let few = "Too few samples to tell what it does: 0, since its threads used 5 ms of CPU time in 5 s; observe it while it works";
    assert!(said[1].starts_with(few) && said[2].starts_with("CPU time 5 ms ("), "{said:?}");

    // Time without a CPU is a wait as well, and the line about threads is of those that work.
    let mut queued = asleep;
    let waits = &mut queued.report.explanation.waits;
    let all: u64 = waits.rows.iter().map(|row| row.time).sum();
    queued.report.explanation.threads.runnable = all;
    let times = ThreadTimes { user: 1, runnable: 6, asleep: 3, ..ThreadTimes::default() };
    waits.working = WorkingThreads { threads: 1, times };
    let said = lines(&queued);
    assert!(said[0].contains("waits: 50.0 % for a CPU, 30.0 % for a lock"), "{said:?}");
    let running = "threads that work (1 of 9): running 10.0 % of their time, runnable without a CPU 60.0 %, waiting 30.0 %";
    assert!(said.iter().any(|line| line == running), "{said:?}");

    // A finding about waits for a CPU does not say what the program does.
    let mut unseen = report();
    unseen.findings[0].subject = FindingSubject::Program;
    unseen.report.explanation.samples.total = 0;
    let said = lines(&unseen);
    let few = "Too few samples to tell what it does: 0, since its threads used 4.25 s of CPU time, but hardly any sample by \
               performance events came; use another --method";
    assert!(said.iter().any(|line| line.starts_with(few)), "{said:?}");
    assert!(!said.iter().any(|line| line.contains("threads are busy")), "{said:?}");

    // The kernel's account tells of its own work without samples.
    (unseen.report.explanation.threads.user, unseen.report.explanation.threads.kernel) = (1, 4_000_000_000);
    let said = lines(&unseen);
    assert!(said.iter().any(|line| line.contains("threads are busy")), "{said:?}");
}

#[test]
fn what_others_do_stands_after_an_object_that_costs_more() {
    let mut judged = report();
    let others = Finding {
        subject: FindingSubject::Program,
        says: "Others run".to_owned(),
        ..judged.findings[0].clone()
    };
    judged.findings.push(others);
    let place = |report: &JudgedReport, words: &str| text(report, 10).find(words).unwrap();
    assert!(place(&judged, "threads are busy") < place(&judged, "\n\nOthers run.\n"));
    assert!(place(&judged, "Others run.") < place(&judged, "OBJECT"));
    judged.findings.rotate_left(1);
    assert_eq!(place(&judged, "Others run."), 0);
}

#[test]
fn the_call_for_which_the_kernel_works_is_named() {
    let mut kernel = report();
    kernel.findings.clear();
    let time = TimeShares { kernel: 0.8, computing: 0.2, ..TimeShares::default() };
    kernel.report.explanation.time = Some(time);
    (kernel.report.explanation.threads.user, kernel.report.explanation.threads.kernel) =
        (1_000_000_000, 4_000_000_000);
    let name = code("read", None, 0, 0).name;
    kernel.report.explanation.kernel = vec![CodeShare { name, share: 0.5 }];
    let first = text(&kernel, 10).lines().next().unwrap().to_owned();
    assert!(first.ends_with("of their CPU time 80.0 % is in the kernel (40.0 % for read [app])."), "{first}");
    // Where it waits for a disk meanwhile, that is said too.
    let waits = &mut kernel.report.explanation.waits;
    let row = waits.rows[0].clone();
    let (what, call) = (Some("/data".to_owned()), Some("read".to_owned()));
    waits.rows.push(WaitTime { kind: WaitKind::Storage, what, call, time: 2_000_000_000, ..row });
    let first = text(&kernel, 10).lines().next().unwrap().to_owned();
    assert!(
        first.ends_with("; for 40.0 % of the time a thread waits for storage, read of /data (in worker)."),
        "{first}"
    );
}

#[test]
fn objects_have_the_functions_of_python_that_allocate_and_use_them() {
    let shares = |function: &str, looks| ScriptShares {
        looks,
        functions: vec![CodeShare {
            name: CodeName {
                function: Some(function.to_owned()),
                module: "app.py".to_owned(),
                file: Some("/srv/app.py".to_owned()),
                line: Some(3),
            },
            share: 1.0,
        }],
    };
    let mut judged = [object()];
    judged[0].object.python_allocation = shares("<module>", 3);
    judged[0].object.python_use = shares("lookup", 9);
    let text = objects::table(&judged, (&[], None), "MEM%", 10);
    let line = text.lines().find(|line| line.contains("allocated in")).unwrap();
    assert!(line.ends_with("allocated in <module> (app.py:3) 100.0 % of 3 looks"), "{line}");
    assert!(!text.contains("used in"), "too few looks: {text}");
    judged[0].object.python_use.looks = 10;
    let text = objects::table(&judged, (&[], None), "MEM%", 10);
    assert!(text.contains("used in      lookup (app.py:3) 100.0 % of 10 looks"), "{text}");
}

#[test]
fn names_of_scripts_keep_their_brackets() {
    let name = |module: &str| CodeName {
        function: Some("f.<locals>.<lambda>".to_owned()),
        module: module.to_owned(),
        file: Some("/srv/app.py".to_owned()),
        line: Some(3),
    };
    assert_eq!(named(&name("app.py")), "/srv/app.py:3 (f.<locals>.<lambda>)");
    assert_eq!(named(&name("app")), "/srv/app.py:3 (f..)");
}

#[test]
fn a_result_that_is_read_back_has_the_same_text() {
    let mut written = report();
    written.projected = Some(JudgedProjection {
        projection: Projection::impossible("other", "it has no nodes"),
        objects: vec![object()],
    });
    let json = serde_json::to_vec(&written).unwrap();
    let read = JudgedReport::parse(std::path::Path::new("r.json"), &json).unwrap();
    assert_eq!(text(&read, 10), text(&written, 10));
    assert_eq!(serde_json::to_vec(&read).unwrap(), json);
}
