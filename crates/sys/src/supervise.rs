//! What a supervising process needs: fork, subreaper, wait, signals, detaching.

use crate::proc::TaskDir;
use crate::{SysRoot, check};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Resource, Rlimit, WaitOptions, getpgid, getpgrp, getpid, set_child_subreaper,
    set_dumpable_behavior, setrlimit, setsid, wait,
};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::thread::set_name;
use std::ffi::CString;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Which of the two processes this is after [`fork`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fork {
    /// The caller, with the PID of its child.
    Parent(u32),
    /// The child.
    Child,
}

/// Creates a child process that continues from here. An error if this process has several threads: locks that
/// another thread holds would stay locked in the child.
pub fn fork() -> io::Result<Fork> {
    let threads = TaskDir::own(&SysRoot::host()).threads()?.len();
    if threads != 1 {
        let problem =
            format!("this process has {threads} threads, and only one with a single thread may fork");
        return Err(io::Error::other(problem));
    }
    // SAFETY: there is no other thread, so the child finds everything as a single thread left it.
    match check(unsafe { libc::fork() } as i64)? {
        0 => Ok(Fork::Child),
        child => Ok(Fork::Parent(child as u32)),
    }
}

/// Makes this process a subreaper: orphans among its descendants become its children.
pub fn become_subreaper() -> io::Result<()> {
    // Any PID switches it on.
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// The parent's PID.
pub fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

/// Sets the name of this process that `ps` and `top` show: the short one (at most 15 bytes), and the command line
/// as far as it has room. Afterwards `std::env::args` is meaningless.
pub fn set_process_name(name: &str) -> io::Result<()> {
    // The kernel takes the first 15 bytes.
    set_name(&CString::new(name)?)?;
    let stat = TaskDir::own(&SysRoot::host()).stat()?;
    let Some(Range { start, end }) = stat.arguments.filter(|range| !range.is_empty()) else { return Ok(()) };
    let text = &name.as_bytes()[..name.len().min(end - start - 1)];
    // SAFETY: the kernel says that the strings of the command line are here, on the stack of the
    // first thread, which is writable and stays; no reference of Rust points into them.
    unsafe {
        std::ptr::write_bytes(start as *mut u8, 0, end - start);
        std::ptr::copy_nonoverlapping(text.as_ptr(), start as *mut u8, text.len());
    }
    Ok(())
}

/// What happened to a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildEvent {
    /// This signal stopped it.
    Stopped(i32),
    /// It continues.
    Continued,
    /// It exited with this status.
    Exited(i32),
    /// This signal killed it.
    Killed(i32),
}

/// The result of [`next_child_event`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitResult {
    /// The child with this PID, and what happened to it.
    Child(u32, ChildEvent),
    /// No event.
    Nothing,
    /// There are no children.
    Childless,
}

/// The next event of any child, without waiting. Reaps a child that has ended.
pub fn next_child_event() -> io::Result<WaitResult> {
    let every_kind = WaitOptions::from_bits_retain(libc::__WALL as u32);
    let options = WaitOptions::NOHANG | WaitOptions::UNTRACED | WaitOptions::CONTINUED | every_kind;
    let (child, status) = match wait(options) {
        Err(Errno::CHILD) => return Ok(WaitResult::Childless),
        other => match other? {
            None => return Ok(WaitResult::Nothing),
            Some(found) => found,
        },
    };
    let stopped = status.stopping_signal().map(ChildEvent::Stopped);
    let ended =
        status.exit_status().map(ChildEvent::Exited).or(status.terminating_signal().map(ChildEvent::Killed));
    let change = stopped.or(ended).unwrap_or(ChildEvent::Continued);
    Ok(WaitResult::Child(child.as_raw_nonzero().get() as u32, change))
}

/// Sends a signal to a process. Use it only for children of this process: their PIDs are not reused until they are reaped.
pub fn send(process: u32, signal: i32) -> io::Result<()> {
    // SAFETY: plain integers.
    check(unsafe { libc::kill(process as i32, signal) } as i64)?;
    Ok(())
}

/// Whether this process and another are in the same process group, whose signals reach both.
pub fn shares_group(process: u32) -> bool {
    let group = Pid::from_raw(process as i32).map(|process| getpgid(Some(process)));
    group.is_some_and(|group| group == Ok(getpgrp()))
}

/// A signal that this process received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedSignal {
    /// Its number.
    pub signal: i32,
    /// The process that sent it; `None` for the kernel, as for a key on the terminal: that signal reaches the whole process
    /// group.
    pub sender: Option<u32>,
}

/// Reads signals instead of handling them.
#[derive(Debug)]
pub struct SignalQueue {
    descriptor: OwnedFd,
}

