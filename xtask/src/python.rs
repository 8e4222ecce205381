//! A Python with the packages of xtask/python/requirements.txt, in target/venv.

use crate::{install, process, workspace};
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The interpreter; installs the packages on first use and after the pins changed.
pub fn venv() -> Result<PathBuf> {
    let pins = workspace::root().join("xtask/python/requirements.txt");
    let dir = workspace::target().join("venv");
    let python = dir.join("bin/python");
    let installed = dir.join("requirements.txt");
    if fs::read(&pins)? == fs::read(&installed).unwrap_or_default() {
        return Ok(python);
    }
    install::need(&["python3", "-m", "ensurepip", "--version"], &["python3-venv"])?;
    println!("installing the packages of xtask/python/requirements.txt into {}", dir.display());
    process::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&dir))?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    process::run(pip.args(["--only-binary", ":all:", "--requirement"]).arg(&pins))?;
    fs::copy(&pins, &installed)?;
    Ok(python)
}

/// The command of a script of xtask/python.
pub fn script(name: &str) -> Result<Command> {
    let mut command = Command::new(venv()?);
    command.arg(workspace::root().join("xtask/python").join(Path::new(name)));
    Ok(command)
}
