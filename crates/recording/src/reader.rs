//! Reading recordings: ours, whole, damaged or still growing, and the original NUMAscope's.

use crate::arrow::{self, Messages, Next};
use crate::batch::Batch;
use crate::header::Header;
use crate::numascope;
use crate::ring::{Entry, Ring};
use crate::writer::tail_of;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A file that is no recording.
#[derive(Debug, Error)]
pub enum OpenError {
    /// It cannot be read.
    #[error("cannot read {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It is something else.
    #[error("{path} is no recording: {why}; numa reads what 'numa record' writes and the JSON of NUMAscope")]
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
    damage: Option<String>,
    rows: u64,
    labels: u64,
}

/// A place between the batches of a recording, for [`Reader::go_to`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mark {
    /// Byte that the next batch begins at.
    pub position: u64,
    /// Samples before it.
    pub rows: u64,
    /// Labels before it.
    pub labels: u64,
}

#[derive(Debug)]
enum Source {
    Arrow { messages: Messages<BufReader<File>>, side: Option<Ring>, length: u64 },
    Json(numascope::Rows<BufReader<File>>),
    Finished,
}

impl Reader {
    /// Opens a recording. One whose first bytes are damaged is an error; later damage is
    /// told by [`Reader::damage`] once the whole batches before it were read.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let fail = |error| OpenError::Io { path: path.to_owned(), error };
        let foreign = |why: String| OpenError::Foreign { path: path.to_owned(), why };
        let file = File::open(path).map_err(fail)?;
        let length = file.metadata().map_err(fail)?.len();
        let mut reader = BufReader::with_capacity(64 * 1024, file);
        if first_byte(&mut reader).map_err(fail)? == Some(b'[') {
            let (header, rows) = numascope::Rows::open(reader).map_err(fail)?.map_err(foreign)?;
            return Ok(Self { header, source: Source::Json(rows), damage: None, rows: 0, labels: 0 });
        }
        let mut messages = Messages::new(reader);
        let header = read_header(path, &mut messages)?;
        // Taken before the batches: of a recording that still grows, no row can then be missed
        // between both.
        let side = std::fs::read(tail_of(path)).ok();
        let side = side.and_then(|content| Ring::of_side_file(&content, header.series.len()));
        let source = Source::Arrow { messages, side, length };
        Ok(Self { header, source, damage: None, rows: 0, labels: 0 })
    }

    /// What the recording says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What was lost and why, once all batches were read; `None` when nothing was.
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    /// The place of the next batch.
    pub fn mark(&self) -> Mark {
        let position = match &self.source {
            Source::Arrow { messages, .. } => messages.whole,
            Source::Json(rows) => rows.position(),
            Source::Finished => 0,
        };
        Mark { position, rows: self.rows, labels: self.labels }
    }

    /// The places of all batches that follow, and at last that of the end, found without
    /// unpacking them. `None` where the recording was not closed or is damaged between them, and
    /// for one of NUMAscope, whose rows have to be read to be found.
    pub fn marks(&mut self) -> Option<Vec<Mark>> {
        let mut marks = vec![self.mark()];
        let Source::Arrow { messages, .. } = &mut self.source else { return None };
        loop {
            match messages.skip().ok()? {
                Next::Message(message) => {
                    let (rows, labels) = arrow::count_rows(&message).ok()??;
                    let last = marks.last()?;
                    let (rows, labels) = (last.rows + rows, last.labels + labels);
                    marks.push(Mark { position: messages.whole, rows, labels });
                }
                Next::End => return Some(marks),
                Next::Open | Next::Damaged(_) => return None,
            }
        }
    }

    /// Goes on at a place of the same recording.
    pub fn go_to(&mut self, mark: Mark) -> io::Result<()> {
        match &mut self.source {
            Source::Arrow { messages, .. } => messages.go_to(mark.position)?,
            Source::Json(rows) => rows.go_to(mark.position, mark.rows + mark.labels)?,
            Source::Finished => return Ok(()),
        }
        (self.rows, self.labels) = (mark.rows, mark.labels);
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
        let columns = self.header.series.len();
        let Source::Arrow { messages, length, .. } = &mut self.source else { return None };
        let before = messages.whole;
        let unread = |whole: u64, why: &str| {
            format!("the last {} of {length} bytes could not be read: {why}", length.saturating_sub(whole))
        };
        let damage = match messages.next() {
            Ok(Next::Message(message)) => match arrow::decode_batch(&message, columns) {
                Ok(Some(batch)) => return Some(batch),
                Ok(None) => unread(before, "an unknown kind of message"),
                Err(why) => unread(before, &why.to_string()),
            },
            Ok(Next::End) => {
                self.source = Source::Finished;
                return None;
            }
            Ok(Next::Open) => String::new(),
            Ok(Next::Damaged(why)) => unread(before, &why.to_string()),
            Err(error) => unread(before, &error.to_string()),
        };
        self.end_with_tail(damage)
    }

    /// The stream ends before its end: what follows may be in the side file.
    fn end_with_tail(&mut self, damage: String) -> Option<Batch> {
        let Source::Arrow { side, .. } = std::mem::replace(&mut self.source, Source::Finished) else {
            return None;
        };
        let Some(ring) = side else {
            let why = if damage.is_empty() { "the recording was not closed".to_owned() } else { damage };
            let rows = self.rows;
            self.damage = Some(format!(
                "{why}; {rows} rows before were read, and there is no side file with the rows after them"
            ));
            return None;
        };
        let (kept, _) = ring.done();
        if kept > self.rows {
            self.damage = Some(format!("{damage}; {} rows between were lost", kept - self.rows));
        }
        ring.skip_to(self.rows, self.labels);
        let batch = rows_of(&ring, self.header.series.len());
        (!batch.is_empty()).then_some(batch)
    }
}

/// All that waits in a ring.
fn rows_of(ring: &Ring, columns: usize) -> Batch {
    let mut batch = Batch::empty(columns);
    let mut values = vec![None; columns];
    let pending = ring.pending(usize::MAX >> 1);
    for entry in pending.entries() {
        match entry {
            Entry::Row(row) => {
                row.values(&mut values);
                batch.push_sample(row.time(), row.took(), &values);
            }
            Entry::Label { time, index } => batch.push_label(time, pending.label_text(index)),
        }
    }
    batch
}

/// The header that a stream begins with.
pub(crate) fn read_header<R: Read>(path: &Path, messages: &mut Messages<R>) -> Result<Header, OpenError> {
    let foreign = |why: String| OpenError::Foreign { path: path.to_owned(), why };
    match messages.next().map_err(|error| OpenError::Io { path: path.to_owned(), error })? {
        Next::Message(message) => arrow::header_of(&message).map_err(|e| foreign(e.to_string())),
        Next::End | Next::Open => Err(foreign("it is empty".into())),
        Next::Damaged(why) => Err(foreign(why.to_string())),
    }
}

/// The first byte that is no space: `[` for JSON.
pub(crate) fn first_byte(reader: &mut impl BufRead) -> io::Result<Option<u8>> {
    let start = reader.fill_buf()?;
    Ok(start.iter().find(|b| !b.is_ascii_whitespace()).copied())
}
