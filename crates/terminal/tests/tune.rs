//! The report of `numa tune`. `UPDATE=1` writes the golden text.
#![allow(clippy::unwrap_used)]

use numakit_terminal::tune::text;
use numakit_trials::{
    CandidateSource, ReportedAnswer, ReportedCandidate, ReportedCosts, ReportedMetric, SpoiledBy,
    TrialMetric, TuneReport,
};
use numakit_tune::candidates::TuneNeed;
use numakit_tune::{Better, CandidateState, PairedGain, RaceBudget, RunFailure};

fn gain(gain: f64, half: f64, pairs: u32) -> PairedGain {
    let (low, high, worst) = (gain - half, gain + half, gain - 2.0 * half);
    PairedGain { gain, low, high, again_low: low, again_high: high, confidence: 0.95, worst, pairs }
}

fn candidate(command: &str, state: CandidateState, in_rounds: Option<PairedGain>) -> ReportedCandidate {
    ReportedCandidate {
        command: command.to_owned(),
        source: CandidateSource::Generic,
        says: None,
        bound: None,
        needs: Vec::new(),
        state,
        runs: in_rounds.as_ref().map_or(1, |gain| gain.pairs),
        spoiled: 0,
        in_rounds,
        confirmed: None,
        why: None,
    }
}

fn report() -> TuneReport {
    let default = ReportedCandidate {
        source: CandidateSource::Default,
        runs: 19,
        ..candidate("./app", CandidateState::Racing, None)
    };
    let best = ReportedCandidate {
        source: CandidateSource::Verdict,
        bound: Some(0.35),
        confirmed: Some(gain(0.29, 0.03, 9)),
        runs: 14,
        ..candidate("numa run --apply app.cure ./app", CandidateState::Confirmed, Some(gain(0.31, 0.05, 5)))
    };
    let failed = ReportedCandidate {
        why: Some("killed by signal 11, and it printed nothing".to_owned()),
        ..candidate("numa run --alloc numa ./app", CandidateState::Failed(RunFailure::Failed), None)
    };
    let command = best.command.clone();
    let answer = ReportedAnswer::Use {
        candidate: 1,
        command,
        gain: gain(0.29, 0.03, 9),
        costs: Box::new(ReportedCosts { time: Some(gain(0.29, 0.03, 9)), cpu: Some(gain(-0.04, 0.01, 9)) }),
        needs: vec![TuneNeed::CureFile],
        bound: best.bound,
    };
    TuneReport {
        command: "./app".to_owned(),
        metric: ReportedMetric { name: "time".to_owned(), better: Better::Less, of: TrialMetric::WallTime },
        worth: 0.01,
        answer,
        candidates: vec![
            default,
            best,
            candidate("numa run ./app", CandidateState::Slower, Some(gain(0.104, 0.02, 3))),
            candidate("numa run -c 4 ./app", CandidateState::NoGain, Some(gain(-0.123, 0.0, 1))),
            failed,
        ],
        left_out: vec!["numa run -c 2 ./app".to_owned()],
        budget_for_all: Some(RaceBudget { runs: 1000, seconds: Some(130.5) }),
        untried: vec!["sysctl kernel.numa_balancing=0".to_owned()],
        few_samples: Some("12 samples".to_owned()),
        runs: 42,
        seconds: 61.5,
        noise: Some(0.021),
        spoiled: [(SpoiledBy::Others, 3), (SpoiledBy::Frequency, 1)].into(),
        binds_threads: true,
        binds_unless_placed: false,
        leaving: 2,
        file: "/home/user/.local/state/numakit/tuned/app-1.json".to_owned(),
    }
}

