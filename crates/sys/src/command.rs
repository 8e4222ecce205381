//! Starting the observed command, and named pipes.

use crate::ptrace::{self, TracedEnd};
use crate::{check, executable, inherited};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often [`Running::end`] looks whether the program has ended.
const LOOK: Duration = Duration::from_millis(5);

/// A running command. Its end is announced by [`crate::signal::CHILD`].
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// The exit status, once the command was reaped here.
    end: Option<i32>,
    /// Where a tracer that reaps the command says how it ended.
    traced: Option<Arc<TracedEnd>>,
}

impl Running {
    /// Starts a program with its arguments. It inherits the signals and streams that this process was started with.
    pub fn start(words: &[OsString]) -> io::Result<Self> {
        Self::start_with(words, &[])
    }

    /// Starts a program with these variables in its environment, in addition to those of this process.
    pub fn start_with(words: &[OsString], variables: &[(OsString, OsString)]) -> io::Result<Self> {
        Self::start_to(words, variables, None)
    }

    /// Starts a program. If there is an `output`, the program prints there and has no input, so that it leaves the terminal
    /// alone.
    pub fn start_to(
        words: &[OsString],
        variables: &[(OsString, OsString)],
        output: Option<&File>,
    ) -> io::Result<Self> {
        Self::start_prepared(words, variables, output, inherited::restore)
    }

    /// Starts a program with its output in this file. The kernel kills the program (SIGKILL) when the calling thread ends,
    /// in whatever way: nothing else would end it then.
    pub fn start_bound(
        words: &[OsString],
        variables: &[(OsString, OsString)],
        output: &File,
    ) -> io::Result<Self> {
        let parent = std::process::id();
        Self::start_prepared(words, variables, Some(output), move || {
            inherited::restore()?;
            end_with(parent, libc::SIGKILL)
        })
    }

