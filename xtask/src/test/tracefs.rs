//! The kernel's tracepoints for the tests that count them.

use crate::install;
use std::path::Path;
use std::process::{Command, Stdio};

const TRACEFS: &str = "/sys/kernel/tracing";

/// Whether commands get tracefs in a mount namespace of their own, so that nothing stays behind.
/// Where that is not possible, and where it is mounted already, tests find what is there.
#[derive(Debug, Clone, Copy)]
pub struct Tracefs {
    mount: bool,
}

impl Tracefs {
    /// Looks what this machine allows.
    pub fn probe() -> Self {
        let mounted = Path::new(TRACEFS).join("events").exists();
        let mountable = || inside("true").stderr(Stdio::null()).status().is_ok_and(|s| s.success());
        Self { mount: !mounted && install::is_root() && mountable() }
    }

    /// The command, with tracefs if it can have it.
    pub fn seen_by(self, command: Command) -> Command {
        if !self.mount {
            return command;
        }
        let mut wrapped = inside("exec \"$0\" \"$@\"");
        wrapped.arg(command.get_program()).args(command.get_args());
        wrapped.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(folder) = command.get_current_dir() {
            wrapped.current_dir(folder);
        }
        wrapped
    }
}

fn inside(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c"]).arg(format!("mount -t tracefs tracefs {TRACEFS} && {script}"));
    command
}
