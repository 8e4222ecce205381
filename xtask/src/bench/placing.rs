//! The cost of placing: the start of a program, compared with taskset.

use super::results::Results;
use super::statistics::{median, pairs};
use crate::{process, workspace};
use anyhow::{Context, Result};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Number of starts of each kind; the median of this number is stable.
const STARTS: usize = 60;
/// Maximum difference to taskset in milliseconds.
const START_MS: f64 = 3.0;

pub fn run(results: &mut Results) -> Result<()> {
    startup(results)
}

/// `numa run -c 1` in turns with `taskset`, both with a program that does nothing.
fn startup(results: &mut Results) -> Result<()> {
    let busy = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    if busy.split_ascii_whitespace().nth(3).is_some_and(|word| !word.starts_with("1/")) {
        results.say("other programs run: without '--busy off' the load of the CPUs is measured first");
    }
    let registry = workspace::target().join("bench/registry");
    for (name, options) in [
        ("start over taskset, cores reserved", &["-c", "1", "--busy", "off"][..]),
        ("start over taskset, --share", &["-c", "1", "--busy", "off", "--share"]),
    ] {
        let numa = || {
            let mut command = Command::new(workspace::measured());
            command.arg("run").args(options).args(["--", "true"]).env("NUMAKIT_REGISTRY", &registry);
            milliseconds(&mut command)
        };
        let taskset = || milliseconds(Command::new("taskset").args(["-c", "0", "true"]));
        // The first start extracts the library and creates the registry.
        numa()?;
        let measured = pairs(STARTS, numa, taskset)?;
        results.show(&format!("{name}: taskset"), median(measured.iter().map(|p| p.1)), "ms")?;
        let over = median(measured.iter().map(|(ours, theirs)| ours - theirs));
        results.at_most(name, over, "ms", START_MS)?;
    }
    let numa = || {
        milliseconds(
            Command::new(workspace::measured())
                .args(["run", "-c", "1", "--", "true"])
                .env("NUMAKIT_REGISTRY", &registry),
        )
    };
    let scanned = (0..STARTS).map(|_| numa()).collect::<Result<Vec<f64>>>()?;
    results.show("start with a scan for busy CPUs", median(scanned), "ms")?;
    std::fs::remove_file(&registry).with_context(|| format!("{} was not created", registry.display()))
}

fn milliseconds(command: &mut Command) -> Result<f64> {
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let start = Instant::now();
    process::run(command)?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}
