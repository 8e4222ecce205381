//! The batches of a recording's file, and the damaged bytes between them.

use crate::arrow::{self, Head, Malformed, Message, Messages, Next, Place, Search};
use crate::batch::Batch;
use crate::reader::OpenError;
use std::fs::File;
use std::io::{self, BufReader};
use std::ops::Range;
use std::path::Path;

/// The part of the file where a copy of a damaged schema is searched: it is in the first batch, and in one of
/// fifty after that.
const COPY_WITHIN: u64 = 64 << 20;

/// Maximum plausible number of rows of a damaged batch.
const MAX_ROWS: u64 = 1 << 20;

/// The next part of a file.
#[derive(Debug)]
pub(crate) enum Step {
    /// Rows, where their message is, and how many rows and labels are before them.
    Batch { batch: Batch, at: Range<u64>, before: Place },
    /// Bytes that are not a message of this recording.
    Damaged(Damage),
    /// The recording ends correctly.
    End,
    /// It ends after a batch, without an end mark: its writer did not close it.
    Open,
}

/// Bytes that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Where.
    pub at: Range<u64>,
    /// Number of samples in them, if known.
    pub rows: Option<u64>,
    /// What is wrong.
    pub why: String,
}

/// A recording's file, read message by message.
#[derive(Debug)]
pub(crate) struct Stream {
    messages: Messages<BufReader<File>>,
    /// Where the schema is.
    begin: u64,
    head: Head,
    /// What is wrong with the first bytes, if the schema is a copy.
    head_damage: Option<String>,
    length: u64,
    place: Place,
    search: Search,
}

impl Stream {
    /// Reads the schema, or its copy if it is damaged.
    pub fn open(path: &Path, file: BufReader<File>, length: u64) -> Result<Self, OpenError> {
        let fail = |error| OpenError::Io { path: path.to_owned(), error };
        let mut messages = Messages::new(file);
        messages.skip_file_mark().map_err(fail)?;
        let begin = messages.whole;
        let (head, head_damage) = match first(&mut messages).map_err(fail)? {
            Ok(head) => (head, None),
            Err(why) => {
                let copy = copy(&mut messages, length).map_err(fail)?;
                let foreign = || OpenError::Foreign { path: path.to_owned(), why: why.to_string() };
                messages.go_to(begin).map_err(fail)?;
                (copy.ok_or_else(foreign)?, Some(why.to_string()))
            }
        };
        let search = Search::new(head.header.series.len());
        Ok(Self { messages, begin, head, head_damage, length, place: Place::default(), search })
    }

    /// The first message of the file.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The byte that the next message begins at.
    pub fn position(&self) -> u64 {
        self.messages.whole
    }

    /// Bytes of the file.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Samples and labels before the next message, including lost ones.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Continues at a message, before which there are at least these rows and labels.
    pub fn go_to(&mut self, position: u64, place: Place) -> io::Result<()> {
        self.place = place;
        self.messages.go_to(position)
    }

    /// Number of samples and labels of the next batch, which is skipped unchecked. `None` at the
    /// end; an error if anything is unexpected.
    pub fn skip(&mut self) -> Result<Option<(u64, u64)>, Malformed> {
        let unexpected = || Malformed::new("the next message is not a batch");
        match self.messages.skip().map_err(|_| unexpected())? {
            Next::Message(message) => arrow::count_rows(&message)?.map(Some).ok_or_else(unexpected),
            Next::End => Ok(None),
            Next::Open | Next::Damaged(_) => Err(unexpected()),
        }
    }

    /// The next part. What was appended since the file was opened is not read: its last message may be
    /// incomplete.
    pub fn next(&mut self) -> io::Result<Step> {
        if self.messages.whole == self.begin
            && let Some(why) = self.head_damage.clone()
        {
            return self.after_damage(self.begin, why, Some(0));
        }
        let start = self.messages.whole;
        if start >= self.length {
            return Ok(Step::Open);
        }
        let (why, rows) = match self.messages.next()? {
            Next::Message(message) => match self.take(&message) {
                Ok((batch, before)) => {
                    return Ok(Step::Batch { batch, at: start..self.messages.whole, before });
                }
                Err(why) => {
                    let rows = arrow::count_rows(&message).ok().flatten().map(|(rows, _)| rows);
                    (why.to_string(), rows.filter(|rows| *rows <= MAX_ROWS))
                }
            },
            Next::End => {
                let end = self.messages.whole;
                if let Some((_, Some(_))) = self.find(end)? {
                    return self.after_damage(start, "its end mark is before its end".into(), None);
                }
                self.messages.go_to(end)?;
                return Ok(Step::End);
            }
            Next::Open => return Ok(Step::Open),
            Next::Damaged(why) => (why.to_string(), None),
        };
        self.after_damage(start, why, rows)
    }

