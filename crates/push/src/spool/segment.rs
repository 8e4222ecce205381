//! A file of the spool: a mark, the description of the recording, then records.
//!
//! ```text
//! file    "numaspl2"  length u32  checksum u32  description, compressed
//! record  "rows"      length u32  rows u32      sequence u64  checksum u32  rows, compressed
//! ```
//!
//! Numbers are little endian. The sequence of a record is the number of rows before it since the spool was made, so that a
//! gap says how many rows are lost. The checksum is CRC-32 of the fields between the mark and it, and of what follows.

use super::rows;
use numakit_recording::{Batch, Header};
use std::io;
use std::ops::Range;
use std::sync::Arc;

const FILE_MARK: [u8; 8] = *b"numaspl2";
/// How much the description is compressed.
const LEVEL: i32 = 3;
const RECORD_MARK: [u8; 4] = *b"rows";
/// Maximum length of a description.
const MAX_DESCRIPTION: usize = 64 << 20;
/// Bytes of a record before its rows.
const HEAD: usize = 24;
/// Maximum length of a file. Longer ones are not ours.
pub const MAX_FILE: u64 = 64 << 20;
/// In a damaged file, bytes that are checked for each byte of it before the search for records ends.
const SEARCH: usize = 4;

/// The content of a file.
#[derive(Debug)]
pub struct SpoolFile {
    /// What the rows are of.
    pub header: Arc<Header>,
    content: Vec<u8>,
    /// Its intact records, in order.
    pub records: Vec<SegmentRecord>,
    /// Bytes that are no part of a record.
    pub damaged: usize,
}

/// Where a record is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentRecord {
    /// Rows before it.
    pub sequence: u64,
    /// Rows in it.
    pub rows: u32,
    payload: Range<usize>,
}

impl SegmentRecord {
    /// Rows before the next one.
    pub fn end(&self) -> u64 {
        self.sequence.saturating_add(self.rows.into())
    }
}

/// The start of a file.
pub fn start(header: &Header) -> io::Result<Vec<u8>> {
    let description = zstd::bulk::compress(&header.packed()?, LEVEL)?;
    let mut bytes = FILE_MARK.to_vec();
    bytes.extend(u32::try_from(description.len()).map_err(io::Error::other)?.to_le_bytes());
    bytes.extend(crc32fast::hash(&description).to_le_bytes());
    bytes.extend(description);
    Ok(bytes)
}

/// A record with these rows; `None` if they are too many.
pub fn record(sequence: u64, batch: &Batch) -> Option<Vec<u8>> {
    let payload = rows::encode(batch)?;
    let mut bytes = RECORD_MARK.to_vec();
    bytes.extend(u32::try_from(payload.len()).ok()?.to_le_bytes());
    bytes.extend(u32::try_from(batch.len()).ok()?.to_le_bytes());
    bytes.extend(sequence.to_le_bytes());
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(&bytes[RECORD_MARK.len()..]);
    checksum.update(&payload);
    bytes.extend(checksum.finalize().to_le_bytes());
    bytes.extend(payload);
    Some(bytes)
}

/// The rows of a record that [`record`] made.
pub fn rows_of(record: &[u8], columns: usize) -> Option<Batch> {
    rows::decode(record.get(HEAD..)?, columns).ok()
}

impl SpoolFile {
    /// Reads the content of a file; an error says what is wrong with its start.
    pub fn parse(content: Vec<u8>) -> io::Result<Self> {
        let damaged = || io::Error::other("its start is damaged");
        let rest = content.strip_prefix(&FILE_MARK).ok_or_else(damaged)?;
        let (length, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
        let (checksum, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
        let description = rest.get(..u32::from_le_bytes(*length) as usize).ok_or_else(damaged)?;
        if crc32fast::hash(description) != u32::from_le_bytes(*checksum) {
            return Err(damaged());
        }
        let header = Arc::new(Header::unpacked(&zstd::bulk::decompress(description, MAX_DESCRIPTION)?)?);
        let mut at = content.len() - rest.len() + description.len();
        let (mut records, mut damaged) = (Vec::<SegmentRecord>::new(), 0);
        let mut search = content.len().saturating_mul(SEARCH);
        while at < content.len() {
            let found = record_at(&content, at, &mut search);
            let after = records.last().map_or(0, SegmentRecord::end);
            match found.filter(|found| found.sequence >= after) {
                Some(found) => {
                    at = found.payload.end;
                    records.push(found);
                }
                None if search == 0 => {
                    damaged += content.len() - at;
                    break;
                }
                None => {
                    (at, damaged) = (at + 1, damaged + 1);
                }
            }
        }
        Ok(Self { header, content, records, damaged })
    }

    /// The rows of a record; `None` if they are damaged in spite of their checksum.
    pub fn rows(&self, record: &SegmentRecord) -> Option<Batch> {
        let bytes = self.content.get(record.payload.clone())?;
        let batch = rows::decode(bytes, self.header.series.len()).ok()?;
        (batch.len() == record.rows as usize).then_some(batch)
    }
}

/// The intact record that begins at that byte. What was checked is taken from `search`.
fn record_at(content: &[u8], at: usize, search: &mut usize) -> Option<SegmentRecord> {
    let head = content.get(at..at.checked_add(HEAD)?)?.strip_prefix(&RECORD_MARK)?;
    let (length, rest) = head.split_first_chunk()?;
    let (rows, rest) = rest.split_first_chunk()?;
    let (sequence, checksum) = rest.split_first_chunk()?;
    let begin = at + HEAD;
    let payload = begin..begin.checked_add(u32::from_le_bytes(*length) as usize)?;
    let bytes = content.get(payload.clone())?;
    *search = search.checked_sub(bytes.len()).unwrap_or_default();
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&content[at + RECORD_MARK.len()..begin - checksum.len()]);
    hasher.update(bytes);
    (*search > 0 && hasher.finalize().to_le_bytes() == *checksum).then(|| SegmentRecord {
        sequence: u64::from_le_bytes(*sequence),
        rows: u32::from_le_bytes(*rows),
        payload,
    })
}
