//! Runs `numa record`, measures it from outside, and reads its file.

use crate::process::Figures;
use crate::{python, workspace};
use anyhow::Result;
use std::path::PathBuf;

/// A recording.
#[derive(Debug, Clone)]
pub struct Recording {
    /// Arguments between `numa record` and `-o`.
    pub options: Vec<String>,
    /// Its duration in seconds.
    pub seconds: f64,
}

impl Recording {
    /// All vmstat series at 1 kHz.
    pub fn of_vmstat(seconds: f64) -> Self {
        Self::new("-i 1ms -e vmstat*", seconds)
    }

    /// With options separated by spaces.
    pub fn new(options: &str, seconds: f64) -> Self {
        Self { options: options.split_whitespace().map(str::to_owned).collect(), seconds }
    }

    /// Adds options.
    pub fn with(mut self, options: &[&str]) -> Self {
        self.options.extend(options.iter().map(|&word| word.to_owned()));
        self
    }

    /// Records; `xtask/python/record.py` names the results.
    pub fn make(&self) -> Result<Figures> {
        let mut script = python::script("record.py")?;
        script.arg(self.seconds.to_string()).arg(file()).arg(workspace::measured()).arg("record");
        Figures::of(script.args(&self.options))
    }
}

/// The file of recordings; the next one replaces it.
pub fn file() -> PathBuf {
    workspace::target().join("bench/recording.arrows")
}
