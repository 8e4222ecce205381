//! What a run prints and counts, shared by suites that run at the same time.

use super::progress::Progress;
use super::tally::Tally;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What is printed, and what is counted.
#[derive(Debug)]
pub struct Output {
    pub progress: Progress,
    pub tally: Tally,
}

/// The output of a run.
#[derive(Debug)]
pub struct Console(Mutex<Output>);

impl Console {
    pub fn new() -> Self {
        Self(Mutex::new(Output { progress: Progress::new(), tally: Tally::default() }))
    }

    /// The output for one line or one part; other suites wait meanwhile.
    pub fn lock(&self) -> MutexGuard<'_, Output> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints the name of a part and runs it; the time that it takes is in the summary.
    pub fn part<T>(&self, name: &str, run: impl FnOnce() -> T) -> T {
        self.lock().progress.begin(name);
        let started = Instant::now();
        let result = run();
        self.lock().progress.took(name, started.elapsed());
        result
    }

    /// Prints and counts a failure.
    pub fn fail(&self, name: &str, error: &anyhow::Error) {
        let mut output = self.lock();
        output.tally.failed += 1;
        output.progress.say(&format!("FAILED {name}: {error:#}"));
    }
}
