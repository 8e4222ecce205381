//! What programs of Python do in terms of Python: which functions and lines their threads are in, and who has the global
//! interpreter lock.

mod find;
mod layout;
mod lines;
mod names;
mod reader;
mod threads;
mod votes;
pub(crate) mod watch;

pub use layout::PythonVersion;
pub(crate) use names::is_script;
pub use votes::ScriptShares;

use crate::code::CodeName;
use find::InterpreterFiles;
use names::ScriptNames;
use numakit_sampling::process::ObservedProcess;
use numakit_sys::clock;
use reader::PythonReader;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::PathBuf;
use threads::KnownThreads;

/// Why the functions of a process that runs Python have no names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnreadPython {
    /// This user may not read its memory.
    Memory,
    /// Its program does not say where the interpreter is, or which version it is.
    Symbols,
    /// The version is not known.
    Version(PythonVersion),
    /// A build without the global interpreter lock.
    FreeThreaded,
}

/// A function with the looks that found threads in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptFunction {
    /// What it is, with the line at which most of its own looks found it.
    #[serde(flatten)]
    pub name: CodeName,
    /// Looks that found a thread in the function, or in what is not Python and it called.
    pub own: u64,
    /// Looks that found a thread in the function, or in functions of Python that it called.
    pub all: u64,
    /// The CPU time in ns for which the looks of `own` stand: that of the thread since the look before.
    #[serde(default)]
    pub own_time: u64,
    /// The same of `all`.
    #[serde(default)]
    pub all_time: u64,
}

/// What Python did while threads ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PythonTime {
    /// Looks at running threads of processes that run Python.
    pub looks: u64,
    /// The CPU time in ns for which they stand. Looks are more frequent at first, so that their numbers are no shares of it.
    #[serde(default)]
    pub time: u64,
    /// Looks that found the thread outside of all functions of Python.
    pub outside: u64,
    /// Looks that were given up, since functions changed meanwhile.
    pub failed: u64,
    /// What the looks cost, in ns of CPU time.
    pub cost: u64,
    /// Functions, those that most looks found first.
    pub functions: Vec<ScriptFunction>,
    /// Why functions have no names, with the number of processes.
    pub unread: Vec<(UnreadPython, usize)>,
}

impl PythonTime {
    /// The parts of the CPU time of running threads in which they were in a function, or in what is not Python and it called; and
    /// in functions of Python that it called too. Of results that have no times, the parts of the looks.
    pub fn shares(&self, function: &ScriptFunction) -> [f64; 2] {
        let (parts, all) = match self.time {
            0 => ([function.own, function.all], self.looks),
            time => ([function.own_time, function.all_time], time),
        };
        parts.map(|part| part as f64 / all.max(1) as f64)
    }
}

/// What a look at a thread found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ScriptLook {
    /// The process runs no Python, or it cannot be read.
    NotPython,
    /// The thread is in these functions, innermost first, by their numbers; in none if there are none.
    Functions(Vec<u64>),
    /// They changed too fast.
    Failed,
}

/// The lock as a look found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GilLook {
    /// The addresses at which threads wait for it.
    pub addresses: Range<u64>,
    /// The thread that holds it, and its functions, innermost first.
    pub holder: Option<(u32, Vec<u64>)>,
}

/// The folder below which the files of a process are.
pub(crate) type Root = fn(u32) -> PathBuf;

/// A process that was asked about.
#[derive(Debug)]
struct AskedProcess {
    /// When its mappings were read that tell this, in ns.
    refreshed: u64,
    reader: Option<Result<PythonReader, UnreadPython>>,
    threads: KnownThreads,
    /// The addresses of its lock, and when they were read.
    gil: Option<(Range<u64>, u64)>,
}

/// The interpreter has its lock elsewhere only after it has begun; its place is read again after this time, in ns.
const GIL_KNOWN: u64 = 1_000_000_000;

/// All processes that run Python.
#[derive(Debug, Default)]
pub(crate) struct Pythons {
    files: InterpreterFiles,
    asked: HashMap<u32, AskedProcess>,
    names: ScriptNames,
    /// Of processes that have ended too.
    unread: HashMap<u32, UnreadPython>,
}

impl Pythons {
    /// The functions of Python in which a thread is.
    pub fn look(&mut self, process: &ObservedProcess, root: Root, thread: u32) -> ScriptLook {
        let Some((reader, threads, names)) = self.reader(process, root) else { return ScriptLook::NotPython };
        let memory = |address: u64, into: &mut [u8]| process.read(address, into);
        let Some(state) = threads.state(process.id(), thread, reader, &memory) else {
            return ScriptLook::Functions(Vec::new());
        };
        let frames = reader.frames(state, &memory);
        let mut number = |frames: Vec<CodeName>| frames.into_iter().map(|name| names.number(name)).collect();
        frames.map_or(ScriptLook::Failed, |frames| ScriptLook::Functions(number(frames)))
    }

