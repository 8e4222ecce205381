//! What a guest gave.

use crate::failure::{Failure, on};
use crate::folder::Folder;
use crate::traffic::Traffic;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::ops::Index;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// By itself, with this exit status.
    Exit(u8),
    /// By this signal.
    Signal(u8),
}

impl Status {
    /// As a shell tells it: signals are above 128.
    pub fn code(self) -> u8 {
        match self {
            Self::Exit(code) => code,
            Self::Signal(signal) => signal.saturating_add(128),
        }
    }

    /// Whether it ended with 0.
    pub fn success(self) -> bool {
        self == Self::Exit(0)
    }

    /// Reads what the guest wrote, `exit 7` or `signal 11`.
    fn parse(text: &str) -> Option<Self> {
        match text.trim().split_once(' ')? {
            ("exit", code) => Some(Self::Exit(code.parse().ok()?)),
            ("signal", signal) => Some(Self::Signal(signal.parse().ok()?)),
            _ => None,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(code) => write!(f, "exit status {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// What one step gave.
#[derive(Debug, Clone)]
pub struct Step {
    /// How it ended.
    pub status: Status,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

impl Step {
    /// Reads the files of a step. Without a status there is no result.
    pub(crate) fn read(name: &str, folder: &Path) -> Result<Self, Failure> {
        let read = |file: &str| {
            let path = folder.join(file);
            fs::read(&path).map_err(on("read", &path))
        };
        let text = String::from_utf8_lossy(&read("status").unwrap_or_default()).into_owned();
        let Some(status) = Status::parse(&text) else {
            return Err(Failure::Lost {
                doing: format!("step '{name}' has no status"),
                console: Default::default(),
            });
        };
        Ok(Self { status, stdout: read("stdout")?, stderr: read("stderr")? })
    }

    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text.
    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Standard output of a step that succeeded; anything else fails the test that asks.
    #[track_caller]
    pub fn succeeded(&self) -> String {
        let (text, errors) = (self.text(), self.errors());
        assert!(self.status.success(), "{}\n{text}{errors}", self.status);
        text
    }
}

/// A guest that did its steps and switched itself off. `boot["name"]` is a step.
#[derive(Debug, Default)]
pub struct Boot {
    /// From the start of QEMU to the first step.
    pub boot_time: Duration,
    /// To the end of QEMU.
    pub total_time: Duration,
    /// The steps by name.
    pub steps: BTreeMap<String, Step>,
    /// What they left in `/out`.
    pub out: PathBuf,
    /// What the simulator counted.
    pub traffic: Option<Traffic>,
    /// CPU time of QEMU at the start of each step that began, and at the end.
    pub(crate) cpu: Vec<Duration>,
    /// All steps that were to be done, and the regions that each was to have.
    pub(crate) asked: Vec<(String, usize)>,
    /// What ended a guest of parts before all was done.
    pub(crate) ended: Option<Ended>,
    folder: Option<Folder>,
}

/// The end of a guest of parts during a step.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The part of the step.
    pub part: String,
    pub failure: Failure,
}

impl Boot {
    /// The folder goes when this does.
    pub(crate) fn keeping(mut self, mut folder: Folder) -> Self {
        folder.remove_when_dropped();
        self.folder = Some(folder);
        self
    }

    /// A step that was done. If the guest ended before, this fails the test with the reason.
    #[track_caller]
    pub(crate) fn step(&self, name: &str) -> &Step {
        match (self.steps.get(name), &self.ended) {
            (Some(step), _) => step,
            (None, Some(ended)) => panic!("step '{name}' was not done: {}", ended.failure),
            (None, None) => panic!("there is no step '{name}'"),
        }
    }
}

impl Index<&str> for Boot {
    type Output = Step;

    fn index(&self, name: &str) -> &Step {
        self.step(name)
    }
}

/// For tests that share a boot: the boot, or nothing after a line that says why the test is
/// skipped. Every other failure fails the test.
#[track_caller]
pub fn or_skipped(result: &Result<Boot, Failure>) -> Option<&Boot> {
    match result {
        Ok(boot) => Some(boot),
        Err(failure @ Failure::Unavailable { kind, .. }) => {
            kind.skip(failure);
            None
        }
        Err(failure) => panic!("{failure}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_what_the_guest_wrote_or_none() {
        assert_eq!(Status::parse("exit 7\n"), Some(Status::Exit(7)));
        assert_eq!(Status::parse("signal 11\n").map(Status::code), Some(139));
        assert_eq!(Status::Exit(127).code(), 127);
        for text in ["", "exit", "exit x", "exit 300", "done 0"] {
            assert_eq!(Status::parse(text), None, "{text}");
        }
        assert!(Status::Exit(0).success() && !Status::Exit(1).success() && !Status::Signal(9).success());
    }

    #[test]
    fn a_step_without_a_status_is_no_result() {
        let folder = std::env::temp_dir().join(format!("numakit-step-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("stdout"), "all fine").unwrap();
        fs::write(folder.join("stderr"), "").unwrap();
        let message = Step::read("topo", &folder).unwrap_err().to_string();
        assert_eq!(message, "the guest ended too early, step 'topo' has no status");
        fs::write(folder.join("status"), "exit 0\n").unwrap();
        assert_eq!(Step::read("topo", &folder).unwrap().succeeded(), "all fine");
        fs::remove_dir_all(&folder).unwrap();
    }
}
