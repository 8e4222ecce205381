use super::words::change_words;
use super::*;
use crate::finding::{Certainty, FindingCost, FindingEvidence, FindingRemedy, FindingSubject};
use crate::profile::ProfileSource;

fn measure(name: &str, value: f64, noise: f64) -> Measure {
    Measure {
        name: name.into(),
        unit: "%".into(),
        value,
        noise: Some(noise),
        floor: 2.0,
        scale: None,
        is_own: true,
        is_good: Some(false),
    }
}

fn finding(rule: &'static str, series: &str) -> Finding {
    Finding {
        rule,
        subject: FindingSubject::Program,
        says: rule.into(),
        since_seconds: 0.0,
        until_seconds: None,
        cost: FindingCost::unknown("test"),
        certainty: Certainty::Measured,
        evidence: vec![FindingEvidence {
            series: series.into(),
            value: 0.0,
            says: String::new(),
            course: Vec::new(),
        }],
        remedy: FindingRemedy::default(),
    }
}

fn profile(measures: Vec<Measure>, problems: Vec<Finding>, run: f64) -> Profile {
    Profile {
        about: ProfileSource {
            command: Some("ep".into()),
            host: "big".into(),
            cpus: Some(8),
            seconds: 10.0,
            run: Some((run, run * 0.05)),
            status: Some(0),
        },
        measures,
        findings: Findings { problems, ..Findings::default() },
        has_program: true,
        is_short: false,
    }
}

#[test]
fn a_run_that_took_much_longer_is_worse_however_short_the_recordings_are() {
    let short = |run| Profile { is_short: true, ..profile(Vec::new(), Vec::new(), run) };
    let comparison = compare(&short(0.3), &short(2.7));
    assert_eq!(comparison.outcome, ComparisonOutcome::Worse);
    assert!(
        comparison.headline.verdict.starts_with("B is worse: it took 2.7 s"),
        "{:?}",
        comparison.headline
    );
    assert_eq!(compare(&short(0.3), &short(0.301)).outcome, ComparisonOutcome::CannotTell);
}

#[test]
fn a_shorter_run_is_better() {
    let before = profile(
        vec![measure("remote_time_share", 78.9, 2.0)],
        vec![finding("remote-use", "remote_time_share")],
        12.0,
    );
    let after = profile(vec![measure("remote_time_share", 0.4, 0.5)], Vec::new(), 9.0);
    let compared = compare(&before, &after);
    assert_eq!(compared.outcome, ComparisonOutcome::Better);
    assert_eq!(compared.headline.verdict, "B is better: it took 9 s, A took 12 s");
    assert_eq!(
        compared.headline.change,
        "run time -25.0 % (noise 6.3 %); remote_time_share -78.5 points (noise 2.1)"
    );
    assert_eq!(compared.headline.action, "keep B");
    assert_eq!((compared.gone.len(), compared.new.len()), (1, 0));
    let back = compare(&after, &before);
    assert_eq!((back.outcome, back.headline.action.as_str()), (ComparisonOutcome::Worse, "keep A"));
    assert_eq!((back.gone.len(), back.new.len()), (0, 1));
}

#[test]
fn what_costs_less_is_better_where_runs_take_the_same_time() {
    let before = profile(vec![measure("remote_time_share", 78.9, 2.0)], Vec::new(), 10.0);
    let after = profile(vec![measure("remote_time_share", 0.4, 0.5)], Vec::new(), 10.2);
    let compared = compare(&before, &after);
    assert_eq!(compared.headline.verdict, "B is better: remote_time_share is 0.4 %, 78.9 % before");
    let mixed = |far, switches| {
        profile(
            vec![measure("remote_time_share", far, 1.0), measure("switch_share", switches, 1.0)],
            Vec::new(),
            10.0,
        )
    };
    assert_eq!(compare(&mixed(50.0, 1.0), &mixed(10.0, 20.0)).outcome, ComparisonOutcome::Both);
}

