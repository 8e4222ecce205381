//! The dashboards of Grafana, made from dashboards/panels.mjs by its own library.

use crate::{process, workspace};
use anyhow::Result;
use std::process::{Command, ExitCode};

/// Writes dashboards/*.json.
pub fn run(_: &[String]) -> Result<ExitCode> {
    let folder = workspace::root().join("dashboards");
    process::step("npm ci: the library of Grafana");
    process::run(
        Command::new("npm").args(["ci", "--silent", "--no-audit", "--no-fund"]).current_dir(&folder),
    )?;
    process::run(Command::new("npm").args(["run", "--silent", "build"]).current_dir(&folder))?;
    Ok(ExitCode::SUCCESS)
}
