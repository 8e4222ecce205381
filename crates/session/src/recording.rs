//! The recording of an observation, under the path that people know.

use crate::folder::NewFile;
use numakit_recording::{Recorder, Ring, WriteError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A recorder, and the place of its file where that is bound to a folder.
#[derive(Debug)]
pub struct BoundRecorder {
    recorder: Recorder,
    path: PathBuf,
    place: Option<NewFile>,
}

impl BoundRecorder {
    /// Wherever the recorder writes.
    pub fn of(recorder: Recorder) -> Self {
        Self { path: recorder.path().to_owned(), recorder, place: None }
    }

    /// Of a recorder that writes to that place.
    pub fn at(recorder: Recorder, place: NewFile) -> Self {
        Self { path: place.known(recorder.path()), recorder, place: Some(place) }
    }

    /// Where the sampler puts rows.
    pub fn ring(&self) -> &Arc<Ring> {
        self.recorder.ring()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file that this process made, where it leads to by itself.
    pub fn file(&self) -> Option<&Path> {
        self.recorder.file()
    }

    /// Bytes of the file so far.
    pub fn bytes(&self) -> u64 {
        self.recorder.bytes()
    }

    /// The same, for after [`BoundRecorder::finish`].
    pub fn size(&self) -> Arc<AtomicU64> {
        self.recorder.size()
    }

    /// Whether the writer gave up; [`BoundRecorder::finish`] then tells why.
    pub fn failed(&self) -> bool {
        self.recorder.failed()
    }

    /// Closes the ring, waits for the last batch and the end of the file.
    pub fn finish(self) -> Result<(), WriteError> {
        let finished = self.recorder.finish();
        match self.place {
            Some(place) => finished.map_err(|error| place.name(error)),
            None => finished,
        }
    }
}
