//! Looks at threads that wait, several times a second and within a budget.

use super::WaitKind;
use super::open_files::OpenFiles;
use super::peers::Peers;
use super::targets::{CallContext, FoundWait, WaitTarget};
use crate::collector::{Collector, ObservedProcesses};
use crate::java::JavaWatch;
use crate::processes::Processes;
use crate::threads::ThreadAccounts;
use numakit_sys::proc::TaskDir;
use numakit_sys::proc::syscall::{BlockedPlace, CallKind, ThreadCall, call};
use numakit_sys::{ReadError, RootFile, SysRoot, clock};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io::ErrorKind;

/// Threads are looked at this often, in ns, and looking takes at most one in this many parts of the time: 0.2 %.
const LOOK: u64 = 200_000_000;
const LOOK_SHARE: u64 = 500;
/// What the first looks may cost in advance, in ns: what waits is new then.
const ALLOWANCE: u64 = 5_000_000;
/// The line of a thread is shorter than this: nine numbers of 18 letters.
const MAX_LINE: usize = 256;
/// The cost is counted again after this many threads.
const TOGETHER: usize = 8;
/// A thread that slept for less than one in this many parts of the time since the last look is not looked at: it runs.
const ASLEEP_PART: u64 = 20;
/// Files that are kept open. Those of other threads are opened for each look.
const MAX_OPEN: usize = 256;
/// Maximum number of different waits, and of holders of locks.
const MAX_WAITS: usize = 8192;
/// After this number of looks at one wait for a pipe or socket, its other end is looked for.
const PEER_LOOKS: u32 = 3;

/// A wait that was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SeenWait {
    /// The process.
    pub process: u32,
    /// What kind it is, as far as that is known before functions have names.
    pub kind: WaitKind,
    /// The number of the call; none where the thread is in the kernel for another reason.
    pub call: Option<i64>,
    /// What the thread waits for.
    pub target: WaitTarget,
    /// Where, by the number of the call chain.
    pub chain: u32,
}

/// Who held a lock, and what it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SeenHolder {
    /// The process.
    pub process: u32,
    /// The address of the lock.
    pub address: u64,
    /// The thread that held it.
    pub thread: u32,
    /// Where the thread waited itself; `None` if it ran.
    pub chain: Option<u32>,
    /// The functions of Python in which it was, by the number of their chain, where those are known.
    pub script: Option<u32>,
}

/// What is kept of a thread.
#[derive(Debug, Default)]
pub struct WatchedThread {
    file: Option<RootFile>,
    /// When it was looked at last, and how long it had slept until then, in ns.
    looked: u64,
    asleep: u64,
    /// What its file said at the last look and whether it was stopped, and which wait that is, by its place.
    text: Vec<u8>,
    stopped: bool,
    pub(super) waits: Option<usize>,
    /// Where it was then in terms of Python: functions of Python call each other on one stack of the interpreter, so that its
    /// file says the same of waits in several of them.
    script: u64,
    /// The number of looks at each wait, by its place.
    pub seen: HashMap<usize, u32>,
}

/// What a look needs.
pub(crate) struct WaitScene<'a> {
    /// The accounts of all threads.
    pub accounts: &'a ThreadAccounts,
    /// The call chains.
    pub collector: &'a mut Collector,
    /// The processes.
    pub processes: &'a mut Processes,
    /// What Java machines among them tell.
    pub java: &'a JavaWatch,
}

/// Watches what threads wait for.
#[derive(Debug)]
pub(crate) struct WaitWatch {
    pub(super) root: SysRoot,
    pub(super) threads: HashMap<(u32, u32), WatchedThread>,
    open: usize,
    places: HashMap<SeenWait, usize>,
    pub(super) waits: Vec<SeenWait>,
    pub(super) files: OpenFiles,
    pub(super) holders: HashMap<SeenHolder, u32>,
    /// The times at which threads held a lock and ran, in ns.
    pub(super) held: Vec<(SeenHolder, u64)>,
    pub(super) peers: Peers,
    /// When it began, in ns.
    pub(super) started: u64,
    /// When the next round begins, and the threads that are left of the present one, with the time that each was asleep.
    next: u64,
    queue: VecDeque<((u32, u32), u64)>,
    pub(super) cost: u64,
    pub(super) looks: u64,
    pub(super) refused: Option<ReadError>,
    buffer: Vec<u8>,
}

