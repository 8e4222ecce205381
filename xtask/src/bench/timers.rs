//! How much CPU time a program uses more if libnumaexplain samples its threads 199 times a second. The floor is the
//! same timer with a handler that does nothing.

use super::floor;
use super::results::Results;
use super::statistics::{median, pairs};
use crate::{build, process};
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::process::Command;

const PAIRS: usize = 21;
/// Per cent of the program's CPU time.
const LIMIT: f64 = 0.5;

pub fn run(results: &mut Results) -> Result<()> {
    let sampled = observer()?;
    for (kind, steps) in [("compute", "400"), ("chain", "10")] {
        let program = floor::build()?.join("sampled");
        let plain = || seconds(Command::new(&program).args([kind, steps]));
        let timer = || seconds(Command::new(&program).args([kind, steps, "--timer"]));
        let observed = || seconds(Command::new(&sampled).arg("199").arg(&program).args([kind, steps]));
        let more = |(with, without): &(f64, f64)| (with / without - 1.0) * 100.0;
        let floor = pairs(PAIRS, timer, plain)?;
        results.show(&format!("{kind}, a timer that does nothing"), median(floor.iter().map(more)), "%")?;
        let measured = pairs(PAIRS, observed, plain)?;
        results.at_most(&format!("{kind}, sampled"), median(measured.iter().map(more)), "%", LIMIT)?;
    }
    Ok(())
}

fn seconds(command: &mut Command) -> Result<f64> {
    let text = process::read(command)?;
    let value = text.lines().find_map(|line| line.strip_prefix("cpu_seconds "));
    Ok(value.context("no line cpu_seconds")?.parse()?)
}

/// The program that runs another one with its threads sampled.
fn observer() -> Result<PathBuf> {
    build::example("sampled")
}
