//! Sends control commands to a running observation from another process.

use crate::run_directory;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// Why a command was not delivered, or was refused.
#[derive(Debug, Error)]
pub enum ClientError {
    /// Nothing runs.
    #[error("no numa is running for this user (looked in {0}); start one with 'numa record' or 'numa stat'")]
    NoneRunning(PathBuf),
    /// Several run.
    #[error("several numa processes run: {0}; choose one with --pid")]
    Several(String),
    /// That process is not an observation.
    #[error("process {0} is not a running numa of this user; running: {1}")]
    NotRunning(u32, String),
    /// The command was refused, with the message of the process.
    #[error("{0}")]
    Refused(String),
    /// The process ended.
    #[error("it ended without a reply")]
    NoReply,
    /// The connection failed.
    #[error("cannot connect to process {0}: {1}")]
    Io(u32, io::Error),
}

/// Maximum wait for a reply.
const REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends a command to the process, or to the only one that runs, and returns its reply.
pub fn send(process: Option<u32>, command: &str) -> Result<String, ClientError> {
    let directory = run_directory::open().map_err(|error| ClientError::Io(0, error))?;
    let (process, stream) = connect(&directory, process)?;
    let reply = exchange(stream, command).map_err(|error| ClientError::Io(process, error))?;
    parse_reply(&reply)
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
            .ok_or(ClientError::NotRunning(wanted, all)),
        None if running.len() > 1 => Err(ClientError::Several(all)),
        None => running.pop().ok_or_else(|| ClientError::NoneRunning(directory.to_owned())),
    }
}

fn exchange(mut stream: UnixStream, command: &str) -> io::Result<String> {
    stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
    stream.write_all(command.replace('\n', " ").as_bytes())?;
    stream.write_all(b"\n")?;
    let mut reply = String::new();
    BufReader::new(stream).read_line(&mut reply)?;
    Ok(reply)
}

/// The protocol of the socket: `ok TEXT` or `error TEXT`.
fn parse_reply(reply: &str) -> Result<String, ClientError> {
    let reply = reply.trim_end();
    match reply.split_once(' ').unwrap_or((reply, "")) {
        ("ok", text) => Ok(text.to_owned()),
        ("error", why) => Err(ClientError::Refused(why.to_owned())),
        _ => Err(ClientError::NoReply),
    }
}