#[test]
fn differences_within_noise_are_none_and_no_finding_is_gone() {
    let before =
        profile(vec![measure("fault_share", 5.2, 1.0)], vec![finding("page-faults", "fault_share")], 10.0);
    let after = profile(vec![measure("fault_share", 4.7, 1.0)], Vec::new(), 10.1);
    let compared = compare(&before, &after);
    assert_eq!(compared.outcome, ComparisonOutcome::Equal);
    assert!(compared.gone.is_empty() && compared.program.is_empty());
    assert_eq!(compared.headline.verdict, "A and B do not differ beyond noise in what the program did");
    assert!(compared.headline.change.contains("none of 1 compared values"), "{}", compared.headline.change);
}

#[test]
fn a_cost_that_was_measured_differently_is_no_difference_of_the_program() {
    let of = |share: f64, cost: f64| {
        let measure = Measure { scale: Some(cost), ..measure("fault_share", share, 3.0) };
        profile(vec![measure], Vec::new(), 10.0)
    };
    let outcome = |before: &Profile, after: &Profile| compare(before, after).outcome;
    // As many faults in the same time, and a page fault that took 700 and 850 ns before.
    assert_eq!(outcome(&of(82.3, 7.0e-7), &of(100.0, 8.5e-7)), ComparisonOutcome::Equal);
    assert_eq!(outcome(&of(72.3, 7.0e-7), &of(100.0, 7.1e-7)), ComparisonOutcome::Worse);
    assert_eq!(outcome(&of(82.3, 7.0e-7), &of(10.0, 8.5e-7)), ComparisonOutcome::Better);
}

#[test]
fn a_share_and_its_complement_are_one_line() {
    let of = |far: f64| {
        let good = Measure { is_good: Some(true), ..measure("use_locality", 100.0 - far, 1.0) };
        profile(vec![good, measure("remote_time_share", far, 1.0)], Vec::new(), 10.0)
    };
    let compared = compare(&of(70.0), &of(10.0));
    let [line] = &compared.program[..] else { panic!("{:?}", compared.program) };
    assert_eq!((line.alike.len(), line.is_better), (1, Some(true)));
}

#[test]
fn what_cannot_be_told_is_said() {
    let short = Profile { is_short: true, ..profile(Vec::new(), Vec::new(), 0.3) };
    let compared = compare(&short, &short);
    assert_eq!(compared.outcome, ComparisonOutcome::CannotTell);
    let change = "run time 0 % (noise 7.1 %); A covers 10 s: noise can be told from ";
    assert!(compared.headline.change.starts_with(change), "{}", compared.headline.change);
    assert!(compared.headline.verdict.starts_with("B took as long as A within noise; "));
    let no_run =
        |profile: Profile| Profile { about: ProfileSource { run: None, ..profile.about }, ..profile };
    let of = |measure| no_run(profile(vec![measure], Vec::new(), 1.0));
    let unknown = of(Measure { noise: None, ..measure("remote_time_share", 5.0, 0.0) });
    let compared = compare(&unknown, &of(measure("remote_time_share", 90.0, 1.0)));
    assert_eq!(compared.headline.verdict, "Whether B is better cannot be told");
    assert_eq!(
        (compared.compared, compared.not_compared, compared.outcome),
        (0, 1, ComparisonOutcome::CannotTell)
    );
    let why = "no series is in both with enough values to tell its noise";
    assert_eq!(
        (compared.headline.change.as_str(), compared.compared_words().as_str()),
        (why, "no value; 1 is in one only, or has too few values to tell its noise")
    );
}

#[test]
fn changes_from_nothing_have_no_percent() {
    let from = Difference::of("vmstat.pgfault", "count/s", (0.0, 1000.0), 10.0);
    assert_eq!(change_words(&from), ("+1.00k/s".into(), "10/s".into()));
    let times = Difference::of("vmstat.pgfault", "count/s", (10.0, 1000.0), 10.0);
    assert_eq!(change_words(&times), ("x 100".into(), "1.00".into()));
}
