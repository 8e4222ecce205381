//! The recording of an observation, under the path that people know.

use crate::folder::Place;
use numakit_recording::{Header, Recorder, Ring, WriteError};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// A recorder, and the place of its file where that is bound to a folder.
#[derive(Debug)]
pub struct Recording {
    recorder: Recorder,
    place: Option<Place>,
}

impl Recording {
    /// Records to a file.
    pub fn to(path: &Path, header: &Header, force: bool) -> Result<Self, WriteError> {
        Ok(Self { recorder: Recorder::create(path, header, force)?, place: None })
    }

    /// Records to a new file at that place.
    pub fn at(place: Place, header: &Header) -> Result<Self, WriteError> {
        match Recorder::create(&place.path(), header, false) {
            Ok(recorder) => Ok(Self { recorder, place: Some(place) }),
            Err(error) => Err(place.name(error)),
        }
    }

    /// Where the sampler puts rows.
    pub fn ring(&self) -> &Arc<Ring> {
        self.recorder.ring()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.place.as_ref().map_or(self.recorder.path(), |place| &place.shown)
    }

    /// Bytes of the file so far.
    pub fn bytes(&self) -> u64 {
        self.recorder.bytes()
    }

    /// The same, for after [`Recording::finish`].
    pub fn size(&self) -> Arc<AtomicU64> {
        self.recorder.size()
    }

    /// Whether the writer gave up; [`Recording::finish`] then tells why.
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