    /// The rows of a message that is one of this recording.
    fn take(&mut self, message: &Message) -> Result<(Batch, Place), Malformed> {
        let (batch, before) = self.expected().check(message)?;
        let labels = batch.labels() as u64;
        self.place =
            Place { rows: before.rows + batch.len() as u64 - labels, labels: before.labels + labels };
        Ok((batch, before))
    }

    fn expected(&self) -> Expected {
        Expected { stream: self.head.stream, columns: self.head.header.series.len(), place: self.place }
    }

    /// Continues at the next message of this recording after damaged bytes, which had `rows` rows
    /// if that is known.
    fn after_damage(&mut self, start: u64, why: String, rows: Option<u64>) -> io::Result<Step> {
        let (end, rows) = match self.find(start + 1)? {
            Some((end, Some(before))) => (end, Some(before.rows - self.place.rows)),
            Some((end, None)) => {
                self.place.rows = self.place.rows.saturating_add(rows.unwrap_or(0));
                (end, rows)
            }
            // The tail file may have the number.
            None => (self.length, None),
        };
        self.messages.go_to(end)?;
        Ok(Step::Damaged(Damage { at: start..end.max(start), rows, why }))
    }

    /// The next message of this recording at or after a position, or the end mark at the end
    /// of the file: where it begins, and what is before it if known.
    fn find(&mut self, from: u64) -> io::Result<Option<(u64, Option<Place>)>> {
        let expected = self.expected();
        let wanted = |message: &Message| expected.check(message).ok().map(|(_, before)| before);
        if let Some((at, before)) = self.search.next(&mut self.messages, from..self.length, wanted)? {
            return Ok(Some((at, expected.stream.map(|_| before))));
        }
        let end = self.length.saturating_sub(arrow::END_OF_STREAM.len() as u64);
        if end < from {
            return Ok(None);
        }
        self.messages.go_to(end)?;
        Ok(matches!(self.messages.next()?, Next::End).then_some((end, None)))
    }
}

/// What the next batch must match.
#[derive(Debug, Clone, Copy)]
struct Expected {
    stream: Option<u32>,
    columns: usize,
    place: Place,
}

impl Expected {
    fn check(self, message: &Message) -> Result<(Batch, Place), Malformed> {
        let before = match self.stream {
            Some(stream) => message.place_in(stream)?,
            None => self.place,
        };
        if before.rows < self.place.rows || before.rows > 1 << 56 || before.labels > 1 << 56 {
            return Err(Malformed::new("a batch is at the wrong position"));
        }
        let batch = arrow::decode_batch(message, self.columns)?;
        Ok((batch.ok_or_else(|| Malformed::new("an unknown kind of message"))?, before))
    }
}

/// The schema that a file begins with, or what is wrong with it.
fn first(messages: &mut Messages<BufReader<File>>) -> io::Result<Result<Head, Malformed>> {
    let head = match messages.next()? {
        Next::Message(message) => Head::of_message(&message),
        Next::End | Next::Open => Err(Malformed::new("it is empty")),
        Next::Damaged(why) => Err(why),
    };
    // A schema with a damaged seal looks like one of an old recording, but its batches have seals.
    if head.as_ref().is_ok_and(|head| head.stream.is_none()) {
        let begin = messages.whole;
        let batch = messages.skip()?;
        messages.go_to(begin)?;
        if matches!(batch, Next::Message(batch) if batch.is_sealed()) {
            return Ok(Err(Malformed::new("its schema has no checksum")));
        }
    }
    Ok(head)
}

/// The copy of the schema in a batch.
fn copy(messages: &mut Messages<BufReader<File>>, length: u64) -> io::Result<Option<Head>> {
    let wanted = |message: &Message| {
        let head = Head::of_bytes(&arrow::schema_in_batch(message).ok()?).ok()?;
        message.place_in(head.stream?).is_ok().then_some(head)
    };
    let found = Search::of_unknown().next(messages, 0..length.min(COPY_WITHIN), wanted)?;
    Ok(found.map(|(_, head)| head))
}
