//! Whatever runs give: a race ends within its budget, its numbers are finite, and its record gives the same race.
#![allow(clippy::unwrap_used)]

use numakit_tune::{
    Better, CandidateState, PairedGain, Race, RaceAnswer, RaceBudget, RaceCandidate, RaceGoal, RaceRecord,
    RaceSettings, RunFailure, RunOutcome,
};
use proptest::prelude::*;

fn candidate() -> impl Strategy<Value = RaceCandidate> {
    (0..4_u32, proptest::option::of(0.0..2.0)).prop_map(|(rank, bound)| RaceCandidate { rank, bound })
}

fn settings() -> impl Strategy<Value = RaceSettings> {
    let candidates = proptest::collection::vec(candidate(), 1..14);
    let better = prop_oneof![Just(Better::Less), Just(Better::More)];
    let budget = (0..120_u32, proptest::option::of(1.0..500.0));
    let goal = prop_oneof![Just(RaceGoal::Prove), Just(RaceGoal::Choose)];
    (candidates, better, budget, 0.001..0.2, any::<u64>(), goal).prop_map(
        |(candidates, better, (runs, seconds), worth, seed, goal)| {
            let budget = RaceBudget { runs, seconds };
            RaceSettings { candidates, better, budget, worth, seed, goal }
        },
    )
}

fn outcome() -> impl Strategy<Value = RunOutcome> {
    prop_oneof![
        20 => (0.5..2.0).prop_map(RunOutcome::Metric),
        2 => prop_oneof![Just(f64::MIN_POSITIVE), Just(f64::MAX), Just(1e-320)].prop_map(RunOutcome::Metric),
        2 => Just(RunOutcome::Spoiled),
        1 => prop_oneof![Just(RunFailure::Failed), Just(RunFailure::Hung)].prop_map(RunOutcome::Failed),
    ]
}

fn is_sound(gain: &PairedGain) -> bool {
    let values = [gain.gain, gain.low, gain.high, gain.worst, gain.confidence];
    values.iter().all(|value| value.is_finite()) && gain.low <= gain.high && gain.pairs > 0
}

proptest! {
    #[test]
    fn every_race_ends_within_its_budget(
        settings in settings(),
        outcomes in proptest::collection::vec((outcome(), 0.0..20.0), 130),
    ) {
        let budget = settings.budget;
        let mut race = Race::new(settings).unwrap();
        let mut seconds = 0.0;
        for (outcome, of_run) in outcomes {
            let Some(next) = race.next_run() else { break };
            prop_assert!((race.runs().len() as u32) < budget.runs);
            prop_assert!(budget.seconds.is_none_or(|limit| seconds < limit));
            let state = race.standings()[next.candidate].state;
            prop_assert_eq!(state, CandidateState::Racing);
            race.tell(outcome, of_run).unwrap();
            seconds += of_run;
        }
        prop_assert_eq!(race.next_run(), None);
        for standing in race.standings() {
            prop_assert!(standing.in_rounds.as_ref().is_none_or(is_sound), "{standing:?}");
            prop_assert!(standing.confirmed.as_ref().is_none_or(is_sound), "{standing:?}");
        }
        match race.answer() {
            RaceAnswer::Use { candidate, gain } => {
                prop_assert!(candidate > 0 && is_sound(&gain) && gain.gain >= race.settings().worth && gain.low > 0.0);
                prop_assert_eq!(race.standings()[candidate].state, CandidateState::Confirmed);
            }
            RaceAnswer::Open { gain, .. } => prop_assert!(gain.as_ref().is_none_or(is_sound)),
            RaceAnswer::DefaultFailed(_) => {
                let last = race.runs().last().unwrap();
                prop_assert!(last.candidate == 0 && matches!(last.outcome, RunOutcome::Failed(_)));
            }
            RaceAnswer::Nothing => {}
        }
    }

    #[test]
    fn a_record_gives_the_same_race(
        settings in settings(),
        outcomes in proptest::collection::vec((outcome(), 0.0..20.0), 130),
        crash in 0..130_usize,
    ) {
        let mut race = Race::new(settings).unwrap();
        let mut resumed: Option<Race> = None;
        for (at, (outcome, seconds)) in outcomes.into_iter().enumerate() {
            if at == crash {
                let text = serde_json::to_string(&race).unwrap();
                resumed = Some(serde_json::from_str(&text).unwrap());
            }
            if race.next_run().is_none() {
                break;
            }
            race.tell(outcome, seconds).unwrap();
            if let Some(resumed) = &mut resumed {
                resumed.tell(outcome, seconds).unwrap();
                prop_assert_eq!(resumed.next_run(), race.next_run());
            }
        }
        let again = Race::try_from(RaceRecord::from(race.clone())).unwrap();
        for other in std::iter::once(again).chain(resumed) {
            prop_assert_eq!(other.answer(), race.answer());
            prop_assert_eq!(other.standings(), race.standings());
        }
    }
}
