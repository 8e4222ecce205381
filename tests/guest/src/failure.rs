//! Why a guest gave no result.

use crate::shape::ShapeError;
use numakit_skips::Kind;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

/// Anything but a boot that went as it should. None of these is ever a pass; `Unavailable` alone
/// is a reason to skip.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// What a guest needs is neither installed nor can be fetched.
    #[error("no guest: {reason}; to have one: {fix}")]
    Unavailable {
        /// What is missing.
        reason: String,
        /// The command that brings it.
        fix: String,
        /// The kind of skip that tests count this as.
        kind: &'static Kind,
    },
    /// A runtime that users may have is neither here nor can be fetched.
    #[error("no {name}: {reason}; to have it: {fix}")]
    Runtime {
        /// What it is.
        name: String,
        /// What is missing.
        reason: String,
        /// What brings it.
        fix: String,
    },
    /// The guest cannot be as it was asked for.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// Something that was asked for is impossible.
    #[error("{0}")]
    Request(String),
    /// A command that is to run in the guest is not there.
    #[error("'{0}' is no program of ours, no guest program, and not found on this machine or in busybox")]
    NotFound(String),
    /// It did not come to an end.
    #[error("the guest hangs: not over after {after:.0?}, {doing}{console}")]
    Hang {
        /// How long it was given.
        after: Duration,
        /// What it was at.
        doing: String,
        /// The last lines of its console.
        console: Console,
    },
    /// Its kernel gave up: panic, oops or lockup.
    #[error("the guest's kernel failed, {doing}: {line}{console}")]
    Panic {
        /// What the kernel said.
        line: String,
        /// What it was at.
        doing: String,
        /// The last lines of its console.
        console: Console,
    },
    /// Its kernel killed something for want of memory.
    #[error("the guest ran out of memory, {doing}: {line}{console}")]
    OutOfMemory {
        /// What the kernel said.
        line: String,
        /// What it was at.
        doing: String,
        /// The last lines of its console.
        console: Console,
    },
    /// It ended before all was done, without a reason.
    #[error("the guest ended too early, {doing}{console}")]
    Lost {
        /// What is missing.
        doing: String,
        /// The last lines of its console.
        console: Console,
    },
    /// QEMU failed.
    #[error("QEMU failed: {status}: {message}{console}")]
    Qemu {
        /// Its exit status.
        status: String,
        /// What it said.
        message: String,
        /// The last lines of the guest's console.
        console: Console,
    },
    /// A program of this machine failed that a guest is made with.
    #[error("{status}: {line}\n{message}")]
    Tool {
        /// Its exit status.
        status: String,
        /// Its command line.
        line: String,
        /// What it said.
        message: String,
    },
    /// The simulator's result cannot be read.
    #[error("no result of the simulator: {0}")]
    Simulator(String),
    /// A file cannot be read or written.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried, with the path.
        action: String,
        /// Why not.
        source: io::Error,
    },
}

impl Failure {
    /// Whether something is neither here nor can be fetched: the only reason to leave something out.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Runtime { .. })
    }
}

/// The last lines that a guest showed, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Console {
    /// The lines.
    pub lines: Vec<String>,
    /// Where all of them are.
    pub file: PathBuf,
}

impl std::fmt::Display for Console {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.lines.is_empty() {
            write!(f, "; the last lines of {}:", self.file.display())?;
        }
        self.lines.iter().try_for_each(|line| write!(f, "\n  | {line}"))
    }
}

/// An I/O error becomes a failure that names what was tried: `.map_err(on("read", path))`.
pub(crate) fn on<'a>(verb: &'a str, path: &'a Path) -> impl FnOnce(io::Error) -> Failure + 'a {
    move |source| Failure::Io { action: format!("{verb} {}", path.display()), source }
}

/// How long a program may run that a guest is made with: it may download 300 MiB. `timeout` ends it with status 124.
const LIMIT: [&str; 2] = ["--kill-after=10", "1200"];

/// The output of a command with that limit; without one where this machine has no `timeout`.
fn limited(command: &mut Command) -> io::Result<Output> {
    let Some(timeout) = crate::place::on_this_machine("timeout") else { return command.output() };
    let mut wrapper = Command::new(timeout);
    wrapper.args(LIMIT);
    crate::programs::wrapped(wrapper, command).output()
}

/// Runs a program to its end; anything but success is a failure with what it said.
pub(crate) fn finished(command: &mut Command) -> Result<Output, Failure> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let line = words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
    let output =
        limited(command).map_err(|source| Failure::Io { action: format!("start {line}"), source })?;
    if output.status.success() {
        return Ok(output);
    }
    let message = [&output.stderr, &output.stdout].map(|text| String::from_utf8_lossy(text).into_owned());
    Err(Failure::Tool {
        status: output.status.to_string(),
        line,
        message: message.concat().trim().to_owned(),
    })
}

/// Runs a program and gives what it printed.
pub(crate) fn text_of(command: &mut Command) -> Result<String, Failure> {
    Ok(String::from_utf8_lossy(&finished(command)?.stdout).into_owned())
}
