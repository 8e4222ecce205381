//! Engines that only the second tier of tests pushes to: QuestDB, and ClickHouse as a library of Python. They are fetched
//! into `target/engines` (30 and 180 MB); nothing is installed.

use crate::{install, process, python, workspace};
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const QUESTDB: &str = "org.questdb:questdb:9.1.0";
/// Without what it depends on: tests use its sessions only.
const CHDB: &str = "chdb-core==26.9.0";

/// The folder with `questdb.jar` and with packages of Python in `python`; fetched on first use.
pub fn folder() -> Result<PathBuf> {
    let folder = workspace::target().join("engines");
    let (complete, pins) = (folder.join("complete"), format!("{QUESTDB} {CHDB}\n"));
    if fs::read_to_string(&complete).unwrap_or_default() == pins {
        return Ok(folder);
    }
    println!("fetching {} into {}", pins.trim(), folder.display());
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    install::need(&["java", "-version"], &["default-jre-headless"])?;
    install::need(&["mvn", "--version"], &["maven"])?;
    let mut maven = Command::new("mvn");
    maven.args(["--quiet", "--batch-mode", "dependency:copy", "-Dmdep.stripVersion=true"]);
    maven.arg(format!("-Dartifact={QUESTDB}")).arg(format!("-DoutputDirectory={}", folder.display()));
    process::run(&mut maven).context("Maven cannot fetch QuestDB")?;
    let mut pip = Command::new(python::venv()?);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]);
    process::run(pip.args(["--no-deps", "--target"]).arg(folder.join("python")).arg(CHDB))?;
    fs::write(complete, pins)?;
    Ok(folder)
}