impl WaitWatch {
    /// Begins at once.
    pub(crate) fn new(root: &SysRoot) -> Self {
        Self {
            root: root.clone(),
            threads: HashMap::new(),
            open: 0,
            places: HashMap::new(),
            waits: Vec::new(),
            files: OpenFiles::default(),
            holders: HashMap::new(),
            held: Vec::new(),
            peers: Peers::default(),
            started: clock::monotonic(),
            next: 0,
            queue: VecDeque::new(),
            cost: 0,
            looks: 0,
            refused: None,
            buffer: Vec::new(),
        }
    }

    /// Looks at threads that do not run, as far as it is time for that and the budget allows it.
    pub(crate) fn visit(&mut self, scene: &mut WaitScene<'_>) {
        let now = clock::monotonic();
        let allowed = ALLOWANCE + now.saturating_sub(self.started) / LOOK_SHARE;
        if self.queue.is_empty() {
            if now < self.next || self.cost >= allowed {
                return;
            }
            self.queue.extend(scene.accounts.asleep());
            self.next = now + LOOK;
        }
        let mut before = clock::thread_cpu();
        while self.cost < allowed && !self.queue.is_empty() {
            let some = self.queue.len().min(TOGETHER);
            for ((pid, tid), asleep) in self.queue.drain(..some).collect::<Vec<_>>() {
                if self.is_due((pid, tid), asleep, now) {
                    self.look(pid, tid, scene);
                }
            }
            if self.queue.is_empty() {
                self.end_round(scene);
            }
            let after = clock::thread_cpu();
            self.cost += after.saturating_sub(before);
            before = after;
        }
    }

    /// Whether a thread, which was asleep for this time so far, has slept since the last look.
    fn is_due(&mut self, key: (u32, u32), asleep: u64, now: u64) -> bool {
        let thread = self.threads.entry(key).or_default();
        let (time, slept) = (now.saturating_sub(thread.looked), asleep.saturating_sub(thread.asleep));
        let is_due = thread.looked == 0 || slept >= time / ASLEEP_PART;
        (thread.looked, thread.asleep) = (now, asleep);
        if !is_due {
            thread.text.clear();
            thread.waits = None;
        }
        is_due
    }

    /// What is done when all threads were looked at.
    fn end_round(&mut self, scene: &mut WaitScene<'_>) {
        // Threads that have ended were not among them.
        let begin = self.next.saturating_sub(LOOK);
        for thread in self.threads.values_mut().filter(|thread| thread.looked < begin) {
            self.open -= usize::from(thread.file.take().is_some());
            thread.waits = None;
        }
        self.note_holders(scene.processes);
        self.note_gils(scene);
        self.find_peers(false);
    }

    /// Looks for the other ends of the pipes and sockets for which threads have waited for a while, or at the end for all.
    pub(super) fn find_peers(&mut self, complete: bool) {
        let least = if complete { 1 } else { PEER_LOOKS };
        let mut wanted = Vec::new();
        for (place, looks) in self.threads.values().flat_map(|thread| &thread.seen) {
            let Some(SeenWait { target, call: number, .. }) =
                self.waits.get(*place).filter(|_| *looks >= least)
            else {
                continue;
            };
            let writes = number.and_then(call).is_some_and(|(name, _)| name.contains("write"));
            let files = match target {
                WaitTarget::Open(file) => vec![*file],
                WaitTarget::Many(_, sockets) => sockets.iter().flatten().copied().collect(),
                _ => Vec::new(),
            };
            wanted.extend(files.into_iter().filter_map(|file| Some((self.files.get(file)?, writes))));
        }
        self.peers.find(&self.root, wanted.into_iter(), complete);
    }

