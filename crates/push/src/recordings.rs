//! Recordings that are pushed: the file waits for the engine, so that nothing is kept besides.

use crate::live::rows_per_request;
use crate::sender::{Deliver, Sender, Unsent};
use crate::spool::Spool;
use numakit_recording::{OpenError, Reader};
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;

/// Why a recording was not pushed to its end.
#[derive(Debug, Error)]
pub enum PushError {
    /// It cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The engine was down too long.
    #[error(
        "the engine takes nothing: {0}; rows before were sent, and sending them again changes nothing; start it, and run this again, or wait longer with --retry-for"
    )]
    Down(String),
    /// The engine refuses this sender.
    #[error("the engine refuses this: {0}")]
    Denied(String),
}

impl From<Unsent> for PushError {
    fn from(unsent: Unsent) -> Self {
        match unsent {
            Unsent::Down(why) => Self::Down(why),
            Unsent::Denied(why) => Self::Denied(why),
        }
    }
}

/// Sends a recording. Returns what was lost of it, as [`Reader::damage`] says.
pub fn push_recording<D: Deliver>(path: &Path, to: &mut Sender<D>) -> Result<Option<String>, PushError> {
    let mut reader = Reader::open(path)?;
    let header = Arc::new(reader.header().clone());
    let most = rows_per_request(header.series.len());
    while let Some(batch) = reader.next_batch() {
        for from in (0..batch.len()).step_by(most) {
            to.send(&header, &batch.slice(from..batch.len().min(from + most)))?;
        }
    }
    Ok(reader.damage().map(str::to_owned))
}

/// Sends what a spool has.
pub fn push_spool<D: Deliver>(spool: &mut Spool, to: &mut Sender<D>) -> Result<(), PushError> {
    while let Some(next) = spool.peek(rows_per_request(1)) {
        to.send(&next.header, &next.batch)?;
        spool.acknowledge(next.end);
    }
    Ok(())
}
