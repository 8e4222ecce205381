//! Running processes, that are moved and moved back in turns.

use super::output::TrialOutput;
use super::program::measured;
use super::{Measured, SceneEnd, TrialError, TrialRunner};
use crate::disturbance::DisturbanceClock;
use crate::metric::{FigureError, TrialMetric};
use numakit_sys::SysRoot;
use numakit_sys::children::ChildEnd;
use numakit_sys::poll;
use numakit_sys::proc::TaskDir;
use numakit_tune::RunFailure;
use numakit_tune::candidates::TuneSetting;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Processes that could not be moved, or not back.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("numa move {words}: {how}")]
pub struct MoveFailed {
    /// The options.
    pub words: String,
    /// How the command ended.
    pub how: String,
}

impl TrialRunner {
    /// Gives the processes a setting of `numa move`, or moves them back, and reads the metric in a turn.
    pub(super) fn run_turn(
        &mut self,
        target: &[String],
        turn: f64,
        setting: &TuneSetting,
    ) -> Result<SceneEnd, TrialError> {
        if self.applied != *setting
            && let Err(error) = self.switch(target, setting)?
        {
            let failed = Err((RunFailure::Failed, error.to_string()));
            return Ok(measured(failed, 0.0, None, DisturbanceClock::start(), TrialOutput::new()?));
        }
        let (clock, begun) = (DisturbanceClock::start(), Instant::now());
        let first = if self.is_counter { Some(self.read_metric()?) } else { None };
        let from = Instant::now();
        poll::readable(&[self.signals.as_fd()], Some(Duration::from_secs_f64(turn)))?;
        if let Some(signal) = self.signals.next() {
            return Ok(SceneEnd::Interrupted(signal));
        }
        let last = self.read_metric()?;
        let seconds = from.elapsed().as_secs_f64();
        let figure = match first {
            None => last,
            Some(first) => first.and_then(|first| {
                let per_second = (last? - first) / seconds;
                if per_second > 0.0 { Ok(per_second) } else { Err(FigureError::NotPositive(per_second)) }
            }),
        };
        let (wall, output) = (begun.elapsed().as_secs_f64(), TrialOutput::new()?);
        // The processes are part of what the machine does, and whose CPU time is whose is not known.
        let disturbance = crate::disturbance::Disturbance { others: None, ..clock.stop(0.0) };
        Ok(SceneEnd::Measured(Box::new(Measured {
            end: Ok(()),
            wall,
            cpu: None,
            disturbance,
            output,
            figure: Some(figure),
        })))
    }

    /// Moves the processes back, if they are as they were not; returns why that was not possible.
    pub fn restore_running(&mut self) -> Result<Result<(), MoveFailed>, TrialError> {
        match (self.scene.clone(), self.applied == TuneSetting::default()) {
            (crate::request::TrialScene::Running { target, .. }, false) => {
                self.switch(&target, &TuneSetting::default())
            }
            _ => Ok(Ok(())),
        }
    }

    fn switch(
        &mut self,
        target: &[String],
        setting: &TuneSetting,
    ) -> Result<Result<(), MoveFailed>, TrialError> {
        if self.applied != TuneSetting::default() {
            let back = self.moved(target, &["--back".to_owned()])?;
            // Where nothing was moved, or the processes have ended, there is nothing to undo.
            let is_needed = std::mem::take(&mut self.has_moved);
            if back.is_err() && is_needed && self.runs_still(target) {
                return Ok(back);
            }
            self.applied = TuneSetting::default();
        }
        if *setting != TuneSetting::default() {
            // Also if it fails midway, there is something to move back.
            self.applied = setting.clone();
            let moved = self.moved(target, &setting.words())?;
            self.has_moved = moved.is_ok();
            return Ok(moved);
        }
        Ok(Ok(()))
    }

    /// Whether one of the processes that were given by their numbers runs; of others that is not known.
    fn runs_still(&self, target: &[String]) -> bool {
        let numbers = target.iter().flat_map(|word| word.split(',')).filter_map(|word| word.parse().ok());
        let numbers: Vec<u32> = numbers.collect();
        let root = SysRoot::host();
        numbers.is_empty() || numbers.iter().any(|pid| TaskDir::of(&root, *pid).exists())
    }

    fn moved(&mut self, target: &[String], words: &[String]) -> Result<Result<(), MoveFailed>, TrialError> {
        let start = [self.numa.clone(), "move".into()].into_iter();
        let all: Vec<OsString> = start.chain(target.iter().chain(words).map(OsString::from)).collect();
        let (end, said) = self.helper(&all, None)?;
        // 1: some pages stayed, which is as much as the setting can do.
        Ok(match end {
            ChildEnd::Exited(0 | 1) => Ok(()),
            end => Err(MoveFailed { words: words.join(" "), how: said.ending(end) }),
        })
    }

    fn read_metric(&mut self) -> Result<Result<f64, FigureError>, TrialError> {
        match self.metric.clone() {
            TrialMetric::Command { line } => self.asked(&line),
            other => Ok(Err(FigureError::NoMatch(other.to_string()))),
        }
    }
}
