//! The size of a recording, compared with pyarrow writing the same rows in the same batches.

use super::recorder::{self, Recording};
use super::results::Results;
use super::statistics::PAIRS;
use crate::process::Figures;
use crate::python;
use anyhow::Result;

pub fn run(results: &mut Results) -> Result<()> {
    let mut files = Vec::new();
    let mut samples = Vec::new();
    for _ in 0..PAIRS {
        let made = Recording::of_vmstat(10.0).make()?;
        let again = Figures::of(python::script("rewrite.py")?.arg(recorder::file()))?;
        files.push((made.get("bytes")? / 1024.0, again.get("bytes")? / 1024.0));
        samples.push(made.get("bytes")? / made.get("samples")?);
    }
    results.ratio("file against pyarrow", &files, "KiB", 1.1)?;
    results.at_most("bytes per sample at 1 kHz", super::statistics::median(samples), "bytes", 46.0)
}
