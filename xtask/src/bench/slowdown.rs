//! How much a recording at 1 kHz slows down an OpenMP program on all CPUs.

use super::floor;
use super::recorder::{self, Recording};
use super::results::Results;
use super::statistics::{median, pairs};
use crate::process::{self, Figures};
use crate::workspace;
use anyhow::Result;
use std::process::Command;

const MORE_PAIRS: usize = 9;
const MILLIONS_OF_STEPS: &str = "2000";

pub fn run(results: &mut Results) -> Result<()> {
    let threads = std::thread::available_parallelism()?.to_string();
    let program = floor::build()?.join("compute");
    let unobserved =
        || Figures::of(Command::new(&program).args([&threads, MILLIONS_OF_STEPS]))?.get("seconds");
    for (name, options) in [("vmstat*", "-i 1ms -e vmstat*"), ("default events", "-i 1ms")] {
        let recorded = || {
            let mut numa = Command::new(workspace::measured());
            numa.arg("record").args(Recording::new(options, 0.0).options).arg("--force").arg("-o");
            numa.arg(recorder::file()).arg("--").arg(&program).args([&threads, MILLIONS_OF_STEPS]);
            seconds_in(&process::read(&mut numa)?)
        };
        let measured = pairs(MORE_PAIRS, recorded, unobserved)?;
        let slower = |(with, without): &(f64, f64)| (with / without - 1.0) * 100.0;
        results.show("time unobserved", median(measured.iter().map(|p| p.1)), "s")?;
        results.show(&format!("slowdown, {name} at 1 kHz"), median(measured.iter().map(slower)), "%")?;
    }
    Ok(())
}

fn seconds_in(output: &str) -> Result<f64> {
    let value = output.lines().find_map(|line| line.strip_prefix("seconds "));
    Ok(value.unwrap_or_default().parse()?)
}
