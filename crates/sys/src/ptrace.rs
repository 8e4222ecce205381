//! Stopping threads of own children for a moment to read their registers. All calls of a [`Tracer`] must come from the
//! thread that made it, as the kernel demands. When that thread ends, in whatever way, all traced threads run on
//! untraced.

mod ticks;

pub use ticks::Ticks;

use crate::check;
use crate::registers::UserRegisters;
use std::io;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicI64, Ordering};

/// Why a traced thread stopped. After [`Stop::Ended`] the thread is gone; in all other cases it waits to be resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The thread was interrupted by [`Tracer::interrupt`], or it is new and traced from now on.
    Interrupted,
    /// The thread receives this signal, which [`Tracer::resume`] must pass on.
    Signal(i32),
    /// The process of the thread is stopped; [`Tracer::leave_stopped`] keeps it so until it is continued.
    Group,
    /// The thread created this thread or process, which is traced too.
    Created(u32),
    /// The thread executed a program. The other threads of its process are gone, and it has the number of the process now;
    /// this is the number that it had before.
    Executed(u32),
    /// It ended, with this status as a shell gives it.
    Ended(i32),
}

/// The registers of a stopped thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedRegisters {
    /// The registers.
    pub registers: UserRegisters,
    /// Whether the thread stopped on its way out of a system call; false if the kernel does not say so.
    pub in_call: bool,
}

/// A negative number means that it was not in a call.
#[cfg(target_arch = "x86_64")]
fn in_call(registers: &libc::user_regs_struct) -> bool {
    registers.orig_rax as i64 >= 0
}

#[cfg(not(target_arch = "x86_64"))]
fn in_call(_: &libc::user_regs_struct) -> bool {
    false
}

/// Traces threads.
#[derive(Debug)]
pub struct Tracer {
    /// Keeps the tracer on its thread, as the kernel demands.
    own: PhantomData<*const ()>,
}

const OPTIONS: i32 = libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACEEXEC;

/// `ERESTARTNOHAND` of the kernel: the call is restarted, unless a handler of a signal runs before.
const RESTART_WITHOUT_HANDLER: i64 = 514;

