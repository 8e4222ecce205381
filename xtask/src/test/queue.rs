//! Runs test programs, some in parallel, and passes on their output line by line.

use crate::process;
use anyhow::{Context, Result, bail};
use numakit_sys::signal;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// A program that prints nothing for this long hangs. No guest has a longer time limit.
const SILENCE: Duration = Duration::from_secs(20 * 60);

/// An event of a program.
#[derive(Debug)]
pub enum Event {
    /// It was started.
    Started,
    /// It printed a line.
    Line(String),
    /// It ended with this status after this time.
    Ended(Result<ExitStatus>, Duration),
}

/// Runs all commands, `workers` at a time, and calls `take` in this thread with the number of a command and each of its events.
pub fn run(commands: Vec<Command>, workers: usize, mut take: impl FnMut(usize, Event)) {
    let waiting = Mutex::new(commands.into_iter().enumerate().collect::<VecDeque<_>>());
    let next = || waiting.lock().ok().and_then(|mut waiting| waiting.pop_front());
    std::thread::scope(|scope| {
        let (sender, events) = mpsc::channel();
        for _ in 0..workers {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some((number, command)) = next() {
                    one(number, command, &sender);
                }
            });
        }
        drop(sender);
        events.iter().for_each(|(number, event)| take(number, event));
    });
}

/// Runs one command and sends its events to the channel.
fn one(number: usize, mut command: Command, events: &Sender<(usize, Event)>) {
    // The receiver outlives the workers.
    let send = |event| drop(events.send((number, event)));
    send(Event::Started);
    let started = Instant::now();
    let status = followed(&mut command, SILENCE, |line| send(Event::Line(line)));
    send(Event::Ended(status, started.elapsed()));
}

/// Runs a command and calls `take` with each line of output. Kills it if it prints nothing for
/// `silence`.
pub fn followed(
    command: &mut Command,
    silence: Duration,
    mut take: impl FnMut(String),
) -> Result<ExitStatus> {
    let line = process::line(command);
    // Tests interrupt what they start, also where this run was started in the background.
    signal::restore_in(command);
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start: {line}"))?;
    let lines = child.stdout.take().map(lines_of).context("no output to follow")?;
    loop {
        match lines.recv_timeout(silence) {
            Ok(line) => take(line),
            Err(RecvTimeoutError::Disconnected) => return Ok(child.wait()?),
            Err(RecvTimeoutError::Timeout) => {
                child.kill()?;
                child.wait()?;
                bail!("printed nothing for {silence:.0?} and was killed: {line}");
            }
        }
    }
}

/// The lines of a pipe. The reading thread ends with the last process that has the other end open,
/// which may outlive the started one.
fn lines_of(output: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for bytes in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&bytes).into_owned()).is_err() {
                break;
            }
        }
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn all_commands_run_and_their_lines_have_their_numbers() {
        let scripts = ["echo a; echo b; exit 3", "echo c", "kill -9 $$"];
        let mut lines = vec![Vec::new(); 3];
        run(scripts.map(shell).into(), 2, |number, event| {
            lines[number].push(match event {
                Event::Started => "started".to_owned(),
                Event::Line(line) => line,
                Event::Ended(status, _) => status.unwrap().to_string(),
            });
        });
        assert_eq!(lines[0], ["started", "a", "b", "exit status: 3"]);
        assert_eq!(lines[1], ["started", "c", "exit status: 0"]);
        assert!(lines[2][1].starts_with("signal: 9"), "{lines:?}");
    }

    #[test]
    fn a_hanging_program_is_killed_and_named() {
        let mut lines = Vec::new();
        let mut command = shell("echo before; exec sleep 1000");
        let error = followed(&mut command, Duration::from_millis(200), |line| lines.push(line)).unwrap_err();
        assert!(error.to_string().contains("printed nothing for"), "{error}");
        assert_eq!(lines, ["before"]);
    }
}
