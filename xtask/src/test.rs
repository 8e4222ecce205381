//! `cargo xtask test`: all checks that need neither root nor NUMA hardware.

mod libtest;
mod node;
mod options;
mod programs;
mod progress;
mod queue;
mod rust;
mod tally;
mod tracefs;

use crate::{bench, build, install, peers, process, python, web};
use anyhow::{Result, bail};
use options::Required;
use progress::Progress;
use rust::Environment;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use tally::Tally;

/// Programs that tests use, and their Debian packages.
const PEERS: [(&[&str], &str); 13] = [
    (&["numactl", "--hardware"], "numactl"),
    (&["hwloc-calc", "--version"], "hwloc"),
    (&["musl-gcc", "--version"], "musl-tools"),
    (&["capsh", "--print"], "libcap2-bin"),
    (&["g++", "--version"], "g++"),
    (&["gfortran", "--version"], "gfortran"),
    (&["go", "version"], "golang-go"),
    (&["jlink", "--version"], "default-jdk-headless"),
    (&["sqlite3", "--version"], "sqlite3"),
    (&["perl", "--version"], "perl"),
    (&["lua5.4", "-v"], "lua5.4"),
    (&["zstd", "--version"], "zstd"),
    (&["aarch64-linux-gnu-as", "--version"], "binutils-aarch64-linux-gnu"),
];
/// A browser test that prints nothing for this long hangs.
const SILENCE: Duration = Duration::from_secs(600);

/// One run of all checks.
struct Run {
    progress: Progress,
    tally: Tally,
}

/// Runs all checks, even after failures, and prints the totals at the end.
pub fn run(words: &[String]) -> Result<ExitCode> {
    let ci = options::ci();
    let required = Required::parse(words, ci)?;
    if ci.is_some() {
        let names: Vec<&str> = required.kinds.iter().map(|kind| kind.name).collect();
        println!("CI=true: tests of these kinds may not be skipped: {}", names.join(", "));
    }
    let mut run = Run { progress: Progress::new(), tally: Tally::default() };
    run.everything()?;
    run.progress.clear();
    run.progress.summary().iter().for_each(|line| println!("{line}"));
    let kinds = run.tally.kinds();
    if !kinds.is_empty() {
        println!("skipped, by kind:\n{}", kinds.join("\n"));
    }
    run.tally.require(&required).iter().for_each(|line| println!("{line}"));
    println!("{}", run.tally);
    Ok(if run.tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Run {
    fn everything(&mut self) -> Result<()> {
        self.check("format", format);
        self.check("C compiler and make", install::need_c);
        self.check("lints: cargo clippy", clippy);
        self.check("floors in C", || bench::floor::build().map(drop));
        let has_page = web::can_build();
        if has_page {
            self.check("the page: npm run build", web::build);
        } else {
            let reason = "the page and its tests: Node.js and npm are not installed";
            self.skip(&numakit_skips::PAGE, reason);
        }
        let mut environment = self.environment();
        self.check("numa for guests and browsers: cargo build --profile fast", build::fast);
        environment.push(("NUMAKIT_NUMA", build::fast_numa().into()));
        if has_page {
            self.page(&build::fast_numa());
        }
        rust::run(&mut self.progress, &mut self.tally, &environment)
    }

    /// Runs a check that is not a test program.
    fn check(&mut self, name: &str, check: impl FnOnce() -> Result<()>) {
        match self.progress.part(name, check) {
            Ok(()) => self.tally.passed += 1,
            Err(error) => self.fail(name, &error),
        }
    }

    fn fail(&mut self, name: &str, error: &anyhow::Error) {
        self.tally.failed += 1;
        self.progress.say(&format!("FAILED {name}: {error:#}"));
    }

    /// Notes a suite that cannot run here.
    fn skip(&mut self, kind: &numakit_skips::Kind, reason: &str) {
        let line = format!("skipped ({}): {reason}", kind.name);
        self.tally.skipped += 1;
        self.tally.skip(numakit_skips::Skip { kind: kind.name, in_part: false }, &line);
        self.progress.say(&line);
    }

    /// Runs the unit tests of the page, and those in a browser.
    fn page(&mut self, numa: &Path) {
        self.suite("unit tests of the page", web::tests());
        match web::need_browser() {
            Ok(()) => self.suite("tests in a browser", web::browser_tests(numa)),
            Err(error) => self.skip(&numakit_skips::BROWSER, &format!("tests in a browser: {error:#}")),
        }
    }

    /// Runs tests of Node.js.
    fn suite(&mut self, name: &str, command: Result<Command>) {
        self.progress.begin(name);
        let started = Instant::now();
        if let Err(error) = command.and_then(|command| self.node(command)) {
            self.fail(name, &error);
        }
        self.progress.took(name, started.elapsed());
    }

    fn node(&mut self, mut command: Command) -> Result<()> {
        let (before, mut report) = (self.tally.failed, node::Report::default());
        let status = queue::followed(&mut command, SILENCE, |line| {
            if let Some(shown) = report.line(&mut self.tally, &line) {
                self.progress.say(&shown);
            }
            self.progress.status(&line);
        })?;
        if !status.success() && self.tally.failed == before {
            bail!("{status}: {}", process::line(&command));
        }
        Ok(())
    }

    /// Installs the programs that tests use, and returns variables with their paths. Tests without their
    /// programs are skipped.
    fn environment(&mut self) -> Environment {
        let mut environment = Environment::new();
        let python = self.progress.part("Python with pyarrow and polars", python::venv);
        match python {
            Ok(path) => environment.push(("NUMAKIT_PYTHON", path.into())),
            Err(error) => self.progress.say(&format!("no pyarrow and polars: {error:#}")),
        }
        let servers = self.progress.part("servers that exports are tried with", peers::folder);
        match servers {
            Ok(path) => environment.push(("NUMAKIT_PEERS", path.into())),
            Err(error) => self.progress.say(&format!("no InfluxDB and Prometheus: {error:#}")),
        }
        let runtime = ["runc", "golang-github-containers-common"];
        if let Err(error) = install::need(&["runc", "--version"], &runtime) {
            self.progress.say(&format!("no containers: {error:#}"));
        }
        for (probe, package) in PEERS {
            if let Err(error) = install::need(probe, &[package]) {
                self.progress.say(&format!("no {package}: {error:#}"));
            }
        }
        environment
    }
}

fn format() -> Result<()> {
    install::need_component(&["cargo", "fmt", "--version"], "rustfmt")?;
    process::run(&mut process::cargo(&["fmt", "--all", "--check"]))
}

fn clippy() -> Result<()> {
    install::need_component(&["cargo", "clippy", "--version"], "clippy")?;
    let words = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    process::run(&mut process::cargo(&words))
}
