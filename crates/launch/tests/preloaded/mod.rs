//! Programs that run with a library while its shared memory is read.

use std::io::Read;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A program runs no longer than this on a busy machine; then it is killed.
const LIMIT: Duration = Duration::from_secs(300);

/// A command line without any library.
pub fn words(line: &[&str]) -> Command {
    let mut command = Command::new(line[0]);
    command.args(&line[1..]).stdin(Stdio::null()).env_remove("LD_PRELOAD");
    command
}

/// Runs it to its end. `drain` reads what was written so far, and then waits a little, unless the program has ended.
pub fn run(mut command: Command, drain: &mut dyn FnMut(bool)) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let mut output = Output { status: Default::default(), stdout: Vec::new(), stderr: Vec::new() };
    let late = Instant::now() + LIMIT;
    thread::scope(|scope| {
        let (stdout, stderr) = (&mut output.stdout, &mut output.stderr);
        scope.spawn(move || out.read_to_end(stdout).unwrap());
        scope.spawn(move || err.read_to_end(stderr).unwrap());
        output.status = loop {
            let ended = child.try_wait().unwrap();
            if ended.is_none() && Instant::now() > late {
                child.kill().unwrap();
            }
            drain(ended.is_some());
            if let Some(status) = ended {
                break status;
            }
        };
    });
    output
}
