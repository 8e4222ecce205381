//! What a run says: its number, or why it has none.

use super::output::TrialOutput;
use super::{CUT_OFF, Measured, RunCheck, TrialError, TrialRun, TrialRunner, is_reserved};
use crate::commands::words_of_line;
use crate::disturbance::SpoiledBy;
use crate::metric::{self, FigureError, TrialMetric};
use numakit_sys::children::ChildEnd;
use numakit_tune::candidates::TuneSetting;
use numakit_tune::{RunFailure, RunOutcome};

impl TrialRunner {
    pub(super) fn judged(
        &mut self,
        measured: Measured,
        setting: &TuneSetting,
        left: usize,
        seconds: f64,
    ) -> Result<TrialRun, TrialError> {
        let Measured { end, wall, cpu, disturbance, output, figure } = measured;
        let mut spoiled = disturbance.spoils(&self.usual);
        let mut why = None;
        let outcome = match end {
            Err((failure, words)) => {
                // It may have found no core, and is repeated.
                let is_reserved = setting.is_placed() && (self.was_reserved || is_reserved());
                let is_cut_off = failure == RunFailure::Hung && self.may_be_slow(setting);
                let by = [(is_reserved, SpoiledBy::Reserved), (is_cut_off, SpoiledBy::CutOff)];
                spoiled = by.into_iter().find_map(|(is_it, by)| is_it.then_some(by));
                why = Some(words);
                if spoiled.is_some() { RunOutcome::Spoiled } else { RunOutcome::Failed(failure) }
            }
            Ok(()) => match self.checked(&output)? {
                Some(words) => {
                    why = Some(words);
                    RunOutcome::Failed(RunFailure::WrongResult)
                }
                None => match figure.map_or_else(|| self.figure(&output, wall, cpu), Ok)? {
                    Ok(_) if spoiled.is_some() => RunOutcome::Spoiled,
                    Ok(figure) => RunOutcome::Metric(figure),
                    Err(error) => {
                        why = Some(error.to_string());
                        RunOutcome::Failed(RunFailure::NoMetric)
                    }
                },
            },
        };
        Ok(TrialRun { outcome, seconds, wall, cpu, disturbance, spoiled, why, left })
    }

    /// Whether a run that did not end in time may only have been slow: one of the default, which has ended before.
    fn may_be_slow(&self, setting: &TuneSetting) -> bool {
        *setting == TuneSetting::default() && !self.defaults.is_empty() && self.cut_off.len() + 1 < CUT_OFF
    }

    /// Why the result is wrong; `None` if it is right.
    fn checked(&mut self, output: &TrialOutput) -> Result<Option<String>, TrialError> {
        match &self.check {
            None => Ok(None),
            Some(RunCheck::Output(pattern)) => Ok((!pattern.is_match(&output.text()?))
                .then(|| format!("nothing that it printed matches '{}'", pattern.as_str()))),
            Some(RunCheck::Command(line)) => {
                let (line, words) = (line.clone(), words_of_line(line));
                let (end, said) = self.helper(&words, Some(output))?;
                Ok((end != ChildEnd::Exited(0))
                    .then(|| format!("'{line}' says that its result is wrong: {}", said.ending(end))))
            }
        }
    }

    /// The number to compare.
    fn figure(
        &mut self,
        output: &TrialOutput,
        wall: f64,
        cpu: Option<f64>,
    ) -> Result<Result<f64, FigureError>, TrialError> {
        let time =
            |seconds: f64| if seconds > 0.0 { Ok(seconds) } else { Err(FigureError::NotPositive(seconds)) };
        Ok(match &self.metric {
            TrialMetric::WallTime => time(wall),
            TrialMetric::CpuTime => time(cpu.unwrap_or(0.0)),
            TrialMetric::Output { .. } => match &self.pattern {
                Some(pattern) => metric::found(pattern, &output.text()?),
                None => Err(FigureError::NoMatch(String::new())),
            },
            TrialMetric::Command { line } => self.asked(&line.clone())?,
        })
    }

    /// The number that a command prints.
    pub(super) fn asked(&mut self, line: &str) -> Result<Result<f64, FigureError>, TrialError> {
        let (end, said) = self.helper(&words_of_line(line), None)?;
        Ok(match end {
            ChildEnd::Exited(0) => metric::printed(&said.printed()?),
            end => Err(FigureError::NoNumber(format!("{line}: {}", said.ending(end)))),
        })
    }
}
