//! The races in which a program is tuned, one after another, each with the winners of the one before: the default and what samples
//! advise with cores, placement and memory; one option more for the best two; then what won, together, against the default.
//!
//! Like a [`Race`], a tuning is a pure function of its plan and of what it was told, and goes on from its record.

mod left_out;
mod stages;

use crate::candidates::{TuneSetting, TunedMachine};
use crate::gain::PairedGain;
use crate::race::{NextRun, Race, RaceAnswer, RaceRecordError, RunFailure, RunOutcome, TellError, ToldRun};
use crate::settings::{Better, RaceBudget, RaceSettingsError};
pub use left_out::LeftOutSettings;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A setting that is tried before all others, since something speaks for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TuneRemedy {
    /// The setting.
    pub setting: TuneSetting,
    /// The most that it can gain, as a fraction.
    pub bound: Option<f64>,
}

/// What a tuning is given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TuningPlan {
    /// What is tried first, the most promising first.
    pub remedies: Vec<TuneRemedy>,
    /// The machine for which other settings are made; `None` if only the remedies are tried.
    pub machine: Option<TunedMachine>,
    /// Which values of the metric are better.
    pub better: Better,
    /// When it ends at the latest.
    pub budget: RaceBudget,
    /// How long a run takes, in seconds, as far as is known: no more candidates are raced than the budget is enough for.
    pub seconds_per_run: f64,
    /// Gains below this one, as a fraction, are not worth a setting.
    pub worth: f64,
    /// The source of the random order.
    pub seed: u64,
}

/// A candidate of a stage.
#[derive(Debug, Clone, PartialEq)]
pub struct StageCandidate {
    /// The setting.
    pub setting: TuneSetting,
    /// The number of the remedy that it is, if it is one.
    pub remedy: Option<usize>,
}

/// One of the races.
#[derive(Debug, Clone)]
pub struct TuneStage {
    /// The candidates, the default first.
    pub candidates: Vec<StageCandidate>,
    /// Settings that the budget has no time for.
    pub left_out: Vec<TuneSetting>,
    /// The race of these candidates, by their numbers.
    pub race: Race,
}

/// The next run of a tuning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextTrial<'a> {
    /// The number of the stage, from 0.
    pub stage: usize,
    /// The run of its race.
    pub run: NextRun,
    /// The setting that runs.
    pub setting: &'a TuneSetting,
}

/// The answer of a tuning.
#[derive(Debug, Clone, PartialEq)]
pub enum TuneAnswer<'a> {
    /// This setting is worth it.
    Use {
        /// The setting.
        setting: &'a TuneSetting,
        /// What it gains, from pairs of runs that had no part in choosing it.
        gain: PairedGain,
    },
    /// No setting is worth it.
    Nothing,
    /// It is not over, or the budget was too small.
    Open {
        /// The setting that leads so far, if that is not the default.
        leading: Option<&'a TuneSetting>,
    },
    /// The default does not work, so nothing can be compared with it.
    DefaultFailed(RunFailure),
}

/// A tuning. It is serialized as its [record](TuningRecord).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "TuningRecord", into = "TuningRecord")]
pub struct Tuning {
    plan: TuningPlan,
    stages: Vec<TuneStage>,
    is_over: bool,
}

/// What of a tuning is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TuningRecord {
    /// The version of the procedure: [`crate::PROCEDURE_VERSION`].
    pub procedure: u32,
    /// What it was given.
    pub plan: TuningPlan,
    /// The runs of each stage, in order.
    pub stages: Vec<Vec<ToldRun>>,
}

/// A record that no tuning can go on from.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum TuningRecordError {
    /// A race of it is none.
    #[error(transparent)]
    Race(#[from] RaceRecordError),
    /// It has runs of a stage that there is not.
    #[error("the record has runs of stage {0}, which this tuning has not; it was changed, start again")]
    Stage(usize),
}

impl Tuning {
    /// Begins a tuning.
    pub fn new(plan: TuningPlan) -> Result<Self, RaceSettingsError> {
        let mut tuning = Self { plan, stages: Vec::new(), is_over: false };
        tuning.begin_next()?;
        Ok(tuning)
    }

