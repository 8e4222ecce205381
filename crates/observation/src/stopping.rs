//! What ends an observation: its command, or signals, of which the first one goes to the command.

use numakit_sys::command::Running;
use numakit_sys::signal::{self, Signals};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// The observed command, if there is one, and the signals to this process.
#[derive(Debug)]
pub(crate) struct Stopping {
    signals: Signals,
    command: Option<Running>,
    asked: Option<i32>,
}

impl Stopping {
    /// Collects signals. Must be called before other threads exist.
    pub(crate) fn collect() -> io::Result<Self> {
        let ends = [signal::INTERRUPT, signal::TERMINATE, signal::HANGUP, signal::CHILD];
        Ok(Self { signals: Signals::collect(&ends)?, command: None, asked: None })
    }

    /// From now on, the first signal goes to this command.
    pub(crate) fn follow(&mut self, command: Option<Running>) {
        self.command = command;
    }

    /// Whether it follows a command that has not ended.
    pub(crate) fn has_command(&self) -> bool {
        self.command.is_some()
    }

    /// The last signal that asked for the end.
    pub(crate) fn asked(&self) -> Option<i32> {
        self.asked
    }

    /// Takes the signals since the last call. The first one goes to the command, whose end ends the observation; `true`: a second
    /// one, or one without a command, ends it at once.
    pub(crate) fn is_stopped(&mut self) -> bool {
        let mut stopped = false;
        while let Some(signal) = self.signals.next() {
            if signal.number == signal::CHILD {
                continue;
            }
            match &self.command {
                Some(command) if self.asked.is_none() => {
                    if signal.from_process {
                        command.signal(signal.number);
                    }
                }
                _ => stopped = true,
            }
            self.asked = Some(signal.number);
        }
        stopped
    }

    /// The status of the command, when it has ended.
    pub(crate) fn ended(&mut self) -> io::Result<Option<i32>> {
        let Some(command) = &mut self.command else { return Ok(None) };
        let status = command.ended()?;
        if status.is_some() {
            self.command = None;
        }
        Ok(status)
    }
}

impl AsFd for Stopping {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signals.as_fd()
    }
}
