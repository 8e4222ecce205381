//! Counting with perf: software events of this machine, compared with a bare loop of the same reads, and
//! hundreds of scripted hardware counters, compared with the reads by the script.

use super::floor;
use super::recorder::Recording;
use super::results::Results;
use super::statistics::{PAIRS, median, pairs};
use crate::build;
use crate::process::Figures;
use anyhow::Result;
use std::process::Command;

const SECONDS: u32 = 10;

/// Software events by the kernel's numbers.
const NUMBERS: [&str; 5] = ["2", "5", "6", "4", "3"];
const NAMES: &str =
    "perf.page_faults,perf.minor_faults,perf.major_faults,perf.cpu_migrations,perf.context_switches";

pub fn run(results: &mut Results) -> Result<()> {
    software(results)?;
    scripted(results)
}

fn software(results: &mut Results) -> Result<()> {
    let seconds = SECONDS.to_string();
    if !floor::program("floor_perf")?.args(["1000", "1"]).args(NUMBERS).output()?.status.success() {
        results.say("perf_event_open of whole CPUs is not permitted here: skipped");
        return Ok(());
    }
    let recording = Recording::new("-i 1ms --priority normal", f64::from(SECONDS)).with(&["-e", NAMES]);
    let measured = pairs(
        PAIRS,
        || recording.make(),
        || Figures::of(floor::program("floor_perf")?.args(["1000", &seconds]).args(NUMBERS)),
    )?;
    let each = |ours: &str| -> Result<Vec<(f64, f64)>> {
        measured.iter().map(|(a, b)| Ok((a.get(ours)?, b.get("cpu_us")?))).collect()
    };
    results.ratio("software events, CPU per sample, sampler", &each("sampler_us")?, "us", 1.5)?;
    results.ratio("software events, CPU per sample, process", &each("process_us")?, "us", 1.8)
}

/// Eight packages at 100 Hz. The script's reads keep the CPU busy for the time that it prints.
fn scripted(results: &mut Results) -> Result<()> {
    let example = build::example("hardware")?;
    let mut runs = Vec::new();
    for _ in 0..PAIRS {
        runs.push(Figures::of(Command::new(&example).arg(SECONDS.to_string()))?);
    }
    results.show("scripted counters: series", runs[0].get("series")?, "")?;
    results.show("scripted counters: groups", runs[0].get("groups")?, "")?;
    let lost: Result<Vec<f64>> = runs.iter().map(|run| run.get("lost")).collect();
    results.show("scripted counters: lost ticks", median(lost?), "")?;
    let pairs: Result<Vec<(f64, f64)>> =
        runs.iter().map(|run| Ok((run.get("process_us")?, run.get("scripted_us")?))).collect();
    results.ratio("scripted counters, CPU per sample", &pairs?, "us", 1.5)
}
