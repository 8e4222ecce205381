//! The recording of an observation, with its path for messages.

use crate::folder::NewFile;
use numakit_recording::{Recorder, Ring, WriteError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A recorder, with its file if that is bound to a folder.
#[derive(Debug)]
pub struct BoundRecorder {
    recorder: Recorder,
    path: PathBuf,
    place: Option<NewFile>,
}

impl BoundRecorder {
    /// A recorder without a folder.
    pub fn of(recorder: Recorder) -> Self {
        Self { path: recorder.path().to_owned(), recorder, place: None }
    }

    /// A recorder that writes to that file.
    pub fn at(recorder: Recorder, place: NewFile) -> Self {
        Self { path: place.display_path(recorder.path()), recorder, place: Some(place) }
    }

    /// The ring for the sampler's rows.
    pub fn ring(&self) -> &Arc<Ring> {
        self.recorder.ring()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path with which this process created the file.
    pub fn file(&self) -> Option<&Path> {
        self.recorder.file()
    }

    /// Bytes of the file so far.
    pub fn bytes(&self) -> u64 {
        self.recorder.bytes()
    }

    /// The same, also usable after [`BoundRecorder::finish`].
    pub fn size(&self) -> Arc<AtomicU64> {
        self.recorder.size()
    }

    /// Whether the writer failed; [`BoundRecorder::finish`] then returns the error.
    pub fn failed(&self) -> bool {
        self.recorder.failed()
    }

    /// Closes the ring, waits for the last batch and the end of the file.
    pub fn finish(self) -> Result<(), WriteError> {
        let finished = self.recorder.finish();
        match self.place {
            Some(place) => finished.map_err(|error| place.rename_in_error(error)),
            None => finished,
        }
    }
}
