//! Runs other programs. Errors have the whole command line.

use anyhow::{Context, Result, bail};
use numakit_guest::programs::is_of_package;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::process::{Command, Output};

/// Ticks of /proc/PID/stat a second.
const CLOCK_TICKS: f64 = 100.0;

/// A cargo command in the repository.
pub fn cargo(words: &[&str]) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(words).current_dir(crate::workspace::root());
    // With xtask's variables, build scripts would run again.
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_of_package(name)) {
        command.env_remove(name);
    }
    command
}

/// The command line, for messages.
pub fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// Prints the name of a step before it starts, on standard error: its output may be data.
pub fn step(name: &str) {
    eprintln!("xtask: {name}");
}

/// Runs a command and shows its output; an exit status other than 0 is an error.
pub fn run(command: &mut Command) -> Result<()> {
    let line = line(command);
    let status = command.status().with_context(|| format!("cannot start: {line}"))?;
    if !status.success() {
        bail!("{status}: {line}");
    }
    Ok(())
}

/// Runs a command and returns its output; an error contains its diagnostics.
pub fn read(command: &mut Command) -> Result<String> {
    let line = line(command);
    let Output { status, stdout, stderr } =
        command.output().with_context(|| format!("cannot start: {line}"))?;
    if !status.success() {
        bail!("{status}: {line}\n{}", String::from_utf8_lossy(&stderr).trim_end());
    }
    Ok(String::from_utf8(stdout)?)
}

/// Numbers that a program printed, one `name value` per line.
#[derive(Debug, Clone)]
pub struct Figures(BTreeMap<String, f64>);

impl Figures {
    /// Runs a program and parses its numbers.
    pub fn of(command: &mut Command) -> Result<Self> {
        Ok(Self::parse(&read(command)?))
    }

    /// Parses text.
    pub fn parse(text: &str) -> Self {
        let pair = |line: &str| {
            let (name, value) = line.split_once(' ')?;
            Some((name.to_owned(), value.trim().parse().ok()?))
        };
        Self(text.lines().filter_map(pair).collect())
    }

    /// One of the numbers.
    pub fn get(&self, name: &str) -> Result<f64> {
        self.0.get(name).copied().with_context(|| format!("no figure '{name}' among {:?}", self.0.keys()))
    }
}

/// CPU time of a process so far in seconds, including ended threads.
pub fn cpu_seconds(id: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
    let after_name = stat.rsplit_once(") ").context("no name in stat")?.1;
    let ticks = after_name.split(' ').skip(11).take(2).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? / CLOCK_TICKS)
}
