//! All Rust tests of all packages: built once, run program by program.

use super::console::{Console, Output};
use super::libtest::Report;
use super::programs::{self, Program};
use super::queue::{self, Event};
use super::second;
use super::tracefs::Tracefs;
use crate::process;
use anyhow::Result;
use std::ffi::OsString;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Environment variables of tests.
pub type Environment = Vec<(&'static str, OsString)>;

/// The programs of all tests, with the number of tests in each.
pub struct Tests(Vec<(Program, usize)>);

/// The state of the run.
struct Run<'a> {
    console: &'a Console,
    is_quiet: &'a AtomicBool,
    programs: Vec<(Program, usize)>,
    packages: Vec<String>,
    /// Number of started packages.
    started_packages: usize,
    /// Number of tests of ended programs.
    ended_tests: usize,
    /// Programs and their tests that failed.
    failed: Vec<(Program, Vec<String>)>,
}

/// Builds the tests.
pub fn build(console: &Console) -> Result<Tests> {
    let step = "build of all tests: cargo test --workspace --no-run";
    let built = console.lock().progress.part(step, programs::build)?;
    let count = |program: Program| Ok((program.count()?, program)).map(|(count, program)| (program, count));
    Ok(Tests(built.into_iter().map(count).collect::<Result<_>>()?))
}

/// Runs the tests. Programs run in parallel only once `is_quiet` is set.
pub fn run(
    console: &Console,
    Tests(programs): Tests,
    environment: &Environment,
    is_quiet: &AtomicBool,
) -> Result<()> {
    let mut packages: Vec<String> = programs.iter().map(|(program, _)| program.package.clone()).collect();
    packages.dedup();
    let tracefs = Tracefs::probe();
    let mut run = Run {
        console,
        is_quiet,
        programs,
        packages,
        started_packages: 0,
        ended_tests: 0,
        failed: Vec::new(),
    };
    for number in 0..run.packages.len() {
        run.package(number, environment, &tracefs);
    }
    doc(console, environment)?;
    while !is_quiet.load(Ordering::Acquire) {
        std::thread::sleep(queue::PAUSE);
    }
    second::tries(console, &run.failed, |program| command(program, environment, &tracefs))
}

impl Run<'_> {
    /// Runs the programs of one package.
    fn package(&mut self, number: usize, environment: &Environment, tracefs: &Tracefs) {
        let name = self.packages[number].clone();
        let programs: Vec<_> =
            self.programs.iter().filter(|(program, _)| program.package == name).cloned().collect();
        let parallel = programs.iter().any(|(program, _)| program.parallel);
        self.started_packages = number + 1;
        let tests: usize = programs.iter().map(|(_, count)| count).sum();
        let state = self.state();
        self.console.lock().progress.begin_quietly(&format!("{name}: {tests} tests; {state}"));
        let commands = programs.iter().map(|(program, _)| {
            let mut command = command(program, environment, tracefs);
            if parallel {
                command.arg("--test-threads=1");
            }
            command
        });
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = if parallel { cpus } else { 1 };
        let mut reports: Vec<Report> = programs.iter().map(|_| Report::default()).collect();
        queue::run(commands.collect(), workers, self.is_quiet, |at, event| {
            let (program, count) = &programs[at];
            self.take(program, *count, &mut reports[at], event);
        });
    }

    fn take(&mut self, program: &Program, count: usize, report: &mut Report, event: Event) {
        match event {
            Event::Started => {}
            Event::Line(line) => {
                let Output { progress, tally } = &mut *self.console.lock();
                if let Some(shown) = report.line(tally, &line) {
                    let of = if shown.ends_with("FAILED") {
                        format!("{}: ", program.name())
                    } else {
                        String::new()
                    };
                    progress.say(&format!("{of}{shown}"));
                }
            }
            Event::Ended(status, time) => {
                self.ended(program, report, status, time);
                self.ended_tests += count;
                return;
            }
        }
        let state = self.state();
        let (name, ended, last) = (program.name(), report.ended, &report.last);
        self.console.lock().progress.status(&format!("{name}: {ended} of {count}; {state}; {last}"));
    }

    fn ended(
        &mut self,
        program: &Program,
        report: &Report,
        status: Result<std::process::ExitStatus>,
        time: Duration,
    ) {
        self.console.lock().progress.took(&program.name(), time);
        if report.failed > 0 {
            self.failed.push((program.clone(), report.failed_names.clone()));
        }
        let why = match status {
            Ok(_) if report.complete => return,
            Ok(status) => anyhow::anyhow!("{status}, after the test '{}'", report.last),
            Err(error) => error,
        };
        self.console.fail(&program.name(), &why);
    }

    /// The progress as text.
    fn state(&self) -> String {
        let all: usize = self.programs.iter().map(|(_, count)| count).sum();
        let (started_packages, packages, left) =
            (self.started_packages, self.packages.len(), all - self.ended_tests);
        format!(
            "package {started_packages} of {packages}; so far {}, {left} tests left",
            self.console.lock().tally
        )
    }
}

/// The command of a test program.
fn command(program: &Program, environment: &Environment, tracefs: &Tracefs) -> Command {
    let mut command = program.command();
    command.arg("--show-output").envs(environment.iter().map(|(name, value)| (name, value)));
    tracefs.wrap(command)
}

/// Runs the doc tests.
fn doc(console: &Console, environment: &Environment) -> Result<()> {
    let mut cargo = process::cargo(&["test", "--workspace", "--doc", "--no-fail-fast", "--"]);
    cargo.arg("--show-output").envs(environment.iter().map(|(name, value)| (name, value)));
    let mut report = Report::default();
    let started = std::time::Instant::now();
    console.lock().progress.begin("examples in comments: cargo test --doc");
    let status = queue::followed(&mut cargo, Duration::from_secs(600), |line| {
        let Output { progress, tally } = &mut *console.lock();
        if let Some(shown) = report.line(tally, &line) {
            progress.say(&shown);
        }
    })?;
    console.lock().progress.took("examples in comments", started.elapsed());
    if !status.success() && report.failed == 0 {
        anyhow::bail!("{status}: {}", process::line(&cargo));
    }
    Ok(())
}
