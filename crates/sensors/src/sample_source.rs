//! Where samples of instructions come from: whether there are any, and the open method to them.

use numakit_model::Unavailable;
use numakit_sampling::{Landing, Method};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Samples of a program or of the whole machine. Clones share the method: it is opened after the sensors are selected.
#[derive(Debug, Clone)]
pub struct SampleSource {
    landing: Result<Landing, Unavailable>,
    /// Until a sensor takes it.
    method: Arc<Mutex<Option<Box<dyn Method>>>>,
}

impl SampleSource {
    /// Samples that land there, or cannot be taken. [`Self::attach`] follows when they are.
    pub fn new(landing: Result<Landing, Unavailable>) -> Self {
        Self { landing, method: Arc::default() }
    }

    /// Where they land, or why there are none.
    pub fn landing(&self) -> &Result<Landing, Unavailable> {
        &self.landing
    }

    /// Hands over the method that takes the samples.
    pub fn attach(&self, method: Box<dyn Method>) {
        *self.method() = Some(method);
    }

    /// Takes the method, if it is there.
    pub fn take_method(&self) -> Option<Box<dyn Method>> {
        self.method().take()
    }

    /// Nothing in it is left half done by a panic.
    fn method(&self) -> MutexGuard<'_, Option<Box<dyn Method>>> {
        self.method.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
