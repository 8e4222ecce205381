//! `numa record`, started, watched from outside and ended; then its file is looked at.

use crate::process::Figures;
use crate::{python, workspace};
use anyhow::Result;
use std::path::PathBuf;

/// A recording to be made.
#[derive(Debug, Clone)]
pub struct Recording {
    /// Words between `numa record` and `-o`.
    pub options: Vec<String>,
    /// How long.
    pub seconds: f64,
}

impl Recording {
    /// All vmstat series at 1 kHz.
    pub fn of_vmstat(seconds: f64) -> Self {
        Self::new("-i 1ms -e vmstat*", seconds)
    }

    /// Options separated by blanks.
    pub fn new(options: &str, seconds: f64) -> Self {
        Self { options: options.split_whitespace().map(str::to_owned).collect(), seconds }
    }

    /// Further options.
    pub fn with(mut self, options: &[&str]) -> Self {
        self.options.extend(options.iter().map(|&word| word.to_owned()));
        self
    }

    /// Makes it; `xtask/python/record.py` names the figures.
    pub fn make(&self) -> Result<Figures> {
        let mut script = python::script("record.py")?;
        script.arg(self.seconds.to_string()).arg(file()).arg(workspace::numa()).arg("record");
        Figures::of(script.args(&self.options))
    }
}

/// Where recordings of benchmarks go; the next one replaces the last.
pub fn file() -> PathBuf {
    workspace::target().join("bench/recording.arrows")
}
