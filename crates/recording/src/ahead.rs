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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A recording of NUMAscope with enough rows for several batches.
    struct Recording(PathBuf);

    impl Recording {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("numakit-{name}-{}.json", std::process::id()));
            let rows: String =
                (0..30_000u64).map(|row| format!(",[{},{row}]", 1_000_000 + row * 1000)).collect();
            std::fs::write(&path, format!("[[\"kernel VMstat\",1,0],[\"numa_local\"]{rows}]")).unwrap();
            Self(path)
        }

        fn open(&self) -> Reader {
            Reader::open(&self.0).unwrap()
        }
    }

    impl Drop for Recording {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn batches_are_the_same_and_in_order() {
        let recording = Recording::new("ahead-order");
        let mut reader = recording.open();
        let one_by_one: Vec<Batch> = iter::from_fn(|| reader.next_batch()).collect();
        let ahead = read_ahead(&mut recording.open(), |batches| batches.collect::<Vec<Batch>>());
        assert!(one_by_one.len() > 1, "{}", one_by_one.len());
        assert_eq!(ahead, one_by_one);
    }

    #[test]
    fn a_caller_may_stop_early() {
        let recording = Recording::new("ahead-early");
        let mut reader = recording.open();
        let first = read_ahead(&mut reader, |batches| batches.next().map(|batch| batch.len()));
        assert!(first.is_some_and(|rows| rows > 0));
    }
}
