//! Decodes batches in a thread of its own while the caller works on those before.

use crate::batch::Batch;
use crate::reader::Reader;
use std::iter;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};

/// Decoded batches that wait: more take memory and save no time.
const AHEAD: usize = 2;

/// Calls `with` on all following batches. Where no thread can be started, they are decoded by the caller.
pub fn read_ahead<T>(reader: &mut Reader, with: impl FnOnce(&mut dyn Iterator<Item = Batch>) -> T) -> T {
    let reader = Mutex::new(reader);
    let next = || reader.lock().unwrap_or_else(PoisonError::into_inner).next_batch();
    thread::scope(|scope| {
        let (sender, receiver) = sync_channel(AHEAD);
        let decode = || {
            let sender = sender;
            // Without a receiver nobody wants the rest.
            while let Some(batch) = next()
                && sender.send(batch).is_ok()
            {}
        };
        match Builder::new().name("decoder".into()).spawn_scoped(scope, decode) {
            Ok(_) => with(&mut receiver.into_iter()),
            Err(_) => with(&mut iter::from_fn(next)),
        }
    })
}