impl Tracer {
    /// Makes the tracer of the calling thread. From now on, stops of traced threads raise no SIGCHLD in this process.
    pub fn new() -> io::Result<Self> {
        // SAFETY: all zero bytes are a valid value: the default action without flags.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            check(libc::sigaction(libc::SIGCHLD, std::ptr::null(), &mut action) as i64)?;
            action.sa_flags |= libc::SA_NOCLDSTOP;
            check(libc::sigaction(libc::SIGCHLD, &action, std::ptr::null_mut()) as i64)?;
        }
        Ok(Self { own: PhantomData })
    }

    /// Traces a running thread, and all threads and processes that it creates, without stopping it.
    pub fn seize(&self, thread: u32) -> io::Result<()> {
        // SAFETY: plain integers.
        check(unsafe { libc::ptrace(libc::PTRACE_SEIZE, thread, 0usize, OPTIONS as usize) }).map(drop)
    }

    /// Traces a running thread without stopping it, but not what it creates or executes.
    pub fn seize_alone(&self, thread: u32) -> io::Result<()> {
        // SAFETY: plain integers.
        check(unsafe { libc::ptrace(libc::PTRACE_SEIZE, thread, 0usize, 0usize) }).map(drop)
    }

    /// Interrupts a thread: [`Stop::Interrupted`] follows. A system call that it sleeps in may be interrupted too, see
    /// [`Tracer::repair_call`].
    pub fn interrupt(&self, thread: u32) -> io::Result<()> {
        // SAFETY: plain integers.
        check(unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, thread, 0usize, 0usize) }).map(drop)
    }

    /// The registers of a stopped thread; `None` for a 32-bit program.
    pub fn registers(&self, thread: u32) -> io::Result<Option<TracedRegisters>> {
        Ok(self
            .raw_registers(thread)?
            .map(|raw| TracedRegisters { registers: (&raw).into(), in_call: in_call(&raw) }))
    }

    fn raw_registers(&self, thread: u32) -> io::Result<Option<libc::user_regs_struct>> {
        // SAFETY: all zero bytes are a valid value of this plain structure.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        let size = size_of_val(&registers);
        let mut vector = libc::iovec { iov_base: (&raw mut registers).cast(), iov_len: size };
        // SAFETY: the kernel writes at most the size of the structure, which outlives the call.
        check(unsafe {
            libc::ptrace(libc::PTRACE_GETREGSET, thread, libc::NT_PRSTATUS as usize, &raw mut vector)
        })?;
        Ok((vector.iov_len == size).then_some(registers))
    }

    /// Call this after [`Stop::Interrupted`]. If the interruption ended a system call that the kernel would not restart
    /// (`epoll_wait` is one), lets it be restarted: the program does not see EINTR unless a handler of a signal runs. True
    /// if there was such a call.
    #[cfg(target_arch = "x86_64")]
    pub fn repair_call(&self, thread: u32) -> io::Result<bool> {
        let Some(mut registers) = self.raw_registers(thread)? else { return Ok(false) };
        if !in_call(&registers) || registers.rax as i64 != -i64::from(libc::EINTR) {
            return Ok(false);
        }
        registers.rax = -RESTART_WITHOUT_HANDLER as u64;
        let size = size_of_val(&registers);
        let mut vector = libc::iovec { iov_base: (&raw mut registers).cast(), iov_len: size };
        // SAFETY: the structure has this size and outlives the call.
        check(unsafe {
            libc::ptrace(libc::PTRACE_SETREGSET, thread, libc::NT_PRSTATUS as usize, &raw mut vector)
        })?;
        Ok(true)
    }

    /// On other processors the kernel has decided before the thread stops, and nothing can be repaired.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn repair_call(&self, _thread: u32) -> io::Result<bool> {
        let _ = RESTART_WITHOUT_HANDLER;
        Ok(false)
    }

    /// Lets a stopped thread run on, and delivers a signal to it; 0 is none.
    pub fn resume(&self, thread: u32, signal: i32) -> io::Result<()> {
        // SAFETY: plain integers.
        check(unsafe { libc::ptrace(libc::PTRACE_CONT, thread, 0usize, signal as usize) }).map(drop)
    }

    /// Lets a stopped thread execute one instruction, and delivers a signal to it; 0 is none. [`Stop::Signal`] with
    /// [`crate::signal::TRAP`] follows, unless something else stops it before.
    pub fn step(&self, thread: u32, signal: i32) -> io::Result<()> {
        // SAFETY: plain integers.
        check(unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, thread, 0usize, signal as usize) }).map(drop)
    }

    /// Leaves a thread stopped after [`Stop::Group`], until its process is continued.
    pub fn leave_stopped(&self, thread: u32) -> io::Result<()> {
        // SAFETY: plain integers.
        check(unsafe { libc::ptrace(libc::PTRACE_LISTEN, thread, 0usize, 0usize) }).map(drop)
    }

    /// The next stop of any traced thread. With `wait` it sleeps until there is one or a tick of [`Ticks`] comes.
    /// `None` if there is none now. The error `NotFound` means that no thread is traced any more.
    pub fn next(&self, wait: bool) -> io::Result<Option<(u32, Stop)>> {
        let mut status = 0;
        let options = libc::__WALL | libc::__WNOTHREAD | if wait { 0 } else { libc::WNOHANG };
        // SAFETY: the status outlives the call.
        match check(unsafe { libc::waitpid(-1, &mut status, options) } as i64) {
            Ok(0) => Ok(None),
            Ok(thread) => Ok(Some((thread as u32, self.stop(thread as u32, status)))),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => Err(io::ErrorKind::NotFound.into()),
            Err(error) => Err(error),
        }
    }

    /// Waits for the next stop of this traced thread, whatever other threads do.
    pub fn next_of(&self, thread: u32) -> io::Result<Stop> {
        let mut status = 0;
        // SAFETY: the status outlives the call.
        check(unsafe { libc::waitpid(thread as i32, &mut status, libc::__WALL | libc::__WNOTHREAD) } as i64)?;
        Ok(self.stop(thread, status))
    }

    fn stop(&self, thread: u32, status: i32) -> Stop {
        if libc::WIFEXITED(status) {
            return Stop::Ended(libc::WEXITSTATUS(status));
        }
        if libc::WIFSIGNALED(status) {
            return Stop::Ended(128 + libc::WTERMSIG(status));
        }
        let signal = libc::WSTOPSIG(status);
        match status >> 16 {
            libc::PTRACE_EVENT_STOP if signal == libc::SIGTRAP => Stop::Interrupted,
            libc::PTRACE_EVENT_STOP => Stop::Group,
            libc::PTRACE_EVENT_CLONE | libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK => {
                Stop::Created(self.message(thread))
            }
            libc::PTRACE_EVENT_EXEC => Stop::Executed(self.message(thread)),
            _ => Stop::Signal(signal),
        }
    }

    /// The number that comes with an event.
    fn message(&self, thread: u32) -> u32 {
        let mut message: libc::c_ulong = 0;
        // SAFETY: the kernel writes one number, which outlives the call.
        unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, thread, 0usize, &raw mut message) };
        message as u32
    }
}