    fn start_prepared(
        words: &[OsString],
        variables: &[(OsString, OsString)],
        output: Option<&File>,
        prepare: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let Some((program, arguments)) = words.split_first() else {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no command given"));
        };
        let mut command = Command::new(program);
        command.args(arguments).envs(variables.iter().map(|(name, value)| (name, value)));
        if let Some(output) = output {
            command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?);
        }
        // SAFETY: between fork and exec, what callers here give makes only system calls.
        unsafe { command.pre_exec(prepare) };
        let child = command.spawn().map_err(|error| executable::start_error(program, error))?;
        Ok(Self { child, end: None, traced: None })
    }

    /// Lets a tracer in this process reap the command from now on; `tracer` then says how it ended.
    pub fn reaped_by(&mut self, tracer: Arc<TracedEnd>) {
        self.traced = Some(tracer);
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The exit status once the command has ended: its own, or 128 + the signal that killed it. Call this from the thread
    /// that started the command: that thread is its tracer if the program asks for one (`PTRACE_TRACEME`, as programs do
    /// that want no debugger).
    pub fn ended(&mut self) -> io::Result<Option<i32>> {
        if let Some(end) = &self.traced {
            match end.status() {
                Some(status) => return Ok(Some(status)),
                None if !end.is_detached() => return Ok(None),
                None => {}
            }
        }
        while self.end.is_none() {
            let mut status = 0;
            // SAFETY: a child that was not reaped; the status outlives the call.
            match check(unsafe { libc::waitpid(self.child.id() as i32, &mut status, libc::WNOHANG) } as i64) {
                Ok(0) => break,
                // The command has not ended: it stopped for the tracer that it asked for.
                Ok(_) if libc::WIFSTOPPED(status) => ptrace::let_run_on(self.child.id(), status),
                Ok(_) => {
                    self.end = ExitStatus::from_raw(status).code().or(Some(128 + libc::WTERMSIG(status)))
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.end)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: i32) {
        if self.end.is_some() || self.traced.as_ref().is_some_and(|end| end.status().is_some()) {
            return;
        }
        // SAFETY: plain integers; the child was not reaped.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }

    /// Ends the command by SIGTERM, and by SIGKILL if it has not ended after `patience`. Returns its exit status. SIGINT
    /// would not do: shells let their background commands and the children of these ignore it.
    pub fn end(&mut self, patience: Duration) -> io::Result<i32> {
        self.signal(libc::SIGTERM);
        let late = Instant::now() + patience;
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            if Instant::now() >= late {
                self.signal(libc::SIGKILL);
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Lets the kernel send this process a signal when the thread that started it ends; an error if its process has ended already.
pub(crate) fn end_with(parent: u32, signal: i32) -> io::Result<()> {
    // SAFETY: plain integers.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) }.into())?;
    // SAFETY: no precondition.
    let is_child = unsafe { libc::getppid() } as u32 == parent;
    if is_child { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
}

/// The exit status that a shell would give for a command that cannot be started.
pub fn start_failure_status(error: &io::Error) -> u8 {
    if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
}

/// Makes a named pipe and opens it so that it never reports an end when a writer closes it. Reads do not block.
pub fn named_pipe(path: &Path, mode: u32) -> io::Result<File> {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(mode), 0)?;
    File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOFOLLOW)
        .open(path)
}

/// Flag for opening a pipe without waiting for its other end; an error if there is none.
pub const NO_WAIT: i32 = libc::O_NONBLOCK;

/// Words as one line, with quotes where a shell needs them.
pub fn quoted(words: &[impl AsRef<OsStr>]) -> String {
    let quote = |word: &OsStr| {
        let text = word.to_string_lossy();
        let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%^".contains(c);
        if !text.is_empty() && text.chars().all(plain) {
            text.into_owned()
        } else {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
    };
    words.iter().map(|w| quote(w.as_ref())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_testing::wait::wait_for;

    fn run(script: &str) -> i32 {
        let words: Vec<OsString> = ["sh", "-c", script].iter().map(OsString::from).collect();
        status(&mut Running::start(&words).unwrap())
    }

    /// Its exit status when it has ended.
    fn status(running: &mut Running) -> i32 {
        wait_for("the end of a command", || running.ended().unwrap())
    }

    #[test]
    fn statuses_are_those_of_a_shell() {
        assert_eq!(run("exit 7"), 7);
        assert_eq!(run("kill -TERM $$"), 143);
        let missing = Running::start(&["/no/such/program".into()]).unwrap_err();
        assert_eq!(start_failure_status(&missing), 127);
        let directory = Running::start(&["/".into()]).unwrap_err();
        assert_eq!(start_failure_status(&directory), 126);
    }

    #[test]
    fn what_ignores_signals_is_ended_all_the_same() {
        let ended_by = |script: &str, patience: Duration| {
            let words: Vec<OsString> = ["sh", "-c", script].iter().map(OsString::from).collect();
            let (mut ready, output) = io::pipe().unwrap();
            let output = File::from(std::os::fd::OwnedFd::from(output));
            let mut running = Running::start_to(&words, &[], Some(&output)).unwrap();
            // The script has set its traps when it prints.
            io::Read::read_exact(&mut ready, &mut [0]).unwrap();
            running.end(patience).unwrap() - 128
        };
        let long = Duration::from_secs(600);
        assert_eq!(ended_by("trap '' INT HUP; echo; exec sleep 600", long), libc::SIGTERM);
        assert_eq!(ended_by("trap '' TERM; echo; exec sleep 600", Duration::from_millis(50)), libc::SIGKILL);
    }

    #[test]
    fn a_program_that_asks_to_be_traced_runs_on() {
        let start = |script: &str| {
            let words: Vec<OsString> = ["sh", "-c", script].iter().map(OsString::from).collect();
            // It stops for the first time when it executes the shell.
            let prepare = || {
                // SAFETY: a plain system call.
                check(unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0usize, 0usize) }).map(drop)
            };
            Running::start_prepared(&words, &[], None, prepare).unwrap()
        };
        assert_eq!(status(&mut start("trap 'got=5' USR1; kill -USR1 $$; exit $got")), 5);
        assert_eq!(status(&mut start("kill -TERM $$")), 128 + libc::SIGTERM);
        // Job control works as without a tracer.
        let mut stopped = start("kill -STOP $$; exit 6");
        let stat = format!("/proc/{}/stat", stopped.id());
        wait_for("the stop of a command", || {
            assert_eq!(stopped.ended().unwrap(), None);
            std::fs::read_to_string(&stat).unwrap().contains(") T ").then_some(())
        });
        stopped.signal(libc::SIGCONT);
        assert_eq!(status(&mut stopped), 6);
    }

    #[test]
    fn a_bound_command_ends_with_the_thread_that_started_it() {
        let file = crate::file::create_in_memory().unwrap();
        let words: Vec<OsString> = ["sleep", "600"].iter().map(OsString::from).collect();
        let mut running =
            std::thread::spawn(move || Running::start_bound(&words, &[], &file).unwrap()).join().unwrap();
        assert_eq!(status(&mut running), 128 + libc::SIGKILL);
    }

    #[test]
    fn a_command_prints_to_the_file_that_it_is_given() {
        use std::io::{Read, Seek};
        let mut file = crate::file::create_unnamed(&std::env::temp_dir()).unwrap();
        let words: Vec<OsString> =
            ["sh", "-c", "cat; echo out; echo err >&2"].iter().map(OsString::from).collect();
        let mut running = Running::start_to(&words, &[], Some(&file)).unwrap();
        assert_eq!(status(&mut running), 0);
        file.rewind().unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "out\nerr\n");
    }

    #[test]
    fn words_are_quoted_where_needed() {
        assert_eq!(quoted(&["a", "b c", "it's", ""]), r"a 'b c' 'it'\''s' ''");
    }
}
