//! A race of settings: which of them makes a program faster, by how much, and how certain that is.
//!
//! Nothing here runs a program or reads a clock. A [`Race`] says which candidate runs next, is told what came out, and has the
//! answer. It is a pure function of its settings and of what it was told, and is serialized as these: a race that was interrupted
//! goes on from its record.
//!
//! 1. Rounds: every candidate that is left runs once, in random order, the default with them. So drift of the machine moves all alike.
//!    Candidates that are behind by more than the noise are out, and so are those that gain nothing.
//! 2. Pairs: the winner and the default run in turns. Only these runs give the [gain](PairedGain) that is published: the gain in the
//!    rounds, by which the winner was chosen, is too large by chance.
//!
//! [`candidates`] has settings that may make any program faster, and [`tuning`] the races in which a program is tuned: what its
//! samples advise first, then these.
//!
//! docs/decisions/0035-settings-race-in-rounds.md has the reasons and what was measured.
//!
//! ```
//! use numakit_tune::{Better, Race, RaceAnswer, RaceBudget, RaceCandidate, RaceGoal, RaceSettings, RunOutcome};
//!
//! let mut race = Race::new(RaceSettings {
//!     // The default, and two settings of which the second asks more of the user.
//!     candidates: vec![
//!         RaceCandidate::default(),
//!         RaceCandidate { rank: 1, bound: None },
//!         RaceCandidate { rank: 2, bound: Some(0.4) },
//!     ],
//!     better: Better::Less,
//!     budget: RaceBudget { runs: 100, seconds: Some(1200.0) },
//!     worth: 0.01,
//!     seed: 7,
//!     goal: RaceGoal::Prove,
//! })?;
//! while let Some(next) = race.next_run() {
//!     // Here the program runs.
//!     let seconds = [10.0, 9.9, 7.0][next.candidate] + 0.01 * (race.runs().len() % 3) as f64;
//!     race.tell(RunOutcome::Metric(seconds), seconds)?;
//!     // And its record is written, for the case that the next run is the last.
//!     let _record = serde_json::to_string(&race)?;
//! }
//! match race.answer() {
//!     RaceAnswer::Use { candidate, gain } => {
//!         assert_eq!(candidate, 2);
//!         assert!(0.29 < gain.gain && gain.gain < 0.31 && gain.pairs >= 7);
//!     }
//!     other => panic!("{other:?}"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod candidates;
mod gain;
mod race;
mod random;
mod settings;
pub mod tuning;

pub use gain::{CONFIDENCE, PairedGain};
pub use race::{
    CandidateState, NextRun, PROCEDURE_VERSION, Race, RaceAnswer, RaceRecord, RaceRecordError, RaceStanding,
    RunFailure, RunOutcome, RunPurpose, TellError, ToldRun,
};
pub use settings::{
    Better, MAX_CANDIDATES, RaceBudget, RaceCandidate, RaceGoal, RaceSettings, RaceSettingsError,
};
