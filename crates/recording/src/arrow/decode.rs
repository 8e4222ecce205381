//! Decodes a record batch. All lengths are checked: the file may be damaged.

use super::{Malformed, Message};
use crate::batch::{Batch, Column};
use arrow_ipc::{CompressionType, RecordBatch};
use lz4_flex::frame::FrameDecoder;
use std::io::Read;
use zstd::bulk::Decompressor;

/// Maximum size of a decompressed batch.
const MAX_BYTES: usize = 512 << 20;
const MAX_ROWS: i64 = 1 << 20;

/// The rows of a message; `None` for messages without rows.
pub(crate) fn batch(message: &Message, columns: usize) -> Result<Option<Batch>, Malformed> {
    let table = message.table()?;
    let Some(record) = table.header_as_record_batch() else { return Ok(None) };
    let rows = record.length();
    if !(0..=MAX_ROWS).contains(&rows) || (rows as usize).saturating_mul(columns + 3) > MAX_BYTES / 9 {
        return Err(Malformed::new(format!("a batch claims {rows} rows of {columns} columns")));
    }
    let mut buffers = Buffers::new(&record, &message.body, rows as usize)?;
    let time = buffers.words()?;
    let took = buffers.words()?;
    let label = buffers.texts()?;
    let columns = (0..columns).map(|_| buffers.column()).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(Batch { time: time.values, took: took.values, label, columns }))
}

/// The number of samples and labels of a message, from its table; `None` for
/// messages without rows.
pub(crate) fn counts(message: &Message) -> Result<Option<(u64, u64)>, Malformed> {
    let table = message.table()?;
    let Some(record) = table.header_as_record_batch() else { return Ok(None) };
    let rows = u64::try_from(record.length()).ok();
    // The third column has the labels; samples have none.
    let column = record.nodes().filter(|nodes| nodes.len() > 2).map(|nodes| nodes.get(2));
    let samples = column.and_then(|column| u64::try_from(column.null_count()).ok());
    let counts = rows.zip(samples).filter(|(rows, samples)| samples <= rows);
    let (rows, samples) = counts.ok_or_else(|| Malformed::new("a batch claims impossible rows"))?;
    Ok(Some((samples, rows - samples)))
}

struct Buffers<'a> {
    record: &'a RecordBatch<'a>,
    body: &'a [u8],
    rows: usize,
    next: usize,
    /// `None` without compression.
    unpacker: Option<Unpacker>,
}

impl<'a> Buffers<'a> {
    fn new(record: &'a RecordBatch<'a>, body: &'a [u8], rows: usize) -> Result<Self, Malformed> {
        let unpacker = match record.compression().map(|c| c.codec()) {
            None => None,
            Some(CompressionType::LZ4_FRAME) => Some(Unpacker::Lz4),
            Some(CompressionType::ZSTD) => {
                let decompressor = Decompressor::new()
                    .map_err(|_| Malformed::new("there is not enough memory to decompress it"))?;
                Some(Unpacker::Zstd(decompressor))
            }
            Some(_) => return Err(Malformed::new("its batches are compressed with neither zstd nor lz4")),
        };
        Ok(Self { record, body, rows, next: 0, unpacker })
    }

    fn words(&mut self) -> Result<Column, Malformed> {
        self.column()
    }

    fn column(&mut self) -> Result<Column, Malformed> {
        let valid = self.valid()?;
        let bytes = self.buffer(self.rows * 8)?;
        if bytes.len() < self.rows * 8 {
            return Err(Malformed::new("a column is shorter than its batch"));
        }
        let word = |chunk: &[u8]| chunk.try_into().map(u64::from_le_bytes).unwrap_or(0);
        Ok(Column { values: bytes.chunks_exact(8).take(self.rows).map(word).collect(), valid })
    }

    fn texts(&mut self) -> Result<Vec<Option<String>>, Malformed> {
        let valid = self.valid()?;
        let offsets = self.buffer((self.rows + 1) * 4)?;
        let bytes = self.buffer(self.rows.saturating_mul(1 << 16).min(MAX_BYTES))?;
        if offsets.len() < (self.rows + 1) * 4 && self.rows > 0 {
            return Err(Malformed::new("the labels are shorter than their batch"));
        }
        let at = |row: usize| -> Option<usize> {
            let offset = offsets.get(row * 4..row * 4 + 4)?.try_into().ok().map(u32::from_le_bytes)?;
            usize::try_from(offset).ok()
        };
        let text = |row: usize| -> Result<Option<String>, Malformed> {
            if !valid[row] {
                return Ok(None);
            }
            let range = at(row).zip(at(row + 1)).and_then(|(from, to)| bytes.get(from..to));
            let range = range.ok_or_else(|| Malformed::new("a label is outside of its batch"))?;
            Ok(Some(String::from_utf8_lossy(range).into_owned()))
        };
        (0..self.rows).map(text).collect()
    }

    fn valid(&mut self) -> Result<Vec<bool>, Malformed> {
        let bits = self.buffer(self.rows.div_ceil(8) + 64)?;
        if bits.is_empty() {
            return Ok(vec![true; self.rows]);
        }
        if bits.len() * 8 < self.rows {
            return Err(Malformed::new("a column's validity is shorter than its batch"));
        }
        Ok((0..self.rows).map(|row| bits[row / 8] >> (row % 8) & 1 == 1).collect())
    }

    /// The next buffer, decompressed, of at most `max` bytes without padding.
    fn buffer(&mut self, max: usize) -> Result<Vec<u8>, Malformed> {
        let max = max + 64;
        let buffers = self.record.buffers().ok_or_else(|| Malformed::new("a batch has no buffers"))?;
        if self.next >= buffers.len() {
            return Err(Malformed::new("a batch has fewer columns than the schema"));
        }
        let place = buffers.get(self.next);
        self.next += 1;
        let start = usize::try_from(place.offset()).ok();
        let length = usize::try_from(place.length()).ok();
        let bytes = start
            .zip(length)
            .and_then(|(start, length)| self.body.get(start..start.checked_add(length)?))
            .ok_or_else(|| Malformed::new("a buffer is outside of its batch"))?;
        let Some(unpacker) = self.unpacker.as_mut().filter(|_| !bytes.is_empty()) else {
            return Ok(bytes.to_vec());
        };
        let (head, packed) = bytes
            .split_first_chunk::<8>()
            .ok_or_else(|| Malformed::new("a compressed buffer has no length"))?;
        match i64::from_le_bytes(*head) {
            -1 => Ok(packed.to_vec()),
            length if (0..=max as i64).contains(&length) => unpacker
                .unpack(packed, length as usize)
                .ok_or_else(|| Malformed::new("a compressed buffer is damaged")),
            _ => Err(Malformed::new("a compressed buffer claims an impossible length")),
        }
    }
}

enum Unpacker {
    /// Reused: creating one costs more than decompressing most buffers.
    Zstd(Decompressor<'static>),
    Lz4,
}

impl Unpacker {
    /// The content of a compressed buffer, of at most this length.
    fn unpack(&mut self, packed: &[u8], length: usize) -> Option<Vec<u8>> {
        match self {
            Self::Zstd(unpacker) => unpacker.decompress(packed, length).ok(),
            Self::Lz4 => {
                let mut bytes = Vec::with_capacity(length);
                FrameDecoder::new(packed).take(length as u64 + 1).read_to_end(&mut bytes).ok()?;
                (bytes.len() <= length).then_some(bytes)
            }
        }
    }
}
