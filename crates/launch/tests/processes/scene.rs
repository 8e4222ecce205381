//! A registry for one test, and launchers in it.

use numakit_registry::{Holder, Holding, inspect_at};
use numakit_testing::children::{Lines, Started};
use numakit_testing::until;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A folder with a registry, removed on drop.
pub struct Scene {
    folder: PathBuf,
}

impl Scene {
    pub fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("numakit-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self { folder }
    }

    pub fn registry(&self) -> PathBuf {
        self.folder.join("cores")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The test's launcher, with these arguments. Resets ignored signals, which a background job of a shell has.
    pub fn hold(&self, words: &[&str]) -> Command {
        let mut command = Command::new("env");
        command.args(["--default-signal", env!("CARGO_BIN_EXE_hold")]);
        command.args(words).env("NUMAKIT_REGISTRY", self.registry()).env_remove("NUMAKIT_LIMITS");
        command.env_remove("NUMA_HOLD").stdin(Stdio::null());
        command
    }

    /// Starts a launcher in its own process group; also returns the line that its program prints when it runs.
    pub fn running(&self, words: &[&str]) -> (Running, String) {
        let mut command = self.hold(words);
        command.stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut child = Started(command.spawn().unwrap());
        let output = Lines::of(child.stdout.take().unwrap());
        let mut running = Running { child, output };
        let line = running.line();
        (running, line)
    }

    pub fn holdings(&self) -> Vec<Holding> {
        inspect_at(&self.registry()).unwrap().holdings
    }

    /// All held CPUs.
    pub fn held(&self) -> String {
        inspect_at(&self.registry()).unwrap().held().to_string()
    }

    /// Waits until these CPUs are held.
    pub fn until_held(&self, cpus: &str) {
        until!(self.held() == cpus, "CPUs '{cpus}' are held, not '{}'", self.held());
    }

    /// The holder of the only record, once it names the program.
    fn holder(&self) -> Holder {
        let holder = || self.holdings()[0].holder.clone().unwrap();
        until!(holder().program.is_some(), "the record names the program");
        holder()
    }

    /// The PID of the only program's supervisor.
    pub fn supervisor(&self) -> u32 {
        self.holder().supervisor.unwrap().pid
    }

    /// The first process of the only program.
    pub fn program(&self) -> String {
        self.holder().program.unwrap().pid.to_string()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A launcher and what its program prints.
pub struct Running {
    pub child: Started,
    output: Lines,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line of the program; empty after the last.
    pub fn line(&mut self) -> String {
        self.output.next().unwrap_or_default().trim().to_owned()
    }

    /// The launcher's exit status, as a shell shows it.
    pub fn status(&mut self) -> i32 {
        use std::os::unix::process::ExitStatusExt;
        let status = self.child.ended();
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap())
    }
}

impl Drop for Running {
    /// Kills what a failed test has left.
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-s", "KILL", "--", &group]).stderr(Stdio::null()).status();
    }
}

/// Sends a signal to a process, or with a minus to a process group.
pub fn kill(signal: &str, to: impl std::fmt::Display) {
    let sent = Command::new("kill").args(["-s", signal, "--", &to.to_string()]).status().unwrap();
    assert!(sent.success(), "kill -{signal} {to}");
}

/// Kills a process; false if there is none.
pub fn kill_if_there(pid: u32) -> bool {
    let mut kill = Command::new("kill");
    kill.args(["-s", "KILL", "--", &pid.to_string()]).stderr(Stdio::null()).status().unwrap().success()
}

/// The state of a process, such as `T` (stopped); `-` if there is none.
pub fn state(pid: u32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('-')
}

pub fn exists(path: &Path) -> bool {
    path.exists()
}
