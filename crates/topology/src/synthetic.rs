//! Machines from a line of text: `package:2 node:2(mem=32G) core:4 pu:2`.

mod build;
mod facts;
mod grammar;
pub mod presets;

use crate::json;
use numakit_model::Topology;
use numakit_sys::file::open_to_read;
use presets::NoMachine;
use std::fmt;
use std::path::Path;

/// An error in a description, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescriptionError {
    text: String,
    at: usize,
    problem: String,
    fix: String,
}

impl DescriptionError {
    fn new(at: usize, problem: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { text: String::new(), at, problem: problem.into(), fix: fix.into() }
    }

    /// The byte of the description that the error is about.
    pub fn at(&self) -> usize {
        self.at
    }
}

impl fmt::Display for DescriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = self.text.get(..self.at).unwrap_or(&self.text);
        let column = before.chars().count();
        writeln!(f, "{} at column {}", self.problem, column + 1)?;
        writeln!(f, "  {}", self.text)?;
        writeln!(f, "  {}^", " ".repeat(column))?;
        write!(f, "{}", self.fix)
    }
}

impl std::error::Error for DescriptionError {}

/// Descriptions longer than this are refused.
const MAX_LENGTH: usize = 4096;

/// The machine of a description.
pub fn parse(text: &str) -> Result<Topology, DescriptionError> {
    // Other whitespace becomes spaces, so that an error can show the description on one line.
    let text: String = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    let machine = if text.len() > MAX_LENGTH {
        let fix = format!("descriptions have up to {MAX_LENGTH} bytes; use a JSON file");
        Err(DescriptionError::new(0, format!("{} bytes are too long", text.len()), fix))
    } else {
        grammar::parse(&text).and_then(|description| build::build(&description, text.trim()))
    };
    machine.map_err(|error| DescriptionError { text: text.chars().take(200).collect(), ..error })
}

/// The machine of the argument of `--synthetic`: a description, or the name of a JSON file, which
/// ends in `.json`.
pub fn load(argument: &str) -> Result<Topology, LoadError> {
    if !argument.ends_with(".json") {
        return Ok(parse(argument)?);
    }
    let path = Path::new(argument);
    let text = open_to_read(path)
        .and_then(std::io::read_to_string)
        .map_err(|error| LoadError::Unreadable { path: argument.to_owned(), error })?;
    json::parse(&text).map_err(|error| LoadError::Json { path: argument.to_owned(), error })
}

/// The machine of a name, of a description or of a JSON file.
pub fn load_or_find(argument: &str) -> Result<Topology, LoadError> {
    match presets::find(argument) {
        Ok(machine) => Ok(machine.topology),
        // No name of a machine has these.
        Err(NoMachine::Unknown { .. }) if argument.ends_with(".json") || argument.contains([':', '=']) => {
            load(argument)
        }
        Err(error) => parse(argument).map_err(|_| error.into()),
    }
}

/// Why an argument of `--synthetic` is not a machine.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A description with an error in it.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// A name of no machine.
    #[error(transparent)]
    Name(#[from] NoMachine),
    /// A file that cannot be read.
    #[error("{path}: {error}; give a file written by 'numa topo --json'")]
    Unreadable {
        /// The file.
        path: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// A file that does not describe a machine.
    #[error("{path}: {error}")]
    Json {
        /// The file.
        path: String,
        /// What is wrong with it.
        error: json::JsonError,
    },
}
