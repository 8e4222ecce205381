//! The keeper: a small process that holds the cores as long as any descendant of the program
//! lives. The program is its child and orphans come to it, so it knows when the last one ended.

use crate::follow::Kept;
use crate::held::{Reservation, process};
use crate::isolate::ControlGroup;
use crate::launcher::Supervisor;
use crate::message::KeeperMessage;
use numakit_sys::supervise::{self, ChildEvent, Mail, Mailbox, Waited};
use numakit_sys::{clock, poll};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Its name where processes are listed. Neither ours nor the program's is in it: who sends a
/// signal to all processes of such a name does not mean the keeper.
pub(crate) const NAME: &str = "cores-keeper";
/// A signal that went to the whole process group reaches keeper and launcher at the same time,
/// give or take this.
const SAME_MOMENT: Duration = Duration::from_millis(4);
/// Until the launcher is told again.
const AGAIN: Duration = Duration::from_millis(20);
/// So long a signal is remembered that the launcher may ask about.
const REMEMBERED: u64 = 1_000_000_000;

/// Starts the program and keeps the cores. Returns the keeper's own exit status.
pub fn keep(job: Supervisor, launcher: UnixStream) -> i32 {
    match Keeper::start(job, launcher) {
        Ok(keeper) => keeper.stay(),
        Err(message) => {
            let (message, launcher) = *message;
            let _ = message.send(&launcher);
            1
        }
    }
}

struct Keeper {
    kept: Kept,
    group: Option<ControlGroup>,
    /// The launcher, as long as it lives and the program does.
    launcher: Option<UnixStream>,
    launcher_pid: u32,
    mailbox: Mailbox,
    /// 0 when it has ended.
    program: u32,
    /// How it ended, until the launcher is told.
    ended: Option<ChildEvent>,
    /// The launcher was told that the program goes on, and did not answer yet.
    unnoted: bool,
    /// Signals that came to the keeper itself, and when.
    came: Vec<(Mail, u64)>,
}

impl Keeper {
    fn start(job: Supervisor, launcher: UnixStream) -> Result<Self, Box<(KeeperMessage, UnixStream)>> {
        let Supervisor { mut start, mut held, group } = job;
        start.cgroup = group.as_ref().map(ControlGroup::descriptor);
        let launcher_pid = supervise::parent();
        let prepared = || -> io::Result<Mailbox> {
            supervise::adopt_orphans()?;
            Mailbox::open()
        };
        let mailbox = match prepared() {
            Ok(mailbox) => mailbox,
            Err(error) => {
                give_back(held, group);
                let text = format!("the process that keeps the cores cannot be set up: {error}");
                return Err(Box::new((KeeperMessage::NotPrepared(text), launcher)));
            }
        };
        let program = match start.spawn() {
            Ok(program) => program,
            Err(error) => {
                give_back(held, group);
                return Err(Box::new((not_started(&error), launcher)));
            }
        };
        let _ = supervise::rename(NAME);
        // Wrong words in the record do no harm to the locks.
        let _ = held.tell(|who| {
            who.keeper = process(std::process::id());
            who.program = process(program);
        });
        let told = KeeperMessage::Started(program).send(&launcher).is_ok();
        let launcher = Some(launcher).filter(|_| told);
        let (ended, came) = (None, Vec::new());
        let (unnoted, kept) = (false, Kept::new(held));
        let mut keeper = Self { kept, group, launcher, launcher_pid, mailbox, program, ended, unnoted, came };
        keeper.kept.begin();
        keeper.let_go();
        Ok(keeper)
    }

    /// Nobody waits for the end of a pipe, or for a folder to be free, because of the keeper.
    fn let_go(&self) {
        let _ = supervise::let_go_of_standard(true);
        let _ = std::env::set_current_dir("/");
        let mut kept = vec![self.mailbox.as_fd().as_raw_fd()];
        kept.extend(self.kept.descriptors());
        kept.extend(self.launcher.as_ref().map(AsRawFd::as_raw_fd));
        kept.extend(self.group.as_ref().map(ControlGroup::descriptor));
        let _ = supervise::close_all_but(&kept);
    }

    /// Until there is no descendant any more.
    fn stay(mut self) -> i32 {
        // Without children, or if they cannot be waited for, there is nothing to keep.
        while let Ok(true) = self.look_after() {
            self.tell_ending();
            let mut sources: Vec<BorrowedFd<'_>> = vec![self.mailbox.as_fd()];
            sources.extend(self.launcher.as_ref().map(AsFd::as_fd));
            let launcher = sources.len() > 1;
            sources.extend(self.kept.reason());
            let again = if self.unnoted { AGAIN } else { self.kept.patience() };
            let Ok(ready) = poll::readable(&sources, Some(again)) else { continue };
            if launcher && ready.get(1) == Some(&true) {
                self.listen();
            }
            self.kept.follow();
            self.rouse();
        }
        // Whoever is told that the program ended finds its cores free.
        give_back(self.kept.held, self.group);
        if let (Some(message), Some(launcher)) = (ending(self.ended), self.launcher) {
            let _ = message.send(&launcher);
        }
        0
    }

