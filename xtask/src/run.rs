//! `cargo xtask run`: builds everything, then executes `numa`.

use crate::{build, workspace};
use anyhow::{Context, Result};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// The default verb.
const DEFAULT_VERB: &str = "live";

/// Builds, then replaces this process, so that signals and the exit status are those of numa.
pub fn run(words: &[String]) -> Result<ExitCode> {
    build::everything()?;
    let words = words.strip_prefix(&["--".to_owned()]).unwrap_or(words);
    let mut numa = Command::new(workspace::numa());
    if words.is_empty() {
        numa.arg(DEFAULT_VERB);
    } else {
        numa.args(words);
    }
    Err(numa.exec()).context(format!("cannot start {}", workspace::numa().display()))
}
