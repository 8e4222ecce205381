//! Looks at the functions of Python in which running threads are, many times a second and within a budget.

use super::votes::most;
use super::{PythonTime, ScriptFunction, ScriptLook, ScriptShares};
use crate::code::CodeName;
use crate::collector::Collector;
use crate::processes::Processes;
use numakit_sampling::Sample;
use numakit_sys::proc::TaskDir;
use numakit_sys::proc::syscall::ThreadCall;
use numakit_sys::{SysRoot, clock};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Threads are looked at this often, in ns, and looking takes at most one in this many parts of the time: 0.2 %.
const LOOK: u64 = 15_000_000;
const LOOK_SHARE: u64 = 500;
/// What the first looks may cost in advance, in ns: a file of the interpreter is read then, and all functions are new.
const ALLOWANCE: u64 = 10_000_000;
/// Threads that were sampled within this time, in ns, are looked at.
const RECENT: u64 = 20_000_000;
/// A look within this time after a sample, in ns, tells what the thread did then.
const TOGETHER: u64 = 3_000_000;
/// Samples whose function is kept, for the objects that they access.
const MAX_JOINED: usize = 1 << 17;

/// Looks that found a function.
#[derive(Debug, Default)]
struct FunctionLooks {
    own: u64,
    all: u64,
    own_time: u64,
    all_time: u64,
    /// Looks at the lines of the function itself, and at those where it calls others.
    lines: BTreeMap<Option<u32>, u64>,
    calls: BTreeMap<Option<u32>, u64>,
}

/// Watches what running threads do.
#[derive(Debug)]
pub(crate) struct PythonWatch {
    root: SysRoot,
    started: u64,
    next: u64,
    /// The newest sample of each thread since the last round, and the CPU time of its samples since its last look, in ns.
    newest: HashMap<(u32, u32), u64>,
    unlooked: HashMap<(u32, u32), u64>,
    /// By the function without its line.
    functions: HashMap<CodeName, FunctionLooks>,
    /// The innermost function at a sample, by its process, thread and time.
    joined: HashMap<(u32, u32, u64), u64>,
    looks: u64,
    /// The CPU time for which they stand, in ns.
    time: u64,
    outside: u64,
    failed: u64,
    cost: u64,
}

impl PythonWatch {
    /// Begins at once.
    pub fn new(root: &SysRoot) -> Self {
        Self {
            root: root.clone(),
            started: clock::monotonic(),
            next: 0,
            newest: HashMap::new(),
            unlooked: HashMap::new(),
            functions: HashMap::new(),
            joined: HashMap::new(),
            looks: 0,
            time: 0,
            outside: 0,
            failed: 0,
            cost: 0,
        }
    }

    /// A thread was sampled.
    pub fn sampled(&mut self, sample: &Sample) {
        let thread = (sample.process, sample.thread);
        self.newest.insert(thread, sample.time);
        *self.unlooked.entry(thread).or_default() += sample.weight;
    }

    /// Looks at the threads that run, as far as it is time for that and the budget allows it.
    pub fn visit(&mut self, processes: &mut Processes) {
        let now = clock::monotonic();
        let newest = std::mem::take(&mut self.newest);
        let allowed = ALLOWANCE + now.saturating_sub(self.started) / LOOK_SHARE;
        if now < self.next || self.cost >= allowed {
            return;
        }
        self.next = now + LOOK;
        let before = clock::thread_cpu();
        self.unlooked.retain(|(pid, _), _| processes.runs_python(*pid));
        for ((pid, tid), time) in newest {
            if now.saturating_sub(time) <= RECENT && processes.runs_python(pid) && runs(&self.root, pid, tid)
            {
                let look = processes.script(pid, tid);
                let is_joined = clock::monotonic().saturating_sub(time) <= TOGETHER;
                self.add(look, (pid, tid), is_joined.then_some(time), processes);
            }
        }
        self.cost += clock::thread_cpu().saturating_sub(before);
    }

