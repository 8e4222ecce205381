//! `cargo xtask test`: everything that can be checked without root and without NUMA hardware.

mod node;
mod tally;
mod tracefs;

use crate::{bench, install, peers, process, python, web};
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use tally::Tally;

/// What tests compare with and compile with, and the Debian packages that bring it; tests without
/// theirs count as skipped.
const PEERS: [(&[&str], &str); 6] = [
    (&["numactl", "--hardware"], "numactl"),
    (&["hwloc-calc", "--version"], "hwloc"),
    (&["musl-gcc", "--version"], "musl-tools"),
    (&["capsh", "--print"], "libcap2-bin"),
    (&["g++", "--version"], "g++"),
    (&["gfortran", "--version"], "gfortran"),
];

/// Runs all checks, whatever fails on the way, and ends with one line that sums up.
pub fn run(words: &[String]) -> Result<ExitCode> {
    if let Some(word) = words.first() {
        bail!("test takes no arguments, got '{word}'; for some tests only: cargo test -p PACKAGE NAME");
    }
    let mut tally = Tally::default();
    tally.check("format", format());
    tally.check("C compiler and make", install::need_c());
    tally.check("clippy", clippy());
    tally.check("C floors", bench::floor::build().map(drop));
    if web::can_build() {
        tally.check("page", web::build());
        page(&mut tally);
    } else {
        println!("skipped: the page and its tests: there are no Node.js and npm");
        tally.skipped += 1;
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

/// The tests of the page, alone and in a browser. Without a browser the latter count as skipped.
fn page(tally: &mut Tally) {
    let alone = web::tests().and_then(|command| node(tally, command));
    if let Err(error) = alone {
        tally.check("tests of the page", Err(error));
    }
    let numa = match numakit_guest::programs::numa() {
        Ok(numa) => numa,
        Err(error) => return tally.check("numa for tests in a browser", Err(error.into())),
    };
    match web::browser_tests(&numa) {
        Ok(command) => {
            if let Err(error) = node(tally, command) {
                tally.check("tests in a browser", Err(error));
            }
        }
        Err(error) => {
            println!("skipped: tests in a browser: {error:#}");
            tally.skipped += 1;
        }
    }
}

/// Runs tests of Node.js.
fn node(tally: &mut Tally, mut command: Command) -> Result<()> {
    let (before, mut report) = (tally.failed, node::Report::default());
    let status = lines(&mut command, |line| {
        if let Some(shown) = report.line(tally, line) {
            println!("{shown}");
        }
    })?;
    if !status.success() && tally.failed == before {
        bail!("{status}: {}", process::line(&command));
    }
    Ok(())
}

/// Runs to the end, line by line of what is printed.
fn lines(command: &mut Command, mut take: impl FnMut(&str)) -> Result<ExitStatus> {
    let line = process::line(command);
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start: {line}"))?;
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).lines() {
            take(&line?);
        }
    }
    Ok(child.wait()?)
}

/// All tests of all packages. What passes is counted, the rest is shown.
fn tests(tally: &mut Tally) -> Result<()> {
    let words = ["test", "--workspace", "--no-fail-fast", "--", "--show-output"];
    let mut command = tracefs::seen_by(process::cargo(&words));
    offer_python(&mut command);
    match peers::folder() {
        Ok(path) => drop(command.env("NUMAKIT_PEERS", path)),
        Err(error) => println!("no InfluxDB and Prometheus: {error:#}"),
    }
    for (probe, package) in PEERS {
        if let Err(error) = install::need(probe, &[package]) {
            println!("no {package}: {error:#}");
        }
    }
    let status = lines(&mut command, |line| {
        if let Some(shown) = tally.line(line) {
            println!("{shown}");
        }
    })?;
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
