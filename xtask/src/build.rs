//! `cargo xtask build`: the program, its man pages and its shell completions.

use crate::{install, process, web, workspace};
use anyhow::{Result, bail};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Builds and says where the results are.
pub fn run(words: &[String]) -> Result<ExitCode> {
    if let Some(word) = words.first() {
        bail!("build takes no arguments, got '{word}'");
    }
    everything()?;
    println!("{}\n{}", workspace::numa().display(), share().display());
    Ok(ExitCode::SUCCESS)
}

/// The page, the release build, target/share with what belongs into /usr/share, and the other names.
pub fn everything() -> Result<()> {
    install::need_c()?;
    web::build()?;
    process::step("cargo build --release: numa (two to five minutes the first time)");
    process::run(&mut process::cargo(&["build", "--release"]))?;
    process::step("cargo run --example generate: man pages and completions");
    let mut generate = process::cargo(&["run", "--release", "-p", "numakit-cli"]);
    process::run(generate.args(["--example", "generate", "--"]).arg(share()))?;
    for name in ["numascope", "numaplace"] {
        link("numa", &workspace::target().join("release").join(name))?;
    }
    Ok(())
}

/// An optimised numa without the long link, for tests that run real programs; `NUMAKIT_NUMA` names
/// another one.
pub fn fast() -> Result<()> {
    if std::env::var_os("NUMAKIT_NUMA").is_some() {
        return Ok(());
    }
    process::run(&mut process::cargo(&["build", "--profile", "fast", "-p", "numakit-cli"]))
}

/// Where [`fast`] leaves it.
pub fn fast_numa() -> PathBuf {
    std::env::var_os("NUMAKIT_NUMA").map_or_else(|| workspace::target().join("fast/numa"), PathBuf::from)
}

fn share() -> PathBuf {
    workspace::target().join("share")
}

fn link(to: &str, path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    Ok(symlink(to, path)?)
}