    /// Looks at one thread.
    fn look(&mut self, pid: u32, tid: u32, scene: &mut WaitScene<'_>) {
        let Some(mut thread) = self.threads.remove(&(pid, tid)) else { return };
        let mut text = std::mem::take(&mut self.buffer);
        match self.read(pid, tid, &mut thread, &mut text) {
            Ok(()) => {
                self.looks += 1;
                // A thread that waits as it did before costs one read.
                let stopped = scene.accounts.is_stopped((pid, tid));
                let script = scene.processes.script_stamp(pid, tid);
                let is_same = thread.text == text && thread.stopped == stopped && thread.script == script;
                if thread.waits.is_none() || !is_same {
                    thread.script = script;
                    thread.waits = ThreadCall::parse(&text).and_then(|call| self.wait(pid, tid, call, scene));
                    thread.stopped = stopped;
                    std::mem::swap(&mut thread.text, &mut text);
                }
                let seen = thread.waits.map(|place| thread.seen.entry(place).or_default());
                seen.into_iter().for_each(|looks| *looks += 1);
            }
            Err(error) => {
                self.open -= usize::from(thread.file.take().is_some());
                thread.waits = None;
                if error.kind == ErrorKind::PermissionDenied {
                    self.refused = Some(error);
                }
            }
        }
        self.buffer = text;
        self.threads.insert((pid, tid), thread);
    }

    /// Reads what a thread does.
    fn read(
        &mut self,
        pid: u32,
        tid: u32,
        thread: &mut WatchedThread,
        text: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        // The kernel returns the line with one call.
        let mut line = [0; MAX_LINE];
        let mut front = |file: &RootFile| {
            let length = file.read_at(&mut line, 0)?;
            text.clear();
            text.extend_from_slice(line.get(..length).unwrap_or_default());
            Ok(())
        };
        if let Some(file) = &thread.file {
            return front(file);
        }
        let file = TaskDir::of(&self.root, pid).thread(tid).source("syscall")?;
        front(&file)?;
        if self.open < MAX_OPEN {
            self.open += 1;
            thread.file = Some(file);
        }
        Ok(())
    }

    /// The place of the wait of a thread in the list; `None` if it runs.
    fn wait(&mut self, pid: u32, tid: u32, call: ThreadCall, scene: &mut WaitScene<'_>) -> Option<usize> {
        let (number, found, place) = match call {
            ThreadCall::Running => return None,
            ThreadCall::Outside(place) => (None, self.outside(pid, tid), place),
            ThreadCall::Call { number, arguments, place } => {
                let process = scene.processes.observed(pid);
                let mut context = CallContext { root: &self.root, pid, process, files: &mut self.files };
                let found = context.wait(number, &arguments);
                (Some(number), self.stored(found, number, (pid, tid)), place)
            }
        };
        let chain = chain(pid, tid, place, scene);
        // Nothing but a signal lets it go on, and what it waited for in a call does not matter.
        let (number, found, chain) = match scene.accounts.is_stopped((pid, tid)) {
            true => {
                let stopped = FoundWait { kind: WaitKind::Stopped, target: WaitTarget::Nothing, owner: None };
                (None, stopped, if number.is_some() { 0 } else { chain })
            }
            false => (number, found, chain),
        };
        let (kind, target) = match found.target {
            WaitTarget::Futex { address, .. } => match scene.processes.gil_at(pid, address) {
                Some(gil) => (WaitKind::Lock, WaitTarget::Gil(gil)),
                None => {
                    let object = scene.processes.object_at(pid, address, clock::monotonic());
                    (found.kind, WaitTarget::Futex { address, object })
                }
            },
            target => (found.kind, target),
        };
        let wait = SeenWait { process: pid, kind, call: number, target, chain };
        if let Some(known) = self.places.get(&wait) {
            return Some(*known);
        }
        // Where each wait is a new one, the rest is known only by its kind.
        let wait = match self.waits.len() >= MAX_WAITS {
            true => SeenWait { target: WaitTarget::Nothing, chain: 0, ..wait },
            false => wait,
        };
        Some(*self.places.entry(wait).or_insert_with(|| {
            self.waits.push(wait);
            self.waits.len() - 1
        }))
    }

    /// The same wait, as one for a disk if it is for a file and no signal would end it.
    fn stored(&self, found: FoundWait, number: i64, (pid, tid): (u32, u32)) -> FoundWait {
        let is_file = match found.kind {
            WaitKind::File => true,
            WaitKind::Kernel => call(number).is_some_and(|(_, kind)| kind == CallKind::Files),
            _ => false,
        };
        let stat = || TaskDir::of(&self.root, pid).thread(tid).stat();
        match is_file && stat().is_ok_and(|stat| !stat.interruptible && !stat.stopped) {
            true => FoundWait { kind: WaitKind::Storage, ..found },
            false => found,
        }
    }