fn is_golden(name: &str, text: &str) {
    let path = format!("{}/tests/golden/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap_or_default(), "{name}: run again with UPDATE=1");
}

#[test]
fn a_whole_report_is_as_in_the_golden_text() {
    is_golden("tuned", &text(&report(), None, Some(100)));
}

#[test]
fn first_lines_say_what_is_known() {
    let first = |report: &TuneReport| text(report, None, None).lines().next().unwrap().to_owned();
    let mut report = report();
    assert_eq!(
        first(&report),
        "use this: numa run --apply app.cure ./app: 29 % less time (26 to 32), 9 pairs"
    );
    report.metric = ReportedMetric {
        name: "'tps'".to_owned(),
        better: Better::More,
        of: TrialMetric::Output { pattern: "tps".to_owned() },
    };
    assert!(first(&report).contains(": 29 % more 'tps' (26 to 32)"), "{}", first(&report));
    report.answer = ReportedAnswer::Nothing;
    assert_eq!(
        first(&report),
        "nothing is worth it: of 4 settings, of which 1 failed, none gains 1.0 % or more, in 42 runs; runs of one setting differ by 2.1 %, so less than 2.7 % may be missed"
    );
    let quiet = report.noise.replace(0.2);
    assert!(first(&report).starts_with(
        "it cannot be told whether anything is worth it: runs of one setting differ by 20 %, so gains of less than 26 % are hidden"
    ));
    report.noise = quiet;
    report.answer = ReportedAnswer::Open { leading: Some("numa run ./app".to_owned()) };
    assert!(
        first(&report)
            .starts_with("not known yet, after 42 runs: numa run ./app leads, and its gain is not proved")
    );
    report.answer = ReportedAnswer::Open { leading: None };
    assert!(first(&report).starts_with("not known yet, after 42 runs: nothing leads"));
    let failed = |failure| ReportedAnswer::DefaultFailed { failure, why: "exit status 3".to_owned() };
    for (failure, words) in [
        (RunFailure::Failed, "the program fails without a setting"),
        (RunFailure::Hung, "the program did not end in time without a setting"),
        (RunFailure::WrongResult, "the result of the program is wrong without a setting"),
        (RunFailure::NoMetric, "the program does not give the metric without a setting"),
    ] {
        report.answer = failed(failure);
        assert!(first(&report).starts_with(words) && first(&report).ends_with(": exit status 3"));
    }
}

#[test]
fn what_goes_on_is_one_line_that_can_be_copied() {
    let resume = "numa tune --resume /home/user/.local/state/numakit/tuned/a-program-of-a-long-name-0123456789abcdef.json";
    let text = text(&report(), Some(resume), Some(60));
    assert_eq!(text.lines().last(), Some(format!("to go on: {resume}").as_str()));
}

#[test]
fn more_settings_than_fit_are_counted() {
    let mut report = report();
    let more = candidate("numa run --more ./app", CandidateState::NoGain, None);
    report.candidates.resize(30, more);
    let text = text(&report, None, None);
    assert!(text.contains("and 6 settings that gain less\n"), "{text}");
    assert_eq!(text.matches("--more").count(), 19);
}

#[test]
fn a_long_command_line_is_printed_in_the_answer_and_not_in_each_row() {
    let long = "/usr/lib/postgresql/15/bin/postgres -D data";
    let mut report = report();
    report.command = long.to_owned();
    for candidate in &mut report.candidates {
        candidate.command = candidate.command.replace("./app", long);
    }
    if let ReportedAnswer::Use { command, .. } = &mut report.answer {
        *command = command.replace("./app", long);
    }
    report.left_out = (0..7).map(|cores| format!("numa run -c {cores} {long}")).collect();
    report.budget_for_all = Some(RaceBudget { runs: 90, seconds: None });
    let text = text(&report, None, None);
    assert!(text.starts_with(&format!("use this: numa run --apply app.cure {long}: ")), "{text}");
    assert!(text.contains("  numa run -c 4 /usr/lib/postgresql/15/bin/postgres ...\n"), "{text}");
    let left = "7 settings not tried, for which about --budget 90 has time: numa run -c 0 /usr/lib/postgresql/15/bin/postgres ...; ";
    assert!(text.contains(left) && text.contains("; and 2 more\n"), "{text}");
}

/// What a metric of the output gains says nothing of the time.
#[test]
fn times_that_are_not_the_metric_are_said_too() {
    let mut report = report();
    report.metric.of = TrialMetric::Output { pattern: "tps".to_owned() };
    let text = text(&report, None, None);
    assert!(text.contains("; time: 29 % less; CPU time: 4.0 % more; needs "), "{text}");
}
