//! Functions of Python in the processes that run it.

use super::{LARGE, Processes, root_of};
use crate::code::CodeName;
use crate::objects::{ObjectId, ObjectOrigin};
use crate::python::{GilLook, ScriptLook, ScriptShares, UnreadPython};
use numakit_sys::allocation_log::AllocationRecord;
use numakit_sys::clock;
use numakit_sys::proc::syscall::BlockedPlace;

/// A look within this time after an allocation, in ns, tells what the thread did then; and the time between two such looks, which
/// bounds their cost. Large blocks, which are few, do not wait that long behind small ones.
const ALLOCATING: u64 = 6_000_000;
const EACH_ALLOCATING: u64 = 25_000_000;
const EACH_LARGE: u64 = 5_000_000;
/// Looks at large blocks that do not wait: together they take some tens of milliseconds.
const FIRST_LARGE: u64 = 200;
/// This number of looks that found one function is enough to know it without a look.
const AGREED: u64 = 3;
/// Call chains for which looks are kept, at most.
const MAX_ALLOCATING: usize = 1 << 12;

impl Processes {
    /// Whether a process runs Python that can be read.
    pub(crate) fn runs_python(&mut self, pid: u32) -> bool {
        self.process(pid);
        let Self { open, pythons, .. } = self;
        let process = open.get(&pid).and_then(Option::as_ref);
        process.is_some_and(|process| pythons.runs(process, root_of))
    }

    /// The number of the function of Python that allocated a block: that which a look found, or without a look, that on which all
    /// looks at blocks of the same call chain agree. The chain is innermost first.
    pub(super) fn allocating_script(&mut self, pid: u32, chain: &[u64], found: Option<u64>) -> Option<u64> {
        let key = (pid, chain.to_vec());
        if let Some(found) = found {
            let has_room = self.allocating.len() < MAX_ALLOCATING || self.allocating.contains_key(&key);
            let looks = has_room.then(|| self.allocating.entry(key.clone()).or_default());
            looks.into_iter().for_each(|looks| *looks.entry(found).or_default() += 1);
        }
        let looks = self.allocating.get(&key)?;
        let function = |number: &u64| self.script_name(*number).map(|name| (&name.function, &name.file));
        match found {
            // The thread may be on a later line by now: the function is known, and its first number is that of all.
            Some(found) => looks.keys().filter(|number| function(number) == function(&found)).min().copied(),
            None => {
                let first = looks.keys().min()?;
                let is_enough = looks.values().sum::<u64>() >= AGREED;
                (is_enough && looks.keys().all(|other| function(other) == function(first))).then_some(*first)
            }
        }
    }

    /// The innermost function of Python of a thread that has just allocated, if it is time for a look. The first large blocks do not
    /// wait, since what allocates them may never do so again.
    pub(super) fn look_at_allocating(&mut self, record: &AllocationRecord) -> Option<u64> {
        let AllocationRecord { process: pid, thread, time, .. } = *record;
        let now = clock::monotonic();
        let is_large = record.event.allocated_bytes() >= LARGE;
        let pause = match is_large {
            true if self.large_looks < FIRST_LARGE => 0,
            true => EACH_LARGE,
            false => EACH_ALLOCATING,
        };
        let is_due = now.saturating_sub(self.looked_at_allocating) >= pause;
        if !is_due || now.saturating_sub(time) > ALLOCATING || !self.runs_python(pid) {
            return None;
        }
        self.looked_at_allocating = now;
        self.large_looks += u64::from(is_large);
        let ScriptLook::Functions(functions) = self.script(pid, thread) else { return None };
        functions.first().copied()
    }

    /// In which functions of Python an object was allocated, where looks tell that.
    pub(crate) fn allocated_by(&self, pid: u32, object: ObjectId) -> Option<ScriptShares> {
        let objects = self.objects.get(&pid)?;
        let origin = &objects.row(object)?.origin;
        let ObjectOrigin::Allocated { site, .. } = origin else { return None };
        let script = objects.script(origin);
        let callers = objects.chain(origin).unwrap_or_default();
        let native = &callers[usize::from(script.is_some())..];
        let looks = self.allocating.get(&(pid, [&[*site], native].concat()))?;
        let is_of = |number: &u64| {
            let function = |number| self.script_name(number).map(|name| (&name.function, &name.file));
            script.is_none_or(|script| function(script) == function(*number))
        };
        let own = looks.iter().filter(|(number, _)| is_of(number)).map(|(number, looks)| (*number, *looks));
        Some(ScriptShares::of(&own.collect(), |number| self.script_name(number)))
    }

    /// The functions of Python in which a thread is now.
    pub(crate) fn script(&mut self, pid: u32, thread: u32) -> ScriptLook {
        self.process(pid);
        let Self { open, pythons, .. } = self;
        match open.get(&pid) {
            Some(Some(process)) => pythons.look(process, root_of, thread),
            _ => ScriptLook::NotPython,
        }
    }

    /// A number that is another one when a thread is elsewhere in its functions of Python; 0 if it runs none.
    pub(crate) fn script_stamp(&mut self, pid: u32, thread: u32) -> u64 {
        self.process(pid);
        let Self { open, pythons, .. } = self;
        let process = open.get(&pid).and_then(Option::as_ref);
        process.map_or(0, |process| pythons.stamp(process, root_of, thread))
    }

    /// The address of the global interpreter lock if threads that wait at `address` wait for it.
    pub(crate) fn gil_at(&mut self, pid: u32, address: u64) -> Option<u64> {
        self.process(pid);
        let Self { open, pythons, .. } = self;
        pythons.gil_at(open.get(&pid)?.as_ref()?, root_of, address)
    }

    /// The global interpreter lock of a process.
    pub(crate) fn gil(&mut self, pid: u32) -> Option<GilLook> {
        self.process(pid);
        let Self { open, pythons, .. } = self;
        pythons.gil(open.get(&pid)?.as_ref()?, root_of)
    }

    /// The function of Python that has a number.
    pub(crate) fn script_name(&self, number: u64) -> Option<&CodeName> {
        self.pythons.name(number)
    }

    /// Why functions of Python have no names, with the number of processes.
    pub(crate) fn unread_python(&self) -> Vec<(UnreadPython, usize)> {
        self.pythons.unread()
    }

    /// The call chain of a thread that waits: functions of Python instead of those of the interpreter that run them.
    pub(crate) fn waiting_chain(&mut self, pid: u32, thread: u32, place: BlockedPlace) -> Vec<u64> {
        let native = self.blocked_chain(pid, place);
        let ScriptLook::Functions(functions) = self.script(pid, thread) else { return native.to_vec() };
        if functions.is_empty() {
            return native.to_vec();
        }
        let (path, process) = (self.pythons.path(pid), self.open.get(&pid).and_then(Option::as_ref));
        let is_interpreter = |address: &u64| {
            let mapping = process.and_then(|process| process.mapping(*address));
            mapping.is_some_and(|mapping| Some(&*mapping.name) == path)
        };
        native.iter().copied().take_while(|address| !is_interpreter(address)).chain(functions).collect()
    }
}
