//! A registry of its own for a test, and launchers in it.

use numakit_registry::{Holding, Who, look_at};
use numakit_testing::until;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A folder with a registry; gone when dropped.
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

    /// The test's launcher, with these words. Whoever runs the tests may ignore signals, as shells do
    /// for what is in the background: nobody does here.
    pub fn hold(&self, words: &[&str]) -> Command {
        let mut command = Command::new("env");
        command.args(["--default-signal", env!("CARGO_BIN_EXE_hold")]);
        command.args(words).env("NUMAKIT_REGISTRY", self.registry()).env_remove("NUMAKIT_LIMITS");
        command.env_remove("NUMA_HOLD").stdin(Stdio::null());
        command
    }

    /// A launcher in a process group of its own whose program prints a line when it is there; that
    /// line, too.
    pub fn running(&self, words: &[&str]) -> (Running, String) {
        let mut command = self.hold(words);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        (Running { child, output }, line.trim().to_owned())
    }

    pub fn holdings(&self) -> Vec<Holding> {
        look_at(&self.registry()).unwrap().holdings
    }

    /// All CPUs that are held.
    pub fn held(&self) -> String {
        look_at(&self.registry()).unwrap().held().to_string()
    }

    /// Waits until this is what is held.
    pub fn until_held(&self, cpus: &str) {
        until!(self.held() == cpus, "CPUs '{cpus}' are held, not '{}'", self.held());
    }

    /// What the keeper of the only program said of itself, once it did.
    fn who(&self) -> Who {
        let who = || self.holdings()[0].who.clone().unwrap();
        until!(who().program.is_some(), "the record tells the program");
        who()
    }

    /// The keeper of the only program.
    pub fn keeper(&self) -> u32 {
        self.who().keeper.unwrap().pid
    }

    /// The first process of the only program.
    pub fn program(&self) -> String {
        self.who().program.unwrap().pid.to_string()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A launcher and what its program prints.
pub struct Running {
    pub child: Child,
    pub output: BufReader<std::process::ChildStdout>,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line of the program.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// How the launcher ended, as a shell tells it.
    pub fn status(&mut self) -> i32 {
        use std::os::unix::process::ExitStatusExt;
        let status = self.child.wait().unwrap();
        status.code().unwrap_or_else(|| 128 + status.signal().unwrap())
    }
}

impl Drop for Running {
    /// Nothing of a test that failed is left running.
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-s", "KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.child.wait();
    }
}

/// A signal to a process, or with a minus to a process group.
pub fn kill(signal: &str, to: impl std::fmt::Display) {
    let sent = Command::new("kill").args(["-s", signal, "--", &to.to_string()]).status().unwrap();
    assert!(sent.success(), "kill -{signal} {to}");
}

/// Kills a process; false where there is none.
pub fn kill_if_there(pid: u32) -> bool {
    let mut kill = Command::new("kill");
    kill.args(["-s", "KILL", "--", &pid.to_string()]).stderr(Stdio::null()).status().unwrap().success()
}

/// The state of a process, as `T` for one that stands still; `-` where there is none.
pub fn state(pid: u32) -> char {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('-')
}

pub fn exists(path: &Path) -> bool {
    path.exists()
}
