//! A server that is started, warmed, loaded and stopped in each run.

use super::output::TrialOutput;
use super::program::measured;
use super::{PartEnd, SceneEnd, TrialError, TrialRunner};
use crate::commands::TrialCommand;
use crate::disturbance::DisturbanceClock;
use numakit_sys::SysRoot;
use numakit_sys::children::ChildEnd;
use numakit_sys::proc::{TaskDir, tree};
use numakit_sys::sched::ticks_per_second;
use numakit_sys::signal::Signal;
use numakit_tune::RunFailure;
use numakit_tune::candidates::TuneSetting;
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// A server must be ready after this time, or after the budget if that is shorter.
pub(super) const READY: Duration = Duration::from_secs(60);
/// How often it is asked.
const ASK: Duration = Duration::from_millis(50);
/// A server may take this long to stop.
const STOPS: Duration = Duration::from_secs(30);

/// The commands of a scene.
#[derive(Debug)]
pub(super) struct ServerWords {
    pub(super) server: Vec<String>,
    pub(super) load: Vec<String>,
    pub(super) warm: Vec<String>,
    pub(super) ready: Vec<String>,
}

/// Whether a server is ready.
enum Ready {
    Yes,
    /// It will not be, for this reason.
    Never((RunFailure, String)),
    Interrupted(Signal),
}

impl TrialRunner {
    pub(super) fn run_server(
        &mut self,
        words: &ServerWords,
        setting: &TuneSetting,
        limit: Option<Duration>,
    ) -> Result<SceneEnd, TrialError> {
        let said = TrialOutput::new()?;
        let command = self.command(setting, &words.server);
        let clock = DisturbanceClock::start();
        let server = match self.start(&command, &said) {
            Ok(server) => server,
            Err(error) => {
                let failed = Err((RunFailure::Failed, format!("the server cannot be started: {error}")));
                return Ok(measured(failed, 0.0, None, clock, said));
            }
        };
        self.server = Some(server);
        let end = self.loaded(server, words, &said, limit);
        self.server = None;
        let kept = self.kept();
        // It is stopped by SIGTERM; that it does not end in time is no fault of its answer.
        self.children.end_all(&kept, STOPS)?;
        end
    }

    fn loaded(
        &mut self,
        server: u32,
        words: &ServerWords,
        said: &TrialOutput,
        limit: Option<Duration>,
    ) -> Result<SceneEnd, TrialError> {
        match self.ready(server, &words.ready, said)? {
            Ready::Yes => {}
            Ready::Never(failed) => {
                return Ok(measured(Err(failed), 0.0, None, DisturbanceClock::start(), TrialOutput::new()?));
            }
            Ready::Interrupted(signal) => return Ok(SceneEnd::Interrupted(signal)),
        }
        let warm = self.load(server, &words.warm, said, None)?;
        match &warm {
            SceneEnd::Measured(measured) if measured.end.is_ok() => {
                self.load(server, &words.load, said, limit)
            }
            _ => Ok(warm),
        }
    }

    /// Runs a load to its end.
    fn load(
        &mut self,
        server: u32,
        words: &[String],
        said: &TrialOutput,
        limit: Option<Duration>,
    ) -> Result<SceneEnd, TrialError> {
        let (output, clock) = (TrialOutput::new()?, DisturbanceClock::start());
        let before = cpu_of(server) + self.ended_cpu()?;
        let begun = Instant::now();
        let end = match self.start(&plain(words), &output) {
            Ok(child) => self.wait(child, limit)?,
            Err(error) => {
                let failed = Err((RunFailure::Failed, format!("the load cannot be started: {error}")));
                return Ok(measured(failed, 0.0, None, clock, output));
            }
        };
        let wall = begun.elapsed().as_secs_f64();
        let cpu = (cpu_of(server) + self.ended_cpu()? - before).max(0.0);
        let failed = |words: String| Err((RunFailure::Failed, words));
        let end = match (self.children.ended(server)?, end) {
            (_, PartEnd::Interrupted(signal)) => return Ok(SceneEnd::Interrupted(signal)),
            (Some(ended), _) => failed(format!("the server ended: {}", said.ending(ended))),
            (None, PartEnd::Ended(ChildEnd::Exited(0))) => Ok(()),
            (None, PartEnd::Ended(end)) => failed(format!("the load failed: {}", output.ending(end))),
            (None, PartEnd::Hung) => Err((RunFailure::Hung, self.hung(limit))),
        };
        Ok(measured(end, wall, Some(cpu), clock, output))
    }

    /// Waits until the server is ready.
    fn ready(&mut self, server: u32, ready: &[String], said: &TrialOutput) -> Result<Ready, TrialError> {
        let late = Instant::now() + self.patience;
        let words: Vec<OsString> = ready.iter().map(OsString::from).collect();
        loop {
            if let Some(end) = self.children.ended(server)? {
                let words = format!("the server ended before it was ready: {}", said.ending(end));
                return Ok(Ready::Never((RunFailure::Failed, words)));
            }
            let (end, answer) = self.helper(&words, None)?;
            if end == ChildEnd::Exited(0) {
                return Ok(Ready::Yes);
            }
            if let Some(signal) = self.pending.take().or_else(|| self.signals.next()) {
                return Ok(Ready::Interrupted(signal));
            }
            if Instant::now() >= late {
                let words = format!(
                    "the server was not ready after {:.0} s: {}",
                    self.patience.as_secs_f64(),
                    answer.ending(end)
                );
                return Ok(Ready::Never((RunFailure::Hung, words)));
            }
            std::thread::sleep(ASK);
        }
    }

    /// CPU time of all that has ended and was reaped, in seconds.
    fn ended_cpu(&mut self) -> Result<f64, TrialError> {
        Ok(self.children.usage()?.cpu() as f64 / 1e9)
    }
}

/// CPU time of a running process, of all below it, and of those of their children that have ended, in seconds.
fn cpu_of(process: u32) -> f64 {
    let root = SysRoot::host();
    let ticks = tree::family(&root, process).into_iter().filter_map(|pid| {
        let stat = TaskDir::of(&root, pid).stat().ok()?;
        let [[_, _, own], [_, _, waited]] = [stat.own, stat.waited];
        Some(own + waited)
    });
    ticks.sum::<u64>() as f64 / ticks_per_second() as f64
}

fn plain(words: &[String]) -> TrialCommand {
    TrialCommand { variables: Vec::new(), words: words.iter().map(OsString::from).collect() }
}