    /// Counts a look at a thread, and keeps what it found for the sample to which it belongs.
    fn add(&mut self, look: ScriptLook, thread: (u32, u32), sample: Option<u64>, processes: &Processes) {
        let functions = match look {
            ScriptLook::NotPython => return,
            ScriptLook::Failed => {
                self.failed += 1;
                return;
            }
            ScriptLook::Functions(functions) => functions,
        };
        self.looks += 1;
        let time = self.unlooked.remove(&thread).unwrap_or(0);
        self.time += time;
        let Some(innermost) = functions.first() else {
            self.outside += 1;
            return;
        };
        if let Some(sample) = sample.filter(|_| self.joined.len() < MAX_JOINED) {
            self.joined.insert((thread.0, thread.1, sample), *innermost);
        }
        let mut seen = HashSet::new();
        for (nth, number) in functions.iter().enumerate() {
            let Some(name) = processes.script_name(*number) else { continue };
            let line = name.line;
            let function = CodeName { line: None, ..name.clone() };
            // A function that calls itself is one.
            let is_new = seen.insert(function.clone());
            let looks = self.functions.entry(function).or_default();
            if is_new {
                (looks.all, looks.all_time) = (looks.all + 1, looks.all_time + time);
            }
            if nth == 0 {
                (looks.own, looks.own_time) = (looks.own + 1, looks.own_time + time);
                *looks.lines.entry(line).or_default() += 1;
            } else {
                *looks.calls.entry(line).or_default() += 1;
            }
        }
    }

    /// The functions of Python that use each object, by its place in the list of objects: those of looks at samples.
    pub fn uses(&self, collector: &Collector, processes: &Processes) -> BTreeMap<u32, ScriptShares> {
        let Some(start) = collector.first_time().filter(|_| !self.joined.is_empty()) else {
            return BTreeMap::new();
        };
        let mut objects: BTreeMap<u32, HashMap<u64, u64>> = BTreeMap::new();
        for at in &collector.observations {
            let thread = collector.sampled_threads.get(at.thread as usize);
            let number =
                thread.and_then(|thread| self.joined.get(&(thread.pid, thread.tid, at.time + start)));
            if let (Some(number), Some(access)) = (number, at.access()) {
                *objects.entry(access.object).or_default().entry(*number).or_default() += 1;
            }
        }
        let shares = |looks| ScriptShares::of(&looks, |number| processes.script_name(number));
        objects.into_iter().map(|(object, looks)| (object, shares(looks))).collect()
    }

    /// What the looks have found so far.
    pub fn answer(&self, processes: &Processes) -> PythonTime {
        let line = |looks: &FunctionLooks| most(if looks.own > 0 { &looks.lines } else { &looks.calls });
        let mut functions: Vec<ScriptFunction> = self
            .functions
            .iter()
            .map(|(name, looks)| ScriptFunction {
                name: CodeName { line: line(looks), ..name.clone() },
                own: looks.own,
                all: looks.all,
                own_time: looks.own_time,
                all_time: looks.all_time,
            })
            .collect();
        functions.sort_by(|a, b| {
            let key = |of: &ScriptFunction| {
                let [own, all] = [(of.own_time, of.own), (of.all_time, of.all)];
                (Reverse(own), Reverse(all))
            };
            key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
        });
        PythonTime {
            looks: self.looks,
            time: self.time,
            outside: self.outside,
            failed: self.failed,
            cost: self.cost,
            functions,
            unread: processes.unread_python(),
        }
    }
}

/// Whether a thread runs, or could run.
fn runs(root: &SysRoot, pid: u32, tid: u32) -> bool {
    let call = TaskDir::of(root, pid).thread(tid).bytes("syscall");
    call.is_ok_and(|text| ThreadCall::parse(&text) == Some(ThreadCall::Running))
}
