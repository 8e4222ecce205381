//! The supervisor: a small process that holds the cores as long as any descendant of the program lives. It is the
//! program's parent and a subreaper, so it sees the end of the last descendant.

use super::message::SupervisorMessage;
use crate::isolate::ControlGroup;
use numakit_registry::{Registration, Reservation, SUPERVISOR_NAME};
use numakit_sys::start::PreparedCommand;
use numakit_sys::supervise::{self, ChildEvent, ReceivedSignal, SignalQueue, WaitResult};
use numakit_sys::{clock, poll};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A signal to the process group reaches supervisor and launcher within this time of each other.
const GROUP_SIGNAL_DELAY: Duration = Duration::from_millis(4);
/// Until the launcher is continued again.
const RETRY_DELAY: Duration = Duration::from_millis(20);
/// How long the supervisor remembers the signals that it received, in ns: the launcher may forward the same ones.
const MEMORY: u64 = 1_000_000_000;

/// A prepared command with its reservation.
#[derive(Debug)]
pub struct Supervisor {
    /// The program. [`PreparedCommand::descriptor`] should be [`Reservation::descriptor`], so that the cores stay
    /// reserved even if the supervisor is killed.
    pub command: PreparedCommand,
    /// The cores; none if they are shared.
    pub reservation: Option<Reservation>,
    /// The program's own control group, if there is one.
    pub group: Option<ControlGroup>,
}

impl Supervisor {
    /// Starts the program and holds the cores. Returns the exit status of the supervising process.
    pub(crate) fn supervise(self, launcher: UnixStream) -> i32 {
        match Supervision::start(self, launcher) {
            Ok(supervision) => supervision.run(),
            Err(message) => {
                let (message, launcher) = *message;
                let _ = message.send(&launcher);
                1
            }
        }
    }
}

/// The state of the supervising process.
struct Supervision {
    registration: Option<Registration>,
    group: Option<ControlGroup>,
    /// The socket to the launcher, as long as the launcher and the program live.
    launcher: Option<UnixStream>,
    launcher_pid: u32,
    signals: SignalQueue,
    /// The PID of the program; 0 after its end.
    program: u32,
    /// How the program ended, until that is reported.
    unreported_end: Option<ChildEvent>,
    /// The launcher has been told that the program continues, and has not answered yet.
    awaits_acknowledgement: bool,
    /// Signals that the supervisor itself received, with the time.
    received: Vec<(ReceivedSignal, u64)>,
}

impl Supervision {
    fn start(
        supervisor: Supervisor,
        launcher: UnixStream,
    ) -> Result<Self, Box<(SupervisorMessage, UnixStream)>> {
        let Supervisor { mut command, mut reservation, group } = supervisor;
        command.cgroup = group.as_ref().map(ControlGroup::descriptor);
        let launcher_pid = supervise::parent();
        let prepare = || -> io::Result<SignalQueue> {
            supervise::become_subreaper()?;
            SignalQueue::open()
        };
        let signals = match prepare() {
            Ok(signals) => signals,
            Err(error) => {
                release(reservation, group);
                let text = format!("the supervisor cannot be set up: {error}");
                return Err(Box::new((SupervisorMessage::NotPrepared(text), launcher)));
            }
        };
        let program = match command.spawn() {
            Ok(program) => program,
            Err(error) => {
                release(reservation, group);
                return Err(Box::new((not_started(&error), launcher)));
            }
        };
        let _ = supervise::set_process_name(SUPERVISOR_NAME);
        // The locks do not depend on this part of the record.
        if let Some(reservation) = &mut reservation {
            let _ = reservation.record_processes(std::process::id(), Some(program));
        }
        let is_reported = SupervisorMessage::Started(program).send(&launcher).is_ok();
        let mut supervision = Self {
            registration: reservation.map(Registration::new),
            group,
            launcher: Some(launcher).filter(|_| is_reported),
            launcher_pid,
            signals,
            program,
            unreported_end: None,
            awaits_acknowledgement: false,
            received: Vec::new(),
        };
        supervision.registration.iter_mut().for_each(Registration::start_watching);
        supervision.detach();
        Ok(supervision)
    }

    /// Closes pipes that others wait for, and leaves a directory that others may want to unmount.
    fn detach(&self) {
        let _ = supervise::detach_stdio(true);
        let _ = std::env::set_current_dir("/");
        let mut needed = vec![self.signals.as_fd().as_raw_fd()];
        needed.extend(self.registration.iter().flat_map(Registration::descriptors));
        needed.extend(self.launcher.as_ref().map(AsRawFd::as_raw_fd));
        needed.extend(self.group.as_ref().map(ControlGroup::descriptor));
        let _ = supervise::close_all_but(&needed);
    }

    /// Runs until there are no descendants.
    fn run(mut self) -> i32 {
        // If children cannot be waited for, the cores cannot be held either.
        while let Ok(true) = self.reap() {
            self.report_end();
            let mut sources: Vec<BorrowedFd<'_>> = vec![self.signals.as_fd()];
            sources.extend(self.launcher.as_ref().map(AsFd::as_fd));
            let has_launcher = sources.len() > 1;
            sources.extend(self.registration.as_ref().and_then(Registration::watch_descriptor));
            let timeout = match self.awaits_acknowledgement {
                true => Some(RETRY_DELAY),
                false => self.registration.as_ref().map(Registration::update_interval),
            };
            let Ok(ready) = poll::readable(&sources, timeout) else { continue };
            if has_launcher && ready.get(1) == Some(&true) {
                self.receive();
            }
            self.registration.iter_mut().for_each(Registration::update);
            self.continue_launcher();
        }
        // The cores are free before the launcher reports the program's end.
        release(self.registration.map(|taken| taken.reservation), self.group);
        if let (Some(message), Some(launcher)) = (end_message(self.unreported_end), self.launcher) {
            let _ = message.send(&launcher);
        }
        0
    }

