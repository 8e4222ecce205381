//! Plans for a machine of ten thousand cores, and trees of machines of thousands of nodes.

use super::results::Results;
use crate::{build, process};
use anyhow::{Context, Result};
use std::process::Command;

const LIMIT: f64 = 50.0;
/// Four times the nodes have sixteen times the distances.
const GROWTH: f64 = 32.0;

pub fn run(results: &mut Results) -> Result<()> {
    let output = process::read(&mut Command::new(build::example("thousands")?))?;
    for (name, value) in numbers(&output)? {
        results.at_most(&format!("plan: {name}"), value, "ms", LIMIT)?;
    }
    let output = process::read(&mut Command::new(build::example("large_trees")?))?;
    for (name, value) in numbers(&output)? {
        results.at_most(&format!("tree of 4,096 nodes to one of 1,024: {name}"), value, "x", GROWTH)?;
    }
    Ok(())
}

/// The second and third word of each line.
fn numbers(output: &str) -> Result<Vec<(&str, f64)>> {
    let number = |line| {
        let mut words = str::split(line, ' ').skip(1);
        let (name, value) = words.next().zip(words.next()).context("the example printed no number")?;
        Ok((name, value.parse()?))
    };
    output.lines().map(number).collect()
}
