//! What `numa bench` measures, beside loops in C and beside other programs on the same memory, in turn.

use super::results::Results;
use super::{floor, peers_of_memory};
use crate::{process, workspace};
use anyhow::{Context, Result};
use serde_json::Value;
use std::process::Command;

const ROUNDS: usize = 7;
/// More than 4 times the largest cache of most machines.
pub const BYTES: u64 = 128 << 20;
const MS: u64 = 400;
/// Ours must be within this of the floor.
pub const NEAR: f64 = 1.03;
/// The values of `numa bench bandwidth` that the floor has too.
const PASSES: [&str; 3] = ["read", "write", "copy"];
/// The values of `numa bench faults` by the name that the floor has for them.
const TOUCHES: [(&str, &str); 3] = [
    ("small page, fresh", "small-fresh"),
    ("small page, after MADV_DONTNEED", "small-dropped"),
    ("huge page, fresh", "huge-fresh"),
];

/// Our values and those of another program, in turn.
pub type Pairs = Vec<(f64, f64)>;

pub fn run(results: &mut Results) -> Result<()> {
    let mut loads = Pairs::new();
    let mut passes: [Pairs; 3] = Default::default();
    let mut touches: [Pairs; 3] = Default::default();
    let mut lines = Pairs::new();
    for _ in 0..ROUNDS {
        let chase = floored("chase", &["0".to_owned(), BYTES.to_string(), MS.to_string()])?;
        loads.push((cell(&measured("latency", "0")?, "load latency, idle", (0, 0))?, value(&chase, "ns")?));
        let floor = floored("passes", &["0".to_owned(), BYTES.to_string(), MS.to_string()])?;
        let text = measured("bandwidth", "0")?;
        for (name, pairs) in PASSES.iter().zip(&mut passes) {
            pairs.push((per_byte(&text, name)?, 1.0 / value(&floor, name)?));
        }
        let floor = floored("touches", &["0".to_owned(), MS.to_string()])?;
        let text = measured("faults", "0")?;
        for ((name, floored), pairs) in TOUCHES.iter().zip(&mut touches) {
            pairs.push((named(&text, name)?, value(&floor, floored)?));
        }
        let floor = floored("c2c", &["0".to_owned(), "1".to_owned(), MS.to_string()]);
        let line = cell(&measured("c2c", "0,1")?, "cache line to another CPU and back", (0, 1));
        lines.extend(floor.and_then(|floor| Ok((line?, value(&floor, "ns")?))).ok());
    }
    results.ratio("a load that the next one waits for", &loads, "ns", NEAR)?;
    for (name, pairs) in PASSES.iter().zip(&passes) {
        results.ratio(&format!("{name}, one thread"), pairs, "ns/B", NEAR)?;
    }
    for ((name, _), pairs) in TOUCHES.iter().zip(&touches) {
        results.ratio(name, pairs, "ns", NEAR)?;
    }
    match lines.len() {
        ROUNDS => results.ratio("a cache line to another CPU and back", &lines, "ns", NEAR)?,
        _ => results.say("CPUs 0 and 1 cannot be used both: no line between CPUs"),
    }
    peers_of_memory::run(results, ROUNDS)
}

fn floored(program: &str, words: &[String]) -> Result<String> {
    process::read(floor::program(program)?.args(words))
}

fn value(text: &str, name: &str) -> Result<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    Ok(line.with_context(|| format!("no {name} in {text:?}"))?.parse()?)
}

/// `numa bench` on these CPUs, with the memory and for the time of the floor.
pub fn measured(benchmark: &str, cpus: &str) -> Result<Value> {
    let mut numa = Command::new(workspace::measured());
    numa.args(["bench", benchmark, "--cpus", cpus, "--json", "--time", &format!("{MS}ms")]);
    // Both touch as many pages between two readings of the clock.
    if benchmark != "faults" {
        numa.args(["--size", &BYTES.to_string()]);
    }
    Ok(serde_json::from_str(&process::read(&mut numa)?)?)
}

/// Nanoseconds of a byte by a pass, of which the floor is the least, as the other limits have it.
pub fn per_byte(result: &Value, pass: &str) -> Result<f64> {
    Ok(1.0 / cell(result, &format!("bandwidth, {pass}"), (0, 0))?)
}

/// The median of a pair of a matrix.
fn cell(result: &Value, matrix: &str, (row, column): (usize, usize)) -> Result<f64> {
    let found = one(result, "matrices", matrix)?;
    found["cells"][row][column]["median"].as_f64().with_context(|| format!("not measured: {found}"))
}

/// The median of a value.
fn named(result: &Value, name: &str) -> Result<f64> {
    let found = one(result, "values", name)?;
    found["value"]["median"].as_f64().with_context(|| format!("not measured: {found}"))
}

/// What has this name, of the matrices, curves or values of a result.
pub fn one<'a>(result: &'a Value, kind: &str, name: &str) -> Result<&'a Value> {
    let all = result["benchmarks"][0][kind].as_array().with_context(|| format!("no {kind}"))?;
    all.iter().find(|one| one["name"] == name).with_context(|| format!("no {name} in {kind}: {all:?}"))
}
