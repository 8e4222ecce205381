//! The seal of a message: a checksum, and the position of the message in its recording.
//!
//! It is a key in the metadata of each message, which other readers ignore: the number of samples and
//! labels before the message, and a CRC-32 of all its bytes. The CRC of the schema is the initial value
//! for those of the batches, so that a batch of another recording is not mistaken for one of this.

use super::{Malformed, Message};
use arrow_ipc::{KeyValue, KeyValueArgs, MessageArgs, MessageHeader, MetadataVersion};
use crc32fast::Hasher;
use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};

const KEY: &str = "numakit.seal";
/// The CRC as text, before it is known.
const UNKNOWN: &str = "00000000";

/// The part of a recording before a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Samples, including lost ones.
    pub rows: u64,
    /// Labels, including lost ones.
    pub labels: u64,
}

/// The seal of a message.
#[derive(Debug)]
struct Seal {
    place: Place,
    crc: u32,
    /// Where its digits are in the metadata.
    digits: usize,
}

/// Completes a message. Without a stream it has no seal, like recordings from before
/// there were seals.
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
    // Both point into the same bytes.
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
    /// Whether it has a seal.
    pub fn is_sealed(&self) -> bool {
        find(&self.meta).is_some()
    }

    /// Its position in a stream, if it belongs to the stream and its checksum is right.
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
