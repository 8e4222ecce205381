//! The report of half an hour at 1 kHz with 336 series, compared with decoding the recording alone, by one thread.

use super::results::Results;
use super::statistics::{PAIRS, median};
use crate::process::{self, Figures};
use crate::workspace;
use anyhow::Result;
use std::fs;

const SERIES: &str = "336";
const ROWS: &str = "1900000";
/// Where two CPUs are free, decoding and counting overlap.
const RATIO: f64 = 2.0;
const SECONDS: f64 = 3.0;

pub fn run(results: &mut Results) -> Result<()> {
    let file = workspace::target().join("bench/half-hour.arrows");
    let example = |krate: &str, name: &str| {
        process::cargo(&["run", "--release", "--quiet", "-p", krate, "--example", name, "--"])
    };
    process::read(example("numakit-recording", "long").args([SERIES, ROWS, "1"]).arg(&file))?;
    let measured: Result<Vec<(f64, f64)>> = (0..PAIRS)
        .map(|_| {
            let figures = Figures::of(example("numakit-analysis", "reported").arg(&file))?;
            Ok((figures.get("report")?, figures.get("decoding")?))
        })
        .collect();
    fs::remove_file(&file)?;
    let measured = measured?;
    results.ratio("report of half an hour at 1 kHz", &measured, "s", RATIO)?;
    results.at_most("the same, alone", median(measured.iter().map(|pair| pair.0)), "s", SECONDS)
}
