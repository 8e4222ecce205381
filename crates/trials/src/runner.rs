//! One run after the other: started, measured, checked, and ended with all that it started.

mod judged;
mod output;
mod program;
mod reach;
mod running;
mod server;

use crate::commands::TrialCommand;
use crate::disturbance::{Disturbance, SpoiledBy};
use crate::metric::{self, FigureError, TrialMetric};
use crate::request::{TrialCheck, TrialScene, TuneRequest};
use numakit_registry::SUPERVISOR_NAME;
use numakit_sys::SysRoot;
use numakit_sys::children::{ChildEnd, Children};
use numakit_sys::guard::SettingsGuard;
use numakit_sys::proc::TaskDir;
use numakit_sys::signal::{self, Signal, Signals};
use numakit_tune::candidates::TuneSetting;
use numakit_tune::{RunFailure, RunOutcome};
use output::TrialOutput;
pub use reach::ProgramReach;
use regex::Regex;
pub use running::MoveFailed;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// A run hangs if it takes this many times as long as the longest run of the default did.
const HANGS: f64 = 5.0;
/// And at least this long, in seconds: on a busy machine, a short run now and then takes many times as long as others.
const LEAST_LIMIT: f64 = 10.0;
/// The default hangs if as many of its runs, one after the other, do not end in time; with the first, the limit was too short.
const CUT_OFF: usize = 2;
/// Of a program that binds its threads, as many runs with cores of `numa run` are looked at.
const PLACED_RUNS: usize = 5;
/// What a program starts may end this much later than the program itself.
const GRACE: Duration = Duration::from_millis(300);
/// What is ended may take this long.
const PATIENCE: Duration = Duration::from_secs(5);

/// What became of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRun {
    /// What the race is told.
    pub outcome: RunOutcome,
    /// Seconds of all that belongs to it.
    pub seconds: f64,
    /// Seconds from the start of the program to its end, or of the load or turn.
    pub wall: f64,
    /// Seconds of CPU time of the program and all that it started; `None` where that is not known.
    pub cpu: Option<f64>,
    /// What disturbed it.
    pub disturbance: Disturbance,
    /// What spoiled it.
    pub spoiled: Option<SpoiledBy>,
    /// Why it failed, in words.
    pub why: Option<String>,
    /// How many processes it left behind. They were ended.
    pub left: usize,
}

/// A run, or what ended it before.
#[derive(Debug)]
pub enum TrialEnd {
    /// It ran.
    Ran(Box<TrialRun>),
    /// This process received a signal, and the run was ended.
    Interrupted(Signal),
}

