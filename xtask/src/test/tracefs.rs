//! The kernel's tracepoints for the tests that count them.

use crate::install;
use std::path::Path;
use std::process::{Command, Stdio};

const TRACEFS: &str = "/sys/kernel/tracing";

/// The command in a mount namespace of its own in which tracefs is mounted, so that nothing
/// stays behind. Where that cannot be had the command is left as it is, and tests that need
/// tracefs say so.
pub fn seen_by(command: Command) -> Command {
    let mounted = Path::new(TRACEFS).join("events").exists();
    if mounted || !install::is_root() || !mountable() {
        return command;
    }
    let mut wrapped = inside("exec \"$0\" \"$@\"");
    wrapped.arg(command.get_program()).args(command.get_args());
    if let Some(dir) = command.get_current_dir() {
        wrapped.current_dir(dir);
    }
    wrapped
}

fn mountable() -> bool {
    inside("true").stderr(Stdio::null()).status().is_ok_and(|s| s.success())
}

fn inside(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c"]).arg(format!("mount -t tracefs tracefs {TRACEFS} && {script}"));
    command
}
