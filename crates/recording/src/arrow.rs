//! The recording format: an Apache Arrow IPC stream, which any Arrow reader loads. Streams and files
//! that other programs rewrote are read too.
//!
//! Only the batches are encoded here, column by column directly from the ring, so that
//! a recorder never has a batch in memory twice. The metadata tables are those of `arrow-ipc`.

mod copy;
mod decode;
mod encode;
mod fields;
mod message;
mod schema;
mod seal;
mod search;

pub(crate) use copy::in_batch as schema_in_batch;
pub(crate) use decode::{batch as decode_batch, counts as count_rows};
pub(crate) use encode::Encoder;
use message::CONTINUATION;
pub(crate) use message::{END_OF_STREAM, Message, Messages, Next};
pub(crate) use schema::{Head, encoded};
pub(crate) use seal::Place;
pub(crate) use search::Search;

/// Why bytes are not part of a recording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(String);

impl Malformed {
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}
