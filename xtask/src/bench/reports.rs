//! The report of half an hour at 1 kHz with 336 series, compared with decoding the recording alone, by one thread.

use super::results::Results;
use super::statistics::{PAIRS, median};
use crate::process::{self, Figures};
use crate::{build, workspace};
use anyhow::Result;
use std::fs;
use std::process::Command;

const SERIES: &str = "336";
const ROWS: &str = "1900000";
/// Where two CPUs are free, decoding and counting overlap.
const RATIO: f64 = 2.0;
const SECONDS: f64 = 3.0;

pub fn run(results: &mut Results) -> Result<()> {
    let file = workspace::target().join("bench/half-hour.arrows");
    process::read(Command::new(build::example("long")?).args([SERIES, ROWS, "1"]).arg(&file))?;
    let reported = build::example("reported")?;
    let measured: Result<Vec<(f64, f64)>> = (0..PAIRS)
        .map(|_| {
            let figures = Figures::of(Command::new(&reported).arg(&file))?;
            Ok((figures.get("report")?, figures.get("decoding")?))
        })
        .collect();
    fs::remove_file(&file)?;
    let measured = measured?;
    results.ratio("report of half an hour at 1 kHz", &measured, "s", RATIO)?;
    results.at_most("the same, alone", median(measured.iter().map(|pair| pair.0)), "s", SECONDS)
}
