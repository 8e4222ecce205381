//! `cargo xtask test`: format, lints and all tests.
//!
//! What depends on nothing but its input runs first, a program for each CPU, beside the tests in a browser. Tests that measure
//! run last and alone. `--thorough` adds the second tier: tests that are marked as ignored, and more rounds of others.

mod console;
mod home;
mod libtest;
mod node;
mod options;
mod programs;
mod progress;
mod queue;
mod rust;
mod second;
mod speed;
mod tally;
mod tracefs;

use crate::{bench, engines, install, mpis, peers, process, python, sciences, web, workspace};
use anyhow::{Result, bail};
use console::{Console, Output};
use options::{Measuring, Options};
use rust::{Environment, Surroundings, Tests};
use speed::Speed;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// Programs that tests use, and their Debian packages.
const TOOLS: [install::Tool; 19] = [
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
    (&["sh", "-c", "ls /usr/lib/*/libjemalloc.so.2"], "libjemalloc2"),
    (&["valgrind", "--version"], "valgrind"),
    (&["runc", "--version"], "runc golang-github-containers-common"),
    (&["chromium", "--version"], "chromium"),
    (&["mpicc.openmpi", "--version"], "libopenmpi-dev openmpi-bin"),
    (&["mpicc.mpich", "--version"], "libmpich-dev mpich"),
];
/// A file of tests in a browser that takes longer hangs, and what prints nothing for twice as long.
const LIMIT: Duration = Duration::from_secs(300);
const THOROUGH_LIMIT: Duration = Duration::from_secs(900);

/// Runs all checks, even after failures, and prints the totals at the end.
pub fn run(words: &[String]) -> Result<ExitCode> {
    let ci = options::ci();
    let options = Options::parse(words, ci)?;
    if ci.is_some() {
        let names: Vec<&str> = options.required.iter().map(|kind| kind.name).collect();
        println!("CI=true: tests of these kinds may not be skipped: {}", names.join(", "));
    }
    let run = Run { console: Console::new(), options };
    let start = Speed::measure();
    run.everything()?;
    run.end(start)
}

/// One run of all checks.
struct Run {
    console: Console,
    options: Options,
}

impl Run {
    fn everything(&self) -> Result<()> {
        if !self.options.packages.is_empty() {
            let tests = rust::build(&self.console, &self.options)?;
            return self.tests(&tests, self.environment(), false);
        }
        self.check("C compiler and make", install::need_c);
        let has_page = web::can_build();
        // What is fetched and installed comes while the compiler works.
        let (tests, environment) = std::thread::scope(|scope| {
            let environment = scope.spawn(|| self.environment());
            let tests = self.built(has_page);
            (tests, environment.join().unwrap_or_default())
        });
        self.tests(&tests?, environment, has_page)
    }

    /// Checks and builds all that is compiled.
    fn built(&self, has_page: bool) -> Result<Tests> {
        let is_checked = self.options.measuring != Measuring::Only;
        if is_checked {
            self.check("format", format);
        }
        if has_page {
            self.check("the page: npm run build", web::build);
        } else {
            let reason = "the page and its tests: Node.js and npm are not installed";
            self.skip(&numakit_skips::PAGE, reason);
        }
        if is_checked {
            self.check("lints: cargo clippy", clippy);
        }
        self.check("floors in C", || bench::floor::build().map(drop));
        rust::build(&self.console, &self.options)
    }

    fn tests(&self, tests: &Tests, mut environment: Environment, has_page: bool) -> Result<()> {
        environment.push(("NUMAKIT_NUMA", workspace::numa().into()));
        environment.extend(self.options.thorough.then(|| (numakit_skips::THOROUGH, "1".into())));
        let surroundings = Surroundings::new(environment);
        if self.options.measuring != Measuring::Only {
            std::thread::scope(|scope| {
                if has_page {
                    scope.spawn(|| self.page(&surroundings));
                }
                rust::beside(&self.console, tests, &surroundings)
            })?;
        }
        rust::alone(&self.console, tests, &surroundings)?;
        if has_page && self.options.measuring != Measuring::Without && web::can_test().is_ok() {
            let command = web::browser_tests(web::Files::Measuring, self.limit())
                .and_then(|command| surroundings.of(command, "browser"));
            self.suite("tests in a browser that measure, alone", command);
        }
        Ok(())
    }

