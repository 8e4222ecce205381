//! Servers that exports are tested with. They are unpacked, not installed: installing would start them.

use crate::{process, workspace};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Debian packages, 29 MiB together.
const PACKAGES: [&str; 4] = ["influxdb", "prometheus", "prometheus-node-exporter", "nginx"];

/// The folder with their programs; fetched on first use.
pub fn folder() -> Result<PathBuf> {
    let dir = workspace::target().join("peers");
    let programs = dir.join("usr/bin");
    let complete = dir.join("complete");
    if fs::read_to_string(&complete).unwrap_or_default() == PACKAGES.join(" ") {
        return Ok(programs);
    }
    println!("fetching {} into {}", PACKAGES.join(", "), dir.display());
    fs::create_dir_all(&dir)?;
    process::run(Command::new("apt-get").arg("download").args(PACKAGES).current_dir(&dir))
        .context("no such packages; 'sudo apt-get update' may help")?;
    for file in fs::read_dir(&dir)? {
        let path = file?.path();
        if path.extension().is_some_and(|e| e == "deb") {
            process::run(Command::new("dpkg-deb").arg("--extract").arg(&path).arg(&dir))?;
            fs::remove_file(path)?;
        }
    }
    if !programs.join("promtool").exists() {
        bail!("the packages have no promtool");
    }
    fs::write(complete, PACKAGES.join(" "))?;
    Ok(programs)
}
