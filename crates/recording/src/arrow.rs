//! The recording format: an Apache Arrow IPC stream that any Arrow reader loads.
//!
//! Only the batches are put together here, column by column straight from the ring, so that
//! a recorder never holds a batch twice. The metadata tables are those of `arrow-ipc`.

mod decode;
mod encode;
mod message;
mod schema;

pub(crate) use decode::{batch as decode_batch, counts as count_rows};
pub(crate) use encode::Encoder;
pub(crate) use message::{END_OF_STREAM, Message, Messages, Next};
pub(crate) use schema::{header_of, message_of};

/// Why bytes are no recording of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(String);

impl Malformed {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}