    /// Takes in what happened to descendants; false when there are none.
    fn look_after(&mut self) -> io::Result<bool> {
        self.take_mail();
        loop {
            match supervise::waited()? {
                Waited::Childless => return Ok(false),
                Waited::Nothing => return Ok(true),
                Waited::Child(child, change) if child == self.program => self.tell(change),
                Waited::Child(..) => {}
            }
        }
    }

    fn tell(&mut self, change: ChildEvent) {
        let message = match change {
            ChildEvent::Stopped(signal) => KeeperMessage::Stopped(signal),
            ChildEvent::Continued => KeeperMessage::Continued,
            ChildEvent::Exited(_) | ChildEvent::Killed(_) => {
                self.program = 0;
                self.ended = Some(change);
                return;
            }
        };
        let Some(launcher) = &self.launcher else { return };
        let _ = message.send(launcher);
        self.unnoted = change == ChildEvent::Continued;
        self.rouse();
    }

    /// The launcher may stand still, as the program did, and must not any longer. It may also be
    /// about to, which would undo this signal: so it is sent until the launcher answers.
    fn rouse(&self) {
        if self.unnoted && self.launcher.is_some() && supervise::parent() == self.launcher_pid {
            let _ = supervise::send(self.launcher_pid, supervise::CONTINUE);
        }
    }

    /// The program ended and others live on: the launcher need not wait for them, and they have
    /// left the terminal to others.
    fn tell_ending(&mut self) {
        if let Some(message) = ending(self.ended.take()) {
            if let Some(launcher) = self.launcher.take() {
                let _ = message.send(&launcher);
            }
            let _ = supervise::leave_session();
        }
    }

    /// What the launcher wants, or that it is gone.
    fn listen(&mut self) {
        let message = self.launcher.as_ref().and_then(KeeperMessage::receive);
        match message {
            Some(KeeperMessage::Forward(signal, sender, when)) => self.forward(signal, sender, when),
            Some(KeeperMessage::Noted) => self.unnoted = false,
            Some(_) => {}
            None => (self.launcher, self.unnoted) = (None, false),
        }
    }

    /// Passes a signal on, unless it went to the whole process group: then the program has it.
    fn forward(&mut self, signal: i32, sender: u32, when: u64) {
        if self.program == 0 {
            return;
        }
        let has_it = supervise::shares_group(self.program) && {
            self.take_mail();
            if !self.knows(signal, sender) {
                let _ = poll::readable(&[self.mailbox.as_fd()], Some(SAME_MOMENT));
                self.take_mail();
            }
            self.forget(signal, sender) || self.is_undone(signal, when)
        };
        if !has_it {
            let _ = supervise::send(self.program, signal);
        }
    }

    /// Whether its opposite came to the group after the launcher read it. What stops takes away
    /// what continues before it can be read, and the other way round.
    fn is_undone(&self, signal: i32, when: u64) -> bool {
        let undoes = |other: i32| match signal {
            supervise::CONTINUE => supervise::STOPS.contains(&other),
            _ => other == supervise::CONTINUE && supervise::STOPS.contains(&signal),
        };
        self.came.iter().any(|(mail, read)| undoes(mail.signal) && *read >= when)
    }

    fn take_mail(&mut self) {
        let now = clock::monotonic();
        self.came.retain(|(_, when)| now.saturating_sub(*when) < REMEMBERED);
        while let Some(mail) = self.mailbox.next() {
            if mail.signal != supervise::CHILD {
                self.came.push((mail, now));
            }
        }
    }

    fn place(&self, signal: i32, sender: u32) -> Option<usize> {
        let wanted = Mail { signal, sender: Some(sender) };
        self.came.iter().position(|(mail, _)| *mail == wanted)
    }

    fn knows(&self, signal: i32, sender: u32) -> bool {
        self.place(signal, sender).is_some()
    }

    fn forget(&mut self, signal: i32, sender: u32) -> bool {
        self.place(signal, sender).map(|at| self.came.remove(at)).is_some()
    }
}

/// The group goes first: whoever finds the cores free may use their CPUs.
pub(crate) fn give_back(held: Reservation, group: Option<ControlGroup>) {
    if let Some(group) = group {
        group.remove();
    }
    held.end();
}

fn ending(change: Option<ChildEvent>) -> Option<KeeperMessage> {
    match change? {
        ChildEvent::Exited(status) => Some(KeeperMessage::Exited(status)),
        ChildEvent::Killed(signal) => Some(KeeperMessage::Killed(signal)),
        ChildEvent::Stopped(_) | ChildEvent::Continued => None,
    }
}

fn not_started(error: &io::Error) -> KeeperMessage {
    match error.raw_os_error() {
        Some(number) if error.get_ref().is_none() => KeeperMessage::NotStarted(number),
        _ => KeeperMessage::NotPrepared(error.to_string()),
    }
}
