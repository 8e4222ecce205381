//! Single races, each with one thing that must come out.
#![allow(clippy::unwrap_used)]

use numakit_tune::{
    Better, CandidateState, Race, RaceAnswer, RaceBudget, RaceCandidate, RaceGoal, RaceRecord,
    RaceRecordError, RaceSettings, RaceSettingsError, RunFailure, RunOutcome, RunPurpose, TellError,
};

fn settings(candidates: usize) -> RaceSettings {
    RaceSettings {
        candidates: vec![RaceCandidate::default(); candidates],
        better: Better::Less,
        budget: RaceBudget { runs: 200, seconds: None },
        worth: 0.01,
        seed: 1,
        goal: RaceGoal::Prove,
    }
}

/// Runs a race to its end. The outcome is that of a candidate's run, counted from 0.
fn raced(settings: RaceSettings, outcome: impl Fn(usize, usize) -> RunOutcome) -> Race {
    let mut race = Race::new(settings).unwrap();
    while let Some(next) = race.next_run() {
        let nth = race.runs().iter().filter(|told| told.candidate == next.candidate).count();
        race.tell(outcome(next.candidate, nth), 1.0).unwrap();
    }
    race
}

/// Seconds of a run with a noise of about 1 %, the same in every test.
fn noisy(seconds: f64, candidate: usize, nth: usize) -> RunOutcome {
    let noise = ((candidate * 7 + nth * 13) % 11) as f64 / 11.0 - 0.5;
    RunOutcome::Metric(seconds * (1.0 + 0.03 * noise))
}

fn state(race: &Race, candidate: usize) -> CandidateState {
    race.standings()[candidate].state
}

#[test]
fn the_best_one_wins_and_its_gain_is_from_new_pairs() {
    let times = [10.0, 9.0, 7.0, 12.0];
    let race = raced(settings(4), |one, nth| noisy(times[one], one, nth));
    let RaceAnswer::Use { candidate: 2, gain } = race.answer() else { panic!("{:?}", race.answer()) };
    assert!((gain.gain - 0.3).abs() < 0.02 && gain.low < gain.gain && gain.gain < gain.high, "{gain:?}");
    assert!((7..=16).contains(&gain.pairs) && gain.worst <= gain.gain && gain.confidence == 0.95, "{gain:?}");
    assert_eq!(race.standings()[2].confirmed, Some(gain));
    assert_eq!([1, 3].map(|one| state(&race, one)), [CandidateState::Slower; 2]);
}

#[test]
fn more_can_be_better() {
    let rates = [100.0, 100.0, 150.0];
    let race =
        raced(RaceSettings { better: Better::More, ..settings(3) }, |one, nth| noisy(rates[one], one, nth));
    let RaceAnswer::Use { candidate: 2, gain } = race.answer() else { panic!("{:?}", race.answer()) };
    assert!((gain.gain - 0.5).abs() < 0.04, "{gain:?}");
}

#[test]
fn nothing_is_an_answer() {
    let race = raced(settings(4), |one, nth| noisy(10.0, one, nth));
    assert_eq!(race.answer(), RaceAnswer::Nothing);
    assert!(race.runs().len() < 40, "{}", race.runs().len());
    let alone = raced(settings(1), |one, nth| noisy(10.0, one, nth));
    assert_eq!((alone.answer(), alone.runs().len()), (RaceAnswer::Nothing, 1));
}

#[test]
fn equals_fall_to_the_simpler_one() {
    let mut given = settings(4);
    given.candidates[1].rank = 3;
    given.candidates[2].rank = 1;
    given.candidates[3].rank = 2;
    let race = raced(given, |one, _| RunOutcome::Metric(if one > 0 { 7.0 } else { 10.0 }));
    assert!(matches!(race.answer(), RaceAnswer::Use { candidate: 2, .. }), "{:?}", race.answer());
}

