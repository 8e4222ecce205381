//! The JSON of the original NUMAscope: an array of `["sensor", sources, maximum]`, the array
//! of headings, then rows `[microseconds since 1970, rate per second, ...]` and labels
//! `["label", microseconds, "text"]`.
//!
//! A heading ends in `:N` for card N; one that begins with `%` is drawn as a
//! percentage of the maximum.

mod names;
mod text;
mod wording;
mod writer;

pub use writer::Writer;

use crate::batch::Batch;
use crate::header::Header;
use serde_json::Value;
use std::io::{self, BufRead, Seek};
use text::{NumascopeItem, Text};
use thiserror::Error;

/// Why a text is not such a file.
#[derive(Debug, Error)]
pub enum NumascopeError {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is cut off or damaged at the beginning.
    #[error("it ends before its headings: {0}")]
    Cut(String),
    /// It has too few rows.
    #[error("it has no headings")]
    NoHeadings,
    /// Its first row is not the expected one.
    #[error("it does not begin with [\"sensor name\", sources, maximum]")]
    NoHead,
    /// Its second row has values that are not texts.
    #[error("a heading is not a text")]
    Heading,
}

/// What is wrong with a row.
#[derive(Debug, Error)]
enum RowError {
    #[error("has no time")]
    NoTime,
    #[error("has {values} values for {headings} headings")]
    Values { values: usize, headings: usize },
}

/// [`Header::program`] of recordings in this format.
pub const PROGRAM: &str = "numascope";

/// Maximum number of columns of a file.
const MAX_COLUMNS: usize = 100_000;

/// Bytes of text that become one batch. In memory a value takes up to four times its text.
const BATCH: usize = 1 << 18;

/// The rows of such a file, read batch by batch.
#[derive(Debug)]
pub struct NumascopeRows<R> {
    text: Text<R>,
    columns: usize,
    /// The next row, if it was already read.
    ahead: Option<Vec<Value>>,
    /// Where that row, or the text of the next one, begins.
    position: u64,
    rows: u64,
    damage: Option<String>,
}

impl<R: BufRead> NumascopeRows<R> {
    /// Reads the head and the headings.
    pub fn open(from: R) -> Result<(Header, Self), NumascopeError> {
        let mut text = Text::new(from);
        let mut rows = Vec::new();
        while rows.len() < 2 {
            match text.next(MAX_COLUMNS)? {
                NumascopeItem::Row(row) => rows.push(row),
                NumascopeItem::Wrong(why) => return Err(NumascopeError::Cut(why)),
                NumascopeItem::End => return Err(NumascopeError::NoHeadings),
            }
            // An early version had the headings after the sensor's name, in the same row.
            if let [row] = &mut rows[..]
                && row.len() > 1
                && row.iter().all(Value::is_string)
            {
                let headings = row.split_off(1);
                row.extend([Value::from(1), Value::from(0)]);
                rows.push(headings);
            }
        }
        let series = names::series_of(&rows[0], &rows[1])?;
        let mut header = Header { series, program: PROGRAM.into(), ..Header::default() };
        let columns = header.series.len();
        let position = text.position();
        let mut rows = Self { text, columns, ahead: None, position, rows: 0, damage: None };
        rows.ahead = rows.next_row()?;
        header.started = rows.ahead.as_deref().and_then(time_of).unwrap_or(0);
        Ok((header, rows))
    }

    /// The next rows; `None` at the end, or where the file is damaged.
    pub fn next_batch(&mut self) -> io::Result<Option<Batch>> {
        let mut batch = Batch::empty(self.columns);
        let begin = self.position;
        loop {
            let row = match self.ahead.take() {
                Some(row) => Some(row),
                None => self.next_row()?,
            };
            let Some(row) = row else { break };
            self.rows += 1;
            if let Err(why) = take(&row, &mut batch) {
                self.damage = Some(format!("row {} {why}; the rows before it were read", self.rows));
                break;
            }
            self.position = self.text.position();
            let size = self.position - begin;
            let after_label = batch.label.last().is_some_and(Option::is_some);
            if size >= 2 * BATCH as u64 || (size >= BATCH as u64 && !after_label) {
                break;
            }
        }
        Ok((!batch.is_empty()).then_some(batch))
    }

    fn next_row(&mut self) -> io::Result<Option<Vec<Value>>> {
        if self.damage.is_some() {
            return Ok(None);
        }
        Ok(match self.text.next(self.columns.max(2) + 1)? {
            NumascopeItem::Row(row) => Some(row),
            NumascopeItem::End => None,
            NumascopeItem::Wrong(why) => {
                self.damage = Some(format!("it is damaged after {} rows: {why}", self.rows));
                None
            }
        })
    }

    /// What was lost and why, after everything was read; `None` if nothing was.
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
    }

    /// The byte that the next batch begins at, for [`NumascopeRows::go_to`].
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Continues at a position that [`NumascopeRows::position`] returned; `rows` come before it.
    pub fn go_to(&mut self, position: u64, rows: u64) -> io::Result<()>
    where
        R: Seek,
    {
        self.text.go_to(position)?;
        (self.ahead, self.position, self.rows, self.damage) = (None, position, rows, None);
        Ok(())
    }
}

/// Reads a whole text.
pub fn read(text: &[u8]) -> Result<(Header, Vec<Batch>, Option<String>), NumascopeError> {
    let (header, mut rows) = NumascopeRows::open(text)?;
    let mut batches = Vec::new();
    while let Some(batch) = rows.next_batch()? {
        batches.push(batch);
    }
    Ok((header, batches, rows.damage))
}

/// Appends a row to a batch.
fn take(row: &[Value], batch: &mut Batch) -> Result<(), RowError> {
    let time = || time_of(row).ok_or(RowError::NoTime);
    match row {
        [Value::String(word), _, Value::String(text)] if word == "label" => {
            batch.push_label(time()?, text.clone());
            // The page of the original needs a sample as the first row and as the last.
            if batch.time.iter().rev().nth(1) > batch.time.last() {
                batch.move_last(1);
            }
        }
        [Value::Number(_), values @ ..] if values.len() == batch.columns.len() => {
            let float = |v: &Value| v.as_f64().map(|f| f.round() as i64 as u64);
            let word = |v: &Value| v.as_u64().or_else(|| v.as_i64().map(|i| i as u64)).or_else(|| float(v));
            let values: Vec<Option<u64>> = values.iter().map(word).collect();
            let time = time()?;
            batch.push_sample(time, 0, &values);
            let before = batch.time.iter().zip(&batch.label).rev().skip(1);
            let later = before.take(MAX_LATER).take_while(|(at, label)| **at > time && label.is_some());
            batch.move_last(later.count());
        }
        _ => {
            let (values, headings) = (row.len().saturating_sub(1), batch.columns.len());
            return Err(RowError::Values { values, headings });
        }
    }
    Ok(())
}

/// Maximum number of labels before a sample that are later than the sample.
const MAX_LATER: usize = 64;

/// The time of a row in ns.
fn time_of(row: &[Value]) -> Option<u64> {
    let micros = row.get(usize::from(row.first()?.is_string()))?;
    micros.as_u64().or_else(|| micros.as_f64().map(|f| f as u64))?.checked_mul(1000)
}

#[cfg(test)]
mod tests;
