//! What a Java virtual machine (HotSpot) tells about itself to programs of its user: the names of the code that it has compiled,
//! and what its threads do. This is its attach protocol, which `jcmd` and `jstack` use.

mod exchange;
mod perf_data;

use crate::file::{bounded_text, is_same, open_folder, open_folder_in};
use crate::proc::TaskDir;
use crate::proc::maps::MapsEntry;
use crate::root::SysRoot;
use crate::user;
use exchange::Exchange;
use perf_data::PerfData;
use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::Duration;
use thiserror::Error;

/// The library of the machine, and the one by which OpenJ9 is recognised: that writes a dump when it gets the signal.
const LIBRARY: &str = "libjvm.so";
const OTHER_LIBRARY: &str = "libj9";
/// The first version that writes the names of its code.
const WITH_NAMES: u32 = 17;
/// An exchange takes at most this long, with the start of the thread that answers. Tests on busy machines have more time.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why a machine does not answer.
#[derive(Debug, Error)]
pub enum AttachError {
    /// It is older than what is asked of it.
    #[error("JDK {found} cannot tell them; JDK {WITH_NAMES} and later can")]
    Old {
        /// Its version.
        found: u32,
    },
    /// It belongs to somebody else.
    #[error("it belongs to user {owner}, and only that user and root may ask it")]
    OtherUser {
        /// Its user.
        owner: u32,
    },
    /// It was started without this.
    #[error("it does not answer: it was started with -XX:+DisableAttachMechanism")]
    Disabled,
    /// It does not say whether it would survive the signal.
    #[error(
        "it does not say whether it answers: it was started with -XX:-UsePerfData or -XX:+PerfDisableSharedMem"
    )]
    Silent,
    /// The signal would end it.
    #[error("it does not handle SIGQUIT: it was started with -Xrs, or it is just starting")]
    NoSignal,
    /// It is stopped.
    #[error("it is stopped by a signal or a debugger")]
    Stopped,
    /// It has not answered in time.
    #[error("it has not answered within {} s", PATIENCE.as_secs())]
    NoAnswer,
    /// Something else answers in its place.
    #[error("the socket {0} is not its own")]
    Foreign(String),
    /// The answer is an error.
    #[error("it answered: {0}")]
    Refused(String),
    /// The system refuses a part.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The error.
        error: io::Error,
    },
}

fn system(what: &'static str) -> impl Fn(io::Error) -> AttachError {
    move |error| AttachError::System { what, error }
}

/// A machine that can be asked without harm.
#[derive(Debug)]
pub struct JavaMachine {
    process: u32,
    /// Its number in its own PID namespace.
    inner: u32,
    user: u32,
    group: u32,
    version: Option<u32>,
    keeps_frame_pointers: bool,
    /// The process, whose number may belong to another one later.
    handle: OwnedFd,
    /// Its /tmp.
    folder: File,
    patience: Duration,
}

impl JavaMachine {
    /// The machine in a process; `None` if there is none of this kind. Nothing is asked yet. It is an error if the machine could
    /// not be asked.
    pub fn find(process: u32) -> Result<Option<Self>, AttachError> {
        let root = SysRoot::host();
        let dir = TaskDir::of(&root, process);
        let handle = exchange::handle(process).map_err(system("cannot open the process"))?;
        let Ok(maps) = dir.text("maps") else { return Ok(None) };
        if !has_machine(&maps) {
            return Ok(None);
        }
        let Ok(status) = dir.status() else { return Ok(None) };
        let id = |name: &str| status.field(name)?.split_ascii_whitespace().nth(1)?.parse::<u32>().ok();
        let (Some(user), Some(group)) = (id("Uid"), id("Gid")) else { return Ok(None) };
        if user != user::id() && user::id() != 0 {
            return Err(AttachError::OtherUser { owner: user });
        }
        let data = PerfData::of(process, &maps)
            .map_err(system("cannot read its memory"))?
            .ok_or(AttachError::Silent)?;
        if !data.answers() {
            return Err(AttachError::Disabled);
        }
        let top = open_folder(Path::new(&dir.path("root"))).map_err(system("cannot open its root folder"))?;
        let folder =
            open_folder_in(&top, OsStr::new("tmp")).map_err(system("cannot open its folder /tmp"))?;
        let inner = status.inner_number().unwrap_or(process);
        Ok(Some(Self {
            process,
            inner,
            user,
            group,
            version: data.version(),
            keeps_frame_pointers: data.keeps_frame_pointers(),
            handle,
            folder,
            patience: PATIENCE,
        }))
    }

    /// Whether call chains can be followed through the code that it has compiled.
    pub fn keeps_frame_pointers(&self) -> bool {
        self.keeps_frame_pointers
    }

    /// The names of all code that it has compiled, as lines of `perf-PID.map`, at most of this many bytes. Code that was replaced
    /// before has none. The machine writes them into a file in its /tmp, which exists for that time only.
    pub fn perf_map(&self, most: u64) -> Result<String, AttachError> {
        if let Some(found) = self.version.filter(|found| *found < WITH_NAMES) {
            return Err(AttachError::Old { found });
        }
        self.as_its_user(|| {
            let name = format!("perf-{}.map", self.inner);
            // The machine would follow a link that somebody puts there.
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = openat(&self.folder, &name, flags, Mode::RUSR | Mode::WUSR);
            let file = file.map(File::from).map_err(|error| system("cannot create its map")(error.into()))?;
            let asked = self.exchange(["jcmd", "Compiler.perfmap"], ANSWER);
            let text = asked.and_then(|_| bounded_text(&file, most).map_err(system("cannot read its map")));
            let there = openat(&self.folder, &name, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty());
            if there.is_ok_and(|there| is_same(&file, &there.into()).unwrap_or(false)) {
                // Nothing is left behind but the name.
                let _ = unlinkat(&self.folder, &name, AtFlags::empty());
            }
            text
        })
    }

    /// What its threads do, as text for people, at most of this many bytes. The machine stops its threads meanwhile: for some
    /// milliseconds, or more if it has thousands.
    pub fn thread_dump(&self, most: u64) -> Result<String, AttachError> {
        self.as_its_user(|| self.exchange(["threaddump", ""], most))
    }

    fn exchange(&self, words: [&str; 2], most: u64) -> Result<String, AttachError> {
        let exchange = Exchange {
            process: self.process,
            inner: self.inner,
            user: self.user,
            handle: &self.handle,
            folder: &self.folder,
        };
        exchange.ask(words, most, self.patience)
    }

    /// Does this with the rights of the machine's user: it answers nobody else, and nothing is opened that its user may not open.
    fn as_its_user<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, AttachError> + Send,
    ) -> Result<T, AttachError> {
        std::thread::scope(|scope| {
            let become_it = || user::become_in_this_thread(self.user, self.group);
            let thread = scope.spawn(move || {
                become_it().map_err(system("cannot act as its user"))?;
                work()
            });
            let lost = || system("the thread that asks it has failed")(io::ErrorKind::Other.into());
            thread.join().unwrap_or_else(|_| Err(lost()))
        })
    }
}

/// An answer that is no data has at most this many bytes.
const ANSWER: u64 = 1 << 16;

/// Whether a process has loaded the machine.
fn has_machine(maps: &str) -> bool {
    let has = |start: &str| {
        let mut names = maps.lines().filter_map(MapsEntry::parse).map(|entry| entry.name);
        names.any(|name| name.rsplit('/').next().is_some_and(|name| name.starts_with(start)))
    };
    has(LIBRARY) && !has(OTHER_LIBRARY)
}

#[cfg(test)]
mod tests;
