//! All Rust tests of all packages: built once, run program by program. Those that measure run last, alone.

use super::console::{Console, Output};
use super::home::Homes;
use super::libtest::Report;
use super::options::{Measuring, Options};
use super::programs::{self, Job, Split};
use super::queue::{self, Event};
use super::second;
use super::tracefs::Tracefs;
use crate::process;
use anyhow::Result;
use std::ffi::OsString;
use std::process::Command;
use std::time::{Duration, Instant};

/// Environment variables of tests.
pub type Environment = Vec<(&'static str, OsString)>;

/// The tests that were built and chosen.
#[derive(Default)]
pub struct Tests {
    beside: Vec<Job>,
    alone: Vec<Job>,
}

/// What tests run in.
pub struct Surroundings {
    environment: Environment,
    homes: Homes,
    tracefs: Tracefs,
}

/// The state of some jobs.
struct Run<'a> {
    console: &'a Console,
    jobs: &'a [Job],
    reports: Vec<Report>,
    /// When a test of each job ended last.
    last: Vec<Instant>,
    /// Number of tests of ended jobs.
    ended_tests: usize,
}

/// Builds the tests, and chooses those of the tier.
pub fn build(console: &Console, options: &Options) -> Result<Tests> {
    let step = "build of all tests: cargo test --no-run";
    let mut tests = Tests::default();
    for program in console.part(step, || programs::build(&options.packages))? {
        let Split { beside, alone, left } = program.split(options.thorough)?;
        tests.beside.extend(beside);
        tests.alone.extend(alone);
        console.lock().tally.left += left;
    }
    let (option, which, jobs) = match options.measuring {
        Measuring::Last => return Ok(tests),
        Measuring::Without => ("--without-measuring", "that measure", &mut tests.alone),
        Measuring::Only => ("--only-measuring", "that do not measure", &mut tests.beside),
    };
    let count: usize = jobs.drain(..).map(|job| job.count).sum();
    console.lock().progress.say(&format!("{option}: {count} tests {which} do not run"));
    Ok(tests)
}

impl Surroundings {
    /// With these variables for all tests.
    pub fn new(environment: Environment) -> Self {
        Self { environment, homes: Homes::new(), tracefs: Tracefs::probe() }
    }

    /// A command in these surroundings, with folders of its own.
    pub fn of(&self, mut command: Command, name: &str) -> Result<Command> {
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        self.homes.give(&mut command, name)?;
        Ok(command)
    }

    /// The command of a job.
    fn command(&self, job: &Job) -> Result<Command> {
        let mut command = job.program.command();
        command.arg("--show-output").args(&job.choice);
        Ok(self.tracefs.wrap(self.of(command, &job.program.name())?))
    }
}

/// Runs the tests that may run beside others, a program for each CPU.
pub fn beside(console: &Console, tests: &Tests, all: &Surroundings) -> Result<()> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let one_by_one = |job: &Job| job.program.one_by_one;
    Run::of(console, &tests.beside, all, &one_by_one, cpus)?;
    doc(console, all)
}

/// Runs the tests that measure, one after the other. Those that fail have a second try.
pub fn alone(console: &Console, tests: &Tests, all: &Surroundings) -> Result<()> {
    let count: usize = tests.alone.iter().map(|job| job.count).sum();
    if count == 0 {
        return Ok(());
    }
    console.lock().progress.begin(&format!("{count} tests that measure, alone"));
    let reports = Run::of(console, &tests.alone, all, &|_| true, 1)?;
    let failed: Vec<(&Job, &Report)> =
        tests.alone.iter().zip(&reports).filter(|(_, report)| !report.failed_names.is_empty()).collect();
    second::tries(console, &failed, |job| all.command(job))
}

impl Run<'_> {
    /// Runs jobs; returns their results.
    fn of(
        console: &Console,
        jobs: &[Job],
        all: &Surroundings,
        one_by_one: &dyn Fn(&Job) -> bool,
        workers: usize,
    ) -> Result<Vec<Report>> {
        let command = |job: &Job| {
            let mut command = all.command(job)?;
            command.args(one_by_one(job).then_some("--test-threads=1"));
            Ok(command)
        };
        let commands = jobs.iter().map(command).collect::<Result<Vec<_>>>()?;
        let reports = jobs.iter().map(|_| Report::default()).collect();
        let mut run = Run { console, jobs, reports, last: vec![Instant::now(); jobs.len()], ended_tests: 0 };
        queue::run(commands, workers, |at, event| run.take(at, event));
        Ok(run.reports)
    }

    fn take(&mut self, at: usize, event: Event) {
        let (job, report) = (&self.jobs[at], &mut self.reports[at]);
        let name = job.program.name();
        match event {
            Event::Started => {
                self.last[at] = Instant::now();
                let state = self.state();
                self.console.lock().progress.begin_quietly(&format!("{name}: {} tests; {state}", job.count));
            }
            Event::Line(line) => {
                let before = report.ended;
                let Output { progress, tally } = &mut *self.console.lock();
                if let Some(shown) = report.line(tally, &line) {
                    let of = if shown.ends_with("FAILED") { format!("{name}: ") } else { String::new() };
                    progress.say(&format!("{of}{shown}"));
                }
                if report.ended > before {
                    progress.took_test(format!("{name} {}", report.last), self.last[at].elapsed());
                    self.last[at] = Instant::now();
                }
            }
            Event::Ended(status, time) => {
                self.ended(at, status, time);
                return;
            }
        }
        let (state, report) = (self.state(), &self.reports[at]);
        let (ended, last) = (report.ended, &report.last);
        self.console.lock().progress.status(&format!("{name}: {ended} of {}; {state}; {last}", job.count));
    }

    fn ended(&mut self, at: usize, status: Result<std::process::ExitStatus>, time: Duration) {
        let (job, report) = (&self.jobs[at], &self.reports[at]);
        self.ended_tests += job.count;
        let name = job.program.name();
        self.console.lock().progress.took(&name, time);
        let why = match status {
            Ok(_) if report.complete => return,
            Ok(status) => anyhow::anyhow!("{status}, after the test '{}'", report.last),
            Err(error) => error,
        };
        self.console.fail(&name, &why);
    }

    /// The progress as text.
    fn state(&self) -> String {
        let all: usize = self.jobs.iter().map(|job| job.count).sum();
        let left = all - self.ended_tests;
        format!("so far {}, {left} tests left", self.console.lock().tally)
    }
}

/// Runs the examples in comments, all packages'.
fn doc(console: &Console, all: &Surroundings) -> Result<()> {
    let mut cargo = process::cargo(&["test", "--workspace", "--doc", "--no-fail-fast", "--"]);
    cargo.arg("--show-output").envs(all.environment.iter().map(|(name, value)| (name, value)));
    let mut report = Report::default();
    let part = "examples in comments: cargo test --doc";
    let status = console.part(part, || {
        queue::followed(&mut cargo, Duration::from_secs(600), |line| {
            let Output { progress, tally } = &mut *console.lock();
            if let Some(shown) = report.line(tally, &line) {
                progress.say(&shown);
            }
        })
    })?;
    if !status.success() && report.failed == 0 {
        anyhow::bail!("{status}: {}", process::line(&cargo));
    }
    Ok(())
}
