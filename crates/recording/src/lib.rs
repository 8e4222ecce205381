//! From sensors to all consumers of samples: the sampler, the ring buffer that is their only
//! connection, the rates computed from raw values, and the formats of recordings.
//!
//! # When the recorder is killed
//!
//! A recording is a stream of whole batches; a batch is written after at most five minutes. Rows that are not
//! in a batch yet are in the ring buffer, whose memory is the mapped file `FILE.tail` (decision 1). So SIGKILL loses at most
//! the row that was just being written. Every reader adds the rows of the tail file; `numa recover` appends them to the
//! recording permanently. This protects against a killed process, not against a power failure. If bytes of the recording are
//! damaged, readers resynchronise at the next batch (decision 3).

mod ahead;
mod arrow;
mod batch;
mod columns;
mod header;
mod losses;
pub mod names;
pub mod numascope;
mod packed;
pub mod rates;
mod reader;
mod recover;
pub mod ring;
pub mod sampler;
mod stream;
mod writer;

pub use ahead::read_ahead;
pub use batch::{Batch, Column};
pub use columns::schema_message;
pub use header::{AbsentMetric, Header};
pub use names::tail_of;
pub use rates::{Rates, Samples};
pub use reader::{BatchPosition, OpenError, Reader};
pub use recover::{RecoverError, Recovered, recover};
pub use ring::Ring;
pub use sampler::{Command, Priority, Sampler, Settings};
pub use writer::{BATCH_TIME, Recorder, WriteError};
