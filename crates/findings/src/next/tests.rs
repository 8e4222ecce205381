use super::*;
use crate::explained::{JudgedObject, JudgedProjection};
use crate::finding::{FindingSubject, Worth};
use crate::waits;
use numakit_cure::SharingThreads;
use numakit_explain::account::ThreadTimes;
use numakit_explain::caches::CacheSizes;
use numakit_explain::code::{CodeName, CodeTime, PlaceTimes};
use numakit_explain::flame::ChainValues;
use numakit_explain::objects::{BlockOrigins, ObjectKind};
use numakit_explain::projection::Projection;
use numakit_explain::python::{PythonTime, ScriptShares};
use numakit_explain::runtime::NamesReport;
use numakit_explain::sharing::ThreadSharing;
use numakit_explain::spins::Spins;
use numakit_explain::waits::ThreadWaits;
use numakit_explain::{
    ExplainReport, ExplainedObject, Explanation, FlameGraphs, MissingSamples, ObjectFacts, SampleCounts,
    SampledObject, SeenProcess, TimeShares,
};
use std::collections::BTreeMap;

/// A program that computes for half of its time, in which nothing is wrong.
fn calm() -> JudgedReport {
    let time = TimeShares { computing: 0.5, local: 0.3, cached: 0.2, ..TimeShares::default() };
    let threads = ThreadTimes { user: 4_000_000_000, ..ThreadTimes::default() };
    let code = CodeName { function: Some("sum".to_owned()), module: "app".to_owned(), ..CodeName::default() };
    let in_code = PlaceTimes { computing: 1000, ..PlaceTimes::default() };
    let explanation = Explanation {
        sharing: None,
        samples: SampleCounts {
            total: 800,
            memory: 300,
            recovered: 300,
            in_cache: 0,
            by_rule: BTreeMap::new(),
        },
        time: Some(time),
        threads,
        remote_share: None,
        nodes: Vec::new(),
        traffic: None,
        lines: Vec::new(),
        functions: vec![CodeTime { name: code, time: in_code }],
        source_lines: Vec::new(),
        kernel: Vec::new(),
        faulting: numakit_explain::FaultTime::default(),
        waits: ThreadWaits::default(),
        spins: Spins::default(),
        ranks: Vec::new(),
        teams: Vec::new(),
        python: PythonTime::default(),
        caches: CacheSizes::default(),
        uses: Vec::new(),
        chains: ChainValues::new(),
    };
    let process = SeenProcess { pid: 7, name: "app".to_owned(), joined: false, ended: false };
    let report = ExplainReport {
        version: 1,
        regime: Regime::Precise,
        machine: String::new(),
        method: "by performance events".to_owned(),
        method_reason: None,
        rate: 199.0,
        seconds: 4.0,
        program: "./app".to_owned(),
        complete: true,
        exit_status: Some(0),
        missing: MissingSamples::default(),
        explanation,
        processes: vec![process],
        threads_sampled: Vec::new(),
        hint_faults: None,
        flame: FlameGraphs::default(),
        sources: Vec::new(),
        names: NamesReport::default(),
    };
    let (objects, findings, next) = (Vec::new(), Vec::new(), Vec::new());
    JudgedReport { report, objects, findings, projected: None, next, cure: None }
}

fn finding(subject: FindingSubject, saves: f64, command: Option<&str>) -> Finding {
    let worth = Worth { at_most: Some(saves), why: "so it is".to_owned() };
    Finding {
        rule: "chain",
        subject,
        says: "a chain".to_owned(),
        since_seconds: 0.0,
        until_seconds: None,
        cost: FindingCost::at_most(CostBasis::CpuTime, 100.0 * saves),
        certainty: Certainty::Likely,
        evidence: Vec::new(),
        remedy: FindingRemedy {
            words: "Use arrays".to_owned(),
            commands: command.map(ToOwned::to_owned).into_iter().collect(),
            expect: None,
            worth: Some(worth),
        },
    }
}

fn object(finding: Option<Finding>) -> JudgedObject {
    let object = ExplainedObject {
        object: SampledObject {
            pid: 7,
            processes: vec![7],
            kind: ObjectKind::Allocated,
            pieces: 1,
            blocks: BlockOrigins::default(),
            size: 1 << 20,
            name: "malloc in main".to_owned(),
        },
        home: Vec::new(),
        used_from: Vec::new(),
        nodes: Vec::new(),
        time_share: 0.9,
        remote: None,
        in_cache: 0.0,
        contended: 0.0,
        hint_faults: None,
        first_touch: Vec::new(),
        used_by: Vec::new(),
        members: None,
        python_use: ScriptShares::default(),
        python_allocation: ScriptShares::default(),
        facts: ObjectFacts::default(),
    };
    JudgedObject { object, finding }
}

