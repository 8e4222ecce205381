//! Whole tunings of programs whose true times are known.
#![allow(clippy::unwrap_used)]

use numakit_tune::candidates::{TuneOption, TuneSetting, TunedMachine};
use numakit_tune::tuning::{TuneAnswer, TuneRemedy, Tuning, TuningPlan, TuningRecord};
use numakit_tune::{Better, RaceBudget, RaceGoal, RunFailure, RunOutcome};

fn machine() -> TunedMachine {
    TunedMachine {
        nodes: 4,
        cores: 32,
        cores_per_cache: 8,
        threads_per_core: 2,
        has_openmp: true,
        allocators: vec!["libjemalloc.so.2".into()],
        settings: Vec::new(),
    }
}

fn plan(seed: u64) -> TuningPlan {
    TuningPlan {
        remedies: Vec::new(),
        machine: Some(machine()),
        better: Better::Less,
        budget: RaceBudget { runs: 400, seconds: None },
        seconds_per_run: 1.0,
        worth: 0.01,
        seed,
    }
}

/// Runs a tuning to its end: a run takes the product of what its options take, with a noise of about 1 %.
fn tuned(plan: TuningPlan, of_option: impl Fn(&TuneOption) -> f64) -> Tuning {
    let mut tuning = Tuning::new(plan).unwrap();
    while let Some(next) = tuning.next_run() {
        let at = tuning.runs().count();
        let noise = ((at * 7 + next.run.candidate * 3) % 11) as f64 / 11.0 - 0.5;
        let time: f64 = next.setting.options().iter().map(&of_option).product();
        let seconds = time * (1.0 + 0.03 * noise);
        tuning.tell(RunOutcome::Metric(seconds), seconds).unwrap();
    }
    tuning
}

fn chosen(tuning: &Tuning) -> (&TuneSetting, f64) {
    match tuning.answer() {
        TuneAnswer::Use { setting, gain } => (setting, gain.gain),
        other => panic!("{other:?}"),
    }
}

fn words(setting: &TuneSetting) -> String {
    setting.words().join(" ")
}

#[test]
fn what_gains_in_two_races_is_had_together() {
    let tuning = tuned(plan(1), |option| match option {
        TuneOption::Interleave => 0.8,
        TuneOption::HugePages => 0.7,
        TuneOption::Allocator(_) => 0.9,
        TuneOption::Unbound => 1.1,
        TuneOption::Cores(_) => 1.5,
        _ => 1.0,
    });
    let (setting, gain) = chosen(&tuning);
    for option in [TuneOption::Interleave, TuneOption::HugePages] {
        assert!(setting.options().contains(&option), "{}", words(setting));
    }
    assert!(setting.options().iter().any(|option| matches!(option, TuneOption::Allocator(_))), "{setting:?}");
    assert!((gain - (1.0 - 0.8 * 0.7 * 0.9)).abs() < 0.02, "{gain}");
    assert_eq!(tuning.stages().len(), 3);
    assert!(tuning.runs().count() < 250, "{}", tuning.runs().count());
}

#[test]
fn a_remedy_is_tried_first_and_wins_with_its_bound() {
    let huge = TuneSetting::typed(&[("GLIBC_TUNABLES".into(), "glibc.malloc.hugetlb=1".into())], None);
    let cure = TuneSetting::typed(&[], Some(&["--apply".into(), "app.cure".into()]));
    let remedies = vec![
        TuneRemedy { setting: cure.clone(), bound: Some(0.5) },
        TuneRemedy { setting: huge, bound: Some(0.1) },
    ];
    let gains = |option: &TuneOption| match option {
        TuneOption::Cure(_) => 0.6,
        TuneOption::HugePages | TuneOption::NoHugePages => 1.2,
        _ => 1.0,
    };
    let tuning = tuned(TuningPlan { remedies: remedies.clone(), ..plan(2) }, gains);
    assert!(chosen(&tuning).0.options().contains(&TuneOption::Cure("app.cure".into())), "{tuning:?}");
    // Without the machine nothing else is tried.
    let alone = tuned(TuningPlan { remedies, machine: None, ..plan(3) }, gains);
    let (setting, gain) = chosen(&alone);
    assert_eq!((setting, alone.stages().len()), (&cure, 1));
    assert!((gain - 0.4).abs() < 0.01, "{gain}");
    assert_eq!(alone.stages()[0].candidates.len(), 4, "{:?}", alone.stages()[0].candidates);
}

#[test]
fn nothing_is_an_answer_and_comes_quickly() {
    let mut simple = machine();
    (simple.nodes, simple.cores, simple.cores_per_cache) = (1, 2, 2);
    let mut runs = Vec::new();
    for seed in 0..20 {
        let tuning = tuned(TuningPlan { machine: Some(simple.clone()), ..plan(seed) }, |_| 1.0);
        assert_eq!(tuning.answer(), TuneAnswer::Nothing);
        runs.push(tuning.runs().count());
    }
    assert!(runs.iter().sum::<usize>() / runs.len() <= 60, "{runs:?}");
}

