//! The web page: build, tests, benchmarks. crates/server/build.rs embeds it into the program.

use crate::{install, process, workspace};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// The first version of Node.js that ends a test program that hangs.
const TESTS_NEED: [u32; 2] = [20, 14];

fn folder() -> PathBuf {
    workspace::root().join("web")
}

/// Whether Node.js and npm run.
pub fn can_build() -> bool {
    ["node", "npm"].iter().all(|name| process::read(Command::new(name).arg("--version")).is_ok())
}

/// Builds web/dist, which tests and packages of the server crate use.
pub fn build() -> Result<()> {
    packages()?;
    process::step("npm run build: the page");
    process::run(Command::new("npm").args(["run", "--silent", "build"]).current_dir(folder()))
}

/// Whether Node.js can run the tests of the page, with limits; otherwise what is missing.
pub fn can_test() -> Result<()> {
    let version = process::read(Command::new("node").arg("--version"))?;
    let numbers: Vec<u32> =
        version.trim().trim_start_matches('v').split('.').map_while(|n| n.parse().ok()).collect();
    if numbers.as_slice() < TESTS_NEED.as_slice() {
        bail!(
            "tests of the page need Node.js {}.{}, and this is {}",
            TESTS_NEED[0],
            TESTS_NEED[1],
            version.trim()
        );
    }
    Ok(())
}

/// The command of the page's unit tests.
pub fn tests() -> Result<Command> {
    script("test")
}

/// Which tests in a browser.
pub enum Files {
    /// Those that measure: their names begin with `measuring`.
    Measuring,
    /// All others.
    Others,
}

/// The command of the tests of numa and its page in a browser, with numa and the generators of recordings that all tests are
/// built with. If nginx is not installed, that of the peers is used.
///
/// A file of tests may take as long as `limit`.
pub fn browser_tests(files: Files, limit: Duration) -> Result<Command> {
    packages()?;
    process::run(Command::new("node").args(["build.mjs", "e2e"]).current_dir(folder()))?;
    let mut command = Command::new("node");
    command.args(["--test", "--test-concurrency=1", "--test-force-exit", "--test-reporter=spec"]);
    command.arg(format!("--test-timeout={}", limit.as_millis()));
    for file in fs::read_dir(folder().join("dist-e2e")).context("cannot list web/dist-e2e")? {
        let name = file?.file_name().to_string_lossy().into_owned();
        let is_chosen = name.starts_with("measuring") == matches!(files, Files::Measuring);
        if is_chosen && name.ends_with(".js") {
            command.arg(format!("dist-e2e/{name}"));
        }
    }
    command.current_dir(folder()).env("NUMA", workspace::numa());
    for name in ["long", "pairs"] {
        command.env(name.to_uppercase(), workspace::built().join("examples").join(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([workspace::target().join("peers/usr/sbin")]);
    command.env("PATH", std::env::join_paths(folders)?);
    Ok(command)
}

/// Makes sure that a browser is installed.
pub fn need_browser() -> Result<()> {
    let browser = std::env::var("CHROMIUM").unwrap_or_else(|_| "chromium".into());
    install::need(&[&browser, "--version"], &["chromium"])
}

/// Builds a program of web/bench and returns its command. Most of them open pages.
pub fn bench(name: &str) -> Result<Command> {
    need_browser()?;
    packages()?;
    process::run(Command::new("node").args(["build.mjs", "bench"]).current_dir(folder()))?;
    let mut command = Command::new("node");
    command.arg(folder().join(format!("dist-bench/{name}.js"))).current_dir(folder());
    Ok(command)
}

/// Compressed size of the page's scripts and styles in bytes.
pub fn compressed_size() -> Result<f64> {
    build()?;
    let size = |name: &str| -> Result<f64> {
        let file = folder().join("dist").join(name);
        Ok(Command::new("gzip").args(["-9", "-c"]).arg(file).output()?.stdout.len() as f64)
    };
    ["app.js", "app.css"].into_iter().map(size).sum()
}

fn script(name: &str) -> Result<Command> {
    packages()?;
    let mut command = Command::new("npm");
    command.args(["run", "--silent", name]).current_dir(folder());
    Ok(command)
}

/// Installs the packages of package-lock.json, on first use and after it changed.
fn packages() -> Result<()> {
    let lock = folder().join("package-lock.json");
    let installed = folder().join("node_modules/.installed");
    let wanted = fs::read(&lock).with_context(|| format!("cannot read {}", lock.display()))?;
    if fs::read(&installed).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    process::step("npm ci: the packages that the page is built with");
    let words = ["ci", "--silent", "--no-audit", "--no-fund"];
    process::run(Command::new("npm").args(words).current_dir(folder()))?;
    fs::write(installed, wanted)?;
    Ok(())
}