/// The signals that users, terminals and children send and that can be blocked. [`SignalQueue::open`] adds the
/// real-time signals.
const SIGNALS: [i32; 15] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGWINCH,
    libc::SIGURG,
    libc::SIGPWR,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGCONT,
    libc::SIGCHLD,
];

impl SignalQueue {
    /// Blocks the signals in this thread and collects them. Programs that this process starts must unblock them. Ignored
    /// signals stay ignored, so that programs inherit that.
    pub fn open() -> io::Result<Self> {
        // SAFETY: the set is initialised before use and outlives the calls; the new descriptor has no other owner.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in SIGNALS.into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX()) {
                libc::sigaddset(&mut set, signal);
            }
            let error = libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            if error != 0 {
                return Err(io::Error::from_raw_os_error(error));
            }
            let made = check(libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) as i64)?;
            Ok(Self { descriptor: OwnedFd::from_raw_fd(made as i32) })
        }
    }

    /// The next one, if any.
    pub fn next(&self) -> Option<ReceivedSignal> {
        // SAFETY: all zero bytes are a valid value of this plain structure.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the buffer has this length.
        let length = unsafe { libc::read(self.descriptor.as_raw_fd(), (&raw mut info).cast(), size) };
        // Positive codes come from the kernel.
        let sender = (info.ssi_code <= 0).then_some(info.ssi_pid);
        (length == size as isize).then_some(ReceivedSignal { signal: info.ssi_signo as i32, sender })
    }
}

impl AsFd for SignalQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// The signal for the end of a child.
pub const CHILD: i32 = libc::SIGCHLD;
/// The signal that continues a stopped process.
pub const CONTINUE: i32 = libc::SIGCONT;
/// The signals that stop a process unless it handles them.
pub const STOPS: [i32; 3] = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// Redirects standard input, output and optionally standard error to `/dev/null`: a reader at the other end of a
/// pipe does not wait for this process.
pub fn detach_stdio(with_stderr: bool) -> io::Result<()> {
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    if with_stderr {
        dup2_stderr(&null)?;
    }
    Ok(())
}

/// Closes the descriptors from 3 on that programs would inherit. They were inherited by this process: descriptors that Rust
/// opens are closed at exec.
pub fn close_inheritable() -> io::Result<()> {
    for descriptor in open_descriptors()? {
        // SAFETY: plain integers; nothing of this process owns such a descriptor.
        unsafe {
            let flags = libc::fcntl(descriptor, libc::F_GETFD);
            if flags >= 0 && flags & libc::FD_CLOEXEC == 0 {
                libc::close(descriptor);
            }
        }
    }
    Ok(())
}

/// Closes all descriptors from 3 on except these. Use it only in a process that uses no others and ends by [`exit_now`], so
/// that no owner closes a descriptor a second time.
pub fn close_all_but(kept: &[RawFd]) -> io::Result<()> {
    for descriptor in open_descriptors()? {
        if !kept.contains(&descriptor) {
            // SAFETY: plain integers; the caller promises not to use it.
            unsafe { libc::close(descriptor) };
        }
    }
    Ok(())
}

fn open_descriptors() -> io::Result<Vec<RawFd>> {
    let host = SysRoot::host();
    let names = host.list(&TaskDir::own(&host).path("fd"))?;
    let numbers = names.iter().filter_map(|name| name.parse().ok());
    Ok(numbers.filter(|&descriptor: &RawFd| descriptor > 2).collect())
}

/// Starts a session of its own: leaves terminal and process group.
pub fn leave_session() -> io::Result<()> {
    setsid()?;
    Ok(())
}

/// Ends this process at once: no destructor runs, nothing is flushed.
pub fn exit_now(status: i32) -> ! {
    // SAFETY: ends the process without touching anything.
    unsafe { libc::_exit(status) }
}

/// Kills this process with a signal, without a core file. Returns if the signal does not kill it, as in the first
/// process of a container.
pub fn terminate_by(signal: i32) {
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    raise_default(signal);
}

/// Stops this process with this signal until it is continued. A signal of the terminal does not stop an orphaned
/// process group; then this returns at once.
pub fn stop_by(signal: i32) {
    raise_default(signal);
}

/// Takes a signal's default action, then blocks it again.
fn raise_default(signal: i32) {
    // SAFETY: the sets are initialised before use and outlive the calls; SIG_DFL is a valid
    // disposition, and no handler is ever installed by this crate.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        let disposition = libc::signal(signal, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, &mut before);
        libc::raise(signal);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        if disposition != libc::SIG_ERR {
            libc::signal(signal, disposition);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_threads_cannot_fork() {
        let (hold, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || wait.recv());
        assert!(fork().unwrap_err().to_string().contains("threads"));
        drop(hold);
        assert!(thread.join().unwrap().is_err());
    }

    #[test]
    fn a_process_shares_its_own_group() {
        assert!(shares_group(std::process::id()));
    }
}
