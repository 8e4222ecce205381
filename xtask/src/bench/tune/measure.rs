//! One run of a program, measured here and not by the tuner.

use super::prepare::folder;
use super::programs::{Metric, Program};
use crate::{process, workspace};
use anyhow::{Context, Result, bail};
use numakit_sys::clock::monotonic;
use numakit_sys::start_notice::{ProgramStart, VARIABLE};
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a server may take until it serves, and until it has ended.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// A run of `tuned`, which is what the program's row says or that with settings: seconds, or a rate.
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
    // The first load warms the server, as the tuner does.
    let value = measured(program, program.command).and_then(|_| measured(program, program.command));
    running.end()?;
    value
}

fn measured(program: &Program, line: &str) -> Result<f64> {
    match program.metric {
        Metric::CpuTime => cpu_time(line),
        Metric::WallTime => wall_time(line),
        metric @ Metric::Rate(before) => {
            let output = process::read(&mut replaced(line))?;
            let value = metric.read(&output);
            value.with_context(|| format!("no number behind '{before}' in what '{line}' printed:\n{output}"))
        }
    }
}

/// Seconds from the start of a program to its end, without what `numa run` does before.
fn wall_time(line: &str) -> Result<f64> {
    let begun = monotonic();
    let (_, start) = noticed("sh", &format!("exec env {line}"))?;
    Ok((monotonic() - start.map_or(begun, |start| start.at)) as f64 / 1e9)
}

/// The CPU seconds of a command and of all that it starts and waits for, as bash tells them, without what `numa run` takes before. What
/// the command prints is in a file.
fn cpu_time(line: &str) -> Result<f64> {
    // With a command behind it, bash does not become what it times.
    let script = format!("TIMEFORMAT='%U %S'; {{ time env {line} > run.log 2>&1; }} 2>&1; exit");
    let (told, start) =
        noticed("bash", &script).with_context(|| format!("run.log in {} says why", folder().display()))?;
    let seconds: Vec<f64> = told.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match seconds[..] {
        [user, kernel] => Ok(user + kernel - start.map_or(0.0, |start| start.cpu as f64 / 1e9)),
        _ => bail!("bash printed '{}' instead of two numbers for: {line}", told.trim()),
    }
}

/// What a script of a shell prints, and when `numa run` started the program in it; `None`: there is none in it.
fn noticed(shell: &str, script: &str) -> Result<(String, Option<ProgramStart>)> {
    let (mut reader, writer) = std::io::pipe()?;
    let mut command = Command::new(shell);
    command.args(["-c", &format!("exec 3<&0 </dev/null; {script}")]).stdin(writer).env(VARIABLE, "3");
    own(&mut command);
    let text = process::read(&mut command)?;
    // Its end of the pipe is closed with it.
    drop(command);
    let start = ProgramStart::read(&mut reader);
    Ok((text, start))
}

/// The same as [`shell`] for variables and one command, which takes the place of the shell.
fn replaced(line: &str) -> Command {
    shell(&format!("exec env {line}"))
}

/// A line for a shell in the folder of the benchmark; `numa` is the one that is measured.
pub fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    own(&mut command);
    command
}

/// Lets a command run in the folder, find the `numa` that is measured, and reserve cores regardless of what others reserved.
pub fn own(command: &mut Command) {
    command.current_dir(folder()).env("PATH", path()).env("NUMAKIT_REGISTRY", folder().join("registry"));
}

fn path() -> OsString {
    // The dev build starts a program as fast as the other one, and is there.
    let mut path = workspace::built().into_os_string();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_that_of_all_that_a_command_starts() {
        fs::create_dir_all(folder()).unwrap();
        let busy = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        assert!(cpu_time(&format!("A=b sh -c '({busy}); true'")).unwrap() > 0.0);
        assert!(wall_time("true").unwrap() > 0.0);
        let error = format!("{:#}", cpu_time("sh -c 'exit 3'").unwrap_err());
        assert!(error.contains("run.log in ") && error.contains("exit status: 3"), "{error}");
    }
}