#[test]
fn what_cannot_gain_what_is_won_runs_no_more() {
    let mut given = settings(4);
    given.candidates[2].bound = Some(0.1);
    given.candidates[3].bound = Some(0.9);
    // Noise is large at first, so that the bound decides.
    let race = raced(given, |one, nth| {
        let wide = if (one + nth) % 2 == 0 { 1.3 } else { 0.8 };
        RunOutcome::Metric([10.0, 2.0, 2.2, 2.0][one] * wide)
    });
    assert_eq!(state(&race, 2), CandidateState::Bounded);
    assert_ne!(state(&race, 3), CandidateState::Bounded);
}

#[test]
fn what_fails_is_out_with_its_reason_and_the_others_go_on() {
    let race = raced(settings(5), |one, nth| match (one, nth) {
        (1, 0) => RunOutcome::Failed(RunFailure::Failed),
        (2, 1) => RunOutcome::Failed(RunFailure::Hung),
        // The winner is wrong in its confirmation.
        (3, 6) => RunOutcome::Failed(RunFailure::WrongResult),
        _ => noisy([10.0, 1.0, 6.0, 5.0, 8.0][one], one, nth),
    });
    let failed = [RunFailure::Failed, RunFailure::Hung, RunFailure::WrongResult].map(CandidateState::Failed);
    assert_eq!([1, 2, 3].map(|one| state(&race, one)), failed);
    assert!(matches!(race.answer(), RaceAnswer::Use { candidate: 4, .. }), "{:?}", race.answer());
    assert_eq!(race.standings()[1].runs, 1);
}

#[test]
fn a_default_that_fails_ends_the_race() {
    let race = raced(settings(3), |one, nth| match (one, nth) {
        (0, 1) => RunOutcome::Failed(RunFailure::NoMetric),
        _ => noisy(10.0, one, nth),
    });
    assert_eq!(race.answer(), RaceAnswer::DefaultFailed(RunFailure::NoMetric));
}

#[test]
fn spoiled_runs_are_counted_and_repeated() {
    let times = [10.0, 7.0];
    let race = raced(settings(2), |one, nth| match (one, nth) {
        (1, 0 | 1) => RunOutcome::Spoiled,
        _ => noisy(times[one], one, nth),
    });
    let standing = race.standings()[1];
    assert_eq!((standing.spoiled, standing.runs), (2, 10), "{standing:?}");
    assert!(matches!(race.answer(), RaceAnswer::Use { candidate: 1, .. }));
    // A machine that is always busy ends too, and says nothing.
    let busy = raced(settings(3), |_, _| RunOutcome::Spoiled);
    assert!(matches!(busy.answer(), RaceAnswer::Nothing | RaceAnswer::Open { .. }));
}

#[test]
fn each_round_has_every_candidate_once_and_pairs_alternate() {
    let times = [10.0, 8.0, 7.9, 7.8, 8.1];
    let mut race = Race::new(settings(5)).unwrap();
    let (mut rounds, mut pairs): (Vec<Vec<usize>>, Vec<Vec<usize>>) = Default::default();
    while let Some(next) = race.next_run() {
        let (list, at) = match next.purpose {
            RunPurpose::Round(at) => (&mut rounds, at),
            RunPurpose::Pair(at) => (&mut pairs, at),
        };
        list.resize(at, Vec::new());
        list[at - 1].push(next.candidate);
        let nth = race.standings()[next.candidate].runs as usize;
        race.tell(noisy(times[next.candidate], next.candidate, nth), 1.0).unwrap();
    }
    let sorted = |round: &Vec<usize>| {
        let mut sorted = round.clone();
        sorted.sort_unstable();
        sorted
    };
    assert_eq!(sorted(&rounds[0]), [0, 1, 2, 3, 4]);
    assert!(rounds.iter().all(|round| round.contains(&0)) && rounds.len() > 1, "{rounds:?}");
    let winner = pairs[0].iter().copied().find(|one| *one > 0).unwrap();
    let of_winner: Vec<_> = pairs.iter().filter(|pair| pair.contains(&winner)).collect();
    assert!(of_winner.windows(2).all(|two| two[0][0] == two[1][1]), "{pairs:?}");
    let orders: Vec<_> =
        (0..20).map(|seed| Race::new(RaceSettings { seed, ..settings(5) }).unwrap()).collect();
    let first: Vec<usize> = orders.iter().map(|race| race.next_run().unwrap().candidate).collect();
    assert!((0..5).all(|one| first.contains(&one)), "{first:?}");
}

