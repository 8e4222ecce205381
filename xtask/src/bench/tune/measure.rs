//! One run of a program, measured here and not by the tuner.

use super::prepare::folder;
use super::programs::{Metric, Program};
use crate::{process, workspace};
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a server may take until it serves, and until it has ended.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// A run of `tuned`, which is what the program's row says or that with settings: seconds, or what the metric finds.
pub fn run(program: &Program, tuned: &str) -> Result<f64> {
    let Some(server) = &program.server else { return measured(program, tuned) };
    let running = Running::start(tuned)?;
    let began = Instant::now();
    while !succeeds(server.ready)? {
        if began.elapsed() > PATIENCE {
            bail!("'{}' still fails {} s after the start of: {tuned}", server.ready, PATIENCE.as_secs());
        }
        sleep(PAUSE);
    }
    let value = measured(program, program.command);
    running.end()?;
    value
}

fn measured(program: &Program, line: &str) -> Result<f64> {
    let began = Instant::now();
    let output = process::read(&mut replaced(line))?;
    let seconds = began.elapsed().as_secs_f64();
    match program.metric {
        Metric::WallTime => Ok(seconds),
        metric @ Metric::Rate(before) => metric
            .read(&output)
            .with_context(|| format!("no number behind '{before}' in what '{line}' printed:\n{output}")),
    }
}

/// The same as [`shell`] for variables and one command, which takes the place of the shell.
fn replaced(line: &str) -> Command {
    shell(&format!("exec env {line}"))
}

/// A line for a shell in the folder of the benchmark; `numa` is the one that is measured.
pub fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(folder()).env("PATH", path());
    command
}

fn path() -> OsString {
    let mut path = workspace::released().into_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}

fn succeeds(line: &str) -> Result<bool> {
    Ok(shell(line).stdout(Stdio::null()).stderr(Stdio::null()).status()?.success())
}

/// A server in a process group of its own; its output is in a file.
struct Running {
    child: Child,
    line: String,
}

impl Running {
    fn start(line: &str) -> Result<Self> {
        let output = fs::File::create(folder().join("server.log"))?;
        let mut command = replaced(line);
        command.stdin(Stdio::null()).stderr(output.try_clone()?).stdout(output).process_group(0);
        let child = command.spawn().with_context(|| format!("cannot start: {line}"))?;
        Ok(Self { child, line: line.to_owned() })
    }

    fn end(mut self) -> Result<()> {
        // The server itself, which ends its own processes.
        process::run(Command::new("kill").args(["-TERM", &self.child.id().to_string()]))?;
        let began = Instant::now();
        while self.child.try_wait()?.is_none() {
            if began.elapsed() > PATIENCE {
                bail!("has not ended {} s after SIGTERM: {}", PATIENCE.as_secs(), self.line);
            }
            sleep(PAUSE);
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            let group = format!("-{}", self.child.id());
            let _ = process::run(Command::new("kill").args(["-KILL", "--", &group]));
            let _ = self.child.wait();
        }
    }
}
