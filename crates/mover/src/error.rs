//! Why nothing is moved.

use crate::record::RecordError;
use numakit_cure::ProgramFile;
use numakit_launch::StartError;
use numakit_observation::samples::SamplesError;
use std::io;
use thiserror::Error;

/// Why nothing, or no more, is moved.
#[derive(Debug, Error)]
pub enum MoveError {
    /// There is no such process.
    #[error("there is no process {0}; 'numa top --once' lists processes")]
    NoProcess(u32),
    /// It is stopped.
    #[error(
        "process {0} is stopped, so that it uses no memory; continue it with 'kill -CONT {0}', and try again"
    )]
    Stopped(u32),
    /// Another program traces it.
    #[error(
        "process {process} is stopped by its debugger, process {tracer}; continue it there, and try again"
    )]
    Traced {
        /// The process.
        process: u32,
        /// The debugger.
        tracer: u32,
    },
    /// The process belongs to another user.
    #[error(
        "process {process} may not be moved: {error}; run as its user, or as root: sudo numa move --pid {process}"
    )]
    Refused {
        /// The process.
        process: u32,
        /// The kernel's error.
        error: io::Error,
    },
    /// The cure is for another build.
    #[error(
        "the cure is for {} with build ID {}, and process {process} runs {} with {}; observe it with 'numa explain --pid {process} \
         --cure FILE'", .observed.file, .observed.build_id, .runs.file, id(.runs)
    )]
    OtherBuild {
        /// The process.
        process: u32,
        /// What it runs.
        runs: ProgramFile,
        /// What was observed.
        observed: ProgramFile,
    },
    /// The only node that was asked for has no memory for what would have to follow the threads.
    #[error(
        "node {node} has {} MiB of memory to give, and {} MiB would have to follow the threads, so that these would be far from the rest; \
         free memory there, name another node, or give --threads or --pages to do one of both all the same", .room >> 20, .needed >> 20
    )]
    NoRoom {
        /// The node.
        node: u32,
        /// Its bytes to give: what is free, without its reserve.
        room: u64,
        /// The bytes that are elsewhere.
        needed: u64,
    },
    /// No samples can be taken.
    #[error(transparent)]
    Samples(#[from] SamplesError),
    /// No cores can be had.
    #[error(transparent)]
    Cores(#[from] StartError),
    /// The record of what was there before.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A system call failed.
    #[error("{what}: {error}")]
    System {
        /// The action that failed.
        what: &'static str,
        /// The error of the system.
        error: io::Error,
    },
}

/// The build ID of a file in words.
fn id(file: &ProgramFile) -> String {
    match file.build_id.as_str() {
        "" => "none that can be read".to_owned(),
        id => format!("build ID {id}"),
    }
}

/// The error for a process that does not exist.
pub(crate) const ESRCH: i32 = 3;

/// The error of a call about a process.
pub(crate) fn of_process(process: u32, what: &'static str) -> impl Fn(io::Error) -> MoveError {
    move |error| match error.kind() {
        _ if error.raw_os_error() == Some(ESRCH) => MoveError::NoProcess(process),
        io::ErrorKind::NotFound => MoveError::NoProcess(process),
        io::ErrorKind::PermissionDenied => MoveError::Refused { process, error },
        _ => MoveError::System { what, error },
    }
}
