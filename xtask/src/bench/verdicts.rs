//! What the remedies of `numa explain` gain on this machine, beside what they are said to be worth at most.

use super::results::Results;
use super::statistics::{median, pairs};
use crate::{process, workspace};
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PAIRS: usize = 5;
/// What two runs of the same program may differ by, in points.
const NOISE: f64 = 5.0;

/// A program that is observed, its verdict, and the same work with the remedy.
struct Remedied {
    name: &'static str,
    broken: &'static [&'static str],
    rule: &'static str,
    /// `None`: the command that is suggested.
    repaired: Option<&'static [&'static str]>,
}

const PROGRAMS: [Remedied; 5] = [
    Remedied {
        name: "huge pages, as suggested",
        broken: &["layouts", "random", "plain"],
        rule: "random-on-small-pages",
        repaired: None,
    },
    Remedied {
        name: "huge pages in the source",
        broken: &["layouts", "random", "small"],
        rule: "random-on-small-pages",
        repaired: Some(&["layouts", "random", "huge"]),
    },
    Remedied {
        name: "an array for a list",
        broken: &["layouts", "list", "linked"],
        rule: "chain",
        repaired: Some(&["layouts", "list", "array"]),
    },
    Remedied {
        name: "a structure of arrays",
        broken: &["layouts", "field", "records"],
        rule: "part-of-each-line",
        repaired: Some(&["layouts", "field", "fields"]),
    },
    Remedied {
        name: "a line for each thread",
        broken: &["contended", "atomic-counters", "shared", "2"],
        rule: "contended-lines",
        repaired: Some(&["contended", "atomic-counters", "apart", "2"]),
    },
];

pub fn run(results: &mut Results) -> Result<()> {
    let folder = build()?;
    let command = |words: &[&str]| {
        let mut command = Command::new(folder.join(words[0]));
        command.args(&words[1..]);
        command
    };
    for program in &PROGRAMS {
        let Some(object) = judged(&folder, program)? else {
            results.say(&format!("{}: samples say nothing here: skipped", program.name));
            continue;
        };
        let worth = object["worth"]["at_most"].as_f64().context("the worth is not known")? * 100.0;
        let suggested = object["try"].as_str().unwrap_or_default().strip_prefix("numa ");
        let repaired = || match (program.repaired, suggested) {
            (Some(words), _) => cost(&mut command(words)),
            (None, Some(line)) => cost(Command::new(workspace::measured()).args(line.split(' '))),
            (None, None) => anyhow::bail!("{}: no command is suggested", program.name),
        };
        let measured = pairs(PAIRS, || cost(&mut command(program.broken)), repaired)?;
        let gain = median(measured.iter().map(|(broken, repaired)| (1.0 - repaired / broken) * 100.0));
        results.show(&format!("{}, worth at most", program.name), worth, "%")?;
        results.at_most(&format!("{}, gained", program.name), gain, "%", worth + NOISE)?;
    }
    Ok(())
}

/// Compiles the programs that the tests of the verdicts use.
fn build() -> Result<PathBuf> {
    let folder = workspace::target().join("verdicts");
    fs::create_dir_all(&folder)?;
    for name in ["layouts", "contended"] {
        let source = workspace::root().join(format!("crates/cli/tests/explain/{name}.c"));
        let mut cc = Command::new("cc");
        process::run(cc.args(["-O2", "-g", "-pthread", "-o"]).arg(folder.join(name)).arg(source))?;
    }
    Ok(folder)
}

/// The object with the verdict of a program; `None` where samples do not tell time.
fn judged(folder: &Path, program: &Remedied) -> Result<Option<Value>> {
    let file = folder.join("result.json");
    let mut numa = Command::new(workspace::measured());
    numa.args(["explain", "--json"]).arg(&file).arg("--").arg(folder.join(program.broken[0]));
    process::read(numa.args(&program.broken[1..]))?;
    let result: Value = serde_json::from_slice(&fs::read(&file)?)?;
    if result["regime"] != "precise" {
        return Ok(None);
    }
    let objects = result["objects"].as_array().map(Vec::as_slice).unwrap_or_default();
    let judged = objects.iter().find(|object| object["verdict"]["rule"] == program.rule);
    let found: Vec<&Value> = objects.iter().map(|object| &object["verdict"]["rule"]).collect();
    judged
        .cloned()
        .map(Some)
        .with_context(|| format!("{}: not {}, but {found:?}", program.name, program.rule))
}

/// The CPU seconds of the whole program, or the nanoseconds of an operation: the only number that it prints.
fn cost(command: &mut Command) -> Result<f64> {
    let text = process::read(command)?;
    let number = text.split_whitespace().find_map(|word| word.parse().ok());
    number.with_context(|| format!("no number in '{}'", text.trim()))
}
