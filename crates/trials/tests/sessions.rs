//! What is read of a file that `numa tune` has kept, and what is reported of it.
#![allow(clippy::unwrap_used)]

use numakit_trials::{Advised, CandidateSource, ReportedAnswer, TuneSession};
use numakit_tune::candidates::TuneSetting;
use numakit_tune::tuning::{TuneRemedy, Tuning, TuningPlan};
use numakit_tune::{Better, CandidateState, RaceBudget, RunFailure, RunOutcome};
use serde_json::{Value, json};
use std::path::Path;

fn setting(words: &str) -> TuneSetting {
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    TuneSetting::typed(&[], Some(&words))
}

fn run(outcome: RunOutcome, seconds: f64) -> Value {
    let disturbance = json!({"others": 0.1, "stolen": null, "arithmetic": 0.001});
    let spoiled = (outcome == RunOutcome::Spoiled).then_some("others");
    let why = matches!(outcome, RunOutcome::Failed(_)).then_some("exit status 3: no");
    json!({
        "outcome": outcome, "seconds": seconds, "wall": seconds, "cpu": 2.0 * seconds, "disturbance": disturbance,
        "spoiled": spoiled, "why": why, "left": usize::from(seconds > 9.0),
    })
}

/// The file of a tuning of two remedies; a run of a setting comes out like this, its runs counted from 0.
fn kept(budget: u32, outcome: impl Fn(&str, usize) -> RunOutcome) -> Value {
    let remedies = [("--thp on", 0.5), ("--memory interleave", 0.2)];
    let remedies: Vec<TuneRemedy> =
        remedies.map(|(words, bound)| TuneRemedy { setting: setting(words), bound: Some(bound) }).into();
    let budget = RaceBudget { runs: budget, seconds: None };
    let plan = TuningPlan {
        remedies: remedies.clone(),
        machine: None,
        better: Better::Less,
        budget,
        seconds_per_run: 1.0,
        worth: 0.01,
        seed: 3,
    };
    let (mut tuning, mut runs): (Tuning, Vec<Value>) = (Tuning::new(plan).unwrap(), Vec::new());
    while let Some(next) = tuning.next_run() {
        let (stage, of_race, words) = (next.stage, next.run, next.setting.words().join(" "));
        let nth = runs.iter().filter(|one| one["candidate"] == json!(of_race.candidate)).count();
        let outcome = outcome(&words, nth);
        let seconds = match outcome {
            RunOutcome::Metric(metric) => metric,
            RunOutcome::Spoiled | RunOutcome::Failed(_) => 10.0,
        };
        tuning.tell(outcome, seconds).unwrap();
        let (candidate, purpose) = (of_race.candidate, of_race.purpose);
        runs.push(
            json!({"stage": stage, "candidate": candidate, "purpose": purpose, "run": run(outcome, seconds)}),
        );
    }
    let advised: Vec<Value> =
        remedies.iter().map(|remedy| json!({"remedy": remedy, "says": "found"})).collect();
    json!({
        "form": 1, "folder": "/",
        "request": {
            "scene": {"kind": "program", "words": ["./app", "two words"]}, "metric": {"kind": "wall-time"},
            "is_counter": false, "better": "less", "check": null, "budget": budget, "worth": 0.01,
            "with_verdicts": true, "with_generic": false, "with_machine": false,
        },
        "advised": {"remedies": advised, "untried": ["sysctl x=1"], "few": null},
        "seen": {"has_openmp": false, "binds_threads": true},
        "first": run(RunOutcome::Metric(5.0), 5.0), "tuning": tuning, "runs": runs,
    })
}

fn read(kept: &Value) -> TuneSession {
    TuneSession::parse(&kept.to_string(), Path::new("/tmp/kept.json")).unwrap()
}

fn noisy(seconds: f64, nth: usize) -> RunOutcome {
    RunOutcome::Metric(seconds * (1.0 + 0.002 * ((nth * 7) % 5) as f64))
}

