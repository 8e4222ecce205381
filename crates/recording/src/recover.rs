//! Making a whole recording of what a killed recorder left: the file and its side file.

use crate::arrow::{self, Encoder, Head, Place};
use crate::names::tail_of;
use crate::reader::{OpenError, first_byte, side_file};
use crate::ring::{self, Ring};
use crate::stream::{Step, Stream};
use crate::writer::append;
use numakit_model::label::RecorderEvent;
use numakit_sys::file::open_to_read;
use numakit_sys::output::{Existing, OutputFile};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What recovering did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// Rows and labels that the file held.
    pub held: u64,
    /// Rows and labels added from the side file.
    pub added: u64,
    /// Samples known to be lost.
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

/// Joins the rows of the side file to the recording and closes it. Damaged bytes are taken out and
/// kept in a file beside it; all batches that are whole stay. Doing it again, or on a whole
/// recording, changes nothing.
pub fn recover(path: &Path) -> Result<Recovered, RecoverError> {
    let fail = |error| RecoverError::Io { path: path.to_owned(), error };
    let tail = open_to_read(&tail_of(path)).ok();
    if tail.as_ref().is_some_and(|t| t.try_lock().is_err()) {
        return Err(RecoverError::Busy(path.to_owned()));
    }
    let found = survey(path)?;
    let mut result = Recovered { held: found.held, added: 0, lost: found.lost, damaged: None };
    if !found.closed || !found.damaged.is_empty() {
        let content = if found.closed { None } else { side_file(path) };
        let side = content.and_then(|content| Ring::of_side_file(&content, found.head.header.series.len()));
        if let Some(ring) = &side {
            result.lost += ring.done().0.saturating_sub(found.place.rows);
            ring.skip_to(found.place.rows, found.place.labels);
        }
        if !found.damaged.is_empty() {
            result.damaged = Some(set_aside(path, &found.damaged).map_err(fail)?);
        }
        let added = match found.whole {
            Some(whole) => complete(path, whole, &found, side.as_ref()),
            None => rebuild(path, &found, side.as_ref()),
        };
        result.added = added.map_err(fail)?;
    }
    let _ = std::fs::remove_file(tail_of(path));
    Ok(result)
}

/// What a file holds.
struct Found {
    head: Head,
    /// Rows and labels in its batches.
    held: u64,
    /// Samples that were in damaged bytes.
    lost: u64,
    /// The batches, and between them the samples that are lost.
    parts: Vec<Part>,
    damaged: Vec<Range<u64>>,
    /// Where damage begins that goes to the end, or the end; `None` where there is damage before.
    whole: Option<u64>,
    /// What is before the end.
    place: Place,
    closed: bool,
}

enum Part {
    Whole(Range<u64>),
    /// So many samples were here, and when the next ones are.
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
            "it is JSON, which has no side file; 'numa export' and 'numa report' read its whole rows".into(),
        )
        .into());
    }
    let mut stream = Stream::open(path, reader, length)?;
    let mut found = Found::new(stream.head().clone());
    loop {
        match stream.next().map_err(fail)? {
            Step::Batch { batch, at, before } => {
                found.gap(before, batch.time.first().copied().unwrap_or_default());
                found.held += batch.len() as u64;
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
        Self { head, held: 0, lost: 0, parts, damaged, whole: None, place, closed: false }
    }

    /// Notes what is lost before a batch.
    fn gap(&mut self, before: Place, time: u64) {
        let rows = before.rows.saturating_sub(self.place.rows);
        if rows > 0 && !self.damaged.is_empty() {
            self.parts.push(Part::Lost { rows, before: self.place, time });
        }
    }
}

/// Adds the rows of the side file to one of which so much is whole, and the end.
fn complete(path: &Path, whole: u64, found: &Found, side: Option<&Ring>) -> io::Result<u64> {
    let mut file = File::options().read(true).write(true).open(path)?;
    file.set_len(whole)?;
    let mut length = file.seek(SeekFrom::End(0))?;
    let mut add = |bytes: &[u8]| {
        append(&mut file, length, bytes)?;
        length += bytes.len() as u64;
        Ok(())
    };
    let added = add_rows(found, side, &mut add)?;
    add(&arrow::END_OF_STREAM)?;
    file.sync_all()?;
    Ok(added)
}

/// Writes all that is whole anew, beside the file until it is done.
fn rebuild(path: &Path, found: &Found, side: Option<&Ring>) -> io::Result<u64> {
    let mut from = open_to_read(path)?;
    let mut to = OutputFile::create(path, Existing::Replaced)?;
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
    let added = add_rows(found, side, &mut |bytes| to.write_all(bytes))?;
    to.write_all(&arrow::END_OF_STREAM)?;
    to.file().sync_all()?;
    to.keep()?;
    Ok(added)
}

fn copy(from: &mut File, at: &Range<u64>, to: &mut impl Write) -> io::Result<()> {
    from.seek(SeekFrom::Start(at.start))?;
    let length = at.end - at.start;
    let copied = io::copy(&mut Read::by_ref(from).take(length), to)?;
    if copied < length { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
}

/// Bytes that no reader understands are kept beside the recording, never thrown away.
fn set_aside(path: &Path, damaged: &[Range<u64>]) -> io::Result<(u64, PathBuf)> {
    let mut from = open_to_read(path)?;
    for number in 1u32.. {
        let mut name = path.as_os_str().to_owned();
        name.push(if number == 1 { ".damaged".to_owned() } else { format!(".damaged-{number}") });
        let target = PathBuf::from(name);
        let mut to = match OutputFile::create(&target, Existing::Kept) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            other => other?,
        };
        damaged.iter().try_for_each(|at| copy(&mut from, at, &mut to))?;
        to.keep()?;
        return Ok((damaged.iter().map(|at| at.end - at.start).sum(), target));
    }
    Err(ErrorKind::AlreadyExists.into())
}

fn add_rows(
    found: &Found,
    side: Option<&Ring>,
    add: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<u64> {
    let Some(ring) = side else { return Ok(0) };
    let mut encoder = Encoder::new(&found.head)?;
    let mut added = 0;
    loop {
        let pending = ring.pending(ring::rows_per_batch(found.head.header.series.len()));
        if pending.is_empty() {
            return Ok(added);
        }
        add(&encoder.batch(&pending)?)?;
        added += pending.len() as u64;
        pending.done();
    }
}
