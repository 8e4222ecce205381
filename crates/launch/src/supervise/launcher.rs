//! The launcher: the process that the shell waits for. It starts the supervisor, which starts the program. Then it
//! forwards signals, and stops, continues and ends as the program does.

use super::message::SupervisorMessage;
use super::supervisor::{self, Supervisor};
use crate::isolate::ControlGroup;
use numakit_registry::{Registration, Reservation};
use numakit_sys::supervise::{self, ChildEvent, Fork, ReceivedSignal, SignalQueue, WaitResult};
use numakit_sys::{clock, poll};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use thiserror::Error;

/// The supervisor ends within this time after the program, unless descendants run on.
const LINGER: Duration = Duration::from_millis(100);

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It exited with this status.
    Exited(i32),
    /// This signal killed it.
    Killed(i32),
}

impl Ending {
    /// Ends this process likewise: kills it with the same signal, or returns the exit status for it. If the signal
    /// does not end it, the status is 128 + the signal, as in shells.
    pub fn mirror(self) -> u8 {
        match self {
            Self::Exited(status) => status as u8,
            Self::Killed(signal) => {
                supervise::terminate_by(signal);
                (128 + signal) as u8
            }
        }
    }
}

/// Why a program did not run.
#[derive(Debug, Error)]
pub enum RunError {
    /// The system cannot execute it.
    #[error(transparent)]
    NotStarted(io::Error),
    /// A preparation for its start failed.
    #[error("{0}")]
    NotPrepared(String),
}

/// Starts the program and mirrors it until it ends; the cores are held until its last descendant has ended. The
/// caller must have a single thread. Afterwards standard input and output of this process are `/dev/null` and
/// signals are blocked: all that is left to do is [`Ending::mirror`].
pub fn run(mut supervisor: Supervisor) -> Result<Ending, RunError> {
    supervisor.command.tag = supervisor.reservation.as_ref().and_then(Reservation::tag);
    let failed = |doing: &'static str| move |e: io::Error| RunError::NotPrepared(format!("{doing}: {e}"));
    let (here, there) = UnixStream::pair().map_err(failed("no socket pair for the supervisor"))?;
    // If the supervisor is killed, the program becomes a child of this process.
    supervise::become_subreaper().map_err(failed("this process cannot be a subreaper"))?;
    let signals = SignalQueue::open().map_err(failed("signals cannot be read"))?;
    match supervise::fork().map_err(failed("the supervisor cannot be started"))? {
        Fork::Child => {
            drop(here);
            // A panic must not return to the caller's code in this process.
            let status = catch_unwind(AssertUnwindSafe(|| supervisor.supervise(there)));
            supervise::exit_now(status.unwrap_or(1))
        }
        Fork::Parent(supervisor_pid) => {
            drop(there);
            let Supervisor { reservation, group, .. } = supervisor;
            let registration = reservation.map(Registration::new);
            let launcher =
                Launcher { registration, group, supervisor: supervisor_pid, program: None, signals };
            launcher.mirror_program(&here)
        }
    }
}

struct Launcher {
    /// A copy: the cores stay reserved if only the supervisor is killed.
    registration: Option<Registration>,
    /// A copy of the control group, in case only the supervisor is killed.
    group: Option<ControlGroup>,
    supervisor: u32,
    program: Option<u32>,
    signals: SignalQueue,
}

impl Launcher {
    fn mirror_program(mut self, supervisor: &UnixStream) -> Result<Ending, RunError> {
        // The signal that stopped the program.
        let mut stopped = None;
        loop {
            let sources = [self.signals.as_fd(), supervisor.as_fd()];
            let ready = poll::readable(&sources, stopped.map(|_| Duration::ZERO)).unwrap_or_default();
            while let Some(signal) = self.signals.next() {
                if let Some((signal, sender)) = self.signal_for_program(signal) {
                    let _ = SupervisorMessage::Forward(signal, sender, clock::monotonic()).send(supervisor);
                }
            }
            if ready.get(1) != Some(&true) {
                // Stops this process, so that the shell notices. If the program continues at the same time, the
                // supervisor continues this process too.
                stopped.take().into_iter().for_each(supervise::stop_by);
                continue;
            }
            match SupervisorMessage::receive(supervisor) {
                Some(SupervisorMessage::Started(program)) => {
                    self.program = Some(program);
                    let _ = supervise::detach_stdio(false);
                    let _ = supervise::close_inheritable();
                }
                Some(SupervisorMessage::NotStarted(error)) => {
                    return Err(RunError::NotStarted(io::Error::from_raw_os_error(error)));
                }
                Some(SupervisorMessage::NotPrepared(text)) => return Err(RunError::NotPrepared(text)),
                Some(SupervisorMessage::Stopped(signal)) => stopped = Some(signal),
                Some(SupervisorMessage::Continued) => {
                    stopped = None;
                    let _ = SupervisorMessage::Acknowledged.send(supervisor);
                }
                Some(SupervisorMessage::Exited(status)) => {
                    self.wait_for_supervisor();
                    return Ok(Ending::Exited(status));
                }
                Some(SupervisorMessage::Killed(signal)) => {
                    self.wait_for_supervisor();
                    return Ok(Ending::Killed(signal));
                }
                Some(SupervisorMessage::Acknowledged | SupervisorMessage::Forward(..)) => {}
                None => return self.take_over(),
            }
        }
    }

