//! A compressed copy of the schema after the buffers of a batch. Other readers use only the buffers
//! that the batch names. With the copy, a recording whose first bytes are damaged can
//! still be read.

use super::{Malformed, Message};
use std::io;

const MARK: &[u8; 8] = b"numahead";
/// Maximum size of a decompressed copy.
const MAX: usize = 64 << 20;

/// The bytes after the buffers.
pub(crate) fn of_schema(message: &[u8]) -> io::Result<Vec<u8>> {
    let packed = zstd::bulk::compress(message, 9)?;
    let mut copy = MARK.to_vec();
    copy.extend_from_slice(&(packed.len() as u64).to_le_bytes());
    copy.extend_from_slice(&packed);
    copy.resize(copy.len().next_multiple_of(8), 0);
    Ok(copy)
}

/// The schema message that a batch contains, framed as at the start of the stream.
pub(crate) fn in_batch(batch: &Message) -> Result<Vec<u8>, Malformed> {
    let none = || Malformed::new("a batch has no copy of the schema");
    let table = batch.table()?;
    let buffers = table.header_as_record_batch().and_then(|record| record.buffers()).ok_or_else(none)?;
    let end = |buffer: &arrow_ipc::Buffer| buffer.offset().checked_add(buffer.length());
    let end = buffers.iter().map(end).try_fold(0, |max, end| end.map(|end| max.max(end)));
    let end = end.and_then(|end| usize::try_from(end).ok()).ok_or_else(none)?;
    let rest = batch.body.get(end.next_multiple_of(8)..).ok_or_else(none)?;
    let rest = rest.strip_prefix(MARK).and_then(<[u8]>::split_first_chunk::<8>);
    let (length, packed) = rest.ok_or_else(none)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| none())?;
    let packed = packed.get(..length).ok_or_else(none)?;
    let size = zstd::zstd_safe::get_frame_content_size(packed).ok().flatten();
    let size = size.and_then(|size| usize::try_from(size).ok()).filter(|size| *size <= MAX);
    zstd::bulk::decompress(packed, size.ok_or_else(none)?).map_err(|_| none())
}
