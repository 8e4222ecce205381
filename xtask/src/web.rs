//! The page: built by Node.js where that is there, left out where it is not.

use crate::{process, workspace};
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

fn folder() -> PathBuf {
    workspace::root().join("web")
}

/// Whether Node.js and npm run.
pub fn can_build() -> bool {
    ["node", "npm"].iter().all(|name| process::read(Command::new(name).arg("--version")).is_ok())
}

/// Builds web/dist, which the program takes in. Without Node.js the program has no page, and
/// says so.
pub fn build() -> Result<()> {
    if !can_build() {
        println!("no Node.js and npm: the program will have no page (apt-get install nodejs npm)");
        return Ok(());
    }
    packages()?;
    process::run(Command::new("npm").args(["run", "--silent", "build"]).current_dir(folder()))
}

/// Runs the page's own tests.
pub fn test() -> Result<()> {
    packages()?;
    process::run(Command::new("npm").args(["test", "--silent"]).current_dir(folder()))
}

/// Installs what package-lock.json names, on first use and after it changed.
fn packages() -> Result<()> {
    let lock = folder().join("package-lock.json");
    let installed = folder().join("node_modules/.installed");
    let wanted = fs::read(&lock).with_context(|| format!("cannot read {}", lock.display()))?;
    if fs::read(&installed).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    let words = ["ci", "--silent", "--no-audit", "--no-fund"];
    process::run(Command::new("npm").args(words).current_dir(folder()))?;
    fs::write(installed, wanted)?;
    Ok(())
}