    /// What a thread waits for that is in the kernel, but not in a call.
    fn outside(&self, pid: u32, tid: u32) -> FoundWait {
        // The page may be there by now, so the state does not tell it.
        let kind = match TaskDir::of(&self.root, pid).thread(tid).stat() {
            Ok(stat) if stat.stopped => WaitKind::Stopped,
            _ => WaitKind::PageFault,
        };
        FoundWait { kind, target: WaitTarget::Nothing, owner: None }
    }

    /// Notes who holds the locks for which threads wait, and where the holders wait themselves.
    fn note_holders(&mut self, processes: &mut Processes) {
        let mut held = Vec::new();
        for ((pid, _), thread) in &self.threads {
            let wait = thread.waits.and_then(|place| self.waits.get(place));
            if let Some(SeenWait { kind: WaitKind::Lock, target: WaitTarget::Futex { .. }, .. }) = wait
                && let Some(ThreadCall::Call { arguments, .. }) = ThreadCall::parse(&thread.text)
            {
                held.push((*pid, arguments));
            }
        }
        held.sort_unstable();
        held.dedup_by_key(|(pid, arguments)| (*pid, arguments[0]));
        for (pid, arguments) in held {
            self.note_holder(pid, &arguments, processes);
        }
    }

    fn note_holder(&mut self, pid: u32, arguments: &[u64; 6], processes: &mut Processes) {
        let Self { root, files, threads, waits, holders, .. } = self;
        let context = CallContext { root, pid, process: processes.observed(pid), files };
        let Some(thread) = context.owner(arguments) else { return };
        let waits_at = threads.get(&(pid, thread)).and_then(|holder| holder.waits);
        let chain = waits_at.and_then(|place| Some(waits.get(place)?.chain));
        let seen = SeenHolder { process: pid, address: arguments[0], thread, chain, script: None };
        if chain.is_none() && self.held.len() < MAX_WAITS {
            self.held.push((seen, clock::monotonic()));
        }
        count_holder(holders, seen);
    }

    /// Notes who holds the global interpreter locks for which threads wait, and what the holders do.
    fn note_gils(&mut self, scene: &mut WaitScene<'_>) {
        let Self { threads, waits, holders, .. } = self;
        let wait = |thread: &WatchedThread| thread.waits.and_then(|place| waits.get(place)).copied();
        let gil = |((pid, _), thread): (&(u32, u32), &WatchedThread)| match wait(thread)?.target {
            WaitTarget::Gil(address) => Some((*pid, address)),
            _ => None,
        };
        let wanted: BTreeSet<(u32, u64)> = threads.iter().filter_map(gil).collect();
        for (pid, address) in wanted {
            let Some((thread, functions)) = scene.processes.gil(pid).and_then(|gil| gil.holder) else {
                continue;
            };
            // A thread that waited for the lock a moment ago has it now.
            let is_other = |wait: &SeenWait| wait.target != WaitTarget::Gil(address);
            let waits_at = threads.get(&(pid, thread)).and_then(wait).filter(is_other);
            let of = scene.processes.place(pid);
            let script = (!functions.is_empty()).then(|| scene.collector.calls.number(of, &functions));
            let chain = waits_at.map(|wait| wait.chain);
            count_holder(holders, SeenHolder { process: pid, address, thread, chain, script });
        }
    }
}

fn count_holder(holders: &mut HashMap<SeenHolder, u32>, seen: SeenHolder) {
    if holders.len() < MAX_WAITS || holders.contains_key(&seen) {
        *holders.entry(seen).or_default() += 1;
    }
}

/// The number of the call chain of a thread that waits at this place.
fn chain(pid: u32, tid: u32, place: BlockedPlace, scene: &mut WaitScene<'_>) -> u32 {
    let of = scene.processes.place(pid);
    let chain = scene.processes.waiting_chain(pid, tid, place);
    scene.collector.calls.number(of, &chain)
}

#[cfg(test)]
mod tests;
