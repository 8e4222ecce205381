//! What `numa bench` measures, beside loops in C in the same run.

use super::floor;
use super::results::Results;
use crate::{process, workspace};
use anyhow::{Context, Result};
use serde_json::Value;
use std::process::Command;

const ROUNDS: usize = 7;
/// More than 4 times the largest cache of most machines.
const BYTES: u64 = 128 << 20;
const MS: u64 = 400;
/// Ours must be within this of the floor.
const NEAR: f64 = 1.03;
/// The values of `numa bench bandwidth` that the floor has too.
const PASSES: [&str; 3] = ["read", "write", "copy"];

pub fn run(results: &mut Results) -> Result<()> {
    let mut loads = Vec::new();
    let mut passes: [Vec<(f64, f64)>; 3] = Default::default();
    for _ in 0..ROUNDS {
        let chase = floored("chase")?;
        loads.push((ours("latency", "load latency, idle")?, value(&chase, "ns")?));
        let floor = floored("passes")?;
        let text = measured("bandwidth")?;
        for (name, pairs) in PASSES.iter().zip(&mut passes) {
            // Times for a byte, of which the floor is the least, as the other limits have it.
            pairs.push((1.0 / cell(&text, &format!("bandwidth, {name}"))?, 1.0 / value(&floor, name)?));
        }
    }
    results.ratio("a load that the next one waits for", &loads, "ns", NEAR)?;
    for (name, pairs) in PASSES.iter().zip(&passes) {
        results.ratio(&format!("{name}, one thread"), pairs, "ns/B", NEAR)?;
    }
    Ok(())
}

fn floored(program: &str) -> Result<String> {
    process::read(floor::program(program)?.args(["0".to_owned(), BYTES.to_string(), MS.to_string()]))
}

fn value(text: &str, name: &str) -> Result<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    Ok(line.with_context(|| format!("no {name} in {text:?}"))?.parse()?)
}

fn ours(benchmark: &str, matrix: &str) -> Result<f64> {
    cell(&measured(benchmark)?, matrix)
}

/// `numa bench` on the first CPU, with the memory and for the time of the floor.
fn measured(benchmark: &str) -> Result<Value> {
    let mut numa = Command::new(workspace::numa());
    numa.args(["bench", benchmark, "--cpus", "0", "--json", "--size", &BYTES.to_string(), "--time"]);
    Ok(serde_json::from_str(&process::read(numa.arg(format!("{MS}ms")))?)?)
}

/// The median of the first pair of a matrix.
fn cell(result: &Value, matrix: &str) -> Result<f64> {
    let matrices = result["benchmarks"][0]["matrices"].as_array().context("no matrices")?;
    let found = matrices.iter().find(|one| one["name"] == matrix).context("no such matrix")?;
    found["cells"][0][0]["median"].as_f64().with_context(|| format!("not measured: {found}"))
}
