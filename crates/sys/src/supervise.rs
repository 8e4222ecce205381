//! Processes that look after others: fork, adopt orphans, wait, pass signals on, let go.

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

/// Which of the two a process is after [`fork`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fork {
    /// The one that called; with the id of the other.
    Parent(u32),
    /// The new one.
    Child,
}

/// Makes a second process that goes on from here. Only a process with a single thread may, since
/// locks that another thread has at that moment would stay locked in the child for ever; with
/// more it is an error and nothing happens.
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

/// From now on orphans among the descendants of this process become its children.
pub fn adopt_orphans() -> io::Result<()> {
    // The kernel looks only whether there is a number.
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// The process that this one is a child of.
pub fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

/// The name of this process as `ps` and `top` show it: `name` where they show the short one (at
/// most 15 bytes), and in place of the command line as far as there is room. Afterwards
/// `std::env::args` is not meaningful.
pub fn rename(name: &str) -> io::Result<()> {
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
    /// It stands still because of this signal.
    Stopped(i32),
    /// It goes on.
    Continued,
    /// It ended with this status.
    Exited(i32),
    /// This signal ended it.
    Killed(i32),
}

/// What there is to know of children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// This happened to this one.
    Child(u32, ChildEvent),
    /// Nothing new.
    Nothing,
    /// There are no children any more.
    Childless,
}

/// The next thing that happened to any child; does not wait for it. An ended one is forgotten.
pub fn waited() -> io::Result<Waited> {
    let every_kind = WaitOptions::from_bits_retain(libc::__WALL as u32);
    let options = WaitOptions::NOHANG | WaitOptions::UNTRACED | WaitOptions::CONTINUED | every_kind;
    let (child, status) = match wait(options) {
        Err(Errno::CHILD) => return Ok(Waited::Childless),
        other => match other? {
            None => return Ok(Waited::Nothing),
            Some(found) => found,
        },
    };
    let stopped = status.stopping_signal().map(ChildEvent::Stopped);
    let ended =
        status.exit_status().map(ChildEvent::Exited).or(status.terminating_signal().map(ChildEvent::Killed));
    let change = stopped.or(ended).unwrap_or(ChildEvent::Continued);
    Ok(Waited::Child(child.as_raw_nonzero().get() as u32, change))
}

/// Sends a signal to a process. To be called for own children only, which cannot be mistaken for
/// others as long as nobody waited for them.
pub fn send(process: u32, signal: i32) -> io::Result<()> {
    // SAFETY: plain integers.
    check(unsafe { libc::kill(process as i32, signal) } as i64)?;
    Ok(())
}

/// Whether this process and another are of one process group, so that what the terminal or
/// somebody sends to the group reaches both.
pub fn shares_group(process: u32) -> bool {
    let group = Pid::from_raw(process as i32).map(|process| getpgid(Some(process)));
    group.is_some_and(|group| group == Ok(getpgrp()))
}

/// A signal that came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mail {
    /// Its number.
    pub signal: i32,
    /// The process that sent it; none where the kernel did, as for a key pressed on the terminal,
    /// which the whole process group gets.
    pub sender: Option<u32>,
}

/// Signals to be read instead of suffered.
#[derive(Debug)]
pub struct Mailbox {
    descriptor: OwnedFd,
}

/// What a user or the terminal may send to a program and a program may handle; and the end of a
/// child. Real-time signals come on top.
const HANDLED: [i32; 15] = [
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

impl Mailbox {
    /// From now on this thread collects them all. Programs that it starts must unblock them.
    /// Whether they are ignored stays as it is, so that programs inherit it.
    pub fn open() -> io::Result<Self> {
        // SAFETY: the set is initialised before use, and outlives the calls; the new descriptor
        // belongs to nobody else.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in HANDLED.into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX()) {
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
    pub fn next(&self) -> Option<Mail> {
        // SAFETY: all zero bytes are a valid value of this plain structure.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: the buffer is as long as said.
        let got = unsafe { libc::read(self.descriptor.as_raw_fd(), (&raw mut info).cast(), size) };
        // Codes above 0 are the kernel's.
        let sender = (info.ssi_code <= 0).then_some(info.ssi_pid);
        (got == size as isize).then_some(Mail { signal: info.ssi_signo as i32, sender })
    }
}

impl AsFd for Mailbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// The end of a child, among the signals of a [`Mailbox`].
pub const CHILD: i32 = libc::SIGCHLD;
/// The end of a standstill.
pub const CONTINUE: i32 = libc::SIGCONT;
/// What makes a program stand still unless it handles it.
pub const STOPS: [i32; 3] = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// Standard input and output, and standard error too if wanted, lead nowhere from now on: who
/// waits for their end at the other side of a pipe does not wait for this process.
pub fn let_go_of_standard(error_too: bool) -> io::Result<()> {
    let nowhere = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&nowhere)?;
    dup2_stdout(&nowhere)?;
    if error_too {
        dup2_stderr(&nowhere)?;
    }
    Ok(())
}

/// Closes the descriptors from 3 on that programs would inherit, which are those that this
/// process inherited itself: all that Rust opens is closed at exec.
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

/// Closes all descriptors from 3 on but these. For a process that uses nothing else any more and
/// ends by [`leave`], so that no owner of a closed descriptor is left to close it again.
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

/// Leaves terminal, session and process group.
pub fn leave_session() -> io::Result<()> {
    setsid()?;
    Ok(())
}

/// Ends this process at once: no destructor runs, nothing is flushed.
pub fn leave(status: i32) -> ! {
    // SAFETY: ends the process without touching anything.
    unsafe { libc::_exit(status) }
}

/// Ends this process by a signal, as if it had come to us, without a core file. Returns where the
/// signal does not end it, as in the first process of a container.
pub fn die_of(signal: i32) {
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    suffer(signal);
}

/// Stands still because of this signal until somebody continues this process. A signal from the
/// terminal does not stop a process group that no shell looks after; then this returns at once.
pub fn stop_of(signal: i32) {
    suffer(signal);
}

/// Takes a signal's default action, then blocks it again.
fn suffer(signal: i32) {
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
    fn with_threads_there_is_no_fork() {
        let (hold, wait) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || wait.recv());
        assert!(fork().unwrap_err().to_string().contains("threads"));
        drop(hold);
        assert!(thread.join().unwrap().is_err());
    }

    #[test]
    fn a_group_is_shared_with_oneself() {
        assert!(shares_group(std::process::id()));
    }
}
