//! Reads recordings: complete, damaged or still growing ones, and those of the original NUMAscope.

use crate::arrow::Place;
use crate::batch::Batch;
use crate::header::Header;
use crate::losses::Losses;
use crate::names::tail_of;
use crate::numascope::{self, NumascopeError};
use crate::ring::Ring;
use crate::stream::{Step, Stream};
use numakit_sys::file::open_to_read;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a file cannot be opened as a recording.
#[derive(Debug, Error)]
pub enum OpenError {
    /// It cannot be read.
    #[error("cannot read {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// It is something else.
    #[error("{path} is not a recording: {why}; numa reads files of 'numa record' and the JSON of NUMAscope")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

/// A recording that is read batch by batch.
#[derive(Debug)]
pub struct Reader {
    header: Header,
    source: Source,
    losses: Losses,
    damage: Option<String>,
    rows: u64,
    labels: u64,
}

/// A position between the batches of a recording, for [`Reader::go_to`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BatchPosition {
    /// Byte that the next batch begins at.
    pub position: u64,
    /// Samples before it.
    pub rows: u64,
    /// Labels before it.
    pub labels: u64,
}

#[derive(Debug)]
enum Source {
    Arrow { stream: Box<Stream>, tail: Option<Ring> },
    Json(numascope::NumascopeRows<BufReader<File>>),
    Finished,
}

