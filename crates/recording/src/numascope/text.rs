//! Parses an array of rows, row by row, so that only one row is in memory.

use serde::Deserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde_json::Value;
use std::fmt;
use std::io::{self, BufRead, Seek, SeekFrom};

/// Maximum length of a row in bytes.
const MAX_ROW: usize = 16 << 20;

/// The next item of such a text.
#[derive(Debug)]
pub enum NumascopeItem {
    /// A row: the values between its brackets.
    Row(Vec<Value>),
    /// The array ends correctly.
    End,
    /// What is wrong.
    Wrong(String),
}

/// A text that is being parsed.
#[derive(Debug)]
pub struct Text<R> {
    from: R,
    position: u64,
    place: Place,
    /// The text of the row.
    row: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    /// After the bracket that opens the array.
    Opened,
    AfterRow,
    AfterComma,
    Closed,
}

impl<R: BufRead> Text<R> {
    /// From its start.
    pub fn new(from: R) -> Self {
        Self { from, position: 0, place: Place::Start, row: Vec::new() }
    }

    /// Bytes that were read.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Continues after a row that ended at that byte.
    pub fn go_to(&mut self, position: u64) -> io::Result<()>
    where
        R: Seek,
    {
        self.from.seek(SeekFrom::Start(position))?;
        (self.position, self.place) = (position, Place::AfterRow);
        Ok(())
    }

    /// The next row, of at most `max_values` values.
    pub fn next(&mut self, max_values: usize) -> io::Result<NumascopeItem> {
        loop {
            let Some(byte) = self.byte()? else {
                return Ok(match self.place {
                    Place::Closed => NumascopeItem::End,
                    _ => NumascopeItem::Wrong(format!(
                        "it ends at byte {}, before its array does",
                        self.position
                    )),
                });
            };
            self.place = match (byte, self.place) {
                (b' ' | b'\t' | b'\r' | b'\n', place) => place,
                (b'[', Place::Start) => Place::Opened,
                (b'[', Place::Opened | Place::AfterComma) => return self.rest_of_row(max_values),
                (b',', Place::AfterRow) => Place::AfterComma,
                (b']', Place::Opened | Place::AfterRow) => Place::Closed,
                (_, Place::Closed) => {
                    return Ok(NumascopeItem::Wrong(format!(
                        "there is text after its end, at byte {}",
                        self.position
                    )));
                }
                _ => {
                    let byte = char::from(byte).escape_default();
                    return Ok(NumascopeItem::Wrong(format!(
                        "there is '{byte}' at byte {}, not a row",
                        self.position
                    )));
                }
            };
        }
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        let byte = self.from.fill_buf()?.first().copied();
        self.from.consume(usize::from(byte.is_some()));
        self.position += u64::from(byte.is_some());
        Ok(byte)
    }

    /// The rest of a row after its opening bracket. Rows are not nested.
    fn rest_of_row(&mut self, max_values: usize) -> io::Result<NumascopeItem> {
        self.row.clear();
        self.row.push(b'[');
        let (mut quoted, mut escaped) = (false, false);
        loop {
            let piece = self.from.fill_buf()?;
            let end = piece.iter().position(|byte| {
                let ends = *byte == b']' && !quoted;
                quoted ^= *byte == b'"' && !escaped;
                escaped = *byte == b'\\' && quoted && !escaped;
                ends
            });
            let taken = end.map_or(piece.len(), |at| at + 1);
            self.row.extend_from_slice(&piece[..taken]);
            self.from.consume(taken);
            self.position += taken as u64;
            if end.is_some() {
                break;
            }
            if taken == 0 {
                return Ok(NumascopeItem::Wrong(format!("it ends at byte {}, within a row", self.position)));
            }
            if self.row.len() > MAX_ROW {
                return Ok(NumascopeItem::Wrong(format!("a row has more than {} MiB", MAX_ROW >> 20)));
            }
        }
        self.place = Place::AfterRow;
        let mut json = serde_json::Deserializer::from_slice(&self.row);
        Ok(
            match json
                .deserialize_seq(Values { max: max_values })
                .and_then(|values| json.end().map(|()| values))
            {
                Ok(values) => NumascopeItem::Row(values),
                Err(error) => {
                    NumascopeItem::Wrong(format!("the row that ends at byte {}: {error}", self.position))
                }
            },
        )
    }
}

/// Collects the values of a row up to a maximum, since short texts can need much memory.
struct Values {
    max: usize,
}

impl<'de> Visitor<'de> for Values {
    type Value = Vec<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut row: A) -> Result<Vec<Value>, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = row.next_element()? {
            if values.len() == self.max {
                return Err(A::Error::custom(format!("it has more than {} values", self.max)));
            }
            values.push(value);
        }
        Ok(values)
    }
}
