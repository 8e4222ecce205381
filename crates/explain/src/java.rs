//! What Java virtual machines among the observed processes tell about themselves: the names of the code that they have compiled,
//! and for which monitors and locks their threads wait. They are asked seldom, by threads of our own, so that nothing waits
//! for them.

pub mod dump;
pub(crate) mod waits;

use crate::processes::Processes;
use crate::runtime::{NamesSource, RuntimeNames, RuntimeProgram};
use numakit_sys::java::{AttachError, JavaMachine};
use numakit_sys::proc::TaskDir;
use numakit_sys::{SysRoot, clock, sched};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use waits::JavaWaits;

/// The library of the machine.
const LIBRARY: &str = "libjvm.so";
/// The thread that answers, as the kernel calls it.
const ANSWERS: &str = "Attach Listener";
/// A machine is asked who it is after this time, in ns, for names after the second, and then each time after this many times the
/// time: it may end before the observation does.
const FIRST_LOOK: u64 = 300_000_000;
const FIRST_NAMES: u64 = 1_000_000_000;
const LATER: u64 = 3;
/// Dumps of threads while some wait for locks: the time between two grows by one in this many parts of the time.
const DUMP_PART: u64 = 3;
/// There are at most this many, and they take at most one in this many parts of the time. An answer takes longer where the
/// machine waits for a CPU first, so that the shortest one counts.
const MAX_DUMPS: u32 = 20;
/// The first few may take more, if they are short: one dump shows one holder.
const FIRST_DUMPS: u32 = 3;
const SHORT_DUMP: u64 = 100_000_000;
const DUMP_SHARE: u64 = 100;
/// Bytes of a dump, and of names: ten thousand threads, a million methods.
const MAX_DUMP: u64 = 64 << 20;
pub(crate) const MAX_NAMES: u64 = 256 << 20;
/// At the end, all machines together have this long to answer.
const LAST: Duration = Duration::from_millis(2500);

/// What a machine is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    Names,
    Threads,
}

/// What has come of it.
#[derive(Debug)]
enum Told {
    Machine(Result<Option<JavaMachine>, AttachError>),
    Names(Result<String, AttachError>),
    Threads(Result<String, AttachError>),
}

/// An answer.
#[derive(Debug)]
struct Answer {
    process: u32,
    /// How long it took, in ns.
    took: u64,
    told: Told,
}

/// A process with the library.
#[derive(Debug, Default)]
struct WatchedMachine {
    /// When it was seen first, in ns.
    since: u64,
    machine: Option<Arc<JavaMachine>>,
    /// It is no such machine, about which there is nothing to say.
    is_other: bool,
    /// It is asked nothing more.
    is_done: bool,
    /// Whether a question is open.
    is_asked: bool,
    next_look: u64,
    next_names: u64,
    next_dump: u64,
    names: u64,
    /// Why there are no names.
    refused: Option<AttachError>,
    /// What the longest dump took, and the shortest, in ns.
    longest: u64,
    shortest: Option<u64>,
    waits: JavaWaits,
}

/// Watches the machines.
#[derive(Debug)]
pub(crate) struct JavaWatch {
    is_on: bool,
    machines: BTreeMap<u32, WatchedMachine>,
    answers: Receiver<Answer>,
    to: Sender<Answer>,
}

impl JavaWatch {
    /// Asks nobody if it is not `is_on`.
    pub(crate) fn new(is_on: bool) -> Self {
        let (to, answers) = channel();
        Self { is_on, machines: BTreeMap::new(), answers, to }
    }

    /// Asks what is due. `waiting` says whether threads of a process wait for others.
    pub(crate) fn visit(&mut self, processes: &mut Processes, waiting: &dyn Fn(u32) -> bool) {
        while let Ok(answer) = self.answers.try_recv() {
            self.take(answer, processes);
        }
        let now = clock::monotonic();
        self.find(processes, now);
        let pids: Vec<u32> = self.machines.keys().copied().collect();
        for pid in pids {
            self.ask(pid, now, waiting);
        }
    }

    /// Notes new machines.
    fn find(&mut self, processes: &Processes, now: u64) {
        if !self.is_on {
            return;
        }
        for pid in processes.numbers() {
            if !self.machines.contains_key(&pid) && processes.has_loaded(pid, |name| name == LIBRARY) {
                let next_look = now + FIRST_LOOK;
                let machine = WatchedMachine { since: now, next_look, ..WatchedMachine::default() };
                self.machines.insert(pid, machine);
            }
        }
    }

    /// Asks a machine one question, if one is due.
    fn ask(&mut self, pid: u32, now: u64, waiting: &dyn Fn(u32) -> bool) {
        let Some(of) = self.machines.get_mut(&pid) else { return };
        if of.is_asked || of.is_other || of.is_done {
            return;
        }
        let Some(machine) = of.machine.clone() else {
            if now >= of.next_look {
                of.next_look = now + LATER * (now - of.since);
                of.is_asked = start(&self.to, pid, move || Told::Machine(JavaMachine::find(pid)));
            }
            return;
        };
        if now >= of.next_names {
            of.next_names = now + LATER * (now - of.since);
            of.is_asked = ask(&self.to, pid, machine, Question::Names);
        } else if now >= of.next_dump && of.waits.dumps < MAX_DUMPS && waiting(pid) {
            of.is_asked = ask(&self.to, pid, machine, Question::Threads);
        }
    }

