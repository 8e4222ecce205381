//! Programs that this process starts and reaps, with all that they start: each is in a session of its own, without a terminal, so that
//! Ctrl-C reaches this process alone, and what a program leaves behind becomes a child of this process and can be ended.

use crate::clock::{self, EndedUsage};
use crate::proc::{TaskDir, tree};
use crate::signal::{self, Signal, Signals};
use crate::start_notice::{self, StartPipe};
use crate::supervise::{ChildEvent, WaitResult, become_subreaper, leave_session, next_child_event, send};
use crate::{SysRoot, command, executable, inherited, poll};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How often descendants are looked for that are no children yet.
const LOOK: Duration = Duration::from_millis(5);
/// After this time, what was killed is in a call of the kernel that does not end.
const KILLED: Duration = Duration::from_secs(10);

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildEnd {
    /// With this exit status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

/// Why a wait for a program is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildWait {
    /// It has ended.
    Ended(ChildEnd),
    /// The time is over.
    TimeUp,
    /// This process received a signal.
    Signalled(Signal),
}

/// What a program is started with.
#[derive(Debug)]
pub struct ChildStart<'a> {
    /// The program and its arguments.
    pub words: &'a [OsString],
    /// Variables of its environment, in addition to those of this process.
    pub variables: &'a [(OsString, OsString)],
    /// What it reads; `None`: nothing.
    pub input: Option<&'a File>,
    /// Where it prints.
    pub output: &'a File,
    /// Where it prints errors.
    pub errors: &'a File,
    /// The pipe in which `numa run` says when it starts the program.
    pub notice: Option<&'a StartPipe>,
}

/// The programs that this process has started, and what these have started. There is one such value in a process, since it reaps
/// every child.
#[derive(Debug)]
pub struct Children {
    handles: BTreeMap<u32, OwnedFd>,
    ended: BTreeMap<u32, ChildEnd>,
}

impl Children {
    /// Makes orphans among the descendants of this process its children.
    pub fn adopt() -> io::Result<Self> {
        become_subreaper()?;
        Ok(Self { handles: BTreeMap::new(), ended: BTreeMap::new() })
    }

    /// Starts a program and returns its process id. The kernel ends the program (SIGTERM) when the calling thread ends, in whatever
    /// way: nobody would wait for it then.
    pub fn start(&mut self, start: &ChildStart<'_>) -> io::Result<u32> {
        let Some((program, arguments)) = start.words.split_first() else {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no command given"));
        };
        let mut command = Command::new(program);
        let variables = start.variables.iter().map(|(name, value)| (name, value));
        command.args(arguments).envs(variables);
        command.stdin(
            start.input.map_or_else(|| Ok(Stdio::null()), |input| input.try_clone().map(Stdio::from))?,
        );
        command.stdout(start.output.try_clone()?).stderr(start.errors.try_clone()?);
        let notice = start.notice.map(StartPipe::number);
        if let Some(number) = notice {
            command.env(start_notice::VARIABLE, number.to_string());
        }
        let parent = std::process::id();
        let prepare = move || {
            leave_session()?;
            // `numa run` passes it on to the program.
            command::end_with(parent, libc::SIGTERM)?;
            if let Some(number) = notice {
                // SAFETY: the caller keeps it open until the program has started.
                fcntl_setfd(unsafe { BorrowedFd::borrow_raw(number) }, FdFlags::empty())?;
            }
            inherited::restore()
        };
        // SAFETY: between fork and exec, it makes only system calls.
        unsafe { command.pre_exec(prepare) };
        let child = signal::restore_in(&mut command).spawn();
        let child = child.map_err(|error| executable::start_error(program, error))?.id();
        let pid = Pid::from_raw(child as i32).ok_or(io::ErrorKind::InvalidData)?;
        // An earlier program may have had the same number.
        self.ended.remove(&child);
        self.handles.insert(child, pidfd_open(pid, PidfdFlags::empty())?);
        Ok(child)
    }

