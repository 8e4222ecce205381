//! The memory of an observed process: its mappings, its data and its code. Reading never stops it, so that any address
//! may be gone; after its end the code of its files is still there.

mod code;
mod go;
mod mappings;
mod thread_base;

pub use mappings::{MemoryKind, ProcessMapping, parse as parse_mappings};

use crate::operand::AddressSpace;
use code::CodeFiles;
use mappings::MappingTable;
use numakit_sys::proc::TaskDir;
use numakit_sys::registers::UserRegisters;
use numakit_sys::remote::RemoteMemory;
use numakit_sys::{ReadError, SysRoot, clock};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

/// An unknown address makes the mappings be read again, but not more often than this, in ns.
const REFRESH: u64 = 5_000_000;

/// The base of a thread is searched for each of the first times that it is asked for, and then more and more rarely: the
/// loader may take long before it sets the base. One of the first searches looks in more than the usual places.
const FIRST_SEARCHES: u32 = 8;
const FAR_SEARCH: u32 = 1;

/// Whether the base is searched for, after it was asked for this many times.
fn is_searched(asked: u32) -> bool {
    asked < FIRST_SEARCHES || asked.is_power_of_two()
}

/// An observed process.
#[derive(Debug)]
pub struct ObservedProcess {
    root: SysRoot,
    process: u32,
    /// Its start time, which together with its number identifies the process.
    start: Option<u64>,
    mappings: MappingTable,
    /// When the mappings were read, in ns.
    refreshed: u64,
    memory: RemoteMemory,
    files: RefCell<CodeFiles>,
    /// The bases of threads that were found, and how often each base was asked for until then.
    bases: HashMap<u32, (Option<u64>, u32)>,
    /// Whether its program is one of Go.
    is_go: bool,
}

impl ObservedProcess {
    /// Reads the mappings of a process.
    pub fn open(process: u32) -> Result<Self, ReadError> {
        let root = SysRoot::host();
        let task = TaskDir::of(&root, process);
        let (start, mappings) =
            (task.stat().ok().map(|stat| stat.start), MappingTable::parse(&task.text("maps")?));
        let memory = RemoteMemory::of(process);
        Ok(Self {
            process,
            start,
            is_go: is_go(&mappings, &memory),
            mappings,
            refreshed: clock::monotonic(),
            memory,
            files: RefCell::new(CodeFiles::default()),
            bases: HashMap::new(),
            root,
        })
    }

    /// Whether its program is one of Go, whose stacks are blocks of its heap.
    pub fn is_go(&self) -> bool {
        self.is_go
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.process
    }

    /// Whether its memory is gone.
    pub fn has_ended(&self) -> bool {
        self.memory.has_ended()
    }

    /// Whether this user may read its memory. If not, code comes from files, and rules that read its data find nothing.
    pub fn is_readable(&self) -> bool {
        self.memory.is_readable()
    }

    /// The mapping with this address, as known.
    pub fn mapping(&self, address: u64) -> Option<&ProcessMapping> {
        self.mappings.find(address)
    }

    /// When its mappings were read, in ns.
    pub fn refreshed(&self) -> u64 {
        self.refreshed
    }

    /// All mappings, as known, in the order of addresses.
    pub fn mappings(&self) -> &[ProcessMapping] {
        self.mappings.all()
    }

    /// Reads the mappings again if none of them has this address. Returns the ranges of code that was unmapped or replaced
    /// since.
    pub fn know(&mut self, address: u64) -> Vec<Range<u64>> {
        let is_due = clock::monotonic().saturating_sub(self.refreshed) >= REFRESH;
        if is_due && self.mapping(address).is_none() { self.refresh() } else { Vec::new() }
    }

    /// Reads the mappings again, as after [`crate::MethodEvent::Mapped`]. Returns the ranges of code that was unmapped or
    /// replaced since. If the process has ended, its known mappings stay.
    pub fn refresh(&mut self) -> Vec<Range<u64>> {
        self.refreshed = clock::monotonic();
        let task = TaskDir::of(&self.root, self.process);
        // A different process may have its number now.
        if task.stat().ok().is_none_or(|stat| stat.exited || Some(stat.start) != self.start) {
            self.memory.note_end();
            return Vec::new();
        }
        let Ok(text) = task.text("maps") else { return Vec::new() };
        // A process that is about to end has no memory any more, while its state still is that of one that runs.
        if text.is_empty() {
            self.memory.note_end();
            return Vec::new();
        }
        let before = std::mem::replace(&mut self.mappings, MappingTable::parse(&text));
        before.changed_code(&self.mappings)
    }

    /// Notes that it executed a different program: all of its memory is new, and all that was known of its code must be
    /// forgotten.
    pub fn executed(&mut self) {
        self.mappings = MappingTable::default();
        self.bases.clear();
        self.memory = RemoteMemory::of(self.process);
        self.refresh();
        self.is_go = is_go(&self.mappings, &self.memory);
    }

    /// The base of the local storage of a thread, found by its stack pointer, for samples that do not have it. `None` if it
    /// was not found, as for threads that have a different number in their PID namespace.
    pub fn thread_base(&mut self, thread: u32, pointer: u64) -> Option<u64> {
        let (base, asked) = self.bases.get(&thread).copied().unwrap_or_default();
        if base.is_some() {
            return base;
        }
        if !is_searched(asked) {
            self.bases.insert(thread, (None, asked.saturating_add(1)));
            return None;
        }
        // The mapping of the storage of a new program is younger than those that are known.
        let text = TaskDir::of(&self.root, self.process).text("maps").unwrap_or_default();
        let read = |at: u64, into: &mut [u8]| self.memory.read(at, into);
        let base = thread_base::find(&MappingTable::parse(&text), pointer, thread, asked == FAR_SEARCH, read);
        self.bases.insert(thread, (base, asked.saturating_add(1)));
        base
    }

    /// Forgets a thread that has ended: a different thread may get its number.
    pub fn thread_ended(&mut self, thread: u32) {
        self.bases.remove(&thread);
    }

    /// What an address is used for, for a thread with these registers.
    pub fn kind(&self, address: u64, registers: &UserRegisters) -> Option<MemoryKind> {
        let mapping = self.mapping(address)?;
        Some(if self.is_go { mapping.kind } else { mapping.kind_for(address, registers) })
    }

    /// Copies data from an address as it is now. Returns whether all bytes were there.
    pub fn read(&self, address: u64, into: &mut [u8]) -> bool {
        self.memory.read(address, into) == Some(into.len())
    }

    /// Copies executable bytes from an address on, as many as there are in its mapping: from memory, else from the file.
    pub fn code(&self, address: u64, into: &mut [u8]) -> usize {
        let Some(mapping) = self.mapping(address).filter(|mapping| mapping.executable) else { return 0 };
        let room = usize::try_from(mapping.range.end - address).unwrap_or(usize::MAX).min(into.len());
        let into = &mut into[..room];
        match self.memory.read(address, into) {
            Some(length) => length,
            None => self.files.borrow_mut().read(mapping, address, into),
        }
    }
}

fn is_go(mappings: &MappingTable, memory: &RemoteMemory) -> bool {
    go::is_go(mappings.all(), |address, into| memory.read(address, into) == Some(into.len()))
}

impl AddressSpace for ObservedProcess {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        self.read(address, into)
    }

    fn code(&self, address: u64, into: &mut [u8]) -> usize {
        self.code(address, into)
    }

    fn changes(&self, address: u64) -> bool {
        self.mapping(address).is_some_and(ProcessMapping::is_generated_code)
    }
}

#[cfg(test)]
mod tests;