/// Why nothing can run.
#[derive(Debug, Error)]
pub enum TrialError {
    /// Children cannot be managed, or there is no room for output.
    #[error("cannot run programs: {0}")]
    System(#[from] io::Error),
    /// A pattern is none.
    #[error(transparent)]
    Figure(#[from] FigureError),
    /// A process cannot be ended.
    #[error("process {0}, which a run left behind, cannot be ended; end it, and go on with --resume")]
    Stays(u32),
    /// A setting of the machine cannot be changed.
    #[error("cannot change {path}: {error}; settings of the machine need root: leave out --system")]
    Setting {
        /// Its file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A setting of the machine cannot be restored.
    #[error("cannot restore {path} to '{value}': {error}; write it back as root")]
    NotRestored {
        /// Its file.
        path: PathBuf,
        /// Its value before.
        value: String,
        /// Why.
        error: io::Error,
    },
}

/// What runs programs.
#[derive(Debug)]
pub struct TrialRunner {
    scene: TrialScene,
    metric: TrialMetric,
    pattern: Option<Regex>,
    is_counter: bool,
    check: Option<RunCheck>,
    children: Children,
    signals: Signals,
    guard: Option<SettingsGuard>,
    /// The file of this program, which runs in place of the word `numa`.
    numa: OsString,
    /// Seconds of runs of the default that have ended.
    defaults: Vec<f64>,
    /// Seconds after which its last runs were cut off, since the last that has ended.
    cut_off: Vec<f64>,
    /// What disturbed the runs so far.
    usual: Vec<Disturbance>,
    /// Whether another program had reserved cores before this run.
    was_reserved: bool,
    /// What the program was seen to do in its first run, and in the first with cores of `numa run`.
    seen: ProgramReach,
    /// How many runs with cores of `numa run` were looked at, and whether the present one is.
    placed: (usize, bool),
    /// The files of the observation that this run is.
    observation: Option<(PathBuf, PathBuf)>,
    /// A signal that came while a helper ran.
    pending: Option<Signal>,
    /// The server that runs meanwhile.
    server: Option<u32>,
    /// How long a server may take until it is ready.
    patience: Duration,
    /// What a running process has now.
    applied: TuneSetting,
    /// Whether there is something to move back.
    has_moved: bool,
}

#[derive(Debug)]
enum RunCheck {
    Output(Regex),
    Command(String),
}

/// How a part of a run ended, or why the run is over.
enum PartEnd {
    Ended(ChildEnd),
    Hung,
    Interrupted(Signal),
}

/// What a scene measured.
struct Measured {
    end: Result<(), (RunFailure, String)>,
    wall: f64,
    cpu: Option<f64>,
    disturbance: Disturbance,
    output: TrialOutput,
    /// The number to compare, where the scene itself asked for it.
    figure: Option<Result<f64, FigureError>>,
}

/// What a scene returns.
enum SceneEnd {
    Measured(Box<Measured>),
    Interrupted(Signal),
}

impl TrialRunner {
    /// Prepares runs. Call it before any other thread exists; `guarded` are settings of the machine that runs may change.
    pub fn new(request: &TuneRequest, guarded: &[PathBuf]) -> Result<Self, TrialError> {
        // First, since only a process with one thread forks.
        let guard = (!guarded.is_empty()).then(|| SettingsGuard::start(guarded)).transpose()?;
        if let Some((path, _, error)) = guard.iter().flat_map(SettingsGuard::restore).next() {
            return Err(TrialError::Setting { path, error });
        }
        let pattern = match &request.metric {
            TrialMetric::Output { pattern } => Some(metric::pattern(pattern)?),
            _ => None,
        };
        let check = match &request.check {
            Some(TrialCheck::Output { pattern }) => Some(RunCheck::Output(metric::pattern(pattern)?)),
            Some(TrialCheck::Command { line }) => Some(RunCheck::Command(line.clone())),
            None => None,
        };
        Ok(Self {
            scene: request.scene.clone(),
            metric: request.metric.clone(),
            pattern,
            is_counter: request.is_counter,
            check,
            children: Children::adopt()?,
            signals: Signals::collect(&[signal::INTERRUPT, signal::TERMINATE, signal::HANGUP])?,
            guard,
            numa: std::env::current_exe()?.into_os_string(),
            defaults: Vec::new(),
            cut_off: Vec::new(),
            usual: Vec::new(),
            was_reserved: false,
            seen: ProgramReach::default(),
            placed: (0, false),
            observation: None,
            pending: None,
            server: None,
            patience: request.budget.seconds.map_or(server::READY, |seconds| {
                server::READY.min(Duration::from_secs_f64(seconds.max(1.0)))
            }),
            applied: TuneSetting::default(),
            has_moved: false,
        })
    }

    /// What earlier runs, before an interruption, said of the machine and of the default.
    pub fn remember(&mut self, run: &TrialRun, is_default: bool) {
        if is_default && matches!(run.outcome, RunOutcome::Metric(_)) {
            self.defaults.push(run.wall);
            self.cut_off.clear();
        } else if is_default && run.spoiled == Some(SpoiledBy::CutOff) {
            self.cut_off.push(run.wall);
        }
        self.usual.push(run.disturbance);
    }

    /// Runs once with a setting. Without `limit`, it hangs if it takes five times as long as the longest run of the default.
    pub fn run(&mut self, setting: &TuneSetting, limit: Option<Duration>) -> Result<TrialEnd, TrialError> {
        let begun = std::time::Instant::now();
        let limit = limit.or_else(|| self.limit());
        self.was_reserved = is_reserved();
        self.look_at_placed(setting);
        self.change_machine(setting)?;
        let ended = match self.scene.clone() {
            TrialScene::Program { words } => self.run_program(&words, setting, limit),
            TrialScene::Server { server, load, warm, ready } => {
                let warm = warm.unwrap_or_else(|| load.clone());
                self.run_server(&server::ServerWords { server, load, warm, ready }, setting, limit)
            }
            TrialScene::Running { target, turn } => self.run_turn(&target, turn, setting),
        };
        self.restore_machine()?;
        let measured = match (ended?, self.pending.take()) {
            (SceneEnd::Interrupted(signal), _) | (SceneEnd::Measured(_), Some(signal)) => {
                self.end_all()?;
                return Ok(TrialEnd::Interrupted(signal));
            }
            (SceneEnd::Measured(measured), None) => *measured,
        };
        let left = self.end_all()?;
        let run = self.judged(measured, setting, left, begun.elapsed().as_secs_f64())?;
        if let Some(signal) = self.pending.take() {
            return Ok(TrialEnd::Interrupted(signal));
        }
        self.remember(&run, *setting == TuneSetting::default());
        Ok(TrialEnd::Ran(Box::new(run)))
    }

    /// Decides whether a run is looked at, for whether the program keeps the cores that it gets.
    fn look_at_placed(&mut self, setting: &TuneSetting) {
        let is_known = self.defaults.is_empty() || !self.seen.binds_threads || self.placed.0 >= PLACED_RUNS;
        let looks = setting.is_placed() && !is_known;
        self.placed = (self.placed.0 + usize::from(looks), looks);
    }

    /// Goes on with what the program was seen to do before an interruption.
    pub fn recall(&mut self, seen: ProgramReach) {
        self.seen = seen;
    }

    /// What the program was seen to do in its first run that was not observed.
    pub fn seen(&self) -> ProgramReach {
        self.seen
    }

    /// After which time a run hangs; `None` before the first run of the default.
    fn limit(&self) -> Option<Duration> {
        let usual = (HANGS * self.longest()?).max(LEAST_LIMIT);
        // With one that was cut off, the limit was too short, or it hangs.
        Some(Duration::from_secs_f64(self.cut_off.iter().fold(usual, |limit, cut| limit.max(2.0 * cut))))
    }

    /// Seconds of the longest run of the default that has ended; `None` before the first.
    fn longest(&self) -> Option<f64> {
        self.defaults.iter().copied().max_by(f64::total_cmp)
    }

    /// Ends what a run left behind; returns how many processes that were.
    fn end_all(&mut self) -> Result<usize, TrialError> {
        let kept = self.kept();
        let mut left = self.children.wait_for_all(&kept, GRACE)?;
        if left.iter().all(|process| is_supervisor(*process)) {
            // It ends with the program, and releases its cores.
            left = self.children.wait_for_all(&kept, PATIENCE)?;
        }
        if left.is_empty() {
            return Ok(0);
        }
        match self.children.end_all(&kept, PATIENCE)?.first() {
            Some(process) => Err(TrialError::Stays(*process)),
            None => Ok(left.len()),
        }
    }

    /// Changes the settings of the machine that a setting names.
    fn change_machine(&self, setting: &TuneSetting) -> Result<(), TrialError> {
        for (path, value) in setting.machine() {
            let path = PathBuf::from(path);
            let set = self.guard.as_ref().map_or(Ok(()), |guard| guard.set(&path, value));
            set.map_err(|error| TrialError::Setting { path, error })?;
        }
        Ok(())
    }

    fn restore_machine(&self) -> Result<(), TrialError> {
        let failed = self.guard.iter().flat_map(SettingsGuard::restore).next();
        match failed {
            Some((path, value, error)) => Err(TrialError::NotRestored { path, value, error }),
            None => Ok(()),
        }
    }

    fn command(&self, setting: &TuneSetting, words: &[String]) -> TrialCommand {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let Some((result, cure)) = &self.observation else {
            return crate::commands::command_of(setting, &words, &self.numa);
        };
        let explain = [
            self.numa.clone(),
            "explain".into(),
            "--json".into(),
            result.into(),
            "--cure".into(),
            cure.into(),
        ];
        TrialCommand {
            variables: Vec::new(),
            words: explain.into_iter().chain(["--".into()]).chain(words).collect(),
        }
    }

    /// Runs the program once, observed by `numa explain`, which writes its JSON and the cure to these files.
    pub fn observe(
        &mut self,
        result: &Path,
        cure: &Path,
        limit: Option<Duration>,
    ) -> Result<TrialEnd, TrialError> {
        self.observation = Some((result.to_owned(), cure.to_owned()));
        let ran = self.run(&TuneSetting::default(), limit);
        self.observation = None;
        // It is neither the time of the default nor what is usual.
        self.defaults.clear();
        self.usual.clear();
        ran
    }
}

/// Whether a process is the one of `numa run` that holds the cores of a program.
fn is_supervisor(process: u32) -> bool {
    let root = SysRoot::host();
    TaskDir::of(&root, process).stat().is_ok_and(|stat| stat.command == SUPERVISOR_NAME.as_bytes())
}

/// Whether another program has reserved cores.
fn is_reserved() -> bool {
    numakit_registry::inspect().is_ok_and(|view| view.holdings.iter().any(|holding| !holding.is_own))
}