#[test]
fn the_report_has_the_answer_and_where_it_comes_from() {
    let session = read(&kept(100, |words, nth| match words {
        "--thp on" => noisy(2.0, nth),
        "" => noisy(4.0, nth),
        _ => noisy(6.0, nth),
    }));
    let report = session.report();
    let ReportedAnswer::Use { candidate, command, gain, costs, bound, needs } = &report.answer else {
        panic!("{:?}", report.answer);
    };
    assert_eq!(
        (command.as_str(), *bound, needs.len()),
        ("numa run --thp on ./app 'two words'", Some(0.5), 0)
    );
    assert!((gain.gain - 0.5).abs() < 0.01 && gain.pairs >= 7, "{gain:?}");
    // The CPU time is from the same pairs.
    let (time, cpu) = (costs.time.unwrap(), costs.cpu.unwrap());
    assert!((time.gain - gain.gain).abs() < 0.01 && time.pairs == gain.pairs, "{time:?} {gain:?}");
    assert!((cpu.gain - 0.5).abs() < 0.01 && cpu.pairs == gain.pairs, "{cpu:?} {gain:?}");
    let best = &report.candidates[*candidate];
    assert_eq!((best.source, best.says.as_deref()), (CandidateSource::Verdict, Some("found")));
    assert_eq!(report.candidates[0].source, CandidateSource::Default);
    assert_eq!((report.runs, report.untried.len(), report.binds_threads), (session.runs.len(), 1, true));
    let runs: u32 = report.candidates.iter().map(|one| one.runs + one.spoiled).sum();
    assert_eq!(runs as usize, report.runs);
    let both = report.candidates.iter().find(|one| one.command.contains("--thp on --memory")).unwrap();
    assert_eq!((both.source, both.bound), (CandidateSource::Generic, None));
}

#[test]
fn failures_and_spoiled_runs_are_counted_and_left_processes_of_failures_are_not() {
    let session = read(&kept(100, |words, nth| match words {
        "--thp on" => RunOutcome::Failed(RunFailure::Hung),
        "" if nth == 1 => RunOutcome::Spoiled,
        _ => noisy(4.0, nth),
    }));
    let report = session.report();
    assert_eq!(report.answer, ReportedAnswer::Nothing);
    let failed = report.candidates.iter().find(|one| one.command.contains(" --thp on ./app")).unwrap();
    assert_eq!(failed.state, CandidateState::Failed(RunFailure::Hung));
    assert_eq!((failed.why.as_deref(), failed.runs, failed.gain()), (Some("exit status 3: no"), 1, None));
    assert_eq!(report.spoiled.values().sum::<usize>(), 1);
    // The spoiled run had left one behind.
    assert_eq!(report.leaving, 1);
}

#[test]
fn a_default_that_fails_is_the_answer() {
    let failed = |_: &str, _| RunOutcome::Failed(RunFailure::WrongResult);
    let report = read(&kept(100, failed)).report();
    let why = "exit status 3: no".to_owned();
    assert_eq!(report.answer, ReportedAnswer::DefaultFailed { failure: RunFailure::WrongResult, why });
}

#[test]
fn a_tuning_without_runs_is_open() {
    let session = read(&kept(0, |_, _| RunOutcome::Spoiled));
    let report = session.report();
    assert_eq!(report.answer, ReportedAnswer::Open { leading: None });
    assert_eq!((report.runs, report.candidates.len(), report.noise), (0, 1, None));
    assert_eq!(session.advised.remedies.len(), 2);
    assert_ne!(session.advised, Advised::default());
}

#[test]
fn what_no_tuning_has_written_is_refused() {
    let good = kept(20, |_, nth| noisy(4.0, nth));
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut kept = good.clone();
        change(&mut kept);
        TuneSession::parse(&kept.to_string(), Path::new("/tmp/kept.json")).unwrap_err().to_string()
    };
    for (change, words) in [
        (&(|kept: &mut Value| kept["form"] = json!(2)) as &dyn Fn(&mut Value), "it has the form 2"),
        (&|kept| kept["runs"] = json!([]), "and it has 0"),
        (&|kept| kept["first"]["wall"] = json!(1e300), "it has a time of 1"),
        (&|kept| kept["runs"][0]["run"]["seconds"] = json!(-1.0), "it has a time of -1 s"),
        (
            &|kept| {
                kept["request"]["scene"] = json!({"kind": "running", "target": ["--pid", "1"], "turn": -1.0})
            },
            "it has a time of -1 s",
        ),
        (&|kept| kept["request"]["scene"]["words"] = json!([]), "it has no program"),
        (&|kept| kept["tuning"]["plan"]["budget"]["runs"] = json!(0), "start again"),
    ] {
        let error = refused(change);
        assert!(error.contains(words) && error.contains("/tmp/kept.json"), "'{words}' is not in {error}");
    }
}
