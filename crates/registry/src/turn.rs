//! Turns: who chooses cores sees what all others did. Cores are safe without, since each is a lock
//! of its own; so who does not give up the turn delays others and cannot stop them.

use crate::error::RegistryError;
use crate::held::process;
use crate::open::{Registry, read_header};
use crate::record::{CHOOSER, Chooser, HEADER, MAGIC, chooser, header};
use crate::scan::{TURN, pid_namespace};
use numakit_sys::{clock, lock};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Choosing takes milliseconds: who takes longer stands still.
const STANDSTILL: u64 = 2_000_000_000;
/// However often those who choose change.
const PATIENCE: u64 = 10_000_000_000;
/// Between two tries.
const SHORT: Duration = Duration::from_millis(1);

/// The right to choose.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nobody else chooses at this moment.
    Mine,
    /// Somebody does not give it up; what is to be said of that.
    Without(String),
}

impl Turn {
    pub fn is_mine(&self) -> bool {
        *self == Self::Mine
    }

    pub fn warning(&self) -> Option<String> {
        match self {
            Self::Mine => None,
            Self::Without(warning) => Some(warning.clone()),
        }
    }
}

impl Registry {
    /// Waits until it is this process's turn to choose, in the file that has the registry's name
    /// and with a whole header, so that all others see what it does.
    pub(crate) fn turn(&mut self) -> Result<Turn, RegistryError> {
        let begun = clock::monotonic();
        let mut last = (None, begun);
        loop {
            let locked = lock::try_lock(self.file.as_fd(), TURN);
            let locked = locked.map_err(|error| self.failed("locked", &error))?;
            // Somebody may have removed the file after this process opened it.
            if !self.is_in_place(&self.file).map_err(|error| self.failed("found", &error))? {
                *self = Self::open_in(self.place.clone())?;
            } else if locked {
                return self.sign().map(|()| Turn::Mine).inspect_err(|_| self.end(Turn::Mine));
            } else {
                let (who, now) =
                    (read_header(&self.file).ok().and_then(|head| chooser(&head)), clock::monotonic());
                if who != last.0 {
                    last = (who, now);
                }
                if now - last.1 >= STANDSTILL || now - begun >= PATIENCE {
                    return Ok(Turn::Without(self.blame(last.0)));
                }
                std::thread::sleep(SHORT);
            }
        }
    }

    /// The next may choose.
    pub(crate) fn end(&self, turn: Turn) {
        if turn == Turn::Mine {
            let _ = self.file.write_all_at(&Chooser::bytes(None), CHOOSER as u64);
            let _ = lock::unlock(self.file.as_fd(), TURN);
        }
    }

    /// Writes down who chooses, for those who wait in vain; repairs a header that is not there.
    fn sign(&self) -> Result<(), RegistryError> {
        let there = read_header(&self.file).map_err(|error| self.failed("read", &error))?;
        let mine = self.signature();
        let written = if there.len() == HEADER && there.starts_with(MAGIC) {
            self.file.write_all_at(&Chooser::bytes(mine.as_ref()), CHOOSER as u64)
        } else {
            self.file.write_all_at(&header(mine.as_ref()), 0)
        };
        written.map_err(|error: io::Error| self.failed("written", &error))
    }

    fn signature(&self) -> Option<Chooser> {
        let name = std::env::args_os().next().unwrap_or_default();
        let name = std::path::Path::new(&name).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let process = process(std::process::id())?;
        Some(Chooser { process, pids: pid_namespace(), since: clock::monotonic(), name })
    }

    /// Who does not give up the turn, as far as that is known. The kernel names who locked the byte
    /// as a process; otherwise only the signature tells, if its process still lives.
    fn blame(&self, signed: Option<Chooser>) -> String {
        let path = self.path.display();
        let owner = lock::process_of(self.file.as_fd(), TURN).ok().flatten();
        let lives = |who: &Chooser| process(who.process.pid) == Some(who.process);
        let (who, fix) = match (owner, signed) {
            (Some(pid), _) => (format!("process {pid} has locked"), format!("end it with 'kill {pid}'")),
            (None, Some(who)) if who.pids != pid_namespace() => {
                let Chooser { process, name, .. } = who;
                let text = format!("process {} ({name}) of another PID namespace keeps", process.pid);
                (text, "continue it there with 'kill -CONT', or end it".to_owned())
            }
            (None, Some(who)) if lives(&who) => {
                let pid = who.process.pid;
                let text = format!("process {pid} ({}) stands still and keeps", who.name);
                (text, format!("continue it with 'kill -CONT {pid}', or end it"))
            }
            _ => (
                "a process that does not say who it is keeps".to_owned(),
                format!("as root, 'fuser -v {path}' shows who has it open"),
            ),
        };
        format!("{who} the turn to choose cores in {path}: cores were chosen without a turn; {fix}")
    }
}
