//! A result of `numa explain --json`, read from a file.

use crate::explained::JudgedReport;
use crate::finding::FindingSubject;
use numakit_explain::code::CodeTime;
use numakit_explain::contended::Sharing;
use numakit_explain::share::ShareEstimate;
use numakit_explain::{ExplainReport, Regime};
use numakit_explain::{TimeShares, account::ThreadTimes, caches::CacheSizes};
use numakit_sys::file::open_to_read;
use serde::Deserialize;
use std::io::Read;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Larger files are refused: a result has a few MB.
const MAX_BYTES: u64 = 256 << 20;

/// Why a file is not a result that can be used.
#[derive(Debug, Error)]
pub enum SavedResultError {
    /// It cannot be read.
    #[error("cannot read {path}: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// It is too large.
    #[error("{0} has more than {limit} MiB, which no result of 'numa explain' has", limit = MAX_BYTES >> 20)]
    Large(PathBuf),
    /// The file is no result, or only a part of one.
    #[error("{path} is not a result of 'numa explain --json', or it is damaged: {why}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        why: String,
    },
    /// Another version of numa wrote the file, with which it can be compared, but not printed.
    #[error(
        "{path} is a result of another version of numa, which this one cannot print ({why}); 'numa show --page {path}' shows \
        what it has"
    )]
    Partial {
        /// The file.
        path: PathBuf,
        /// What is missing or unknown, and where.
        why: String,
    },
    /// A newer version of numa wrote the file.
    #[error("{path} has version {found} of the form; this numa reads {known}: use the numa that wrote it, or a newer one",
        known = ExplainReport::VERSION)]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
}

/// Numbers of samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct SavedSamples {
    /// All.
    pub total: u64,
    /// At instructions that access memory.
    pub memory: u64,
}

/// A contended line.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SavedLine {
    /// The object that contains the line, by its place in the list of objects.
    pub object: Option<u32>,
    /// What the threads share.
    pub sharing: Sharing,
    /// CPU time of the samples that hit it, in ns.
    pub weight: u64,
}

/// An object.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SavedObject {
    /// What it is.
    pub name: String,
    /// Its part of the time at memory.
    pub time_share: Option<f64>,
    /// The part of the object's time outside of the caches that is at other nodes.
    pub remote: Option<ShareEstimate>,
}

/// What was wrong.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SavedFinding {
    /// The name of the rule.
    pub rule: String,
    /// Who causes it.
    pub subject: FindingSubject,
    /// What was found, in one sentence.
    pub says: String,
}

/// What a comparison needs of a result; fields that it does not know are skipped.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct SavedResult {
    /// The version of the form.
    pub version: u32,
    /// What samples mean.
    pub regime: Regime,
    /// How samples were taken.
    #[serde(rename = "road")]
    pub method: String,
    /// The machine, if the result names it.
    pub machine: Option<String>,
    /// Length of the observation in seconds.
    pub seconds: f64,
    /// The command, or the process.
    pub program: String,
    /// Whether the observation had ended.
    pub complete: bool,
    /// Numbers of samples.
    pub samples: SavedSamples,
    /// Shares of the time of all threads.
    pub time: Option<TimeShares>,
    /// The time of all threads by the kernel's account.
    pub threads: ThreadTimes,
    /// The share of far memory.
    #[serde(alias = "far_share")]
    pub remote_share: Option<ShareEstimate>,
    /// Contended lines.
    pub lines: Vec<SavedLine>,
    /// Functions.
    pub functions: Vec<CodeTime>,
    /// The caches that objects were compared with.
    pub caches: CacheSizes,
    /// The objects.
    pub objects: Vec<SavedObject>,
    /// What was wrong, the most important first; `None` if the result does not tell it.
    #[serde(default)]
    pub findings: Option<Vec<SavedFinding>>,
    /// The processes.
    #[serde(default)]
    pub processes: Vec<SavedProcess>,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SavedProcess {
    /// Its number; 0 where the result does not tell it.
    #[serde(default)]
    pub pid: u32,
    /// The name of its program.
    pub name: String,
}

/// Programs that run others, and say nothing of what was observed.
pub(super) const RUNNERS: [&str; 4] = ["numa", "sh", "bash", "dash"];

impl SavedResult {
    /// Whether both are of one program, under any command line: a process of each has the same name.
    pub fn is_of_program_of(&self, other: &Self) -> bool {
        let is_told = |result: &Self| result.processes.iter().any(|process| !process.name.is_empty());
        let same = |process: &SavedProcess| {
            let is_same = |theirs: &SavedProcess| theirs.name == process.name;
            !RUNNERS.contains(&process.name.as_str()) && other.processes.iter().any(is_same)
        };
        self.program == other.program || !is_told(self) || !is_told(other) || self.processes.iter().any(same)
    }

    /// Whether both are of one command line, with or without words before it such as `numa run --thp on --`, or of one process.
    pub(crate) fn is_run_of(&self, other: &Self) -> bool {
        let is_same = |process: &SavedProcess| process.pid > 0 && other.processes.contains(process);
        self.is_of_line(&other.program) || self.processes.iter().any(is_same)
    }

    /// Whether it is of this command line, where either may have words before it.
    pub(super) fn is_of_line(&self, line: &str) -> bool {
        let is_behind = |long: &str, short: &str| {
            long.strip_suffix(short).is_some_and(|before| before.is_empty() || before.ends_with(' '))
        };
        is_behind(&self.program, line) || is_behind(line, &self.program)
    }

    /// Reads a result from its text; `path` is for errors.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self, SavedResultError> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let path = path.to_owned();
        let damaged = |error: serde_json::Error| SavedResultError::Damaged {
            path: path.clone(),
            why: error.to_string(),
        };
        // The version comes first: a newer form may have other fields.
        let Version { version } = serde_json::from_slice(text).map_err(damaged)?;
        if version > ExplainReport::VERSION {
            return Err(SavedResultError::Newer { path, found: version });
        }
        serde_json::from_slice(text).map_err(damaged)
    }
}

impl JudgedReport {
    /// Reads a whole result from its text; `path` is for errors.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self, SavedResultError> {
        // What no version wrote is damaged; what this version does not print may be compared.
        SavedResult::parse(path, text)?;
        serde_json::from_slice(text)
            .map_err(|error| SavedResultError::Partial { path: path.to_owned(), why: error.to_string() })
    }
}

/// Reads a file whole, within the limit.
pub fn read(path: &Path) -> Result<Vec<u8>, SavedResultError> {
    let failed = |error| SavedResultError::Read { path: path.to_owned(), error };
    let file = open_to_read(path).map_err(failed)?;
    let mut text = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut text).map_err(failed)?;
    match text.len() as u64 > MAX_BYTES {
        true => Err(SavedResultError::Large(path.to_owned())),
        false => Ok(text),
    }
}
