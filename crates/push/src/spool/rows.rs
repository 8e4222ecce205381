//! Rows of a recording as bytes: columns as differences from row to row, compressed.

use numakit_recording::{Batch, Column};
use thiserror::Error;

/// Maximum bytes of the rows of a record before compression.
pub const MAX_RAW: usize = 32 << 20;
/// Maximum rows of a record.
const MAX_ROWS: usize = 1 << 16;
/// The fastest level of zstd: a record is a few rows.
const LEVEL: i32 = 1;

/// Why bytes are not rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MalformedRows {
    /// The compression is damaged, or the content is too large.
    #[error("they are not compressed rows of at most {MAX_RAW} bytes")]
    Compression,
    /// There are fewer bytes than the numbers of rows and columns say.
    #[error("they end too early")]
    Short,
    /// The recording has other columns.
    #[error("they have {found} columns, and the recording has {wanted}")]
    Columns {
        /// In the rows.
        found: usize,
        /// In the description.
        wanted: usize,
    },
    /// Bytes follow the rows.
    #[error("they have {0} bytes too many")]
    Long(usize),
}

/// Rows as bytes. More than fit into a record are none.
pub fn encode(batch: &Batch) -> Option<Vec<u8>> {
    let rows = batch.len();
    if rows > MAX_ROWS {
        return None;
    }
    let mut raw = Vec::with_capacity(rows * (batch.columns.len() + 2) * 8);
    raw.extend(u32::try_from(rows).ok()?.to_le_bytes());
    raw.extend(u32::try_from(batch.columns.len()).ok()?.to_le_bytes());
    put(&batch.time, &mut raw);
    put(&batch.took, &mut raw);
    for label in &batch.label {
        let length = label.as_ref().map_or(u32::MAX, |text| u32::try_from(text.len()).unwrap_or(u32::MAX));
        raw.extend(length.to_le_bytes());
        if let Some(text) = label.as_deref().filter(|_| length != u32::MAX) {
            raw.extend(text.as_bytes());
        }
    }
    for column in &batch.columns {
        raw.extend(column.valid.iter().map(|valid| u8::from(*valid)));
        put(&column.values, &mut raw);
    }
    if raw.len() > MAX_RAW {
        return None;
    }
    zstd::bulk::compress(&raw, LEVEL).ok()
}

fn put(values: &[u64], to: &mut Vec<u8>) {
    let mut before = 0;
    for value in values {
        to.extend(value.wrapping_sub(before).to_le_bytes());
        before = *value;
    }
}

/// Rows from bytes, for a recording with this number of columns.
pub fn decode(bytes: &[u8], columns: usize) -> Result<Batch, MalformedRows> {
    let raw = zstd::bulk::decompress(bytes, MAX_RAW).map_err(|_| MalformedRows::Compression)?;
    let mut rest = &raw[..];
    let rows = length(&mut rest)?;
    let found = length(&mut rest)?;
    if found != columns {
        return Err(MalformedRows::Columns { found, wanted: columns });
    }
    let mut batch =
        Batch { time: words(rows, &mut rest)?, took: words(rows, &mut rest)?, ..Batch::default() };
    for _ in 0..rows {
        let length = u32::from_le_bytes(array(&mut rest)?);
        let text = match length {
            u32::MAX => None,
            length => Some(String::from_utf8_lossy(take(length as usize, &mut rest)?).into_owned()),
        };
        batch.label.push(text);
    }
    for _ in 0..columns {
        let valid = take(rows, &mut rest)?.iter().map(|valid| *valid != 0).collect();
        batch.columns.push(Column { valid, values: words(rows, &mut rest)? });
    }
    if rest.is_empty() { Ok(batch) } else { Err(MalformedRows::Long(rest.len())) }
}

fn length(rest: &mut &[u8]) -> Result<usize, MalformedRows> {
    Ok(u32::from_le_bytes(array(rest)?) as usize)
}

fn take<'a>(length: usize, rest: &mut &'a [u8]) -> Result<&'a [u8], MalformedRows> {
    let (taken, left) = rest.split_at_checked(length).ok_or(MalformedRows::Short)?;
    *rest = left;
    Ok(taken)
}

fn array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], MalformedRows> {
    let (taken, left) = rest.split_first_chunk::<N>().ok_or(MalformedRows::Short)?;
    *rest = left;
    Ok(*taken)
}

fn words(rows: usize, rest: &mut &[u8]) -> Result<Vec<u64>, MalformedRows> {
    let bytes = take(rows.checked_mul(8).ok_or(MalformedRows::Short)?, rest)?;
    let mut before = 0u64;
    Ok(bytes
        .as_chunks::<8>()
        .0
        .iter()
        .map(|word| {
            before = before.wrapping_add(u64::from_le_bytes(*word));
            before
        })
        .collect())
}
