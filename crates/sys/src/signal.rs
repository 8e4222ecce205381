//! Reading signals, and the handling of SIGPIPE and SIGXFSZ.

use crate::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// A received signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal {
    /// Its number.
    pub number: i32,
    /// Whether a process sent it. A signal of the kernel, such as for a key on the terminal, goes to the whole process
    /// group.
    pub from_process: bool,
}

/// The signals that end an observation, as a descriptor to poll.
#[derive(Debug)]
pub struct Signals {
    fd: OwnedFd,
}

impl Signals {
    /// Blocks these signals in this thread, and in threads that are started later, and collects them. A hangup that is
    /// ignored, as `nohup` does it, stays ignored. Call this before any other thread exists.
    pub fn collect(signals: &[i32]) -> io::Result<Self> {
        let set = set_of(signals.iter().copied().filter(|&s| s != HANGUP || !is_ignored(s)));
        // SAFETY: the set is initialised.
        let error = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()) };
        if error != 0 {
            return Err(io::Error::from_raw_os_error(error));
        }
        // SAFETY: the set is initialised; the new descriptor has no other owner.
        let fd = check(unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) } as i64)?;
        // SAFETY: as above.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd as i32) } })
    }

    /// The next signal, if any.
    pub fn next(&self) -> Option<Signal> {
        // SAFETY: all zero bytes are a valid value of this plain structure.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the buffer has this length.
        let got = unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), size) };
        (got == size as isize)
            .then_some(Signal { number: info.ssi_signo as i32, from_process: info.ssi_code <= 0 })
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: all zero bytes are a valid value of this plain structure, which outlives the call.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}

fn set_of(signals: impl Iterator<Item = i32>) -> libc::sigset_t {
    // SAFETY: sigemptyset initialises the set before it is used.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in signals {
            libc::sigaddset(&mut set, signal);
        }
        set
    }
}

/// Interrupt from the keyboard.
pub const INTERRUPT: i32 = libc::SIGINT;
/// Ends a process at once; it cannot be caught.
pub const KILL: i32 = libc::SIGKILL;
/// A thread that is stepped has executed an instruction.
pub const TRAP: i32 = libc::SIGTRAP;
/// Request to terminate.
pub const TERMINATE: i32 = libc::SIGTERM;
/// The terminal was closed.
pub const HANGUP: i32 = libc::SIGHUP;
/// A child process ended.
pub const CHILD: i32 = libc::SIGCHLD;
/// Request to stop, as Ctrl-Z makes it.
pub const STOP: i32 = libc::SIGTSTP;
/// The process continues after a stop.
pub const CONTINUE: i32 = libc::SIGCONT;
/// Further signals that end a process which does not handle them, and that other programs send: Ctrl-\ makes the first, a
/// limit of CPU time the last.
pub const OTHER_ENDS: [i32; 5] = [libc::SIGQUIT, libc::SIGALRM, libc::SIGUSR1, libc::SIGUSR2, libc::SIGXCPU];

/// Sends a signal to this process.
pub fn send_to_self(signal: i32) {
    // SAFETY: plain integers.
    unsafe { libc::kill(libc::getpid(), signal) };
}

/// Asks every process of this process group to stop, as Ctrl-Z does.
pub fn stop_group() {
    // SAFETY: plain integers.
    unsafe { libc::kill(0, STOP) };
}

/// Stops this process, and returns when it continues.
pub fn stop_self() {
    // The other signal that stops a process can be blocked or collected. If SIGSTOP were sent to the process, it might reach
    // a different thread first, and this thread would go on for a while.
    // SAFETY: plain integers.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Makes a write to a closed pipe an error. Commands that are started are not affected.
pub fn ignore_broken_pipe() {
    // SAFETY: SIG_IGN is always a valid disposition.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

static LIMIT_IGNORED: AtomicBool = AtomicBool::new(false);

/// Makes a write beyond the limit of file sizes (`ulimit -f`) an error, as on a full disk, and not
/// the end of this process. Commands that are started are not affected.
pub fn ignore_file_size_limit() {
    if !is_ignored(libc::SIGXFSZ) {
        // SAFETY: SIG_IGN is always a valid disposition.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        LIMIT_IGNORED.store(true, Ordering::Relaxed);
    }
}

/// Undoes [`ignore_file_size_limit`], for a command. Async-signal-safe.
pub(crate) fn default_file_size_limit() {
    if LIMIT_IGNORED.load(Ordering::Relaxed) {
        // SAFETY: SIG_DFL is always a valid disposition.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_DFL) };
    }
}

/// Lets a command begin with SIGHUP, SIGINT and SIGQUIT as in a terminal's foreground, however this process was started: shells
/// let commands in the background ignore the latter two, and `nohup` the first.
pub fn restore_in(command: &mut Command) -> &mut Command {
    let restore = || {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT] {
            // SAFETY: SIG_DFL is always a valid disposition.
            if unsafe { libc::signal(signal, libc::SIG_DFL) } == libc::SIG_ERR {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec, it makes only system calls.
    unsafe { command.pre_exec(restore) }
}

/// Makes a write to a closed pipe end this process silently, as other Unix filters do.
pub fn default_broken_pipe() {
    // SAFETY: SIG_DFL is always a valid disposition.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_hears_signals_that_this_process_ignores() {
        let quits = || {
            let mut command = Command::new("sh");
            command.args(["-c", "kill -QUIT $$"]);
            command
        };
        // SAFETY: both are valid dispositions. No other test of this program sends or handles this signal.
        let before = unsafe { libc::signal(libc::SIGQUIT, libc::SIG_IGN) };
        let (deaf, restored) = (quits().status(), restore_in(&mut quits()).status());
        // SAFETY: as above.
        unsafe { libc::signal(libc::SIGQUIT, before) };
        assert!(deaf.unwrap().success());
        assert!(!restored.unwrap().success());
    }
}
