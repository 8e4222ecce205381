//! Mounts tracefs for tests that count tracepoints.

use crate::install;
use numakit_guest::programs;
use std::path::Path;
use std::process::{Command, Stdio};

const TRACEFS: &str = "/sys/kernel/tracing";

/// Whether commands get tracefs in their own mount namespace, so that nothing stays mounted. If that
/// is impossible or it is mounted already, commands run normally.
#[derive(Debug, Clone, Copy)]
pub struct Tracefs {
    mount: bool,
}

impl Tracefs {
    /// Checks whether this machine allows it.
    pub fn probe() -> Self {
        let mounted = Path::new(TRACEFS).join("events").exists();
        let mountable = || inside("true").stderr(Stdio::null()).status().is_ok_and(|s| s.success());
        Self { mount: !mounted && install::is_root() && mountable() }
    }

    /// The command, with tracefs if possible.
    pub fn wrap(self, command: Command) -> Command {
        if !self.mount {
            return command;
        }
        programs::wrapped(inside("exec \"$0\" \"$@\""), &command)
    }
}

fn inside(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c"]).arg(format!("mount -t tracefs tracefs {TRACEFS} && {script}"));
    command
}
