//! Plans for a machine of ten thousand cores.

use super::results::Results;
use crate::process;
use anyhow::{Context, Result};

const LIMIT: f64 = 50.0;

pub fn run(results: &mut Results) -> Result<()> {
    let example = ["run", "--release", "--quiet", "-p", "numakit-placement", "--example", "thousands"];
    let said = process::read(&mut process::cargo(&example))?;
    for line in said.lines() {
        let mut words = line.split(' ').skip(1);
        let (name, value) = words.next().zip(words.next()).context("the example gives no figure")?;
        results.at_most(&format!("plan: {name}"), value.parse()?, "ms", LIMIT)?;
    }
    Ok(())
}
