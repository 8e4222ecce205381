//! What tells a whole message from a damaged one, and where in which recording it belongs.
//!
//! The metadata of each message has one more key, which other readers pass over: the samples and
//! the labels before it, and a CRC-32 of all its bytes. That of the schema is where those of the
//! batches start from, so a batch of another recording is not taken for one of this.

use super::{Malformed, Message};
use arrow_ipc::{KeyValue, KeyValueArgs, MessageArgs, MessageHeader, MetadataVersion};
use crc32fast::Hasher;
use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};

const KEY: &str = "numakit.seal";
/// The CRC as text, before it is known.
const UNKNOWN: &str = "00000000";

/// How much of a recording is before a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Samples, those that were lost included.
    pub rows: u64,
    /// Labels, likewise.
    pub labels: u64,
}

/// A seal as it stands in a message.
#[derive(Debug)]
struct Seal {
    place: Place,
    crc: u32,
    /// Where its digits are in the metadata.
    digits: usize,
}

/// Completes a message. Without a stream to belong to it gets no seal, as those of recordings
/// that were made before there were seals.
pub(super) fn finish(
    mut builder: FlatBufferBuilder<'_>,
    header: (MessageHeader, WIPOffset<UnionWIPOffset>),
    body: &[u8],
    seal: Option<(Place, u32)>,
) -> Vec<u8> {
    let custom_metadata = seal.map(|(place, _)| {
        let key = Some(builder.create_string(KEY));
        let value = Some(builder.create_string(&format!("{} {} {UNKNOWN}", place.rows, place.labels)));
        let pair = KeyValue::create(&mut builder, &KeyValueArgs { key, value });
        builder.create_vector(&[pair])
    });
    let message = arrow_ipc::Message::create(
        &mut builder,
        &MessageArgs {
            version: MetadataVersion::V5,
            header_type: header.0,
            header: Some(header.1),
            bodyLength: body.len() as i64,
            custom_metadata,
        },
    );
    builder.finish(message, None);
    let mut meta = builder.finished_data().to_vec();
    meta.resize(meta.len().next_multiple_of(8), 0);
    if let Some((_, stream)) = seal
        && let Some(Seal { digits, .. }) = find(&meta)
    {
        let crc = crc(&meta, digits, body, stream);
        meta[digits..digits + UNKNOWN.len()].copy_from_slice(format!("{crc:08x}").as_bytes());
    }
    super::message::framed(&meta, body)
}

fn find(meta: &[u8]) -> Option<Seal> {
    let table = super::message::table(meta).ok()?;
    let value = table.custom_metadata()?.iter().find(|pair| pair.key() == Some(KEY))?.value()?;
    let mut words = value.split(' ');
    let place = Place { rows: words.next()?.parse().ok()?, labels: words.next()?.parse().ok()? };
    let digits = words.next().filter(|digits| digits.len() == UNKNOWN.len())?;
    let crc = u32::from_str_radix(digits, 16).ok()?;
    // Both are of the same bytes.
    let digits = digits.as_ptr().addr().checked_sub(meta.as_ptr().addr())?;
    words.next().is_none().then_some(Seal { place, crc, digits })
}

fn crc(meta: &[u8], digits: usize, body: &[u8], stream: u32) -> u32 {
    let mut hasher = Hasher::new_with_initial(stream);
    hasher.update(&meta[..digits]);
    hasher.update(UNKNOWN.as_bytes());
    hasher.update(&meta[digits + UNKNOWN.len()..]);
    hasher.update(body);
    hasher.finalize()
}

impl Message {
    /// Whether it has a seal at all.
    pub fn is_sealed(&self) -> bool {
        find(&self.meta).is_some()
    }

    /// Its place in a stream, if it belongs to that and all its bytes are as they were written.
    pub fn place_in(&self, stream: u32) -> Result<Place, Malformed> {
        let seal = find(&self.meta).ok_or_else(|| Malformed::new("a message has no checksum"))?;
        if crc(&self.meta, seal.digits, &self.body, stream) != seal.crc {
            return Err(Malformed::new("a message's checksum differs"));
        }
        Ok(seal.place)
    }

    /// The stream that begins with this schema; `None` for one without a seal.
    pub fn stream(&self) -> Result<Option<u32>, Malformed> {
        let Some(seal) = find(&self.meta) else { return Ok(None) };
        self.place_in(0).map(|_| Some(seal.crc))
    }
}
