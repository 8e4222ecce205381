//! Finds the next message after damaged bytes.

use super::message::{Messages, Next};
use super::{CONTINUATION, Message};
use std::io::{self, Read, Seek};
use std::ops::Range;

/// Bytes that are searched at once.
const WINDOW: usize = 256 << 10;

/// A search and its limits.
#[derive(Debug)]
pub(crate) struct Search {
    /// Maximum length of the table of a message.
    pub max_meta: usize,
    /// Bytes of false matches that may still be read, so that a
    /// malicious file cannot make the search endless.
    pub patience: u64,
}

impl Search {
    /// For batches with `columns` columns.
    pub fn new(columns: usize) -> Self {
        Self { max_meta: (64 << 10) + 64 * columns, patience: 512 << 20 }
    }

    /// For batches of an unknown recording.
    pub fn of_unknown() -> Self {
        Self { max_meta: 16 << 20, patience: 512 << 20 }
    }

    /// The first message within the range that `wanted` accepts, and where it begins.
    pub fn next<R: Read + Seek, T>(
        &mut self,
        messages: &mut Messages<R>,
        range: Range<u64>,
        mut wanted: impl FnMut(&Message) -> Option<T>,
    ) -> io::Result<Option<(u64, T)>> {
        let mut window = Vec::new();
        let mut start = range.start;
        while start < range.end {
            messages.go_to(start)?;
            let length = (range.end - start).min(WINDOW as u64) as usize;
            messages.peek(length + 8, &mut window)?;
            for at in candidates(&window, length, self.max_meta) {
                if self.patience == 0 {
                    return Ok(None);
                }
                let at = start + at as u64;
                messages.go_to(at)?;
                let next = messages.next()?;
                if let Next::Message(message) = next
                    && let Some(found) = wanted(&message)
                {
                    messages.go_to(at)?;
                    return Ok(Some((at, found)));
                }
                self.patience = self.patience.saturating_sub(messages.read_since(at)?);
            }
            start += length as u64;
        }
        Ok(None)
    }
}

/// Where messages may begin: after the four bytes there is a plausible length.
fn candidates(window: &[u8], length: usize, max_meta: usize) -> impl Iterator<Item = usize> + '_ {
    window.windows(8).take(length).enumerate().filter_map(move |(at, bytes)| {
        let (mark, meta) = bytes.split_first_chunk::<4>()?;
        let meta = u32::from_le_bytes(meta.try_into().ok()?) as usize;
        (*mark == CONTINUATION && meta > 0 && meta <= max_meta && meta.is_multiple_of(8)).then_some(at)
    })
}