/// Lets a child run on that asked to be traced by its parent and stopped with this status of waitpid. It receives the signal
/// that it stopped for. Must be called by the thread that started the child.
pub fn let_run_on(child: u32, status: i32) {
    let signal = libc::WSTOPSIG(status);
    let (request, signal) = match signal {
        // If job control stopped a traced program, SIGCONT would not reach it. So it is traced no more.
        libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU => (libc::PTRACE_DETACH, signal),
        // This is how the kernel tells a tracer that the program executed a different one. Nobody wants the signal.
        libc::SIGTRAP if is_sent_by_process(child) => (libc::PTRACE_CONT, 0),
        _ => (libc::PTRACE_CONT, signal),
    };
    // It fails where the child was killed meanwhile, and then there is nothing to let run.
    // SAFETY: plain integers.
    unsafe { libc::ptrace(request, child, 0usize, signal as usize) };
}

/// Whether a process sent the signal that a traced child stopped for, rather than the kernel for an instruction.
fn is_sent_by_process(child: u32) -> bool {
    // SAFETY: all zero bytes are a valid value; the kernel writes one structure, which outlives the call.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        libc::ptrace(libc::PTRACE_GETSIGINFO, child, 0usize, &raw mut info) == 0
            && info.si_code == libc::SI_USER
    }
}

/// How a child ended that a [`Tracer`] reaps, for other threads. They must not wait for the child themselves: they would
/// take stops that the tracer waits for.
#[derive(Debug, Default)]
pub struct TracedEnd(AtomicI64);

const DETACHED: i64 = -1;

impl TracedEnd {
    /// The tracer reaped the child. Wakes this process with SIGCHLD, as the end of an untraced child does.
    pub fn set(&self, status: i32) {
        self.0.store(i64::from(status) + 1, Ordering::Release);
        let _ = crate::supervise::send(std::process::id(), libc::SIGCHLD);
    }

    /// Notes that the tracer has ended and the child runs on: from now on the child is waited for like any other.
    pub fn detach(&self) {
        let _ = self.0.compare_exchange(0, DETACHED, Ordering::AcqRel, Ordering::Acquire);
        let _ = crate::supervise::send(std::process::id(), libc::SIGCHLD);
    }

    /// The status once it has ended.
    pub fn status(&self) -> Option<i32> {
        i32::try_from(self.0.load(Ordering::Acquire) - 1).ok().filter(|status| *status >= 0)
    }

    /// Whether the child is no longer traced.
    pub fn is_detached(&self) -> bool {
        self.0.load(Ordering::Acquire) == DETACHED
    }
}

#[cfg(test)]
mod tests;