    fn take(&mut self, Answer { process, took, told }: Answer, processes: &mut Processes) {
        let now = clock::monotonic();
        let Some(of) = self.machines.get_mut(&process) else { return };
        of.is_asked = false;
        match told {
            Told::Machine(Ok(Some(machine))) => {
                of.machine = Some(Arc::new(machine));
                of.refused = None;
                of.next_names = of.since + FIRST_NAMES;
            }
            Told::Machine(Ok(None)) => of.is_other = true,
            Told::Machine(Err(error)) => of.refused = Some(error),
            Told::Names(Ok(text)) => {
                of.names += 1;
                of.refused = None;
                processes.add_names(process, &text);
            }
            Told::Names(Err(error)) => {
                // What has names keeps them.
                of.refused = Some(error);
            }
            Told::Threads(dump) => {
                of.longest = of.longest.max(took);
                let shortest = *of.shortest.insert(of.shortest.map_or(took, |shortest| shortest.min(took)));
                let is_locked =
                    dump.is_ok_and(|text| of.waits.note(&dump::threads(&text), &numbers_here(process)));
                // Where no thread waits for a lock, one may do so later.
                let part = if is_locked { DUMP_PART } else { 1 };
                let is_free = of.waits.dumps < FIRST_DUMPS && shortest < SHORT_DUMP;
                let rest = if is_free { 0 } else { shortest * DUMP_SHARE };
                of.next_dump = now + ((now - of.since) / part).max(rest);
            }
        }
    }

    /// Asks all machines that still run for their names, and waits for the answers, for a limited time.
    pub(crate) fn finish(&mut self, processes: &mut Processes) {
        let end = clock::monotonic() + LAST.as_nanos() as u64;
        self.visit(processes, &|_| false);
        self.wait(processes, end);
        let root = SysRoot::host();
        let runs = |pid: u32| TaskDir::of(&root, pid).stat().is_ok_and(|stat| !stat.has_ended());
        self.machines.iter_mut().for_each(|(pid, of)| of.is_done |= !runs(*pid));
        // Those that began just now are found first.
        for (look, names) in [(0, u64::MAX), (u64::MAX, 0)] {
            for of in self.machines.values_mut() {
                (of.next_look, of.next_names, of.next_dump) = (look, names, u64::MAX);
            }
            let pids: Vec<u32> = self.machines.keys().copied().collect();
            pids.into_iter().for_each(|pid| self.ask(pid, clock::monotonic(), &|_| false));
            self.wait(processes, end);
        }
        self.is_on = false;
        self.machines.values_mut().for_each(|of| of.is_done = true);
    }

    /// Takes answers until no question is open, or until then.
    fn wait(&mut self, processes: &mut Processes, end: u64) {
        while self.machines.values().any(|of| of.is_asked) {
            let left = Duration::from_nanos(end.saturating_sub(clock::monotonic()));
            let Ok(answer) = self.answers.recv_timeout(left) else { return };
            self.take(answer, processes);
        }
    }

    /// Whether a thread of this name answers us: it is none of the program's.
    pub(crate) fn answers(&self, process: u32, name: &str) -> bool {
        name == ANSWERS && self.machines.get(&process).is_some_and(|of| of.names > 0 || of.waits.dumps > 0)
    }

    /// What the dumps of a process say about its waits.
    pub(crate) fn waits(&self, process: u32) -> Option<&JavaWaits> {
        self.machines.get(&process).map(|of| &of.waits).filter(|waits| waits.dumps > 0)
    }

    /// Where the names of each machine's code come from.
    pub(crate) fn names(&self) -> impl Iterator<Item = RuntimeNames> {
        let machines = self.machines.iter().filter(|(_, of)| !of.is_other);
        machines.map(|(process, of)| RuntimeNames {
            process: *process,
            program: RuntimeProgram::Java,
            source: match (of.names, &of.refused) {
                (0, Some(AttachError::Old { found })) => NamesSource::Old { version: *found },
                (0, Some(why)) => NamesSource::Refused { why: why.to_string() },
                (0, None) => NamesSource::Nothing,
                (times, _) => NamesSource::Asked { times },
            },
            chains: of.machine.as_ref().is_none_or(|machine| machine.keeps_frame_pointers()),
            nameless: 0,
            dumps: of.waits.dumps.into(),
            longest_dump: of.longest,
        })
    }
}

/// Asks a machine in a thread of its own. Returns whether that has begun.
fn ask(to: &Sender<Answer>, pid: u32, machine: Arc<JavaMachine>, question: Question) -> bool {
    start(to, pid, move || match question {
        Question::Names => Told::Names(machine.perf_map(MAX_NAMES)),
        Question::Threads => Told::Threads(machine.thread_dump(MAX_DUMP)),
    })
}

fn start(to: &Sender<Answer>, process: u32, work: impl FnOnce() -> Told + Send + 'static) -> bool {
    let to = to.clone();
    let thread = std::thread::Builder::new().name("numa-java".to_owned()).spawn(move || {
        // The observer may have real-time priority, which the machine must not wait for.
        let _ = sched::set_normal();
        let before = clock::monotonic();
        let told = work();
        // Nobody listens where the observation has ended.
        let _ = to.send(Answer { process, took: clock::monotonic() - before, told });
    });
    thread.is_ok()
}

/// The numbers of threads here by the numbers in their process.
fn numbers_here(process: u32) -> HashMap<u32, u32> {
    TaskDir::of(&SysRoot::host(), process).threads_by_inner_number()
}