    /// Waits for the end of the supervisor, unless descendants of the program run on. The kernel counts the CPU time of the program, for
    /// which the supervisor has waited, as that of this process's children only then: for `time numa run ./app`.
    fn wait_for_supervisor(&self) {
        let until = Instant::now() + LINGER;
        loop {
            match supervise::next_child_event() {
                Ok(WaitResult::Child(child, ChildEvent::Exited(_) | ChildEvent::Killed(_)))
                    if child == self.supervisor =>
                {
                    return;
                }
                Ok(WaitResult::Child(..)) => {}
                Ok(WaitResult::Nothing) if Instant::now() < until => {
                    let left = until.saturating_duration_since(Instant::now());
                    let _ = poll::readable(&[self.signals.as_fd()], Some(left));
                    while self.signals.next().is_some() {}
                }
                Ok(WaitResult::Nothing | WaitResult::Childless) | Err(_) => return,
            }
        }
    }

    /// The signal and its sender, if it is to be forwarded: the program has received the terminal's signals itself,
    /// and those of the supervisor are for this process.
    fn signal_for_program(&self, received: ReceivedSignal) -> Option<(i32, u32)> {
        let sender = received.sender.filter(|&sender| sender != self.supervisor)?;
        (received.signal != supervise::CHILD).then_some((received.signal, sender))
    }

    /// After the supervisor was killed, the program and its orphans are children of this process, which supervises them
    /// until the program ends.
    fn take_over(mut self) -> Result<Ending, RunError> {
        if let Some(registration) = &mut self.registration {
            let _ = registration.reservation.record_processes(std::process::id(), self.program);
            registration.start_watching();
        }
        let mut ending = None;
        loop {
            match supervise::next_child_event().unwrap_or(WaitResult::Childless) {
                WaitResult::Child(child, event) if child != self.supervisor => {
                    // If the supervisor was killed before it reported the program, its child is the program.
                    if *self.program.get_or_insert(child) == child {
                        ending = ending.or(self.mirror_event(event));
                    }
                }
                WaitResult::Child(..) => {}
                WaitResult::Childless => {
                    supervisor::release(self.registration.map(|taken| taken.reservation), self.group);
                    let lost = "the supervisor was killed before the program started".to_owned();
                    return ending.ok_or(RunError::NotPrepared(lost));
                }
                WaitResult::Nothing => {
                    if let Some(ending) = ending {
                        return Ok(ending);
                    }
                    let registration = self.registration.as_ref();
                    let watched = registration.and_then(Registration::watch_descriptor);
                    let sources: Vec<_> =
                        [Some(self.signals.as_fd()), watched].into_iter().flatten().collect();
                    let _ = poll::readable(&sources, registration.map(Registration::update_interval));
                    self.registration.iter_mut().for_each(Registration::update);
                    self.forward_signals();
                }
            }
        }
    }

    fn mirror_event(&self, event: ChildEvent) -> Option<Ending> {
        match event {
            ChildEvent::Exited(status) => return Some(Ending::Exited(status)),
            ChildEvent::Killed(signal) => return Some(Ending::Killed(signal)),
            ChildEvent::Stopped(signal) => supervise::stop_by(signal),
            ChildEvent::Continued => {}
        }
        None
    }

    /// Without the supervisor it is unknown whether a signal went to the whole process group: the program may
    /// receive it twice.
    fn forward_signals(&self) {
        while let Some(signal) = self.signals.next() {
            if let (Some((signal, _)), Some(program)) = (self.signal_for_program(signal), self.program) {
                let _ = supervise::send(program, signal);
            }
        }
    }
}