#[test]
fn a_race_that_is_cut_short_says_what_is_known() {
    let times = [10.0, 9.9, 7.0];
    let with = |runs, seconds| RaceSettings { budget: RaceBudget { runs, seconds }, ..settings(3) };
    let few = raced(with(4, None), |one, nth| noisy(times[one], one, nth));
    assert_eq!(few.runs().len(), 4);
    assert!(matches!(few.answer(), RaceAnswer::Open { leading: Some(2), .. }), "{:?}", few.answer());
    // Each run takes a second.
    let short = raced(with(200, Some(13.0)), |one, nth| noisy(times[one], one, nth));
    assert_eq!(short.runs().len(), 13);
    let RaceAnswer::Open { leading: Some(2), gain: Some(gain) } = short.answer() else {
        panic!("{:?}", short.answer())
    };
    assert!(gain.pairs > 1 && gain.confidence < 0.95 && (gain.gain - 0.3).abs() < 0.05, "{gain:?}");
    assert_eq!(
        raced(with(0, None), |_, _| RunOutcome::Spoiled).answer(),
        RaceAnswer::Open { leading: None, gain: None }
    );
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let mut race = Race::new(settings(2)).unwrap();
    let next = race.next_run();
    for metric in [0.0, -1.0, f64::INFINITY] {
        assert_eq!(race.tell(RunOutcome::Metric(metric), 1.0), Err(TellError::Metric(metric)));
    }
    assert!(race.tell(RunOutcome::Metric(f64::NAN), 1.0).is_err());
    assert_eq!(race.tell(RunOutcome::Spoiled, -1.0), Err(TellError::Seconds(-1.0)));
    assert_eq!((race.next_run(), race.runs().len()), (next, 0));
    let mut over = raced(settings(1), |_, _| RunOutcome::Metric(1.0));
    assert_eq!(over.tell(RunOutcome::Metric(1.0), 1.0), Err(TellError::NoRun));
}

#[test]
fn settings_that_are_none_are_refused() {
    let refused = |change: &dyn Fn(&mut RaceSettings)| {
        let mut given = settings(2);
        change(&mut given);
        Race::new(given).unwrap_err()
    };
    assert_eq!(refused(&|given| given.candidates.clear()), RaceSettingsError::Candidates(0));
    assert_eq!(refused(&|given| given.worth = 1.0), RaceSettingsError::Worth(1.0));
    assert_eq!(refused(&|given| given.budget.seconds = Some(0.0)), RaceSettingsError::Seconds(0.0));
    let bound = refused(&|given| given.candidates[1].bound = Some(-0.5));
    assert_eq!(
        bound.to_string(),
        "candidate 1 has the bound -0.5; give the most that it can gain as a fraction, such as 0.2"
    );
}

#[test]
fn a_record_that_does_not_fit_is_refused() {
    let race = raced(settings(3), |one, nth| noisy(10.0, one, nth));
    let record = RaceRecord::from(race);
    let mut changed = record.clone();
    changed.runs[1].candidate = changed.runs[0].candidate;
    let error = Race::try_from(changed).unwrap_err();
    assert!(matches!(error, RaceRecordError::Order { run: 2, .. }), "{error}");
    let mut longer = record.clone();
    longer.runs.push(record.runs[0]);
    let error = Race::try_from(longer).unwrap_err();
    assert!(matches!(error, RaceRecordError::Order { next: None, .. }), "{error}");
    let mut negative = record.clone();
    negative.runs[0].outcome = RunOutcome::Metric(-1.0);
    let error = Race::try_from(negative).unwrap_err();
    assert_eq!(error.to_string(), "run 1 of the race: the metric is -1; it must be a positive number");
    let error = Race::try_from(RaceRecord { procedure: 7, ..record }).unwrap_err();
    assert_eq!(error, RaceRecordError::Procedure(7));
}