    /// A number that is another one when a thread is elsewhere in its functions of Python; 0 if it runs none.
    pub fn stamp(&mut self, process: &ObservedProcess, root: Root, thread: u32) -> u64 {
        let Some((reader, threads, _)) = self.reader(process, root) else { return 0 };
        let memory = |address: u64, into: &mut [u8]| process.read(address, into);
        let state = threads.state(process.id(), thread, reader, &memory);
        state.map_or(0, |state| reader.stamp(state, &memory))
    }

    /// Whether a process runs Python that can be read.
    pub fn runs(&mut self, process: &ObservedProcess, root: Root) -> bool {
        self.reader(process, root).is_some()
    }

    /// The address of the lock if threads that wait at `address` wait for it.
    pub fn gil_at(&mut self, process: &ObservedProcess, root: Root, address: u64) -> Option<u64> {
        let now = clock::monotonic();
        let pid = process.id();
        let known = self.asked.get(&pid).and_then(|asked| asked.gil.clone());
        let known = known.filter(|(_, read)| now.saturating_sub(*read) < GIL_KNOWN);
        let addresses = match known {
            Some((addresses, _)) => addresses,
            None => {
                let (reader, ..) = self.reader(process, root)?;
                let gil = reader.gil(&|address, into| process.read(address, into))?;
                self.asked.get_mut(&pid)?.gil = Some((gil.addresses.clone(), now));
                gil.addresses
            }
        };
        addresses.contains(&address).then_some(addresses.start)
    }

    /// The lock, with who holds it and what that thread does.
    pub fn gil(&mut self, process: &ObservedProcess, root: Root) -> Option<GilLook> {
        let (reader, threads, names) = self.reader(process, root)?;
        let memory = |address: u64, into: &mut [u8]| process.read(address, into);
        let gil = reader.gil(&memory)?;
        let thread =
            gil.holder.and_then(|state| Some((state, threads.thread(process.id(), state, reader, &memory)?)));
        let holder = thread.map(|(state, thread)| {
            let frames = reader.frames(state, &memory).unwrap_or_default();
            (thread, frames.into_iter().map(|name| names.number(name)).collect())
        });
        Some(GilLook { addresses: gil.addresses, holder })
    }

    /// The path of the interpreter of a process that was asked about.
    pub fn path(&self, pid: u32) -> Option<&str> {
        self.asked.get(&pid)?.reader.as_ref()?.as_ref().ok().map(PythonReader::path)
    }

    /// The function of Python that has a number.
    pub fn name(&self, number: u64) -> Option<&CodeName> {
        self.names.of(number)
    }

    /// Why functions have no names, with the number of processes.
    pub fn unread(&self) -> Vec<(UnreadPython, usize)> {
        let mut counts: BTreeMap<UnreadPython, usize> = BTreeMap::new();
        self.unread.values().for_each(|why| *counts.entry(*why).or_default() += 1);
        counts.into_iter().collect()
    }

    /// Forgets a process that has ended or executes another program. Its functions keep their names.
    pub fn forget(&mut self, pid: u32) {
        self.asked.remove(&pid);
    }

    fn reader(
        &mut self,
        process: &ObservedProcess,
        root: Root,
    ) -> Option<(&mut PythonReader, &mut KnownThreads, &mut ScriptNames)> {
        let Self { files, asked, names, unread } = self;
        let pid = process.id();
        let known = asked.get(&pid);
        // A program that has just begun may map the interpreter later, and fill its variables after that.
        let is_known = known.is_some_and(|asked| {
            matches!(asked.reader, Some(Ok(_))) || asked.refreshed == process.refreshed()
        });
        if !is_known {
            let found = files.find(process, &root(pid));
            match &found {
                Some(Err(why)) => _ = unread.insert(pid, *why),
                _ => _ = unread.remove(&pid),
            }
            let reader = found.map(|found| found.map(PythonReader::new));
            let (refreshed, threads) = (process.refreshed(), KnownThreads::default());
            asked.insert(pid, AskedProcess { refreshed, reader, threads, gil: None });
        }
        let AskedProcess { reader, threads, .. } = asked.get_mut(&pid)?;
        Some((reader.as_mut()?.as_mut().ok()?, threads, names))
    }
}
