//! Samples into the engines of others: a spool on disk, a sender that retries, one table of emitters; and back.
//!
//! A row is in the spool until the engine has acknowledged it, and leaves in order. What an engine refuses is dropped, and counted with
//! the engine's reason.

pub mod driver;
mod emitters;
pub mod fetch;
mod folder;
mod http;
pub mod live;
mod recordings;
mod rows;
mod sender;
pub mod spool;
mod target;
#[cfg(test)]
mod testing;

pub use emitters::{EMITTERS, Emitter, engines_guide, examples};
pub use fetch::{FetchError, FetchGrid, FetchRequest, Fetched, fetch, fetched, hosts, listed};
pub use http::{EngineClientError, EngineRequestError, tls_settings};
pub use live::{LivePush, PushState, rows_per_request};
pub use recordings::{PushError, push_recording, push_spool};
pub use sender::{Deliver, Delivery, Patience, PushCounts, PushDestination, SendError, Sender, Unsent};
pub use spool::{Spool, SpoolCounts, SpoolError};
pub use target::{Credentials, PushTarget, TargetError};
