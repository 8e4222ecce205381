//! Completes the recording of a killed recorder with the rows of its tail file.

use crate::arrow::{self, Encoder, Head, Place};
use crate::names::tail_of;
use crate::reader::{OpenError, first_byte, read_tail};
use crate::ring::{self, Ring};
use crate::stream::{Step, Stream};
use crate::writer::append;
use numakit_model::label::RecorderEvent;
use numakit_sys::file::open_to_read;
use numakit_sys::output::{Existing, OutputFile};
use std::fs::{File, TryLockError};
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What recovering did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// Rows and labels in the file.
    pub rows: u64,
    /// Rows and labels added from the tail file.
    pub added: u64,
    /// Samples known to be lost.
    pub lost: u64,
    /// Number of unreadable bytes, and the file to which they were moved.
    pub damaged: Option<(u64, PathBuf)>,
}

/// Why nothing was recovered. The files are unchanged.
#[derive(Debug, Error)]
pub enum RecoverError {
    /// It is not a recording.
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
        /// The error of the system.
        error: io::Error,
    },
}

/// Appends the rows of the tail file to the recording and closes it. Damaged bytes are moved
/// to a file next to it; all undamaged batches stay. Doing it again, or on a complete
/// recording, changes nothing.
pub fn recover(path: &Path) -> Result<Recovered, RecoverError> {
    let fail = |error| RecoverError::Io { path: path.to_owned(), error };
    let tail = match open_to_read(&tail_of(path)) {
        Ok(tail) => Some(tail),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        // It has rows, and is removed at the end.
        Err(error) => return Err(RecoverError::Io { path: tail_of(path), error }),
    };
    match tail.as_ref().map(File::try_lock) {
        Some(Err(TryLockError::WouldBlock)) => return Err(RecoverError::Busy(path.to_owned())),
        Some(Err(TryLockError::Error(error))) => return Err(fail(error)),
        Some(Ok(())) | None => {}
    }
    let found = survey(path)?;
    let mut result = Recovered { rows: found.rows, added: 0, lost: found.lost, damaged: None };
    if !found.closed || !found.damaged.is_empty() {
        let content = if found.closed { None } else { read_tail(path) };
        let tail = content.and_then(|content| Ring::of_tail_file(&content, found.head.header.series.len()));
        if let Some(ring) = &tail {
            result.lost += ring.consumed().0.saturating_sub(found.place.rows);
            ring.skip_to(found.place.rows, found.place.labels);
        }
        if !found.damaged.is_empty() {
            result.damaged = Some(set_aside(path, &found.damaged).map_err(fail)?);
        }
        let added = match found.whole {
            Some(whole) => complete(path, whole, &found, tail.as_ref()),
            None => rebuild(path, &found, tail.as_ref()),
        };
        result.added = added.map_err(fail)?;
    }
    let _ = std::fs::remove_file(tail_of(path));
    Ok(result)
}

/// The content of a file.
struct Found {
    head: Head,
    /// Rows and labels in its batches.
    rows: u64,
    /// Samples that were in damaged bytes.
    lost: u64,
    /// The batches, and the lost samples between them.
    parts: Vec<Part>,
    damaged: Vec<Range<u64>>,
    /// Where damage up to the end begins, or the end; `None` if there is damage before.
    whole: Option<u64>,
    /// Samples and labels before the end.
    place: Place,
    closed: bool,
}

enum Part {
    Whole(Range<u64>),
    /// Number of samples that were here, and the time of the next one.
    Lost {
        rows: u64,
        before: Place,
        time: u64,
    },
}

fn survey(path: &Path) -> Result<Found, RecoverError> {
    let foreign = |why: String| OpenError::Foreign { path: path.to_owned(), why };
    let fail = |error| OpenError::Io { path: path.to_owned(), error };
    let file = open_to_read(path).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => foreign(error.to_string()),
        _ => fail(error),
    })?;
    let length = file.metadata().map_err(fail)?.len();
    let mut reader = BufReader::new(file);
    if first_byte(&mut reader).map_err(fail)? == Some(b'[') {
        return Err(foreign(
            "it is JSON, which has no tail file; 'numa export' and 'numa show' read its complete rows".into(),
        )
        .into());
    }
    let mut stream = Stream::open(path, reader, length)?;
    let mut found = Found::new(stream.head().clone());
    loop {
        match stream.next().map_err(fail)? {
            Step::Batch { batch, at, before } => {
                found.gap(before, batch.time.first().copied().unwrap_or_default());
                found.rows += batch.len() as u64;
                found.parts.push(Part::Whole(at));
                found.place = stream.place();
            }
            Step::Damaged(damage) => {
                found.lost += damage.rows.unwrap_or(0);
                found.damaged.push(damage.at);
            }
            Step::End => {
                found.closed = true;
                return Ok(found);
            }
            Step::Open => {
                found.whole = match found.damaged.as_slice() {
                    [] => Some(length),
                    [one] if one.end == length && one.start > 0 => Some(one.start),
                    _ => None,
                };
                return Ok(found);
            }
        }
    }
}

