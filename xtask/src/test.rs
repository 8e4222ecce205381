//! `cargo xtask test`: all checks that need neither root nor NUMA hardware.

mod console;
mod libtest;
mod node;
mod options;
mod programs;
mod progress;
mod queue;
mod rust;
mod second;
mod tally;
mod tracefs;

use crate::{bench, build, install, peers, process, python, web};
use anyhow::{Result, bail};
use console::{Console, Output};
use options::Required;
use rust::Environment;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Programs that tests use, and their Debian packages.
const PEERS: [(&[&str], &str); 15] = [
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
];
/// With failed tests in more files than this there is no second try.
const MOST_FILES: usize = 4;
/// A browser test that prints nothing for this long hangs.
const SILENCE: Duration = Duration::from_secs(600);

/// Runs all checks, even after failures, and prints the totals at the end.
pub fn run(words: &[String]) -> Result<ExitCode> {
    let ci = options::ci();
    let required = Required::parse(words, ci)?;
    if ci.is_some() {
        let names: Vec<&str> = required.kinds.iter().map(|kind| kind.name).collect();
        println!("CI=true: tests of these kinds may not be skipped: {}", names.join(", "));
    }
    let run = Run { console: Console::new(), failed_page: Mutex::default() };
    run.everything()?;
    let Output { progress, tally } = &mut *run.console.lock();
    progress.clear();
    progress.summary().iter().for_each(|line| println!("{line}"));
    let kinds = tally.kinds();
    if !kinds.is_empty() {
        println!("skipped, by kind:\n{}", kinds.join("\n"));
    }
    tally.require(&required).iter().for_each(|line| println!("{line}"));
    tally.unsteady.iter().for_each(|name| println!("passed at the second try, alone: {name}"));
    println!("{tally}");
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One run of all checks.
struct Run {
    console: Console,
    /// What failed in a browser.
    failed_page: Mutex<node::Report>,
}

impl Run {
    fn everything(&self) -> Result<()> {
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
        let tests = rust::build(&self.console)?;
        // Tests in a browser use one CPU; until they have ended, the packages use the others.
        let page_ended = AtomicBool::new(!has_page);
        std::thread::scope(|scope| {
            if has_page {
                scope.spawn(|| {
                    self.page(&build::fast_numa());
                    page_ended.store(true, Ordering::Release);
                });
            }
            rust::run(&self.console, tests, &environment, &page_ended)
        })?;
        self.page_again(&build::fast_numa());
        Ok(())
    }

    /// Runs a check that is not a test program.
    fn check(&self, name: &str, check: impl FnOnce() -> Result<()>) {
        let result = self.part(name, check);
        match result {
            Ok(()) => self.console.lock().tally.passed += 1,
            Err(error) => self.console.fail(name, &error),
        }
    }

    /// Prints the name of a part and runs it, while no other suite runs.
    fn part<T>(&self, name: &str, run: impl FnOnce() -> T) -> T {
        self.console.lock().progress.part(name, run)
    }

    /// Notes a suite that cannot run here.
    fn skip(&self, kind: &numakit_skips::Kind, reason: &str) {
        let line = format!("skipped ({}): {reason}", kind.name);
        let mut output = self.console.lock();
        output.tally.skipped += 1;
        output.tally.skip(numakit_skips::Skip { kind: kind.name, in_part: false }, &line);
        output.progress.say(&line);
    }

    /// Runs the unit tests of the page, and those in a browser.
    fn page(&self, numa: &Path) {
        let _ = self.suite("unit tests of the page", web::tests());
        match web::need_browser() {
            Ok(()) => {
                let report = self.suite("tests in a browser", web::browser_tests(numa));
                *self.failed_page.lock().unwrap_or_else(PoisonError::into_inner) = report;
            }
            Err(error) => self.skip(&numakit_skips::BROWSER, &format!("tests in a browser: {error:#}")),
        }
    }

    /// Runs the files in which tests failed in a browser again, with nothing beside them. They count as passed if all of them
    /// pass now.
    fn page_again(&self, numa: &Path) {
        let first = std::mem::take(&mut *self.failed_page.lock().unwrap_or_else(PoisonError::into_inner));
        if first.failed_files.is_empty() || first.failed_files.len() > MOST_FILES {
            return;
        }
        let files: Vec<&str> = first.failed_files.iter().map(String::as_str).collect();
        let part = format!("second try in a browser: {}", files.join(", "));
        let before = self.console.lock().tally.clone();
        let again = self.suite(&part, web::browser_files(numa, first.failed_files.iter()));
        let tally = &mut self.console.lock().tally;
        let failed = tally.failed;
        *tally = before;
        if again.failed == 0 && failed == tally.failed {
            tally.failed = tally.failed.saturating_sub(first.failed);
            tally.passed += first.failed;
            tally.unsteady.extend(files.iter().map(|file| format!("a browser's {file}")));
        }
    }

    /// Runs tests of Node.js.
    fn suite(&self, name: &str, command: Result<Command>) -> node::Report {
        self.console.lock().progress.begin(name);
        let started = Instant::now();
        let report = command.and_then(|command| self.node(command)).unwrap_or_else(|error| {
            self.console.fail(name, &error);
            node::Report::default()
        });
        self.console.lock().progress.took(name, started.elapsed());
        report
    }

    fn node(&self, mut command: Command) -> Result<node::Report> {
        let mut report = node::Report::default();
        let status = queue::followed(&mut command, SILENCE, |line| {
            let Output { progress, tally } = &mut *self.console.lock();
            if let Some(shown) = report.line(tally, &line) {
                progress.say(&shown);
            }
            progress.status(&line);
        })?;
        if !status.success() && report.failed == 0 {
            bail!("{status}: {}", process::line(&command));
        }
        Ok(report)
    }

    /// Installs the programs that tests use, and returns variables with their paths. Tests without their
    /// programs are skipped.
    fn environment(&self) -> Environment {
        let mut environment = Environment::new();
        let python = self.part("Python with pyarrow, pandas, polars and mcp", python::venv);
        match python {
            Ok(path) => environment.push(("NUMAKIT_PYTHON", path.into())),
            Err(error) => {
                self.console.lock().progress.say(&format!("no pyarrow, pandas, polars and mcp: {error:#}"))
            }
        }
        let servers = self.part("servers that exports are tried with", peers::folder);
        match servers {
            Ok(path) => environment.push(("NUMAKIT_PEERS", path.into())),
            Err(error) => self.console.lock().progress.say(&format!("no InfluxDB and Prometheus: {error:#}")),
        }
        let databases = self.part("databases that run with the allocator", peers::databases);
        match databases {
            Ok(path) => environment.push(("NUMAKIT_DATABASES", path.into())),
            Err(error) => self.console.lock().progress.say(&format!("no Redis and MariaDB: {error:#}")),
        }
        let runtime = ["runc", "golang-github-containers-common"];
        if let Err(error) = install::need(&["runc", "--version"], &runtime) {
            self.console.lock().progress.say(&format!("no containers: {error:#}"));
        }
        for (probe, package) in PEERS {
            if let Err(error) = install::need(probe, &[package]) {
                self.console.lock().progress.say(&format!("no {package}: {error:#}"));
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
