//! One sample after its operand was recovered: the input of all that is computed here.

use numakit_sampling::operand::{AccessKind, RecoveryRule};

/// Bytes of a cache line, the unit in which processors share memory.
pub const LINE: u64 = 64;
/// Bytes of the smallest page.
pub const PAGE: u64 = 4096;

/// A thread at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// Place of the thread in the list of threads.
    pub thread: u32,
    /// Place of its process in the list of processes. Threads of a process share their addresses.
    pub process: u32,
    /// Nanoseconds since the first sample.
    pub time: u64,
    /// Nanoseconds of CPU time that the sample represents.
    pub weight: u64,
    /// The node of the CPU that ran the thread; `None` if the method does not say.
    pub cpu_node: Option<u32>,
    /// The address of the instruction that waited.
    pub instruction: u64,
    /// What it waited for.
    pub waited: Waited,
    /// The call chain, by its number in the tree of calls; 0 if it is not known.
    pub chain: u32,
}

/// What a thread waited for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Waited {
    /// For its own arithmetic: the instruction accesses no memory.
    Computing,
    /// For memory.
    Memory(ObservedAccess),
    /// For memory at an unknown address, or at an instruction that is not known.
    Unknown,
}

/// An access to a known address, or to a known object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ObservedAccess {
    /// The address, or one of the same object.
    pub address: u64,
    /// Number of bytes; 0 if it varies.
    pub size: u32,
    /// What was done.
    pub kind: AccessKind,
    /// How the address was found.
    pub rule: RecoveryRule,
    /// Place of the mapping in the list of objects.
    pub object: u32,
    /// The node of the page; `None` if it is not known.
    pub home: Option<u32>,
    /// What the memory is used for.
    pub part: MemoryPart,
    /// The line of memory that processes share, whichever process uses it; `None` for memory of one process.
    pub shared: Option<SharedLine>,
}

/// A line of memory that processes share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SharedLine {
    /// What the kernel has in place of a file, by a number of its own.
    pub file: u32,
    /// The offset in the file, divided by the size of a line.
    pub line: u64,
}

/// What memory of a process is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemoryPart {
    /// Heaps and other anonymous memory.
    #[default]
    Heap,
    /// Stacks and thread-local storage.
    Stack,
    /// Files, programs and libraries.
    File,
    /// Memory that processes share.
    Shared,
}

impl MemoryPart {
    /// All, in the order of the series.
    pub const ALL: [Self; 4] = [Self::Heap, Self::Stack, Self::File, Self::Shared];
}

impl ObservedAccess {
    /// The line that was accessed, if the address is the accessed one.
    pub fn line(&self) -> Option<u64> {
        self.rule.is_exact().then_some(self.address / LINE)
    }

    /// A line of the object, where the accessed line itself is not known: the line of another execution of the instruction
    /// is as good. `None` where only the base of the object is known, since it is the same line each time.
    pub fn line_of_object(&self) -> Option<u64> {
        (self.rule != RecoveryRule::Object).then_some(self.address / LINE)
    }

    /// Whether memory was changed.
    pub fn writes(&self) -> bool {
        matches!(self.kind, AccessKind::Store | AccessKind::Update | AccessKind::Atomic)
    }
}

impl Observation {
    /// The access, if it waited for memory whose address or object is known.
    pub fn access(&self) -> Option<&ObservedAccess> {
        match &self.waited {
            Waited::Memory(access) => Some(access),
            Waited::Computing | Waited::Unknown => None,
        }
    }
}