impl Found {
    fn new(head: Head) -> Self {
        let place = Place::default();
        let (parts, damaged) = (Vec::new(), Vec::new());
        Self { head, rows: 0, lost: 0, parts, damaged, whole: None, place, closed: false }
    }

    /// Notes the samples that are lost before a batch.
    fn gap(&mut self, before: Place, time: u64) {
        let rows = before.rows.saturating_sub(self.place.rows);
        if rows > 0 && !self.damaged.is_empty() {
            self.parts.push(Part::Lost { rows, before: self.place, time });
        }
    }
}

/// Appends the rows of the tail file and the end mark after the first `whole` bytes.
fn complete(path: &Path, whole: u64, found: &Found, tail: Option<&Ring>) -> io::Result<u64> {
    let mut file = File::options().read(true).write(true).open(path)?;
    file.set_len(whole)?;
    let mut length = file.seek(SeekFrom::End(0))?;
    let mut add = |bytes: &[u8]| {
        append(&mut file, length, bytes)?;
        length += bytes.len() as u64;
        Ok(())
    };
    let added = add_rows(found, tail, &mut add)?;
    add(&arrow::END_OF_STREAM)?;
    file.sync_all()?;
    Ok(added)
}

/// Writes all undamaged batches to a new file, which replaces the old one at the end.
fn rebuild(path: &Path, found: &Found, tail: Option<&Ring>) -> io::Result<u64> {
    let mut from = open_to_read(path)?;
    let mut to = OutputFile::create(path, Existing::Replace)?;
    to.write_all(&found.head.message)?;
    let mut encoder = Encoder::new(&found.head)?;
    for part in &found.parts {
        match part {
            Part::Whole(at) => copy(&mut from, at, &mut to)?,
            Part::Lost { rows, before, time } => {
                let note = Ring::in_memory(found.head.header.series.len(), 1)?;
                note.push_label(*time, &RecorderEvent::Damaged(*rows).text());
                to.write_all(&encoder.batch_at(&note.pending(1), *before)?)?;
            }
        }
    }
    let added = add_rows(found, tail, &mut |bytes| to.write_all(bytes))?;
    to.write_all(&arrow::END_OF_STREAM)?;
    to.file().sync_all()?;
    to.persist()?;
    Ok(added)
}

fn copy(from: &mut File, at: &Range<u64>, to: &mut impl Write) -> io::Result<()> {
    from.seek(SeekFrom::Start(at.start))?;
    let length = at.end - at.start;
    let copied = io::copy(&mut Read::by_ref(from).take(length), to)?;
    if copied < length { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

/// Moves damaged bytes to a file next to the recording; they are never deleted.
fn set_aside(path: &Path, damaged: &[Range<u64>]) -> io::Result<(u64, PathBuf)> {
    let mut from = open_to_read(path)?;
    for number in 1u32.. {
        let mut name = path.as_os_str().to_owned();
        name.push(if number == 1 { ".damaged".to_owned() } else { format!(".damaged-{number}") });
        let target = PathBuf::from(name);
        let mut to = match OutputFile::create(&target, Existing::Keep) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            other => other?,
        };
        damaged.iter().try_for_each(|at| copy(&mut from, at, &mut to))?;
        to.persist()?;
        return Ok((damaged.iter().map(|at| at.end - at.start).sum(), target));
    }
    Err(ErrorKind::AlreadyExists.into())
}

fn add_rows(
    found: &Found,
    tail: Option<&Ring>,
    add: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<u64> {
    let Some(ring) = tail else { return Ok(0) };
    let mut encoder = Encoder::new(&found.head)?;
    let mut added = 0;
    loop {
        let pending = ring.pending(ring::rows_per_batch(found.head.header.series.len()));
        if pending.is_empty() {
            return Ok(added);
        }
        add(&encoder.batch(&pending)?)?;
        added += pending.len() as u64;
        pending.release();
    }
}
