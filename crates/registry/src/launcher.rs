//! The launcher: what the shell waits for. It starts the keeper, which starts the program, and
//! then stands for the program: signals, standstill, end.

use crate::follow::Kept;
use crate::held::{Reservation, process};
use crate::isolate::ControlGroup;
use crate::keeper;
use crate::message::KeeperMessage;
use numakit_sys::start::PreparedCommand;
use numakit_sys::supervise::{self, ChildEvent, Fork, Mail, Mailbox, Waited};
use numakit_sys::{clock, poll};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use thiserror::Error;

/// What is to be run on cores that were taken.
#[derive(Debug)]
pub struct Supervisor {
    /// The program. [`PreparedCommand::descriptor`] should be [`Reservation::descriptor`], so that the cores stay
    /// its own even if the keeper is killed.
    pub start: PreparedCommand,
    /// The cores.
    pub held: Reservation,
    /// The control group that is for the program alone, if one was made.
    pub group: Option<ControlGroup>,
}

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Killed(i32),
}

impl Ending {
    /// The same end for this process: it dies of the same signal, or gets the status to leave
    /// with. Where a signal does not end it, that is 128 + its number, as a shell tells it.
    pub fn imitate(self) -> u8 {
        match self {
            Self::Exited(status) => status as u8,
            Self::Killed(signal) => {
                supervise::die_of(signal);
                (128 + signal) as u8
            }
        }
    }
}

/// Why a program did not run.
#[derive(Debug, Error)]
pub enum RunError {
    /// The system does not start it: it is not there, or no program.
    #[error(transparent)]
    NotStarted(io::Error),
    /// Something else that had to be there before it starts.
    #[error("{0}")]
    NotPrepared(String),
}

/// Starts the program and stands for it until it ends; the cores stay held until its last
/// descendant ended. Only a process with a single thread may. Standard input and output of this
/// process lead nowhere afterwards, and signals are blocked: it has nothing left to do but to
/// [`Ending::imitate`] the end.
pub fn run(mut job: Supervisor) -> Result<Ending, RunError> {
    job.start.tag = job.held.tag();
    let failed = |doing: &'static str| move |e: io::Error| RunError::NotPrepared(format!("{doing}: {e}"));
    let (here, there) = UnixStream::pair().map_err(failed("no socket"))?;
    // If the keeper is killed, the program becomes a child of this process.
    supervise::adopt_orphans().map_err(failed("orphans cannot be adopted"))?;
    let mailbox = Mailbox::open().map_err(failed("signals cannot be collected"))?;
    match supervise::fork().map_err(failed("no keeper of the cores"))? {
        Fork::Child => {
            drop(here);
            // Nothing of what the caller has to do happens here as well, whatever happens.
            let kept = catch_unwind(AssertUnwindSafe(|| keeper::keep(job, there)));
            supervise::leave(kept.unwrap_or(1))
        }
        Fork::Parent(keeper) => {
            drop(there);
            let Supervisor { held, group, .. } = job;
            let kept = Kept::new(held);
            let launcher = Launcher { kept, group, keeper, program: None, mailbox };
            launcher.stand_for_program(&here)
        }
    }
}

struct Launcher {
    /// A copy: the cores stay held if the keeper alone is killed.
    kept: Kept,
    /// For the same case.
    group: Option<ControlGroup>,
    keeper: u32,
    program: Option<u32>,
    mailbox: Mailbox,
}

