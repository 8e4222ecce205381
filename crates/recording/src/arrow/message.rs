//! Messages of an Arrow stream: a length, a metadata table, a body.

use super::Malformed;
use std::io::{self, Read, Seek, SeekFrom};

/// Marks the end of the stream.
pub(crate) const END_OF_STREAM: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// The first bytes of an Arrow file. Zeros up to 8 or 64 bytes follow, then the messages of a stream,
/// then a table of them.
const FILE: &[u8] = b"ARROW1";

/// The first bytes of every message.
pub(super) const CONTINUATION: [u8; 4] = [0xff; 4];
const MAX_META: usize = 256 << 20;
const MAX_BODY: i64 = 1 << 30;

/// One message.
#[derive(Debug)]
pub(crate) struct Message {
    /// The metadata table.
    pub meta: Vec<u8>,
    /// The buffers.
    pub body: Vec<u8>,
}

impl Message {
    /// The checked metadata table.
    pub fn table(&self) -> Result<arrow_ipc::Message<'_>, Malformed> {
        table(&self.meta)
    }
}

/// A message with its frame, as in the stream.
pub(super) fn framed(meta: &[u8], body: &[u8]) -> Vec<u8> {
    let padded = meta.len().next_multiple_of(8);
    let mut out = Vec::with_capacity(8 + padded + body.len());
    out.extend_from_slice(&CONTINUATION);
    out.extend_from_slice(&(padded as u32).to_le_bytes());
    out.extend_from_slice(meta);
    out.resize(8 + padded, 0);
    out.extend_from_slice(body);
    out
}

pub(super) fn table(meta: &[u8]) -> Result<arrow_ipc::Message<'_>, Malformed> {
    let limits = flatbuffers::VerifierOptions { max_tables: 4_000_000, ..Default::default() };
    arrow_ipc::root_as_message_with_opts(&limits, meta)
        .map_err(|_| Malformed::new("a message's table is damaged"))
}

/// What follows in a stream.
#[derive(Debug)]
pub(crate) enum Next {
    /// A whole message.
    Message(Message),
    /// The stream ends correctly.
    End,
    /// It ends after a message, without an end mark: its writer did not close it.
    Open,
    /// It ends within a message, or the next bytes are not a message.
    Damaged(Malformed),
}

/// The messages of a stream, one at a time.
#[derive(Debug)]
pub(crate) struct Messages<R> {
    from: R,
    /// Bytes of complete messages so far.
    pub whole: u64,
}

impl<R: Read + Seek> Messages<R> {
    /// Reads from the start of a stream.
    pub fn new(from: R) -> Self {
        Self { from, whole: 0 }
    }

    /// The next message.
    pub fn next(&mut self) -> io::Result<Next> {
        let (meta, length) = match self.head()? {
            Ok(head) => head,
            Err(other) => return Ok(other),
        };
        let Some(body) = self.take(length as usize)? else {
            return Ok(Next::Damaged(Malformed::new("it ends within a batch")));
        };
        self.whole += 8 + meta.len() as u64 + length;
        Ok(Next::Message(Message { meta, body }))
    }

    /// The next message without its body.
    pub fn skip(&mut self) -> io::Result<Next> {
        let (meta, length) = match self.head()? {
            Ok(head) => head,
            Err(other) => return Ok(other),
        };
        self.from.seek_relative(length as i64)?;
        self.whole += 8 + meta.len() as u64 + length;
        Ok(Next::Message(Message { meta, body: Vec::new() }))
    }

    /// The metadata table of the next message and the length of its body, or what is there
    /// instead.
    fn head(&mut self) -> io::Result<Result<(Vec<u8>, u64), Next>> {
        let damaged = |why| Ok(Err(Next::Damaged(Malformed::new(why))));
        let mut start = [0; 8];
        match self.fill(&mut start)? {
            0 => return Ok(Err(Next::Open)),
            8 => {}
            _ => return damaged("it ends within the start of a message"),
        }
        if start == END_OF_STREAM {
            self.whole += 8;
            return Ok(Err(Next::End));
        }
        let length = u32::from_le_bytes([start[4], start[5], start[6], start[7]]) as usize;
        if start[..4] != CONTINUATION || length > MAX_META || length == 0 {
            return damaged("there is no message where one should begin");
        }
        let Some(meta) = self.take(length)? else {
            return damaged("it ends within a message's table");
        };
        let body = match table(&meta) {
            Ok(table) => table.bodyLength(),
            Err(error) => return Ok(Err(Next::Damaged(error))),
        };
        if !(0..=MAX_BODY).contains(&body) {
            return damaged("a message has an impossible length");
        }
        Ok(Ok((meta, body as u64)))
    }

    /// Continues at a message that begins there.
    pub fn go_to(&mut self, position: u64) -> io::Result<()> {
        self.whole = self.from.seek(SeekFrom::Start(position))?;
        Ok(())
    }

    /// Skips the first bytes of an Arrow file, if it is one.
    pub fn skip_file_mark(&mut self) -> io::Result<()> {
        let mut start = [0; 64];
        let filled = self.fill(&mut start)?;
        let rest = start[..filled].strip_prefix(FILE);
        let zeros = rest.map(|bytes| bytes.iter().take_while(|byte| **byte == 0).count());
        self.go_to(zeros.map_or(0, |zeros| (FILE.len() + zeros) as u64))
    }

    /// The next `length` bytes, or all if there are fewer. They count as read.
    pub fn peek(&mut self, length: usize, out: &mut Vec<u8>) -> io::Result<()> {
        out.clear();
        self.from.by_ref().take(length as u64).read_to_end(out)?;
        Ok(())
    }

    /// Bytes that were read since that position.
    pub fn read_since(&mut self, position: u64) -> io::Result<u64> {
        Ok(self.from.stream_position()?.saturating_sub(position))
    }

    /// `length` bytes, or none if the stream ends before. Memory grows with the bytes that are
    /// there, not with a damaged length.
    fn take(&mut self, length: usize) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = Vec::with_capacity(length.min(1 << 20));
        self.from.by_ref().take(length as u64).read_to_end(&mut bytes)?;
        Ok((bytes.len() == length).then_some(bytes))
    }

    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.from.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(filled)
    }
}