/// With findings about objects: what each saves, and its command.
fn with(found: &[(f64, Option<&str>)]) -> JudgedReport {
    let mut judged = calm();
    for (place, (saves, command)) in (0..).zip(found) {
        let finding = finding(FindingSubject::Object(place), *saves, *command);
        judged.findings.push(finding.clone());
        judged.objects.push(object(Some(finding)));
    }
    judged
}

fn started() -> ObservedAgain {
    ObservedAgain {
        frequency: 199,
        gets_symbols: true,
        target: "./app 7".to_owned(),
        ..ObservedAgain::default()
    }
}

fn running() -> ObservedAgain {
    let (target, duration) = ("--pid 7".to_owned(), Some(Duration::from_secs(2)));
    ObservedAgain { target, duration, is_running: true, ..started() }
}

fn commands(judged: &JudgedReport, again: &ObservedAgain) -> Vec<String> {
    steps(judged, again, Some("./app 7")).into_iter().map(|step| step.command).collect()
}

#[test]
fn a_command_is_offered_beside_a_cause_that_has_none() {
    let cure = "numa run --apply last ./app 7";
    let said = commands(&with(&[(0.4, None), (0.02, Some(cure))]), &started());
    assert_eq!(said, ["numa explain --compare ./app 7", cure]);
    // One is enough, and what is hardly noticed is not worth one.
    let other = "numa run --thp on ./app 7";
    let said = commands(&with(&[(0.4, Some(other)), (0.02, Some(cure))]), &started());
    assert!(!said.contains(&cure.to_owned()), "{said:?}");
    assert!(!commands(&with(&[(0.4, None), (0.002, Some(cure))]), &started()).contains(&cure.to_owned()));
}

#[test]
fn separated_threads_are_brought_together_even_where_no_object_has_a_finding() {
    let pairs = [[0, 4], [1, 5], [2, 6], [3, 7]];
    let mut judged = calm();
    judged.report.explanation.sharing = Some(ThreadSharing {
        threads: (0..8).collect(),
        nodes: (0..8).map(|thread| Some(thread / 2)).collect(),
        node_threads: 2,
        shared: 0.5,
        pairs: pairs.map(|threads| SharingThreads { threads, share: 0.1 }).to_vec(),
        ..ThreadSharing::default()
    });
    let kept = ObservedAgain { cure: Some("last".to_owned()), ..started() };
    let remedy = "numa run --apply last ./app 7";
    assert_eq!(commands(&judged, &kept), [remedy, "numa explain --compare numa run --apply last ./app 7"]);
    assert_eq!(commands(&judged, &running())[0], "numa move --pid 7");
    // Where the cure is not kept, and on a machine of one node, there is no such command.
    assert!(!commands(&judged, &started()).iter().any(|command| command.contains("run --apply")));
    judged.report.explanation.sharing.as_mut().unwrap().nodes = vec![Some(0); 8];
    assert!(!commands(&judged, &kept).contains(&remedy.to_owned()));
}

#[test]
fn a_remedy_comes_first_and_then_its_proof() {
    let remedy = "numa run --thp on ./app 7";
    let found = steps(&with(&[(0.4, Some(remedy))]), &started(), Some("./app 7"));
    let said: Vec<&str> = found.iter().map(|step| step.command.as_str()).collect();
    assert_eq!(said, [remedy, "numa explain --compare numa run --thp on ./app 7"]);
    assert!(matches!(found[0].kind, NextKind::Remedy { is_incomplete: false, .. }));
    assert_eq!(found[0].worth.as_ref().unwrap().words(), "at most 40.0 % of the CPU time");
    // Of several objects the one whose cure saves most is the cause, and another remedy is worth more than a proof.
    let both = with(&[(0.1, Some("one")), (0.4, Some("two"))]);
    assert_eq!(commands(&both, &started()), ["two", "one"]);
    let little = with(&[(0.4, Some("two")), (0.03, Some("one"))]);
    assert_eq!(commands(&little, &started()), ["two", "numa explain --compare ./app 7"]);
    let mut busy = with(&[(0.4, Some("two")), (0.3, Some("numa top"))]);
    busy.findings[1].rule = waits::OTHERS_RUN.name;
    assert_eq!(commands(&busy, &started()), ["two", "numa explain --compare ./app 7"]);
    for (remedy, trial) in [
        ("A=b numa run ./app 7", "A=b numa explain --compare numa run ./app 7"),
        ("echo x >/y && ./app 7", "echo x >/y && numa explain --compare ./app 7"),
        ("taskset -c 0-7 ./app 7", "numa explain --compare taskset -c 0-7 ./app 7"),
        ("taskset -acp 0-7 99", "numa explain --compare ./app 7"),
    ] {
        assert_eq!(commands(&with(&[(0.4, Some(remedy))]), &started()), [remedy, trial]);
    }
}