impl Launcher {
    fn stand_for_program(mut self, keeper: &UnixStream) -> Result<Ending, RunError> {
        // The program stands still because of this signal.
        let mut stopped = None;
        loop {
            let sources = [self.mailbox.as_fd(), keeper.as_fd()];
            let ready = poll::readable(&sources, stopped.map(|_| Duration::ZERO)).unwrap_or_default();
            while let Some(mail) = self.mailbox.next() {
                if let Some((signal, sender)) = self.meant_for_program(mail) {
                    let _ = KeeperMessage::Forward(signal, sender, clock::monotonic()).send(keeper);
                }
            }
            if ready.get(1) != Some(&true) {
                // So that the shell notices. Should the program go on at this moment, the keeper
                // continues this process as well.
                stopped.take().into_iter().for_each(supervise::stop_of);
                continue;
            }
            match KeeperMessage::receive(keeper) {
                Some(KeeperMessage::Started(program)) => {
                    self.program = Some(program);
                    let _ = supervise::let_go_of_standard(false);
                    let _ = supervise::close_inheritable();
                }
                Some(KeeperMessage::NotStarted(error)) => {
                    return Err(RunError::NotStarted(io::Error::from_raw_os_error(error)));
                }
                Some(KeeperMessage::NotPrepared(text)) => return Err(RunError::NotPrepared(text)),
                Some(KeeperMessage::Stopped(signal)) => stopped = Some(signal),
                Some(KeeperMessage::Continued) => {
                    stopped = None;
                    let _ = KeeperMessage::Noted.send(keeper);
                }
                Some(KeeperMessage::Exited(status)) => return Ok(Ending::Exited(status)),
                Some(KeeperMessage::Killed(signal)) => return Ok(Ending::Killed(signal)),
                Some(KeeperMessage::Noted | KeeperMessage::Forward(..)) => {}
                None => return self.take_over(),
            }
        }
    }

    /// What came from the terminal the program has as well; what the keeper sends is for this
    /// process.
    fn meant_for_program(&self, mail: Mail) -> Option<(i32, u32)> {
        let sender = mail.sender.filter(|&sender| sender != self.keeper)?;
        (mail.signal != supervise::CHILD).then_some((mail.signal, sender))
    }

    /// The keeper was killed: the program and the orphans are children of this process now. Until
    /// the program ends this process does what the keeper did.
    fn take_over(mut self) -> Result<Ending, RunError> {
        let program = self.program;
        let _ = self.kept.held.tell(|who| {
            who.keeper = process(std::process::id());
            who.program = program.and_then(process);
        });
        self.kept.begin();
        let mut ending = None;
        loop {
            match supervise::waited().unwrap_or(Waited::Childless) {
                Waited::Child(child, change) if child != self.keeper => {
                    // Where the keeper was killed before it could tell, its child is the program.
                    if *self.program.get_or_insert(child) == child {
                        ending = ending.or(self.changed(change));
                    }
                }
                Waited::Child(..) => {}
                Waited::Childless => {
                    // Nobody is left who could need the cores.
                    keeper::give_back(self.kept.held, self.group);
                    let lost = "the keeper of the cores was killed before the program started".to_owned();
                    return ending.ok_or(RunError::NotPrepared(lost));
                }
                Waited::Nothing => {
                    if let Some(ending) = ending {
                        return Ok(ending);
                    }
                    let sources: Vec<_> =
                        [Some(self.mailbox.as_fd()), self.kept.reason()].into_iter().flatten().collect();
                    let _ = poll::readable(&sources, Some(self.kept.patience()));
                    self.kept.follow();
                    self.pass_on();
                }
            }
        }
    }

    fn changed(&self, change: ChildEvent) -> Option<Ending> {
        match change {
            ChildEvent::Exited(status) => return Some(Ending::Exited(status)),
            ChildEvent::Killed(signal) => return Some(Ending::Killed(signal)),
            ChildEvent::Stopped(signal) => supervise::stop_of(signal),
            ChildEvent::Continued => {}
        }
        None
    }

    /// Without the keeper nobody knows whether a signal went to the whole group: better twice than
    /// not at all.
    fn pass_on(&self) {
        while let Some(mail) = self.mailbox.next() {
            if let (Some((signal, _)), Some(program)) = (self.meant_for_program(mail), self.program) {
                let _ = supervise::send(program, signal);
            }
        }
    }
}
