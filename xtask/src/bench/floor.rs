//! The floors: C programs with the minimum cost of the same work.

use crate::{install, process, workspace};
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

const PROGRAMS: [(&str, &[&str]); 16] = [
    ("floor_files", &[]),
    ("floor_perf", &[]),
    ("floor_topology", &[]),
    ("allocations", &[]),
    ("c2c", &["-pthread"]),
    ("chase", &[]),
    ("compute", &["-fopenmp", "-lm"]),
    ("cured", &["-pthread"]),
    ("faults", &[]),
    ("loops", &["-fopenmp"]),
    ("mapping", &[]),
    ("pages", &[]),
    ("passes", &["-march=native"]),
    ("sampled", &[]),
    ("threads", &["-pthread"]),
    ("touches", &[]),
];

/// Compiles those that are out of date, and returns their folder.
pub fn build() -> Result<PathBuf> {
    install::need(&["gcc", "--version"], &["gcc", "libc6-dev"])?;
    let dir = workspace::target().join("floor");
    fs::create_dir_all(&dir)?;
    let timed = workspace::root().join("xtask/floor/timed.h");
    for (name, flags) in PROGRAMS {
        let source = workspace::root().join(format!("xtask/floor/{name}.c"));
        let program = dir.join(name);
        if is_older(&program, &[&source, &timed]) {
            let mut gcc = Command::new("gcc");
            gcc.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o"]);
            process::run(gcc.arg(program).arg(source).args(flags))?;
        }
    }
    Ok(dir)
}

/// Whether programs may use real-time priority here.
pub fn may_be_realtime() -> Result<bool> {
    let tried = program("floor_files")?.args(["1000", "1", "/proc/vmstat", "--fifo"]).output()?;
    Ok(tried.status.success())
}

/// The command of one of them.
pub fn program(name: &str) -> Result<Command> {
    Ok(Command::new(build()?.join(name)))
}

/// Whether a program has to be built again from these files.
pub fn is_older(program: &Path, sources: &[&Path]) -> bool {
    sources.iter().any(|source| changed(program) < changed(source))
}

fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|meta| meta.modified()).ok()
}
