//! What threads wait for while they do not run: looks at the call in which each is, several times a second. A thread that
//! waits is not disturbed, and the kernel answers for one's own processes without privileges.

mod answer;
mod futex;
mod java;
mod lock_names;
mod open_files;
mod peers;
mod targets;
mod watch;

pub(crate) use watch::{WaitScene, WaitWatch};

use crate::account::ThreadTimes;
use crate::code::CodeName;
use crate::teams::TeamSleep;
use serde::{Deserialize, Serialize};

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WaitKind {
    /// A lock that another thread holds.
    Lock,
    /// A condition that another thread makes true, such as new work.
    Condition,
    /// A semaphore.
    Semaphore,
    /// A barrier, or a team of threads.
    Barrier,
    /// The end of a thread.
    Thread,
    /// Another thread; it is not known in which way.
    OtherThread,
    /// A file that is not on a disk, such as a named pipe or a device.
    File,
    /// The disk, or what else stores files.
    Storage,
    /// A pipe.
    Pipe,
    /// A socket.
    Socket,
    /// Connections to a socket that listens.
    Connections,
    /// A terminal.
    Terminal,
    /// Events of several descriptors.
    Events,
    /// The time.
    Timer,
    /// A child process.
    Child,
    /// A signal.
    Signal,
    /// Pages that are read from a disk or from swap.
    PageFault,
    /// Nothing: a signal or a debugger has stopped it.
    Stopped,
    /// The kernel, in a call that is not one of these.
    Kernel,
}

impl WaitKind {
    /// Whether other threads of the program end the wait.
    pub fn is_for_threads(self) -> bool {
        use WaitKind::{Barrier, Condition, Lock, OtherThread, Semaphore, Thread};
        matches!(self, Lock | Condition | Semaphore | Barrier | Thread | OtherThread)
    }
}

/// Waits of threads for the same, in the same function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitTime {
    /// What for.
    pub kind: WaitKind,
    /// The object of a lock, the path of a file, the addresses of a socket, the name of a thread; `None` if it is not known.
    pub what: Option<String>,
    /// The processes at the other end of a pipe or socket.
    pub peers: Vec<String>,
    /// The system call, or the kernel's function where there is none.
    pub call: Option<String>,
    /// The time in ns, of all of these threads.
    pub time: u64,
    /// The part of it of threads that work, in ns: others of a pool wait for work.
    #[serde(default)]
    pub of_working: u64,
    /// How many threads waited so.
    pub threads: usize,
    /// In how many processes.
    pub processes: usize,
    /// The functions in which they waited most, innermost first, from the one on that called the library in which they wait.
    pub chain: Vec<CodeName>,
}

/// A thread that held a lock while others waited for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LockHolder {
    /// Its number.
    pub thread: u32,
    /// Its name.
    pub name: String,
    /// Its part of the looks at which a holder was known.
    pub share: f64,
    /// Whether it mostly ran meanwhile; if not, it waited itself.
    pub runs: bool,
    /// What it did meanwhile, innermost function first.
    pub chain: Vec<CodeName>,
}

/// A lock for which threads waited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LockTime {
    /// What it is.
    pub what: String,
    /// Whether it is the global interpreter lock of Python.
    pub is_gil: bool,
    /// The time that threads waited for it, in ns.
    pub time: u64,
    /// The time that the same threads ran or could have run, in ns.
    pub worked: u64,
    /// How many threads waited for it.
    pub threads: usize,
    /// How often one of them was seen to wait.
    pub looks: u64,
    /// Where they waited most, innermost function first.
    pub chain: Vec<CodeName>,
    /// Who held it; empty where that cannot be told.
    pub holders: Vec<LockHolder>,
}

/// Threads that work, in contrast to those of a pool that wait for work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkingThreads {
    /// How many there were.
    pub threads: usize,
    /// Their time.
    pub times: ThreadTimes,
}

/// What all threads waited for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadWaits {
    /// How many threads lived at the same time.
    pub threads: usize,
    /// How many of these were busy: ran or could have run for a tenth of the observed time at least.
    pub busy: usize,
    /// Those that work: ran for 1 % of the time in which they did not wait for a CPU, at least, or waited for one for a quarter of
    /// their time.
    #[serde(default)]
    pub working: WorkingThreads,
    /// What they waited for, the longest time first.
    pub rows: Vec<WaitTime>,
    /// Locks for which they waited, the longest time first.
    pub locks: Vec<LockTime>,
    /// Sleep in libgomp, by thread.
    #[serde(skip)]
    pub in_teams: Vec<TeamSleep>,
    /// Time of threads that neither ran nor were seen to wait, in ns.
    pub unseen: u64,
    /// How often a thread was looked at.
    pub looks: u64,
    /// What the looks cost, in ns of CPU time.
    pub cost: u64,
    /// Why the calls of a process cannot be read.
    pub refused: Option<String>,
}
