//! `cargo xtask test`: everything that can be checked without root and without NUMA hardware.

mod tally;
mod tracefs;

use crate::{bench, install, process, python, web};
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use tally::Tally;

/// Runs all checks, whatever fails on the way, and ends with one line that sums up.
pub fn run(words: &[String]) -> Result<ExitCode> {
    if let Some(word) = words.first() {
        bail!("test takes no arguments, got '{word}'; for some tests only: cargo test -p PACKAGE NAME");
    }
    let mut tally = Tally::default();
    tally.check("format", format());
    tally.check("clippy", clippy());
    tally.check("C floors", bench::floor::build().map(drop));
    if web::can_build() {
        tally.check("page", web::build());
        tally.check("tests of the page", web::test());
    } else {
        println!("no Node.js and npm: the page and its tests are left out");
    }
    tests(&mut tally)?;
    println!("{tally}");
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn format() -> Result<()> {
    install::need_component(&["cargo", "fmt", "--version"], "rustfmt")?;
    process::run(&mut process::cargo(&["fmt", "--all", "--check"]))
}

fn clippy() -> Result<()> {
    install::need_component(&["cargo", "clippy", "--version"], "clippy")?;
    let words = ["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"];
    process::run(&mut process::cargo(&words))
}

/// All tests of all packages. What passes is counted, the rest is shown.
fn tests(tally: &mut Tally) -> Result<()> {
    let words = ["test", "--workspace", "--no-fail-fast", "--", "--show-output"];
    let mut command = tracefs::seen_by(process::cargo(&words));
    offer_python(&mut command);
    // Tests compare with what numactl and numastat say; without them they count as skipped.
    if let Err(error) = install::need(&["numactl", "--hardware"], &["numactl"]) {
        println!("no numactl: {error:#}");
    }
    let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start cargo test")?;
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            if let Some(shown) = tally.line(&line?) {
                println!("{shown}");
            }
        }
    }
    let status = child.wait()?;
    if !status.success() && tally.failed == 0 {
        tally.check("cargo test", Err(anyhow::anyhow!("{status}")));
    }
    Ok(())
}

/// Tests that load recordings with pyarrow and polars find their Python in the environment;
/// without it they count as skipped.
fn offer_python(command: &mut Command) {
    match python::venv() {
        Ok(path) => {
            command.env("NUMAKIT_PYTHON", path);
        }
        Err(error) => println!("no pyarrow and polars: {error:#}"),
    }
}
