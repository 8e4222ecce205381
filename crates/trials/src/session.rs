//! A tuning from its first run to its answer, kept in a file after each run.

use crate::commands::typed;
use crate::explained::Advised;
use crate::request::{TrialScene, TuneRequest};
use crate::runner::{ProgramReach, TrialEnd, TrialError, TrialRun, TrialRunner};
use numakit_sys::output::{Existing, OutputFile};
use numakit_sys::signal::Signal;
use numakit_tune::candidates::{TuneSetting, TunedMachine};
use numakit_tune::tuning::{Tuning, TuningPlan, TuningRecord, TuningRecordError};
use numakit_tune::{RaceSettingsError, RunPurpose, TellError};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use thiserror::Error;

/// A longer file is none of ours.
pub const MAX_FILE: u64 = 64 << 20;
/// The form of the file.
const FORM: u32 = 1;
/// No run takes longer, in seconds: three years.
const LONGEST: f64 = 1e8;

/// A run with what it was for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptRun {
    /// The number of the stage.
    pub stage: usize,
    /// The number of the candidate in it.
    pub candidate: usize,
    /// What it was for.
    pub purpose: RunPurpose,
    /// What came out.
    pub run: TrialRun,
}

/// What is kept.
#[derive(Debug, Serialize, Deserialize)]
struct KeptTuning {
    form: u32,
    folder: PathBuf,
    request: TuneRequest,
    advised: Advised,
    seen: ProgramReach,
    first: Option<TrialRun>,
    tuning: TuningRecord,
    runs: Vec<KeptRun>,
}

impl KeptTuning {
    /// What no tuning has written, if it has such.
    fn impossible(&self) -> Option<String> {
        if self.request.scene.words().is_empty() {
            return Some("it has no program".to_owned());
        }
        let turn = match &self.request.scene {
            TrialScene::Running { turn, .. } => Some(*turn),
            _ => None,
        };
        let runs = self.first.iter().chain(self.runs.iter().map(|kept| &kept.run));
        let mut times = turn.into_iter().chain(runs.flat_map(|run| [run.seconds, run.wall]));
        let odd = times.find(|time| !(0.0..=LONGEST).contains(time))?;
        Some(format!("it has a time of {odd} s, and none is below 0 or above {LONGEST}"))
    }
}

/// A tuning and its runs.
#[derive(Debug)]
pub struct TuneSession {
    /// The working directory, where relative names of files belong.
    pub folder: PathBuf,
    /// What was asked for.
    pub request: TuneRequest,
    /// What the observation advised.
    pub advised: Advised,
    /// What the program was seen to do.
    pub seen: ProgramReach,
    /// The run before the first race, in which nothing was cached.
    pub first: Option<TrialRun>,
    /// The races.
    pub tuning: Tuning,
    /// Their runs, in order.
    pub runs: Vec<KeptRun>,
    /// Where all this is kept.
    pub file: PathBuf,
}

