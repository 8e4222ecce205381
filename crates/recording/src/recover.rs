//! Making a whole recording of what a killed recorder left: the file and its side file.

use crate::arrow::{self, Encoder, Messages, Next};
use crate::reader::{OpenError, first_byte, read_header};
use crate::ring::{self, Ring};
use crate::writer::{append, tail_of};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What recovering did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// Rows and labels that the file held.
    pub held: u64,
    /// Rows and labels added from the side file.
    pub added: u64,
    /// Rows known to be lost between both.
    pub lost: u64,
    /// Unreadable bytes, kept in this file.
    pub damaged: Option<(u64, PathBuf)>,
}

/// Why nothing was recovered. The files are as they were.
#[derive(Debug, Error)]
pub enum RecoverError {
    /// It is no recording.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It is still being recorded.
    #[error("{0} is still being recorded; stop that first ('numa ctl stop')")]
    Busy(PathBuf),
    /// Reading or writing failed.
    #[error("cannot recover {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// Joins the rows of the side file to the recording and closes it. Doing it again, or on a
/// whole recording, changes nothing.
pub fn recover(path: &Path) -> Result<Recovered, RecoverError> {
    let fail = |error| RecoverError::Io { path: path.to_owned(), error };
    let mut file = File::options().read(true).write(true).open(path).map_err(fail)?;
    let tail = File::open(tail_of(path)).ok();
    if tail.as_ref().is_some_and(|t| t.try_lock().is_err()) {
        return Err(RecoverError::Busy(path.to_owned()));
    }
    let found = survey(path, &file)?;
    let mut result = Recovered { held: found.rows + found.labels, added: 0, lost: 0, damaged: None };
    if !found.closed {
        result.damaged = set_aside(path, &mut file, found.whole, found.broken).map_err(fail)?;
        file.set_len(found.whole).and_then(|()| file.seek(SeekFrom::End(0))).map_err(fail)?;
        let side = tail.and_then(|mut t| {
            let mut content = Vec::new();
            t.read_to_end(&mut content).ok()?;
            Ring::of_side_file(&content, found.columns)
        });
        if let Some(ring) = side {
            result.lost = ring.done().0.saturating_sub(found.rows);
            ring.skip_to(found.rows, found.labels);
            result.added = add_rows(&mut file, &ring, found.columns, found.whole).map_err(fail)?;
        }
        let length = file.metadata().map_err(fail)?.len();
        append(&mut file, length, &arrow::END_OF_STREAM).and_then(|()| file.sync_all()).map_err(fail)?;
    }
    let _ = std::fs::remove_file(tail_of(path));
    Ok(result)
}

struct Found {
    columns: usize,
    rows: u64,
    labels: u64,
    whole: u64,
    closed: bool,
    broken: bool,
}

fn survey(path: &Path, file: &File) -> Result<Found, RecoverError> {
    let foreign = |why: String| OpenError::Foreign { path: path.to_owned(), why };
    let fail = |error| OpenError::Io { path: path.to_owned(), error };
    let mut reader = BufReader::new(file);
    if first_byte(&mut reader).map_err(fail)? == Some(b'[') {
        return Err(foreign(
            "it is JSON, which has no side file; 'numa export' and 'numa report' read its whole rows".into(),
        )
        .into());
    }
    let mut messages = Messages::new(reader);
    let columns = read_header(path, &mut messages)?.series.len();
    let mut found =
        Found { columns, rows: 0, labels: 0, whole: messages.whole, closed: false, broken: false };
    loop {
        match messages.next().map_err(fail)? {
            Next::Message(message) => match arrow::decode_batch(&message, columns) {
                Ok(Some(batch)) => {
                    let labels = batch.labels() as u64;
                    found.labels += labels;
                    found.rows += batch.len() as u64 - labels;
                }
                Ok(None) | Err(_) => {
                    found.broken = true;
                    return Ok(found);
                }
            },
            Next::End => {
                found.closed = true;
                return Ok(found);
            }
            Next::Open => return Ok(found),
            Next::Damaged(_) => {
                found.broken = true;
                return Ok(found);
            }
        }
        found.whole = messages.whole;
    }
}

/// Bytes that no reader understands are kept beside the recording, never thrown away.
fn set_aside(path: &Path, file: &mut File, whole: u64, broken: bool) -> io::Result<Option<(u64, PathBuf)>> {
    if !broken {
        return Ok(None);
    }
    let mut name = path.as_os_str().to_owned();
    name.push(".damaged");
    let target = PathBuf::from(name);
    file.seek(SeekFrom::Start(whole))?;
    let bytes = io::copy(file, &mut File::create(&target)?)?;
    Ok(Some((bytes, target)))
}

fn add_rows(file: &mut File, ring: &Ring, columns: usize, start: u64) -> io::Result<u64> {
    let mut encoder = Encoder::new(columns)?;
    let (mut added, mut length) = (0, start);
    loop {
        let pending = ring.pending(ring::rows_per_batch(columns));
        if pending.is_empty() {
            return Ok(added);
        }
        let message = encoder.batch(&pending)?;
        append(file, length, &message)?;
        length += message.len() as u64;
        added += pending.len() as u64;
        pending.done();
    }
}