    /// Handles what happened to descendants. False if there are none any more.
    fn reap(&mut self) -> io::Result<bool> {
        self.read_signals();
        loop {
            match supervise::next_child_event()? {
                WaitResult::Childless => return Ok(false),
                WaitResult::Nothing => return Ok(true),
                WaitResult::Child(child, event) if child == self.program => self.report(event),
                WaitResult::Child(..) => {}
            }
        }
    }

    fn report(&mut self, event: ChildEvent) {
        let message = match event {
            ChildEvent::Stopped(signal) => SupervisorMessage::Stopped(signal),
            ChildEvent::Continued => SupervisorMessage::Continued,
            ChildEvent::Exited(_) | ChildEvent::Killed(_) => {
                self.program = 0;
                self.unreported_end = Some(event);
                return;
            }
        };
        let Some(launcher) = &self.launcher else { return };
        let _ = message.send(launcher);
        self.awaits_acknowledgement = event == ChildEvent::Continued;
        self.continue_launcher();
    }

    /// Continues the launcher, which stopped with the program. It may also be about to stop, which would undo this
    /// signal: so the signal is repeated until the launcher answers.
    fn continue_launcher(&self) {
        if self.awaits_acknowledgement && self.launcher.is_some() && supervise::parent() == self.launcher_pid
        {
            let _ = supervise::send(self.launcher_pid, supervise::CONTINUE);
        }
    }

    /// If the program has ended and other descendants live: tells the launcher, so that it can return, and leaves the
    /// terminal.
    fn report_end(&mut self) {
        if let Some(message) = end_message(self.unreported_end.take()) {
            if let Some(launcher) = self.launcher.take() {
                let _ = message.send(&launcher);
            }
            let _ = supervise::leave_session();
        }
    }

    /// Handles a message of the launcher, or notes that the launcher has ended.
    fn receive(&mut self) {
        let message = self.launcher.as_ref().and_then(SupervisorMessage::receive);
        match message {
            Some(SupervisorMessage::Forward(signal, sender, when)) => self.forward(signal, sender, when),
            Some(SupervisorMessage::Acknowledged) => self.awaits_acknowledgement = false,
            Some(_) => {}
            None => (self.launcher, self.awaits_acknowledgement) = (None, false),
        }
    }

    /// Forwards a signal, unless it went to the whole process group: then the program has received it.
    fn forward(&mut self, signal: i32, sender: u32, when: u64) {
        if self.program == 0 {
            return;
        }
        let has_received = supervise::shares_group(self.program) && {
            self.read_signals();
            if self.position(signal, sender).is_none() {
                let _ = poll::readable(&[self.signals.as_fd()], Some(GROUP_SIGNAL_DELAY));
                self.read_signals();
            }
            self.forget(signal, sender) || self.is_cancelled(signal, when)
        };
        if !has_received {
            let _ = supervise::send(self.program, signal);
        }
    }

    /// Whether the opposite signal came to the process group after the launcher read this one. The kernel then discards the
    /// first: a continue signal discards a pending stop signal, and the reverse.
    fn is_cancelled(&self, signal: i32, when: u64) -> bool {
        let cancels = |other: i32| match signal {
            supervise::CONTINUE => supervise::STOPS.contains(&other),
            _ => other == supervise::CONTINUE && supervise::STOPS.contains(&signal),
        };
        self.received.iter().any(|(other, time)| cancels(other.signal) && *time >= when)
    }

    fn read_signals(&mut self) {
        let now = clock::monotonic();
        self.received.retain(|(_, time)| now.saturating_sub(*time) < MEMORY);
        while let Some(signal) = self.signals.next() {
            if signal.signal != supervise::CHILD {
                self.received.push((signal, now));
            }
        }
    }

    fn position(&self, signal: i32, sender: u32) -> Option<usize> {
        let wanted = ReceivedSignal { signal, sender: Some(sender) };
        self.received.iter().position(|(received, _)| *received == wanted)
    }

    /// Removes a signal from those received; false if it is not among them.
    fn forget(&mut self, signal: i32, sender: u32) -> bool {
        self.position(signal, sender).map(|at| self.received.remove(at)).is_some()
    }
}

/// Releases the cores. The group is removed before, so that its CPUs are usable as soon as the cores are free.
pub(crate) fn release(reservation: Option<Reservation>, group: Option<ControlGroup>) {
    if let Some(group) = group {
        group.remove();
    }
    reservation.into_iter().for_each(Reservation::release);
}

fn end_message(event: Option<ChildEvent>) -> Option<SupervisorMessage> {
    match event? {
        ChildEvent::Exited(status) => Some(SupervisorMessage::Exited(status)),
        ChildEvent::Killed(signal) => Some(SupervisorMessage::Killed(signal)),
        ChildEvent::Stopped(_) | ChildEvent::Continued => None,
    }
}

fn not_started(error: &io::Error) -> SupervisorMessage {
    match error.raw_os_error() {
        Some(number) if error.get_ref().is_none() => SupervisorMessage::NotStarted(number),
        _ => SupervisorMessage::NotPrepared(error.to_string()),
    }
}
