//! The race: which candidate runs next, and what is known.

mod answer;
mod confirmation;
mod procedure;
mod record;
mod rounds;
mod scores;

pub use answer::{CandidateState, RaceAnswer, RaceStanding};
pub use record::{PROCEDURE_VERSION, RaceRecord, RaceRecordError, RunFailure, RunOutcome, ToldRun};

use crate::random::Random;
use crate::settings::{RaceSettings, RaceSettingsError};
use confirmation::Confirmation;
use scores::Round;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use thiserror::Error;

/// How many of the last runs say how long the next ones take.
const LAST_RUNS: usize = 8;

/// A race of settings. It asks which candidate runs next ([`Race::next_run`]), is told what came out ([`Race::tell`]), and says
/// at any time what is known ([`Race::answer`], [`Race::standings`]). It is serialized as its [record](RaceRecord).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "RaceRecord", into = "RaceRecord")]
pub struct Race {
    settings: RaceSettings,
    told: Vec<ToldRun>,
    random: Random,
    states: Vec<CandidateState>,
    rounds: Vec<Round>,
    confirmations: Vec<Confirmation>,
    phase: Phase,
    /// What is left of the round or pair.
    queue: VecDeque<usize>,
    /// How often the first of the queue was spoiled.
    spoiled: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Rounds,
    Confirming,
    Over,
    Failed(RunFailure),
}

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunPurpose {
    /// To choose, in this round, counted from 1.
    Round(usize),
    /// To confirm the winner, in this pair, counted from 1.
    Pair(usize),
}

/// The run that a race asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextRun {
    /// The number of the candidate.
    pub candidate: usize,
    /// What it is for.
    pub purpose: RunPurpose,
}

/// What a race cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum TellError {
    /// The race asks for no run.
    #[error("the race is over, or its budget is used up: it asks for no run")]
    NoRun,
    /// The metric is none.
    #[error("the metric is {0}; it must be a positive number")]
    Metric(f64),
    /// The time is none.
    #[error("a run cannot have taken {0} s; give a number of seconds from 0 on")]
    Seconds(f64),
}

impl Race {
    /// Begins a race.
    pub fn new(settings: RaceSettings) -> Result<Self, RaceSettingsError> {
        settings.check()?;
        let mut race = Self {
            random: Random::of_seed(settings.seed),
            states: vec![CandidateState::Racing; settings.candidates.len()],
            settings,
            told: Vec::new(),
            rounds: Vec::new(),
            confirmations: Vec::new(),
            phase: Phase::Rounds,
            queue: VecDeque::new(),
            spoiled: 0,
        };
        race.begin_round();
        Ok(race)
    }

    /// What it was given.
    pub fn settings(&self) -> &RaceSettings {
        &self.settings
    }

    /// The runs that it was told of.
    pub fn runs(&self) -> &[ToldRun] {
        &self.told
    }

    /// The next run; `None` if the race is over or the budget is used up. [`Race::answer`] says which.
    pub fn next_run(&self) -> Option<NextRun> {
        let purpose = match self.phase {
            Phase::Rounds => RunPurpose::Round(self.rounds.len()),
            Phase::Confirming => RunPurpose::Pair(self.confirmations.last()?.ended + 1),
            Phase::Over | Phase::Failed(_) => return None,
        };
        let candidate = *self.queue.front()?;
        (self.runs_left() > 0).then_some(NextRun { candidate, purpose })
    }

    /// Tells what became of the next run, and how many seconds it took. What cannot be is an error, and the race as before.
    pub fn tell(&mut self, outcome: RunOutcome, seconds: f64) -> Result<(), TellError> {
        let NextRun { candidate, .. } = self.next_run().ok_or(TellError::NoRun)?;
        if !(seconds >= 0.0 && seconds.is_finite()) {
            return Err(TellError::Seconds(seconds));
        }
        let cost = match outcome {
            RunOutcome::Metric(metric) => {
                Some(self.settings.better.cost(metric).ok_or(TellError::Metric(metric))?)
            }
            RunOutcome::Spoiled | RunOutcome::Failed(_) => None,
        };
        self.told.push(ToldRun { candidate, outcome, seconds });
        if outcome == RunOutcome::Spoiled {
            self.spoiled += 1;
            if self.spoiled < procedure::TRIES {
                return Ok(());
            }
        }
        self.spoiled = 0;
        self.queue.pop_front();
        match outcome {
            RunOutcome::Failed(failure) if candidate == 0 => self.phase = Phase::Failed(failure),
            RunOutcome::Failed(failure) => self.leave_out(candidate, failure),
            RunOutcome::Metric(_) | RunOutcome::Spoiled => self.note(candidate, cost),
        }
        if self.queue.is_empty() {
            self.go_on();
        }
        Ok(())
    }

    /// The runs that the budget allows still, judged by how long the last ones took. The race may need fewer.
    pub fn runs_left(&self) -> u32 {
        let runs = self.settings.budget.runs.saturating_sub(self.told.len() as u32);
        let Some(seconds) = self.settings.budget.seconds else { return runs };
        let left = seconds - self.told.iter().map(|told| told.seconds).sum::<f64>();
        if left <= 0.0 {
            return 0;
        }
        let last = self.told.iter().rev().take(LAST_RUNS).map(|told| told.seconds);
        let of_run = last.clone().sum::<f64>() / last.len().max(1) as f64;
        // As long as there is time a run may begin, and take a little longer. A conversion to integers ends at the largest one.
        runs.min(((left / of_run) as u32).max(1))
    }

    fn leave_out(&mut self, candidate: usize, failure: RunFailure) {
        self.states[candidate] = CandidateState::Failed(failure);
        if self.phase == Phase::Confirming {
            self.queue.clear();
        }
    }

    fn note(&mut self, candidate: usize, cost: Option<f64>) {
        if self.phase == Phase::Confirming {
            self.confirmations.iter_mut().rev().take(1).for_each(|one| one.note(candidate, cost));
        } else {
            self.rounds.iter_mut().rev().take(1).for_each(|round| round[candidate] = cost);
        }
    }

    fn go_on(&mut self) {
        match self.phase {
            Phase::Rounds => self.end_round(),
            Phase::Confirming => self.end_pair(),
            Phase::Over | Phase::Failed(_) => {}
        }
    }
}
