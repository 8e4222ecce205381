//! A race as a file: what it was given and what it was told. The rest follows from these.

use super::{Race, TellError};
use crate::settings::{RaceSettings, RaceSettingsError};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Another number for each procedure that asks for other runs: a race cannot go on under another one.
pub const PROCEDURE_VERSION: u32 = 1;

/// What became of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunOutcome {
    /// The metric, a positive number.
    Metric(f64),
    /// The machine was busy: the run says nothing, and is repeated.
    Spoiled,
    /// The candidate does not work.
    Failed(RunFailure),
}

/// Why a run has no metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunFailure {
    /// The program failed.
    Failed,
    /// It did not end in time.
    Hung,
    /// Its result is wrong.
    WrongResult,
    /// It ended well, and did not give the metric.
    NoMetric,
}

/// A run that a race was told of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ToldRun {
    /// The number of the candidate.
    pub candidate: usize,
    /// What became of it.
    pub outcome: RunOutcome,
    /// How long it took, in seconds, with all that belongs to it.
    pub seconds: f64,
}

/// What of a race is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RaceRecord {
    /// The [procedure](PROCEDURE_VERSION) that asked for these runs.
    pub procedure: u32,
    /// What the race was given.
    pub settings: RaceSettings,
    /// Its runs, in order.
    pub runs: Vec<ToldRun>,
}

/// A record that no race can go on from.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum RaceRecordError {
    /// Another version wrote it.
    #[error(
        "the race was run by procedure {0}, and this is {PROCEDURE_VERSION}; finish it with the version of numa that began it, or start again"
    )]
    Procedure(u32),
    /// Its settings are none.
    #[error(transparent)]
    Settings(#[from] RaceSettingsError),
    /// A run is not the one that the race asks for.
    #[error("run {run} of the race has candidate {candidate}, where {} is next; the record was changed, start again", words(*.next))]
    Order {
        /// Its number, from 1.
        run: usize,
        /// Its candidate.
        candidate: usize,
        /// The candidate that the race asks for.
        next: Option<usize>,
    },
    /// A run is none.
    #[error("run {run} of the race: {error}")]
    Run {
        /// Its number, from 1.
        run: usize,
        /// What is wrong with it.
        error: TellError,
    },
}

fn words(next: Option<usize>) -> String {
    next.map_or_else(|| "no run".to_owned(), |next| format!("candidate {next}"))
}

impl From<Race> for RaceRecord {
    fn from(race: Race) -> Self {
        Self { procedure: PROCEDURE_VERSION, settings: race.settings, runs: race.told }
    }
}

impl TryFrom<RaceRecord> for Race {
    type Error = RaceRecordError;

    fn try_from(record: RaceRecord) -> Result<Self, RaceRecordError> {
        if record.procedure != PROCEDURE_VERSION {
            return Err(RaceRecordError::Procedure(record.procedure));
        }
        let mut race = Self::new(record.settings)?;
        for (at, told) in record.runs.iter().enumerate() {
            let (run, candidate) = (at + 1, told.candidate);
            let next = race.next_run().map(|next| next.candidate);
            if next != Some(candidate) {
                return Err(RaceRecordError::Order { run, candidate, next });
            }
            race.tell(told.outcome, told.seconds).map_err(|error| RaceRecordError::Run { run, error })?;
        }
        Ok(race)
    }
}
