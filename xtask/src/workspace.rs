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

/// The release build of the program.
pub fn numa() -> PathBuf {
    target().join("release/numa")
}