/// Why a session cannot begin or go on.
#[derive(Debug, Error)]
pub enum TuneSessionError {
    /// A run cannot be made.
    #[error(transparent)]
    Trial(#[from] TrialError),
    /// The file cannot be written.
    #[error("cannot write {file}: {error}; the runs so far are in the file as it was before")]
    Write {
        /// The file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file cannot be read.
    #[error("cannot read {file}: {error}")]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file is no tuning.
    #[error("{file} is no tuning that 'numa tune' has kept: {why}")]
    Foreign {
        /// The file.
        file: PathBuf,
        /// Why.
        why: String,
    },
    /// The names of files in it are those of another directory.
    #[error("{file} was begun in {folder}; go there first: cd {folder}")]
    Elsewhere {
        /// The file.
        file: PathBuf,
        /// The working directory.
        folder: PathBuf,
    },
    /// The races cannot go on from there.
    #[error("{file}: {error}")]
    Record {
        /// The file.
        file: PathBuf,
        /// Why.
        error: TuningRecordError,
    },
    /// The settings of a race are none.
    #[error(transparent)]
    Settings(#[from] RaceSettingsError),
    /// A race was told what cannot be.
    #[error(transparent)]
    Tell(#[from] TellError),
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// No run is left.
    Over,
    /// A signal ended it.
    Interrupted(Signal),
}

impl TuneSession {
    /// Begins: `first` is a run of the default that no race counts, and `machine` has the other settings to try.
    pub fn begin(
        request: TuneRequest,
        advised: Advised,
        mut machine: Option<TunedMachine>,
        (first, seen): (TrialRun, ProgramReach),
        file: PathBuf,
    ) -> Result<Self, TuneSessionError> {
        machine.iter_mut().for_each(|machine| machine.has_openmp = seen.has_openmp);
        let mut budget = request.budget;
        budget.runs = budget.runs.saturating_sub(1);
        budget.seconds = budget.seconds.map(|seconds| (seconds - first.seconds).max(1e-3));
        let plan = TuningPlan {
            remedies: advised.remedies.iter().map(|advised| advised.remedy.clone()).collect(),
            machine,
            better: request.better,
            budget,
            seconds_per_run: first.seconds,
            worth: request.worth,
            // Another order each time.
            seed: SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64),
        };
        let tuning = Tuning::new(plan)?;
        let session = Self {
            folder: std::env::current_dir().unwrap_or_default(),
            request,
            advised,
            seen,
            first: Some(first),
            tuning,
            runs: Vec::new(),
            file,
        };
        session.keep()?;
        Ok(session)
    }

    /// Reads a session that ended before its answer.
    pub fn read(file: &Path) -> Result<Self, TuneSessionError> {
        let text = numakit_sys::file::named_text(file, MAX_FILE)
            .map_err(|error| TuneSessionError::Read { file: file.to_owned(), error })?;
        let session = Self::parse(&text, file)?;
        match std::env::current_dir() {
            Ok(folder) if folder == session.folder => Ok(session),
            _ => Err(TuneSessionError::Elsewhere { file: file.to_owned(), folder: session.folder }),
        }
    }

    /// The session in a text that this file has.
    pub fn parse(text: &str, file: &Path) -> Result<Self, TuneSessionError> {
        let path = || file.to_owned();
        let kept: KeptTuning = serde_json::from_str(text)
            .map_err(|error| TuneSessionError::Foreign { file: path(), why: error.to_string() })?;
        if kept.form != FORM {
            let why = format!("it has the form {}, and this version of numa reads {FORM}", kept.form);
            return Err(TuneSessionError::Foreign { file: path(), why });
        }
        let told: usize = kept.tuning.stages.iter().map(Vec::len).sum();
        if told != kept.runs.len() {
            let why = format!("its races have {told} runs, and it has {}", kept.runs.len());
            return Err(TuneSessionError::Foreign { file: path(), why });
        }
        if let Some(why) = kept.impossible() {
            return Err(TuneSessionError::Foreign { file: path(), why });
        }
        let KeptTuning { folder, request, advised, seen, first, tuning, runs, .. } = kept;
        let tuning =
            Tuning::try_from(tuning).map_err(|error| TuneSessionError::Record { file: path(), error })?;
        Ok(Self { folder, request, advised, seen, first, tuning, runs, file: path() })
    }

    /// Tells a runner what the runs so far said of the machine and of the program.
    pub fn remind(&self, runner: &mut TrialRunner) {
        runner.recall(self.seen);
        if let Some(first) = &self.first {
            runner.remember(first, true);
        }
        self.runs.iter().for_each(|kept| runner.remember(&kept.run, kept.candidate == 0));
    }

    /// Runs what is left. `before` is told each time of the setting that runs next.
    pub fn go(
        &mut self,
        runner: &mut TrialRunner,
        mut before: impl FnMut(&Self, &TuneSetting),
    ) -> Result<SessionEnd, TuneSessionError> {
        while let Some(next) = self.tuning.next_run() {
            let (stage, run, setting) = (next.stage, next.run, next.setting.clone());
            before(self, &setting);
            let trial = match runner.run(&setting, None)? {
                TrialEnd::Ran(trial) => *trial,
                TrialEnd::Interrupted(signal) => return Ok(SessionEnd::Interrupted(signal)),
            };
            self.seen = runner.seen();
            self.tuning.tell(trial.outcome, trial.seconds)?;
            self.runs.push(KeptRun { stage, candidate: run.candidate, purpose: run.purpose, run: trial });
            self.keep()?;
        }
        Ok(SessionEnd::Over)
    }

    /// Writes all of it.
    fn keep(&self) -> Result<(), TuneSessionError> {
        let kept = KeptTuning {
            form: FORM,
            folder: self.folder.clone(),
            request: self.request.clone(),
            advised: self.advised.clone(),
            seen: self.seen,
            first: self.first.clone(),
            tuning: TuningRecord::from(self.tuning.clone()),
            runs: self.runs.clone(),
        };
        let write = || {
            let text = serde_json::to_string(&kept).map_err(io::Error::other)?;
            let mut file = OutputFile::create(&self.file, Existing::Replace)?;
            file.write_all(text.as_bytes())?;
            file.persist().map(drop)
        };
        write().map_err(|error| TuneSessionError::Write { file: self.file.clone(), error })
    }

    /// A setting as it is typed.
    pub fn typed(&self, setting: &TuneSetting) -> String {
        let words: Vec<OsString> = self.request.scene.words().iter().map(OsString::from).collect();
        match &self.request.scene {
            TrialScene::Running { .. } if setting.is_placed() => {
                let moved = ["numa".to_owned(), "move".to_owned()].into_iter();
                let all = moved.chain(self.request.scene.words().iter().cloned()).chain(setting.words());
                numakit_sys::command::quoted(&all.collect::<Vec<_>>())
            }
            TrialScene::Running { .. } => "as it is".to_owned(),
            _ => typed(setting, &words),
        }
    }
}