    /// How a program ended, if it has. Reaps all that have ended.
    pub fn ended(&mut self, child: u32) -> io::Result<Option<ChildEnd>> {
        self.reap()?;
        Ok(self.ended.get(&child).copied())
    }

    /// Waits until a program has ended, a signal is received, or the time is over.
    pub fn wait(
        &mut self,
        child: u32,
        signals: Option<&Signals>,
        until: Option<Instant>,
    ) -> io::Result<ChildWait> {
        loop {
            if let Some(end) = self.ended(child)? {
                return Ok(ChildWait::Ended(end));
            }
            if let Some(signal) = signals.and_then(Signals::next) {
                return Ok(ChildWait::Signalled(signal));
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(ChildWait::TimeUp);
            }
            let handle = self.handles.get(&child).map(AsFd::as_fd);
            let fds: Vec<BorrowedFd<'_>> = handle.into_iter().chain(signals.map(AsFd::as_fd)).collect();
            poll::readable(&fds, left)?;
        }
    }

    fn reap(&mut self) -> io::Result<()> {
        loop {
            let (child, end) = match next_child_event()? {
                WaitResult::Nothing | WaitResult::Childless => return Ok(()),
                WaitResult::Child(child, ChildEvent::Exited(status)) => (child, ChildEnd::Exited(status)),
                WaitResult::Child(child, ChildEvent::Killed(signal)) => (child, ChildEnd::Killed(signal)),
                WaitResult::Child(..) => continue,
            };
            if self.handles.remove(&child).is_some() {
                self.ended.insert(child, end);
            }
        }
    }

    /// CPU time of all programs that have ended and were reaped.
    pub fn usage(&mut self) -> io::Result<EndedUsage> {
        self.reap()?;
        Ok(clock::ended_children())
    }

    /// All descendants of this process except these programs and what belongs to them.
    pub fn left(&mut self, except: &[u32]) -> io::Result<Vec<u32>> {
        self.reap()?;
        let (root, own) = (SysRoot::host(), std::process::id());
        // One reading: what a kept program starts between two would be no part of it.
        let children = tree::by_parent(&root);
        let kept: BTreeSet<u32> = tree::families_among(&children, except).into_iter().collect();
        let all = tree::families_among(&children, &[own]);
        let all = all.into_iter().filter(|pid| *pid != own && !kept.contains(pid));
        // What has ended and is not reaped yet does nothing.
        let lives = |pid: &u32| TaskDir::of(&root, *pid).stat().is_ok_and(|stat| !stat.has_ended());
        Ok(all.filter(lives).collect())
    }

    /// Waits until no descendant is left except these and what belongs to them; returns those that are left after this time.
    pub fn wait_for_all(&mut self, except: &[u32], patience: Duration) -> io::Result<Vec<u32>> {
        let late = Instant::now() + patience;
        loop {
            let left = self.left(except)?;
            if left.is_empty() || Instant::now() >= late {
                return Ok(left);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Ends all descendants except these and what belongs to them, by SIGTERM and after `patience` by SIGKILL. Returns those that the
    /// kernel does not end.
    pub fn end_all(&mut self, except: &[u32], patience: Duration) -> io::Result<Vec<u32>> {
        self.signal_all(except, signal::TERMINATE)?;
        let mut left = self.wait_for_all(except, patience)?;
        // A program may start another one while it is ended.
        let late = Instant::now() + KILLED;
        while !left.is_empty() && Instant::now() < late {
            self.signal_all(except, signal::KILL)?;
            left = self.wait_for_all(except, LOOK)?;
        }
        Ok(left)
    }

    fn signal_all(&mut self, except: &[u32], signal: i32) -> io::Result<()> {
        for process in self.left(except)? {
            match send(process, signal) {
                // It has ended meanwhile.
                Err(error) if error.kind() != io::ErrorKind::PermissionDenied => {}
                sent => sent?,
            }
        }
        Ok(())
    }
}