#[test]
fn a_small_budget_gives_one_race_of_few_candidates() {
    for budget in [RaceBudget { runs: 40, seconds: None }, RaceBudget { runs: 1000, seconds: Some(40.0) }] {
        let gains = |option: &TuneOption| if *option == TuneOption::Interleave { 0.5 } else { 1.0 };
        let tuning = tuned(TuningPlan { budget, ..plan(4) }, gains);
        let stage = &tuning.stages()[0];
        assert_eq!((tuning.stages().len(), stage.race.settings().goal), (1, RaceGoal::Prove));
        assert_eq!(stage.candidates.len() + stage.left_out.len(), 24);
        assert!(stage.candidates.len() <= 6 && tuning.runs().count() <= 100, "{tuning:?}");
        assert!((chosen(&tuning).1 - 0.5).abs() < 0.03);
    }
    // Nothing can be proved with two runs, and that is said.
    let two = tuned(TuningPlan { budget: RaceBudget { runs: 2, seconds: None }, ..plan(5) }, |_| 0.5);
    assert!(matches!(two.answer(), TuneAnswer::Open { .. }), "{:?}", two.answer());
    for runs in 0..120 {
        let small = tuned(TuningPlan { budget: RaceBudget { runs, seconds: None }, ..plan(6) }, |_| 0.9);
        assert!(small.runs().count() <= runs as usize);
    }
}

#[test]
fn a_default_that_fails_ends_all() {
    let mut tuning = Tuning::new(plan(7)).unwrap();
    while let Some(next) = tuning.next_run() {
        let failed = RunOutcome::Failed(RunFailure::Failed);
        let outcome = if next.run.candidate == 0 { failed } else { RunOutcome::Metric(1.0) };
        tuning.tell(outcome, 1.0).unwrap();
    }
    assert_eq!(tuning.answer(), TuneAnswer::DefaultFailed(RunFailure::Failed));
    assert_eq!(tuning.stages().len(), 1);
}

#[test]
fn a_record_goes_on_where_it_ended() {
    let gains = |option: &TuneOption| if *option == TuneOption::HugePages { 0.8 } else { 1.0 };
    let whole = tuned(plan(8), gains);
    let record = TuningRecord::from(whole.clone());
    let text = serde_json::to_string(&whole).unwrap();
    let again: Tuning = serde_json::from_str(&text).unwrap();
    assert_eq!((again.answer(), again.runs().count()), (whole.answer(), whole.runs().count()));
    // Cut after each run, it asks for the run that came next.
    let all: Vec<_> =
        record.stages.iter().enumerate().flat_map(|(n, runs)| runs.iter().map(move |r| (n, *r))).collect();
    for cut in (0..all.len()).step_by(7) {
        let mut part = TuningRecord { stages: vec![Vec::new(); record.stages.len()], ..record.clone() };
        all[..cut].iter().for_each(|(stage, run)| part.stages[*stage].push(*run));
        let next = Tuning::try_from(part).unwrap();
        let next = next.next_run().unwrap();
        assert_eq!((next.stage, next.run.candidate), (all[cut].0, all[cut].1.candidate));
    }
    let mut changed = record.clone();
    changed.stages.push(vec![record.stages[0][0]]);
    let error = Tuning::try_from(changed).unwrap_err().to_string();
    assert!(error.contains("start again"), "{error}");
}

/// What is left out is raced with the budget that is said to be enough, and that budget is not far too large.
#[test]
fn the_budget_for_what_is_left_out_is_enough() {
    let gains = |option: &TuneOption| if *option == TuneOption::HugePages { 0.9 } else { 1.0 };
    let mut seen = 0;
    for (runs, has_seconds) in [(10, false), (30, false), (40, true), (59, false), (60, true), (80, false)] {
        let budget = RaceBudget {
            runs: if has_seconds { 1000 } else { runs },
            seconds: has_seconds.then_some(f64::from(runs)),
        };
        let small = tuned(TuningPlan { budget, ..plan(5) }, gains);
        let left = small.left_out();
        if left.settings.is_empty() {
            continue;
        }
        seen += 1;
        assert_eq!(left.more.seconds.is_some(), has_seconds);
        let whole = RaceBudget {
            runs: budget.runs + left.more.runs,
            seconds: budget.seconds.zip(left.more.seconds).map(|(had, more)| had + more),
        };
        let large = tuned(TuningPlan { budget: whole, ..plan(5) }, gains);
        let first = &large.stages()[0];
        assert!(
            first.left_out.is_empty(),
            "{runs}: {} of {} left out, {left:?}",
            first.left_out.len(),
            first.candidates.len()
        );
        // Twice three rounds of all, and the proof.
        let all = (small.stages()[0].candidates.len() + left.settings.len()) as u32;
        assert!(left.more.runs <= 6 * all + 30, "{runs}: {} for {all}", left.more.runs);
    }
    assert!(seen >= 5, "{seen}");
}
