//! All Rust tests of all packages: built once, run program by program.

use super::libtest::Report;
use super::programs::{self, Program};
use super::progress::Progress;
use super::queue::{self, Event};
use super::tally::Tally;
use super::tracefs::Tracefs;
use crate::process;
use anyhow::Result;
use std::ffi::OsString;
use std::time::Duration;

/// Environment variables of tests.
pub type Environment = Vec<(&'static str, OsString)>;

/// The state of the run.
struct Run<'a> {
    progress: &'a mut Progress,
    tally: &'a mut Tally,
    programs: Vec<(Program, usize)>,
    packages: Vec<String>,
    /// Number of started packages.
    started_packages: usize,
    /// Number of tests of ended programs.
    ended_tests: usize,
}

/// Builds the tests and runs them.
pub fn run(progress: &mut Progress, tally: &mut Tally, environment: &Environment) -> Result<()> {
    let built = progress.part("build of all tests: cargo test --workspace --no-run", programs::build)?;
    let mut programs = Vec::new();
    for program in built {
        let count = program.count()?;
        programs.push((program, count));
    }
    let mut packages: Vec<String> = programs.iter().map(|(program, _)| program.package.clone()).collect();
    packages.dedup();
    let tracefs = Tracefs::probe();
    let mut run = Run { progress, tally, programs, packages, started_packages: 0, ended_tests: 0 };
    for number in 0..run.packages.len() {
        run.package(number, environment, &tracefs);
    }
    doc(run.progress, run.tally, environment)
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
        self.progress.begin_quietly(&format!("{name}: {tests} tests; {state}"));
        let commands = programs.iter().map(|(program, _)| {
            let mut command = program.command();
            command.arg("--show-output").envs(environment.iter().map(|(name, value)| (name, value)));
            if parallel {
                command.arg("--test-threads=1");
            }
            tracefs.wrap(command)
        });
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = if parallel { cpus } else { 1 };
        let mut reports: Vec<Report> = programs.iter().map(|_| Report::default()).collect();
        queue::run(commands.collect(), workers, |at, event| {
            let (program, count) = &programs[at];
            self.take(program, *count, &mut reports[at], event);
        });
    }

    fn take(&mut self, program: &Program, count: usize, report: &mut Report, event: Event) {
        match event {
            Event::Started => {}
            Event::Line(line) => {
                if let Some(shown) = report.line(self.tally, &line) {
                    let of = if shown.ends_with("FAILED") {
                        format!("{}: ", program.name())
                    } else {
                        String::new()
                    };
                    self.progress.say(&format!("{of}{shown}"));
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
        self.progress.status(&format!("{name}: {ended} of {count}; {state}; {last}"));
    }

    fn ended(
        &mut self,
        program: &Program,
        report: &Report,
        status: Result<std::process::ExitStatus>,
        time: Duration,
    ) {
        self.progress.took(&program.name(), time);
        let why = match status {
            Ok(_) if report.complete => return,
            Ok(status) => format!("{status}, after the test '{}'", report.last),
            Err(error) => format!("{error:#}"),
        };
        self.tally.failed += 1;
        self.progress.say(&format!("FAILED {}: {why}", program.name()));
    }

    /// The progress as text.
    fn state(&self) -> String {
        let all: usize = self.programs.iter().map(|(_, count)| count).sum();
        let (started_packages, packages, left) =
            (self.started_packages, self.packages.len(), all - self.ended_tests);
        format!("package {started_packages} of {packages}; so far {}, {left} tests left", self.tally)
    }
}

/// Runs the doc tests.
fn doc(progress: &mut Progress, tally: &mut Tally, environment: &Environment) -> Result<()> {
    let mut cargo = process::cargo(&["test", "--workspace", "--doc", "--no-fail-fast", "--"]);
    cargo.arg("--show-output").envs(environment.iter().map(|(name, value)| (name, value)));
    let (before, mut report) = (tally.failed, Report::default());
    let started = std::time::Instant::now();
    progress.begin("examples in comments: cargo test --doc");
    let status = queue::followed(&mut cargo, Duration::from_secs(600), |line| {
        if let Some(shown) = report.line(tally, &line) {
            progress.say(&shown);
        }
    })?;
    progress.took("examples in comments", started.elapsed());
    if !status.success() && tally.failed == before {
        anyhow::bail!("{status}: {}", process::line(&cargo));
    }
    Ok(())
}
