//! Programs that tasks need: as root they are installed, otherwise an error has the command.

use crate::process;
use anyhow::{Result, bail};
use std::process::{Command, Stdio};

/// A command that works where a program is installed, and the Debian packages that install it, separated by blanks.
pub type Tool = (&'static [&'static str], &'static str);

/// Installs all tools that do not work, at once. Returns a line for each that still does not.
pub fn all(tools: &[Tool]) -> Vec<String> {
    let missing: Vec<&Tool> = tools.iter().filter(|(probe, _)| !works(probe)).collect();
    let packages: Vec<&str> = missing.iter().flat_map(|(_, packages)| packages.split(' ')).collect();
    let install = format!("apt-get install -y {}", packages.join(" "));
    if !packages.is_empty() && is_root() && apt(&packages).is_err() {
        // An unavailable one must not keep the others away.
        packages.iter().for_each(|package| drop(apt(&[package])));
    }
    let failed = missing.iter().filter(|(probe, _)| !works(probe));
    failed.map(|(_, packages)| format!("no {packages}; 'sudo {install}' may help")).collect()
}

/// Makes sure that `probe` runs; `packages` are its Debian packages.
pub fn need(probe: &[&str], packages: &[&str]) -> Result<()> {
    if works(probe) {
        return Ok(());
    }
    let install = format!("apt-get install -y {}", packages.join(" "));
    if !is_root() {
        bail!("'{}' does not work here; install it with: sudo {install}", probe.join(" "));
    }
    apt(packages)?;
    if !works(probe) {
        bail!("'{}' still does not work after: {install}", probe.join(" "));
    }
    Ok(())
}

/// Installs packages, as root. Another installation that runs is waited for.
fn apt(packages: &[&str]) -> Result<()> {
    println!("apt-get install -y {}", packages.join(" "));
    process::run(Command::new("apt-get").arg("update").stdout(Stdio::null()))?;
    let words = ["install", "-y", "-o", "DPkg::Lock::Timeout=300"];
    process::run(Command::new("apt-get").args(words).args(packages).stdout(Stdio::null()))
}

/// Makes sure that C can be compiled: the program embeds the preloaded library.
pub fn need_c() -> Result<()> {
    need(&["make", "--version"], &["make"])?;
    need(&["gcc", "--version"], &["gcc", "libc6-dev"])
}

/// Makes sure that a component of the Rust toolchain is installed.
pub fn need_component(probe: &[&str], component: &str) -> Result<()> {
    if !works(probe) {
        process::run(Command::new("rustup").args(["component", "add", component]))?;
    }
    Ok(())
}

fn works(probe: &[&str]) -> bool {
    let Some((program, arguments)) = probe.split_first() else { return true };
    let status = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|s| s.success())
}

/// Whether this runs as root.
pub fn is_root() -> bool {
    process::read(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}
