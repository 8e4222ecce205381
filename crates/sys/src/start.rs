//! Starting a program with everything that it gets from us between fork and exec.

use crate::check;
use numakit_model::CpuSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// What a program is started with. What is not said stays as it is here.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// The program, looked for in PATH, and its arguments.
    pub words: Vec<OsString>,
    /// All of its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The CPUs that it may run on.
    pub cpus: Option<CpuSet>,
    /// An open descriptor that it inherits under its number; all others are closed at exec.
    pub descriptor: Option<RawFd>,
}

impl Start {
    /// Starts it. Signals that this process collects reach the program as usual.
    pub fn spawn(&self) -> io::Result<Child> {
        let Some((program, arguments)) = self.words.split_first() else {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no command given"));
        };
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(self.environment.iter().map(|(name, value)| (name, value)));
        let (cpus, descriptor) = (self.cpus.clone(), self.descriptor);
        // SAFETY: between fork and exec only system calls are made, and nothing is allocated.
        unsafe {
            command.pre_exec(move || {
                if let Some(cpus) = &cpus {
                    crate::sched::set_affinity(cpus)?;
                }
                if let Some(descriptor) = descriptor {
                    check(libc::fcntl(descriptor, libc::F_SETFD, 0) as i64)?;
                }
                crate::command::unblock_signals()
            });
        }
        command.spawn()
    }
}
