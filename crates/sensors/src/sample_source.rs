//! Where samples of instructions come from: whether there are any, and the open road to them.

use numakit_model::Unavailable;
use numakit_sampling::{Landing, Road};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Samples of a program or of the whole machine. Clones share the road: it is opened after the sensors are selected.
#[derive(Debug, Clone)]
pub struct SampleSource {
    landing: Result<Landing, Unavailable>,
    /// Until a sensor takes it.
    road: Arc<Mutex<Option<Box<dyn Road>>>>,
}

impl SampleSource {
    /// Samples that land there, or cannot be taken. [`Self::attach`] follows when they are.
    pub fn new(landing: Result<Landing, Unavailable>) -> Self {
        Self { landing, road: Arc::default() }
    }

    /// Where they land, or why there are none.
    pub fn landing(&self) -> &Result<Landing, Unavailable> {
        &self.landing
    }

    /// Hands over the road to the samples.
    pub fn attach(&self, road: Box<dyn Road>) {
        *self.road() = Some(road);
    }

    /// Takes the road, if it is there.
    pub fn take_road(&self) -> Option<Box<dyn Road>> {
        self.road().take()
    }

    /// Nothing in it is left half done by a panic.
    fn road(&self) -> MutexGuard<'_, Option<Box<dyn Road>>> {
        self.road.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
