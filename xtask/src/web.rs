//! The web page: build, tests, benchmarks. crates/server/build.rs embeds it into the program.

use crate::{build, install, process, workspace};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// The command of the page's unit tests.
pub fn tests() -> Result<Command> {
    script("test")
}

/// The command of the tests of this program and its page in a browser. If nginx is not installed, that
/// of the peers is used.
pub fn browser_tests(numa: &Path) -> Result<Command> {
    in_browser(script("e2e")?, numa)
}

/// The command of some files of these tests, once all were built.
pub fn browser_files<'a>(numa: &Path, files: impl Iterator<Item = &'a String>) -> Result<Command> {
    let mut command = Command::new("node");
    command
        .args(["--test", "--test-concurrency=1", "--test-reporter=spec"])
        .args(files)
        .current_dir(folder());
    in_browser(command, numa)
}

fn in_browser(mut command: Command, numa: &Path) -> Result<Command> {
    command.env("NUMA", numa).env("NUMAKIT_NUMA", numa);
    for name in build::GENERATORS {
        if let Some(path) = build::generator(name) {
            command.env(name.to_uppercase(), path);
        }
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