    /// What it was given.
    pub fn plan(&self) -> &TuningPlan {
        &self.plan
    }

    /// Its races so far.
    pub fn stages(&self) -> &[TuneStage] {
        &self.stages
    }

    /// All runs that it was told of.
    pub fn runs(&self) -> impl Iterator<Item = &ToldRun> {
        self.stages.iter().flat_map(|stage| stage.race.runs())
    }

    /// The next run; `None` if it is over or the budget is used up.
    pub fn next_run(&self) -> Option<NextTrial<'_>> {
        let (stage, last) = self.stages.iter().enumerate().next_back()?;
        let run = last.race.next_run()?;
        Some(NextTrial { stage, run, setting: &last.candidates[run.candidate].setting })
    }

    /// Tells what became of the next run, and how many seconds it took. What cannot be is an error, and all is as before.
    pub fn tell(&mut self, outcome: RunOutcome, seconds: f64) -> Result<(), TellError> {
        let stage = self.stages.last_mut().ok_or(TellError::NoRun)?;
        stage.race.tell(outcome, seconds)?;
        if stage.race.next_run().is_none() {
            // Its settings are those of the first stage, which were checked.
            let _ = self.begin_next();
        }
        Ok(())
    }

    /// Runs and seconds that the budget has left.
    pub fn budget_left(&self) -> RaceBudget {
        let runs = self.plan.budget.runs.saturating_sub(self.runs().count() as u32);
        let used: f64 = self.runs().map(|run| run.seconds).sum();
        RaceBudget { runs, seconds: self.plan.budget.seconds.map(|seconds| seconds - used) }
    }

    /// The answer, as far as it is known.
    pub fn answer(&self) -> TuneAnswer<'_> {
        let Some(stage) = self.stages.last() else { return TuneAnswer::Nothing };
        let setting = |candidate: usize| &stage.candidates[candidate].setting;
        match stage.race.answer() {
            RaceAnswer::DefaultFailed(failure) => TuneAnswer::DefaultFailed(failure),
            RaceAnswer::Use { candidate, gain } => TuneAnswer::Use { setting: setting(candidate), gain },
            RaceAnswer::Nothing if self.is_over => TuneAnswer::Nothing,
            RaceAnswer::Nothing => {
                TuneAnswer::Open { leading: stage.race.promising().first().map(|best| setting(*best)) }
            }
            RaceAnswer::Open { leading, .. } => TuneAnswer::Open { leading: leading.map(setting) },
        }
    }
}

impl From<Tuning> for TuningRecord {
    fn from(tuning: Tuning) -> Self {
        let stages = tuning.stages.iter().map(|stage| stage.race.runs().to_vec()).collect();
        Self { procedure: crate::PROCEDURE_VERSION, plan: tuning.plan, stages }
    }
}

impl TryFrom<TuningRecord> for Tuning {
    type Error = TuningRecordError;

    fn try_from(record: TuningRecord) -> Result<Self, TuningRecordError> {
        if record.procedure != crate::PROCEDURE_VERSION {
            return Err(RaceRecordError::Procedure(record.procedure).into());
        }
        let mut tuning = Self::new(record.plan).map_err(RaceRecordError::Settings)?;
        for (number, runs) in record.stages.iter().enumerate() {
            for (at, told) in runs.iter().enumerate() {
                let next = tuning.next_run().map(|next| (next.stage, next.run.candidate));
                if next.is_none_or(|(stage, _)| stage != number) {
                    return Err(TuningRecordError::Stage(number + 1));
                }
                let (run, candidate) = (at + 1, told.candidate);
                let next = next.map(|(_, candidate)| candidate);
                if next != Some(candidate) {
                    return Err(RaceRecordError::Order { run, candidate, next }.into());
                }
                let told = tuning.tell(told.outcome, told.seconds);
                told.map_err(|error| RaceRecordError::Run { run, error })?;
            }
        }
        Ok(tuning)
    }
}
