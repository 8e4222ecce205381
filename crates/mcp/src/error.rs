//! Why a tool does not answer: what was wrong, what there is, and what to use instead.

use numakit_findings::UnknownPhase;
use numakit_placement::launchers::LauncherError;
use numakit_placement::{PlanError, RequestError};
use numakit_recording::OpenError;
use numakit_topology::{DescriptionError, TopologyError};
use serde_json::Value;
use std::io;
use thiserror::Error;

#[derive(Debug, Error)]
#[allow(missing_docs)]
pub(crate) enum ToolError {
    #[error("there is no tool '{name}'; use {fix}")]
    UnknownTool { name: String, fix: String },
    #[error("there is no argument '{name}'; use {known}")]
    UnknownArgument { name: String, known: String },
    #[error("'{name}' is {value}; give {kind}: {help}")]
    WrongArgument { name: String, value: Value, kind: &'static str, help: String },
    #[error("'{name}' is missing: {help}")]
    MissingArgument { name: String, help: String },
    #[error("'recording' and 'synthetic' are both given; give one of them")]
    TwoMachines,
    #[error(
        "{name} is outside of {directory}; give a path relative to it, as list_recordings has it, or start 'numa mcp' \
         with another directory"
    )]
    Outside { name: String, directory: String },
    #[error("cannot read {name} in {directory}: {error}; list_recordings says what is there")]
    Unreadable { name: String, directory: String, error: io::Error },
    #[error("{0} is no directory; omit 'directory' for all recordings")]
    NoDirectory(String),
    #[error("{0} has a tail file that is a symbolic link; remove the link")]
    LinkedTail(String),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Phase(#[from] UnknownPhase),
    #[error("'{name}' is {seconds}; give seconds since the recording began, from 0")]
    NegativeTime { name: &'static str, seconds: f64 },
    #[error("the range ends at {to} s, before it begins at {from} s; exchange from_seconds and to_seconds")]
    BackwardRange { from: f64, to: f64 },
    #[error("there are no samples in that range; the recording ends after {end} s")]
    EmptyRange { end: f64 },
    #[error("the recording has no samples; record some with 'numa record'")]
    NoSamples,
    #[error("{name} has no series with '{part}' in its name; it has {count}: omit 'match' to list them")]
    NoMatch { name: String, part: String, count: usize },
    #[error("the recording has no series '{name}', and there is no such formula; {fix}")]
    UnknownSeries { name: String, fix: String },
    #[error("{name} cannot be computed: the recording lacks {inputs}; record with -e {inputs}")]
    MissingInput { name: String, inputs: String },
    #[error("{0} does not have its machine; give another recording")]
    NoMachine(String),
    #[error(transparent)]
    Description(#[from] DescriptionError),
    #[error(transparent)]
    Topology(#[from] TopologyError),
    #[error("{0}; 'numa plan --help' says what is possible")]
    Request(#[from] RequestError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Launcher(#[from] LauncherError),
    #[error(
        "the answer has {has} KiB, at most {most} KiB are sent; ask for a shorter range or for fewer series"
    )]
    TooLong { has: usize, most: usize },
}