    /// Prints the end of the run.
    fn end(&self, start: Speed) -> Result<ExitCode> {
        let end = Speed::measure();
        let Output { progress, tally } = &mut *self.console.lock();
        progress.clear();
        progress.summary().iter().for_each(|line| println!("{line}"));
        std::fs::write(workspace::target().join("test-times.txt"), progress.times())?;
        let kinds = tally.kinds();
        if !kinds.is_empty() {
            println!("skipped, by kind:\n{}", kinds.join("\n"));
        }
        tally.require(&self.options.required).iter().for_each(|line| println!("{line}"));
        tally.unsteady.iter().for_each(|name| println!("passed at the second try, find out why: {name}"));
        if tally.left > 0 {
            println!("{} tests run only with --thorough", tally.left);
        }
        println!("{}", speed::line(start, end));
        println!("{tally}");
        Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Runs a check that is not a test program.
    fn check(&self, name: &str, check: impl FnOnce() -> Result<()>) {
        let result = self.console.part(name, check);
        match result {
            Ok(()) => self.console.lock().tally.passed += 1,
            Err(error) => self.console.fail(name, &error),
        }
    }

    /// Notes a suite that cannot run here.
    fn skip(&self, kind: &numakit_skips::Kind, reason: &str) {
        let line = format!("skipped ({}): {reason}", kind.name);
        let mut output = self.console.lock();
        output.tally.skipped += 1;
        output.tally.skip(numakit_skips::Skip { kind: kind.name, in_part: false }, &line);
        output.progress.say(&line);
    }

    fn limit(&self) -> Duration {
        if self.options.thorough { THOROUGH_LIMIT } else { LIMIT }
    }

    /// Runs the unit tests of the page, and those in a browser.
    fn page(&self, surroundings: &Surroundings) {
        if let Err(error) = web::can_test() {
            return self.skip(&numakit_skips::PAGE, &format!("{error:#}"));
        }
        self.suite("unit tests of the page", web::tests());
        match web::need_browser() {
            Ok(()) => {
                let command = web::browser_tests(web::Files::Others, self.limit())
                    .and_then(|command| surroundings.of(command, "browser"));
                self.suite("tests in a browser", command);
            }
            Err(error) => self.skip(&numakit_skips::BROWSER, &format!("tests in a browser: {error:#}")),
        }
    }

    /// Runs tests of Node.js.
    fn suite(&self, name: &str, command: Result<Command>) {
        self.console.part(name, || {
            command
                .and_then(|command| self.node(command))
                .unwrap_or_else(|error| self.console.fail(name, &error));
        });
    }

    fn node(&self, mut command: Command) -> Result<()> {
        let mut report = node::Report::default();
        let status = queue::followed(&mut command, 2 * self.limit(), |line| {
            let Output { progress, tally } = &mut *self.console.lock();
            if let Some(shown) = report.line(tally, &line) {
                progress.say(&shown);
            }
            progress.status(&line);
        })?;
        if !status.success() && report.failed == 0 {
            bail!("{status}: {}", process::line(&command));
        }
        Ok(())
    }

    /// Installs the programs that tests use, and returns variables with their paths. Tests without their
    /// programs are skipped.
    fn environment(&self) -> Environment {
        let mut environment = Environment::new();
        let mut note = |variable, what: &str, found: Result<std::path::PathBuf>| match found {
            Ok(path) => environment.push((variable, path.into())),
            Err(error) => self.console.lock().progress.say(&format!("no {what}: {error:#}")),
        };
        let missing = self.console.part("programs that tests use: apt-get", || install::all(&TOOLS));
        note("NUMAKIT_PYTHON", "Python packages", self.console.part("packages of Python", python::venv));
        note("NUMAKIT_PEERS", "servers for exports", self.console.part("servers for exports", peers::folder));
        note("NUMAKIT_DATABASES", "databases", self.console.part("databases", peers::databases));
        note("NUMAKIT_MPIS", "MPI libraries", self.console.part("MPI libraries", mpis::folder));
        if self.options.thorough {
            note("NUMAKIT_ENGINES", "engines for numa push", self.console.part("engines", engines::folder));
            let sciences = self.console.part("BLAS, HPL, GROMACS", sciences::folder);
            note("NUMAKIT_SCIENCES", "programs of computing centres", sciences);
        }
        missing.iter().for_each(|line| self.console.lock().progress.say(line));
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