#[test]
fn what_the_program_can_mend_is_a_step_beside_what_others_do() {
    let mut busy = with(&[(0.2, None)]);
    let mut others = finding(FindingSubject::Program, 0.9, Some("numa top"));
    (others.rule, others.remedy.words) = (waits::OTHERS_RUN.name, "End them".to_owned());
    busy.findings.insert(0, others);
    let of = |judged: &JudgedReport| -> Vec<(Option<String>, String)> {
        let steps = steps(judged, &started(), Some("./app 7"));
        steps.into_iter().map(|step| (step.r#do, step.command)).collect()
    };
    let compare = "numa explain --compare ./app 7".to_owned();
    let (end, arrays) = (Some("End them".to_owned()), Some("Use arrays".to_owned()));
    assert_eq!(of(&busy), [(end.clone(), "numa top".to_owned()), (arrays.clone(), compare.clone())]);
    assert_eq!((busy.cause(), busy.beside_cause()), (Some(0), Some(1)));
    // What is its own comes first: what others do is said, and is no step.
    busy.findings.swap(0, 1);
    assert_eq!((busy.cause(), busy.beside_cause()), (Some(0), Some(1)));
    assert_eq!(of(&busy), [(arrays, compare.clone())]);
    // Nothing of its own that saves much.
    let mut calm = with(&[(0.01, None)]);
    calm.findings.insert(0, busy.findings.remove(1));
    assert_eq!((calm.cause(), calm.beside_cause()), (Some(0), None));
    assert_eq!(of(&calm), [(end.clone(), "numa top".to_owned()), (None, compare)]);
    calm.report.explanation.samples.total = 3;
    assert_eq!(of(&calm)[0], (end, "numa top".to_owned()));
    assert!(matches!(
        steps(&calm, &started(), Some("./app 7"))[1].kind,
        NextKind::MoreSamples | NextKind::MoreWork | NextKind::OtherMethod
    ));
}

#[test]
fn two_changes_of_the_source_are_two_steps_if_both_save_much() {
    let words = |saves: f64| {
        let mut two = with(&[(0.4, None), (saves, None)]);
        two.findings[1].remedy.words = "Pad it".to_owned();
        let steps = steps(&two, &started(), Some("./app 7"));
        steps.into_iter().filter_map(|step| step.r#do).collect::<Vec<_>>()
    };
    assert_eq!(words(0.3), ["Use arrays", "Pad it"]);
    assert_eq!(words(0.1), ["Use arrays"]);
    let mut possible = with(&[(0.4, None), (0.3, Some("numa run ./app 7"))]);
    possible.findings[1].certainty = Certainty::Possible;
    assert_eq!(commands(&possible, &started()), ["numa explain --compare ./app 7"]);
    let mut one = with(&[(0.4, Some("numa run ./app 7")), (0.3, Some("numa run ./app 7"))]);
    one.findings[1].remedy.words = "Pad it".to_owned();
    let found = steps(&one, &started(), Some("./app 7"));
    assert_eq!(found.iter().filter(|step| matches!(step.kind, NextKind::Remedy { .. })).count(), 1);
}

#[test]
fn a_change_of_code_is_proved_by_a_comparison_with_this_result() {
    let found = steps(&with(&[(0.4, None)]), &started(), None);
    assert_eq!((found.len(), &found[0].kind), (1, &NextKind::Proof));
    assert_eq!(found[0].r#do.as_deref(), Some("Use arrays"));
    assert_eq!(found[0].command, "numa explain --compare ./app 7");
    // A running program has another number when it was started again.
    let mut of_process = with(&[(0.4, None)]);
    let proof = "numa explain --compare --for 2s --pid $(pgrep -nx app)";
    assert_eq!(commands(&of_process, &running()), [proof]);
    let other = of_process.report.processes[0].clone();
    of_process.report.processes.push(other);
    assert_eq!(commands(&of_process, &running()), ["numa explain --compare --for 2s --name app"]);
}

#[test]
fn what_was_chosen_by_its_container_is_proved_by_it_and_mended_inside() {
    let found_again = |target: &str, is_contained| ObservedAgain {
        target: target.to_owned(),
        is_found_again: true,
        is_contained,
        ..running()
    };
    let proof = "numa explain --compare --for 2s --unit db.service";
    assert_eq!(commands(&with(&[(0.4, None)]), &found_again("--unit db.service", false)), [proof]);
    let remedy = with(&[(0.4, Some("numa run --thp on ./app 7"))]);
    let steps = |again: &ObservedAgain| super::steps(&remedy, again, Some("./app 7"));
    let inside = steps(&found_again("--container web", true));
    assert!(matches!(inside[0].kind, NextKind::Remedy { is_in_container: true, .. }));
    assert_eq!(
        (&inside[1].kind, inside[1].command.as_str()),
        (&NextKind::Proof, "numa explain --compare --for 2s --container web")
    );
    let here = steps(&found_again("--name app", false));
    assert!(matches!(here[0].kind, NextKind::Remedy { is_in_container: false, .. }));
    assert_eq!(here[1].kind, NextKind::Trial);
}

#[test]
fn a_process_that_has_ended_is_started_again() {
    let mut ended = with(&[(0.4, None)]);
    ended.report.processes[0].ended = true;
    assert_eq!(commands(&ended, &running()), ["numa explain --compare ./app 7"]);
}

#[test]
fn a_command_without_the_start_of_its_program_says_so() {
    let found = steps(&with(&[(0.4, Some("MALLOC_CONF=thp:always CMD"))]), &running(), None);
    assert!(matches!(found[0].kind, NextKind::Remedy { is_incomplete: true, .. }));
}

#[test]
fn too_few_samples_ask_for_more_by_time_rate_or_work() {
    let mut few = calm();
    few.report.explanation.samples.total = 3;
    few.report.explanation.threads.user = 20_000_000;
    assert_eq!(commands(&few, &started()), ["numa explain -F 4500 ./app 7"]);
    assert_eq!(commands(&few, &running()), ["numa explain --for 120s --pid 7"]);
    few.report.explanation.threads.user = 1_000_000;
    assert_eq!(steps(&few, &started(), None)[0].kind, NextKind::MoreWork);
    few.report.explanation.threads.user = 9_000_000_000;
    assert_eq!(commands(&few, &started()), ["numa doctor"], "the method delivers none");
}

#[test]
fn a_program_that_gets_no_cpu_is_not_observed_for_longer() {
    let mut starved = with(&[(0.9, Some("numa top"))]);
    (starved.findings[0].rule, starved.findings[0].subject) =
        (waits::OTHERS_RUN.name, FindingSubject::Program);
    starved.report.explanation.samples.total = 3;
    starved.report.explanation.threads.user = 20_000_000;
    assert_eq!(starved.few_samples(), Some(FewSamples::Starved));
    let said = starved.too_few_samples().unwrap();
    assert!(
        said.ends_with("its threads got 20 ms of CPU time in 4 s; observe it again when it gets CPUs"),
        "{said}"
    );
    assert_eq!(
        commands(&starved, &running()),
        ["numa top", "numa explain --compare --for 2s --pid $(pgrep -nx app)"]
    );
}

#[test]
fn what_hides_the_answer_comes_with_the_command_that_shows_it() {
    let mut hidden = calm();
    let file = |path: &str| NamelessCode { path: path.to_owned(), time: 500 };
    hidden.report.names.nameless = vec![file("[vdso]"), file("/usr/lib/libx.so.1")];
    let symbols =
        "DEBUGINFOD_URLS=https://debuginfod.elfutils.org debuginfod-find debuginfo /usr/lib/libx.so.1";
    assert_eq!(commands(&hidden, &started())[0], symbols);
    hidden.report.names.nameless = vec![file("/home/u/app")];
    assert!(matches!(steps(&hidden, &started(), None)[0].kind, NextKind::Rebuild { .. }));
    let java = |source| RuntimeNames {
        process: 7,
        program: RuntimeProgram::Java,
        source,
        chains: true,
        nameless: 600,
        dumps: 0,
        longest_dump: 0,
    };
    hidden.report.names.runtimes = vec![java(NamesSource::Nothing)];
    let flag = "JDK_JAVA_OPTIONS=-XX:+DumpPerfMapAtExit numa explain ./app 7";
    assert_eq!(commands(&hidden, &started())[0], flag);
    assert_eq!(commands(&hidden, &running())[0], "jcmd 7 Compiler.perfmap && numa explain --for 2s --pid 7");
    let mut refused = calm();
    let waits = &mut refused.report.explanation.waits;
    (waits.refused, waits.unseen) = (Some("permission denied".to_owned()), 9_000_000_000);
    refused.report.explanation.threads.user = 0;
    assert_ne!(commands(&refused, &running())[0], "sudo numa explain --for 2s --pid 7", "it is busy");
    refused.report.explanation.waits.rows = vec![wait()];
    assert_eq!(commands(&refused, &running())[0], "sudo numa explain --for 2s --pid 7");
}

fn wait() -> numakit_explain::waits::WaitTime {
    numakit_explain::waits::WaitTime {
        kind: numakit_explain::waits::WaitKind::Timer,
        what: None,
        peers: Vec::new(),
        call: None,
        time: 1,
        of_working: 0,
        threads: 1,
        processes: 1,
        chain: Vec::new(),
    }
}

#[test]
fn where_nothing_is_wrong_the_next_command_tells_more() {
    let machine = ObservedAgain { larger_machine: Some("EPYC 9755 x2"), ..started() };
    let found = steps(&calm(), &machine, None);
    assert_eq!(found[0].command, "numa explain --as 'EPYC 9755 x2' ./app 7");
    assert_eq!(found[0].worth.as_ref().unwrap().words(), "at most 30.0 % of the CPU time");
    // Which thread touched pages first was not seen of a process that runs already.
    let by_number = ObservedAgain { larger_machine: Some("EPYC 9755 x2"), ..running() };
    assert_eq!(commands(&calm(), &by_number), ["numa explain --flame flame --for 2s --pid 7"]);
    let mut ended = calm();
    ended.report.processes[0].ended = true;
    assert_eq!(commands(&ended, &by_number), ["numa explain --as 'EPYC 9755 x2' ./app 7"]);
    // On several nodes, and where an estimate is impossible.
    assert_eq!(commands(&calm(), &started()), ["numa explain --flame flame ./app 7"]);
    let mut computing = calm();
    computing.report.explanation.time = Some(TimeShares { computing: 1.0, ..TimeShares::default() });
    assert_eq!(commands(&computing, &machine), ["numa show"]);
    computing.report.regime = Regime::Unknown;
    assert_eq!(commands(&computing, &machine), ["numa doctor --calibrate"]);
}

#[test]
fn after_an_estimate_comes_what_to_do_on_that_machine() {
    let projection = Projection {
        machine: "EPYC 9755 x2".to_owned(),
        threads: 4,
        why_not: None,
        remote_share: None,
        unknown: 0.0,
        nodes: Vec::new(),
    };
    let mut judged = calm();
    let there = |object| Some(JudgedProjection { projection: projection.clone(), objects: vec![object] });
    judged.projected = there(object(None));
    assert_eq!(commands(&judged, &started()), ["numa plan --machine 'EPYC 9755 x2' -c 4 --policy balanced"]);
    let command = "numa run --memory interleave ./app 7";
    judged.projected = there(object(Some(finding(FindingSubject::Object(0), 0.3, Some(command)))));
    let found = steps(&judged, &started(), None);
    assert_eq!(found[0].command, command);
    assert!(matches!(&found[0].kind, NextKind::Remedy { machine: Some(name), .. } if name == "EPYC 9755 x2"));
}

#[test]
fn steps_are_read_back_from_json() {
    let machine = ObservedAgain { larger_machine: Some("EPYC 9755 x2"), ..started() };
    let remedy = with(&[(0.4, Some("numa run ./app 7"))]);
    for judged in [remedy, with(&[(0.4, None)]), calm()] {
        for step in steps(&judged, &machine, Some("./app 7")) {
            let json = serde_json::to_string(&step).unwrap();
            assert_eq!(serde_json::from_str::<NextStep>(&json).unwrap(), step, "{json}");
        }
    }
}
