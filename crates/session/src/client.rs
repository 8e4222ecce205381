//! Giving orders to a running observation from another process.

use crate::run_directory;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// Why an order did not arrive, or was refused.
#[derive(Debug, Error)]
pub enum ClientError {
    /// Nothing runs.
    #[error("no numa is running for this user (looked in {0}); start one with 'numa record' or 'numa stat'")]
    Nobody(PathBuf),
    /// Several run.
    #[error("several run: processes {0}; choose one with --pid")]
    Several(String),
    /// That process does not listen.
    #[error("process {0} is no running numa of this user; these are: {1}")]
    NotThere(u32, String),
    /// The order was refused, in the words of the process.
    #[error("{0}")]
    Refused(String),
    /// The process went away.
    #[error("it ended without an answer")]
    NoAnswer,
    /// The connection failed.
    #[error("cannot talk to process {0}: {1}")]
    Io(u32, io::Error),
}

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sends one order to the process, or to the only one there is, and returns its answer.
pub fn send(process: Option<u32>, order: &str) -> Result<String, ClientError> {
    let directory = run_directory::open().map_err(|error| ClientError::Io(0, error))?;
    let (process, stream) = connect(&directory, process)?;
    let answer = ask(stream, order).map_err(|error| ClientError::Io(process, error))?;
    understood(&answer)
}

fn connect(directory: &Path, wanted: Option<u32>) -> Result<(u32, UnixStream), ClientError> {
    let mut running = Vec::new();
    for process in run_directory::processes(directory) {
        if let Ok(stream) = UnixStream::connect(run_directory::socket(directory, process)) {
            running.push((process, stream));
        }
    }
    let names = |running: &[(u32, UnixStream)]| {
        let names: Vec<String> = running.iter().map(|(p, _)| p.to_string()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let all = names(&running);
    match wanted {
        Some(wanted) => running
            .into_iter()
            .find(|(process, _)| *process == wanted)
            .ok_or(ClientError::NotThere(wanted, all)),
        None if running.len() > 1 => Err(ClientError::Several(all)),
        None => running.pop().ok_or_else(|| ClientError::Nobody(directory.to_owned())),
    }
}

fn ask(mut stream: UnixStream, order: &str) -> io::Result<String> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(order.replace('\n', " ").as_bytes())?;
    stream.write_all(b"\n")?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer)
}

/// The protocol of the socket: `ok TEXT` or `error TEXT`.
fn understood(answer: &str) -> Result<String, ClientError> {
    let answer = answer.trim_end();
    match answer.split_once(' ').unwrap_or((answer, "")) {
        ("ok", text) => Ok(text.to_owned()),
        ("error", why) => Err(ClientError::Refused(why.to_owned())),
        _ => Err(ClientError::NoAnswer),
    }
}
