//! A program that ends by itself.

use super::output::TrialOutput;
use super::{GRACE, Measured, PATIENCE, PartEnd, SceneEnd, TrialError, TrialRunner};
use crate::commands::TrialCommand;
use crate::disturbance::DisturbanceClock;
use numakit_sys::children::{ChildEnd, ChildStart, ChildWait};
use numakit_sys::clock;
use numakit_sys::start_notice::{ProgramStart, StartPipe};
use numakit_tune::RunFailure;
use numakit_tune::candidates::TuneSetting;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::time::{Duration, Instant};

/// How often a program is looked at in its first run.
const LOOK: Duration = Duration::from_millis(50);
/// A helper, such as a check, may take this long.
const HELPER: Duration = Duration::from_secs(600);

impl TrialRunner {
    pub(super) fn run_program(
        &mut self,
        words: &[String],
        setting: &TuneSetting,
        limit: Option<Duration>,
    ) -> Result<SceneEnd, TrialError> {
        let command = self.command(setting, words);
        let output = TrialOutput::new()?;
        let disturbed = DisturbanceClock::start();
        let before = self.children.usage()?;
        let notice = StartPipe::new()?;
        let begun = clock::monotonic();
        let child = match self.start_noticed(&command, &output, Some(&notice)) {
            Ok(child) => child,
            Err(error) => {
                let failed = Err((RunFailure::Failed, format!("it cannot be started: {error}")));
                return Ok(measured(failed, 0.0, None, disturbed, output));
            }
        };
        let end = self.wait(child, limit)?;
        let ended = clock::monotonic();
        // What `numa run` does before that is the same for a program of any length.
        let notice = notice.read();
        let start = notice.unwrap_or(ProgramStart { at: begun, cpu: 0 });
        let wall = ended.saturating_sub(start.at) as f64 / 1e9;
        let end = match end {
            PartEnd::Ended(ChildEnd::Exited(0)) => Ok(()),
            PartEnd::Ended(end) if notice.is_some() => {
                Err((RunFailure::Failed, output.ending_of_started(end)))
            }
            PartEnd::Ended(end) => Err((RunFailure::Failed, output.ending(end))),
            PartEnd::Hung => Err((RunFailure::Hung, self.hung(limit))),
            PartEnd::Interrupted(signal) => return Ok(SceneEnd::Interrupted(signal)),
        };
        if end.is_ok() {
            // What it started may end a little later, and its CPU time counts.
            self.children.wait_for_all(&self.kept(), GRACE)?;
        }
        let after = self.children.usage()?;
        let cpu = after.cpu().saturating_sub(before.cpu() + start.cpu) as f64 / 1e9;
        Ok(measured(end, wall, Some(cpu), disturbed, output))
    }

    /// That a run took too long, in words.
    pub(super) fn hung(&self, limit: Option<Duration>) -> String {
        let limit = limit.unwrap_or_default().as_secs_f64();
        let Some(longest) = self.longest() else {
            return format!(
                "it had not ended after {limit:.1} s, which is all of the budget; give more with --budget, or an input that takes less"
            );
        };
        let again = match self.cut_off.last() {
            Some(before) => format!(
                ", nor after {before:.1} s in the run before; end other programs, or give it an input that takes as long each time"
            ),
            None => String::new(),
        };
        format!(
            "it had not ended after {limit:.1} s{again} (without a setting it had taken {longest:.1} s at most)"
        )
    }

    pub(super) fn kept(&self) -> Vec<u32> {
        self.guard.iter().map(|guard| guard.process()).collect()
    }

    pub(super) fn start(&mut self, command: &TrialCommand, output: &TrialOutput) -> io::Result<u32> {
        self.start_noticed(command, output, None)
    }

    fn start_noticed(
        &mut self,
        command: &TrialCommand,
        output: &TrialOutput,
        notice: Option<&StartPipe>,
    ) -> io::Result<u32> {
        let TrialCommand { variables, words } = command;
        let TrialOutput { output, errors } = output;
        self.children.start(&ChildStart { words, variables, input: None, output, errors, notice })
    }

    pub(super) fn wait(&mut self, child: u32, limit: Option<Duration>) -> Result<PartEnd, TrialError> {
        let until = limit.map(|limit| Instant::now() + limit);
        // The first run counts for nothing, so it may be disturbed by looking at it.
        let is_first = self.defaults.is_empty() && self.observation.is_none();
        let mut pause = LOOK;
        loop {
            let next = (is_first || self.placed.1).then(|| Instant::now() + pause);
            let soon = next.into_iter().chain(until).min();
            match self.children.wait(child, Some(&self.signals), soon)? {
                ChildWait::Ended(end) => return Ok(PartEnd::Ended(end)),
                ChildWait::Signalled(signal) => return Ok(PartEnd::Interrupted(signal)),
                ChildWait::TimeUp if until.is_some_and(|until| Instant::now() >= until) => {
                    return Ok(PartEnd::Hung);
                }
                ChildWait::TimeUp if is_first => self.seen.look(self.server.unwrap_or(child)),
                ChildWait::TimeUp => {
                    // Such a run counts.
                    pause *= 2;
                    self.seen.look_placed(self.server.unwrap_or(child));
                }
            }
        }
    }

    /// Runs a command that belongs to a run, such as a check, which may read what the run printed.
    pub(super) fn helper(
        &mut self,
        words: &[OsString],
        input: Option<&TrialOutput>,
    ) -> Result<(ChildEnd, TrialOutput), TrialError> {
        let said = TrialOutput::new()?;
        let input: Option<&File> = match input {
            Some(output) => {
                (&output.output).seek(SeekFrom::Start(0))?;
                Some(&output.output)
            }
            None => None,
        };
        let start = ChildStart {
            words,
            variables: &[],
            input,
            output: &said.output,
            errors: &said.errors,
            notice: None,
        };
        let child = match self.children.start(&start) {
            Ok(child) => child,
            Err(_) => return Ok((ChildEnd::Exited(127), said)),
        };
        let waited = self.children.wait(child, Some(&self.signals), Some(Instant::now() + HELPER))?;
        if let ChildWait::Signalled(signal) = waited {
            self.pending = Some(signal);
        }
        let end = match waited {
            ChildWait::Ended(end) => end,
            ChildWait::TimeUp | ChildWait::Signalled(_) => {
                let mut kept = self.kept();
                kept.extend(self.server);
                self.children.end_all(&kept, PATIENCE)?;
                ChildEnd::Exited(124)
            }
        };
        Ok((end, said))
    }
}

pub(super) fn measured(
    end: Result<(), (RunFailure, String)>,
    wall: f64,
    cpu: Option<f64>,
    clock: DisturbanceClock,
    output: TrialOutput,
) -> SceneEnd {
    let disturbance = clock.stop(cpu.unwrap_or(0.0));
    SceneEnd::Measured(Box::new(Measured { end, wall, cpu, disturbance, output, figure: None }))
}
