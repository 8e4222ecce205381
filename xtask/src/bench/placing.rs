//! What placing costs: how much later a program starts than under taskset.

use super::results::Results;
use super::statistics::{median, pairs};
use crate::{process, workspace};
use anyhow::{Context, Result};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Starts of each kind; medians of so many are steady.
const STARTS: usize = 60;
/// Milliseconds over taskset.
const START_MS: f64 = 3.0;

pub fn run(results: &mut Results) -> Result<()> {
    startup(results)
}

/// `numa run -c 1` in turns with `taskset`, both with a program that does nothing.
fn startup(results: &mut Results) -> Result<()> {
    let busy = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    if busy.split_ascii_whitespace().nth(3).is_some_and(|word| !word.starts_with("1/")) {
        results.say("something else runs: without '--busy off' the CPUs are looked at for a while first");
    }
    let registry = workspace::target().join("bench/registry");
    for (name, options) in [
        ("start over taskset, cores taken", &["-c", "1", "--busy", "off"][..]),
        ("start over taskset, --share", &["-c", "1", "--busy", "off", "--share"]),
    ] {
        let numa = || {
            let mut command = Command::new(workspace::numa());
            command.arg("run").args(options).args(["--", "true"]).env("NUMAKIT_REGISTRY", &registry);
            milliseconds(&mut command)
        };
        let taskset = || milliseconds(Command::new("taskset").args(["-c", "0", "true"]));
        // The first start lays the library down and makes the registry.
        numa()?;
        let measured = pairs(STARTS, numa, taskset)?;
        results.show(&format!("{name}: taskset"), median(measured.iter().map(|p| p.1)), "ms")?;
        let over = median(measured.iter().map(|(ours, theirs)| ours - theirs));
        results.at_most(name, over, "ms", START_MS)?;
    }
    let numa = || {
        milliseconds(
            Command::new(workspace::numa())
                .args(["run", "-c", "1", "--", "true"])
                .env("NUMAKIT_REGISTRY", &registry),
        )
    };
    let looked = (0..STARTS).map(|_| numa()).collect::<Result<Vec<f64>>>()?;
    results.show("start with a look at busy CPUs", median(looked), "ms")?;
    std::fs::remove_file(&registry).with_context(|| format!("{} was not made", registry.display()))
}

fn milliseconds(command: &mut Command) -> Result<f64> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let begun = Instant::now();
    process::run(command)?;
    Ok(begun.elapsed().as_secs_f64() * 1e3)
}
