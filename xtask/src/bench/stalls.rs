//! The slowest round of a loop that maps, touches and unmaps 1 MiB in a process with 1.5 GiB of small
//! pages, with a recorder and without; and the time until many processes have values.

use super::floor;
use super::recorder;
use super::results::Results;
use super::statistics::pairs;
use crate::process::{self, Figures};
use crate::workspace;
use anyhow::{Context, Result};
use std::process::{Command, Stdio};
use std::time::Instant;

const MORE_PAIRS: usize = 9;
const MIB: &str = "1536";
const SECONDS: &str = "4";

/// Sizes of two process trees.
const FEW: u32 = 250;
const MANY: u32 = 1000;

pub fn run(results: &mut Results) -> Result<()> {
    let program = floor::build()?.join("mapping");
    let unobserved = || Figures::of(Command::new(&program).args([MIB, SECONDS]));
    let recorded = || {
        let mut numa = Command::new(workspace::measured());
        numa.args(["record", "-i", "10ms", "--force", "-o"]).arg(recorder::file()).arg("--");
        Figures::of(numa.arg(&program).args([MIB, SECONDS]))
    };
    let measured = pairs(MORE_PAIRS, recorded, unobserved)?;
    let each = |name: &str| -> Result<Vec<(f64, f64)>> {
        measured.iter().map(|(with, without)| Ok((with.get(name)?, without.get(name)?))).collect()
    };
    results.ratio("slowest round, default events", &each("worst_us")?, "us", 1.3)?;
    results.ratio("slowest of a thousand rounds", &each("late_us")?, "us", 1.3)?;
    results.ratio("usual round", &each("usual_us")?, "us", 1.1)?;
    many(results)
}

/// How the time until the first memory values grows with the number of processes, per process.
fn many(results: &mut Results) -> Result<()> {
    let measured = pairs(3, || first_values(MANY), || first_values(FEW))?;
    let per_process: Vec<(f64, f64)> = measured
        .into_iter()
        .map(|(many, few)| (many / f64::from(MANY) * 1e6, few / f64::from(FEW) * 1e6))
        .collect();
    results.ratio("first values, a process of 1,000 to one of 250", &per_process, "us", 1.5)
}

/// Seconds until a tree of this number of processes has memory values.
fn first_values(processes: u32) -> Result<f64> {
    let script = format!("i=0; while [ $i -lt {processes} ]; do sleep 600 & i=$((i+1)); done; echo up; wait");
    let mut tree = Command::new("setsid").args(["sh", "-c", &script]).stdout(Stdio::piped()).spawn()?;
    let mut up = [0; 3];
    let taken = tree.stdout.take().context("the tree has no output")?;
    std::io::Read::read_exact(&mut { taken }, &mut up)?;
    let start = Instant::now();
    let pid = tree.id().to_string();
    let mut numa = Command::new(workspace::measured());
    numa.args([
        "stat",
        "-i",
        "100ms",
        "-n",
        "200",
        "--csv",
        "-e",
        "task.resident,task.processes",
        "-p",
        &pid,
    ]);
    let mut child = numa.stdout(Stdio::piped()).spawn()?;
    let lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().context("no output")?));
    let mut seconds = None;
    for line in lines {
        let line = line?;
        // time, label, nodes, processes: the nodes are empty before the first walk.
        let walked = line.split(',').nth(2).is_some_and(|field| field.parse::<f64>().is_ok_and(|v| v > 0.0));
        if walked {
            seconds = Some(start.elapsed().as_secs_f64());
            break;
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    // The tree has its own process group, from setsid.
    process::run(Command::new("kill").args(["-KILL", "--", &format!("-{pid}")]))?;
    let _ = tree.wait();
    seconds.context("no memory values within 20 s")
}