impl Reader {
    /// Opens a recording. Damaged batches are skipped; [`Reader::damage`] describes them
    /// after all others were read. Only regular files are opened, so that opening never blocks.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let fail = |error| OpenError::Io { path: path.to_owned(), error };
        let foreign = |why: String| OpenError::Foreign { path: path.to_owned(), why };
        let file = open_to_read(path).map_err(|error| match error.kind() {
            ErrorKind::InvalidInput => {
                foreign(format!("{error} (write the content of a pipe to a file first)"))
            }
            _ => fail(error),
        })?;
        let mut reader = BufReader::with_capacity(64 * 1024, file);
        if first_byte(&mut reader).map_err(fail)? == Some(b'[') {
            let (header, rows) = numascope::NumascopeRows::open(reader).map_err(|error| match error {
                NumascopeError::Io(error) => fail(error),
                other => foreign(other.to_string()),
            })?;
            let losses = Losses::since(header.started);
            return Ok(Self { header, source: Source::Json(rows), losses, damage: None, rows: 0, labels: 0 });
        }
        // The tail file is read before the length is, and batches up to that length after it: rows that
        // move from the one to the other meanwhile are in both.
        let tail = read_tail(path);
        let length = reader.get_ref().metadata().map_err(fail)?.len();
        let stream = Box::new(Stream::open(path, reader, length)?);
        let header = stream.head().header.clone();
        let tail = tail.and_then(|content| Ring::of_tail_file(&content, header.series.len()));
        let losses = Losses::since(header.started);
        let source = Source::Arrow { stream, tail };
        Ok(Self { header, source, losses, damage: None, rows: 0, labels: 0 })
    }

    /// The description of the recording.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What was lost and why, after all batches were read; `None` if nothing was.
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    /// The position of the next batch.
    pub fn position(&self) -> BatchPosition {
        let position = match &self.source {
            Source::Arrow { stream, .. } => stream.position(),
            Source::Json(rows) => rows.position(),
            Source::Finished => 0,
        };
        BatchPosition { position, rows: self.rows, labels: self.labels }
    }

    /// The positions of all following batches and of the end, found without decompressing.
    /// `None` if the recording was not closed or is damaged between batches, and for recordings
    /// of NUMAscope, whose rows are found only by reading them.
    pub fn batch_positions(&mut self) -> Option<Vec<BatchPosition>> {
        let mut positions = vec![self.position()];
        let Source::Arrow { stream, .. } = &mut self.source else { return None };
        while let Some((rows, labels)) = stream.skip().ok()? {
            let last = positions.last()?;
            let (rows, labels) = (last.rows + rows, last.labels + labels);
            positions.push(BatchPosition { position: stream.position(), rows, labels });
        }
        Some(positions)
    }

    /// Continues at a position of the same recording.
    pub fn go_to(&mut self, target: BatchPosition) -> io::Result<()> {
        match &mut self.source {
            Source::Arrow { stream, .. } => {
                stream.go_to(target.position, Place { rows: target.rows, labels: target.labels })?;
            }
            Source::Json(rows) => rows.go_to(target.position, target.rows + target.labels)?,
            Source::Finished => return Ok(()),
        }
        (self.rows, self.labels) = (target.rows, target.labels);
        Ok(())
    }

    /// The next rows.
    pub fn next_batch(&mut self) -> Option<Batch> {
        let batch = match &mut self.source {
            Source::Finished => return None,
            Source::Json(rows) => match rows.next_batch() {
                Ok(batch) => {
                    self.damage = rows.damage().map(str::to_owned);
                    batch
                }
                Err(error) => {
                    self.damage = Some(format!("the rest could not be read: {error}"));
                    None
                }
            },
            Source::Arrow { .. } => self.next_of_stream(),
        };
        match &batch {
            None => self.source = Source::Finished,
            Some(batch) => self.count(batch),
        }
        batch
    }

    fn count(&mut self, batch: &Batch) {
        let labels = batch.labels() as u64;
        self.labels += labels;
        self.rows += batch.len() as u64 - labels;
    }

    fn next_of_stream(&mut self) -> Option<Batch> {
        loop {
            let Source::Arrow { stream, .. } = &mut self.source else { return None };
            match stream.next() {
                Ok(Step::Batch { batch, .. }) => {
                    self.losses.read(&batch);
                    return Some(batch);
                }
                Ok(Step::Damaged(damage)) => self.losses.add(damage),
                Ok(Step::End) => {
                    self.damage = self.losses.text(stream.length());
                    return None;
                }
                Ok(Step::Open) => return self.end_with_tail(None),
                Err(error) => return self.end_with_tail(Some(error)),
            }
        }
    }

    /// The stream was not closed: the following rows may be in the tail file.
    fn end_with_tail(&mut self, error: Option<io::Error>) -> Option<Batch> {
        let Source::Arrow { tail, stream } = std::mem::replace(&mut self.source, Source::Finished) else {
            return None;
        };
        let place = stream.place();
        let found = tail.map(|ring| {
            let (consumed, _) = ring.consumed();
            ring.skip_to(place.rows, place.labels);
            (ring.pending(usize::MAX >> 1).batch(), consumed.saturating_sub(place.rows))
        });
        if let Some((batch, lost)) = &found {
            // The rows of a batch that was being written are still in the tail file.
            if *lost == 0 {
                self.losses.forget_last();
            }
            self.losses.read(batch);
        }
        let unread = error.map(|error| {
            let left = stream.length().saturating_sub(stream.position());
            format!("the last {left} bytes could not be read: {error}")
        });
        let without_tail = || {
            let rows = self.rows;
            format!("{rows} rows before were read, and there is no tail file with the rows after them")
        };
        let mut messages: Vec<String> = self.losses.text(stream.length()).into_iter().chain(unread).collect();
        match &found {
            Some((_, 0)) => {}
            Some((_, lost)) => messages.push(format!("{lost} rows between were lost")),
            None if messages.is_empty() => {
                messages = vec!["the recording was not closed".into(), without_tail()]
            }
            None => messages.push(without_tail()),
        }
        self.damage = Some(messages.join("; ")).filter(|text| !text.is_empty());
        found.map(|(batch, _)| batch).filter(|batch| !batch.is_empty())
    }
}

/// The tail file of a recording that was not closed.
pub(crate) fn read_tail(path: &Path) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    open_to_read(&tail_of(path)).ok()?.read_to_end(&mut content).ok()?;
    Some(content)
}

/// The first byte that is not a space: `[` for JSON.
pub(crate) fn first_byte(reader: &mut impl BufRead) -> io::Result<Option<u8>> {
    let start = reader.fill_buf()?;
    Ok(start.iter().find(|b| !b.is_ascii_whitespace()).copied())
}
