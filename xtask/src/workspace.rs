//! Paths of the workspace.

use std::path::{Path, PathBuf};

/// The top folder of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// The folder of cargo's output and the tasks' files.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// What cargo builds without `--release`: the one build for runs, guests and tests.
pub fn built() -> PathBuf {
    target().join("debug")
}

/// The program of that build.
pub fn numa() -> PathBuf {
    built().join("numa")
}

/// What cargo builds with `--release`: as users install it, for benchmarks.
pub fn released() -> PathBuf {
    target().join("release")
}

/// The program of which benchmarks measure what it costs.
pub fn measured() -> PathBuf {
    released().join("numa")
}
