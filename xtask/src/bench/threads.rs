//! The cost of creating a thread that libnumaplace places.

use super::floor;
use super::results::Results;
use super::statistics::{median, pairs};
use crate::process::{self, Figures};
use crate::workspace;
use anyhow::{Context, Result, bail};
use numakit_guest::programs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PAIRS: usize = 21;
const CREATES: &str = "2000";
const LIMIT: f64 = 1.3;
const CONTAINED: f64 = 3.0;

pub fn run(results: &mut Results) -> Result<()> {
    let (library, cpus) = (library()?, allowed()?);
    let [first, second, ..] = cpus[..] else {
        results.say("skipped: a thread and its creator need two CPUs; one is allowed here");
        return Ok(());
    };
    let placed = || placed(&library, first, second);
    let pinned = || microseconds(floor::program("threads")?.args(["pinned", CREATES]));
    let plain = || microseconds(floor::program("threads")?.args(["plain", CREATES]));
    let measured = pairs(PAIRS, placed, pinned)?;
    results.show(
        "not pinned at all",
        median((0..PAIRS).map(|_| plain()).collect::<Result<Vec<_>>>()?),
        "us",
    )?;
    results.ratio("create and join, placed", &measured, "us", LIMIT)?;
    let filter = programs::compiled("filtered")?.context("no guest program 'filtered'")?;
    let contained = || contained(&filter, &library, first, second);
    let measured = pairs(PAIRS, contained, pinned)?;
    results.ratio("create and join, placed in a container", &measured, "us", CONTAINED)
}

/// Under Docker's filter; the creator's CPU and the thread's are taken for different nodes, so that it goes there.
fn contained(filter: &Path, library: &Path, first: u32, second: u32) -> Result<f64> {
    let threads = floor::program("threads")?;
    let mut command = Command::new(filter);
    command.arg("env").arg(format!("LD_PRELOAD={}", library.display()));
    command.arg(format!("NUMA_PLACE={first},{second}")).arg(format!("NUMA_NODES=0:{first};1:{second}"));
    microseconds(command.arg(threads.get_program()).args(["plain", CREATES]))
}

/// With the library, on the same two CPUs: all of its work, even on a machine with one node.
fn placed(library: &Path, first: u32, second: u32) -> Result<f64> {
    let mut command = floor::program("threads")?;
    let nodes = format!("0:{first},{second}");
    command.env("NUMA_PLACE", format!("{first},{second}")).env("NUMA_NODES", nodes);
    microseconds(command.env("LD_PRELOAD", library).args(["plain", CREATES]))
}

fn microseconds(command: &mut Command) -> Result<f64> {
    Figures::of(command)?.get("us")
}

fn library() -> Result<PathBuf> {
    let out = workspace::target().join("native");
    let mut make = Command::new("make");
    process::run(
        make.arg("-s").arg("-C").arg(workspace::root().join("native")).arg(format!("OUT={}", out.display())),
    )?;
    Ok(out.join("libnumaplace.so"))
}

/// The CPUs that this process may use.
fn allowed() -> Result<Vec<u32>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let Some(list) = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")) else {
        bail!("/proc/self/status has no line Cpus_allowed_list");
    };
    let mut cpus = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        cpus.extend(first.parse::<u32>()?..=last.parse()?);
    }
    Ok(cpus)
}
