//! The mappings of a process, by address.

use numakit_sys::proc::maps::MapsEntry;
use numakit_sys::registers::UserRegisters;
use std::ops::Range;
use std::sync::Arc;

/// What memory is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemoryKind {
    /// The heap that grows with brk.
    Heap,
    /// The stack of a thread.
    Stack,
    /// Thread-local storage.
    ThreadLocal,
    /// Code.
    Code,
    /// Data of a file, private to the process.
    File,
    /// Memory that processes share, of a file or not.
    Shared,
    /// Other memory: larger allocations, arenas of threads and of runtimes.
    Anonymous,
    /// Pages of the kernel.
    Kernel,
}

impl MemoryKind {
    /// All, in the order of tables.
    pub const ALL: [Self; 8] = [
        Self::Heap,
        Self::Anonymous,
        Self::Stack,
        Self::ThreadLocal,
        Self::File,
        Self::Shared,
        Self::Code,
        Self::Kernel,
    ];

    /// The word for it in tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Heap => "heap",
            Self::Stack => "stack",
            Self::ThreadLocal => "thread-local",
            Self::Code => "code",
            Self::File => "file",
            Self::Shared => "shared",
            Self::Anonymous => "anonymous",
            Self::Kernel => "kernel",
        }
    }
}

/// A mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessMapping {
    /// Its addresses.
    pub range: Range<u64>,
    /// What it is used for, as far as that is the same for all threads.
    pub kind: MemoryKind,
    /// Whether it can be executed.
    pub executable: bool,
    /// Where in the file it begins.
    pub offset: u64,
    /// Device and inode of the file; all 0 without one.
    pub file: ((u32, u32), u64),
    /// The path of the file, or the kernel's name; empty without one.
    pub name: Arc<str>,
}

/// Bytes that a function may use below the stack pointer.
const RED_ZONE: u64 = 128;

/// Around the thread's base: its control block above, its thread-local variables below.
const CONTROL_BLOCK: u64 = 4096;
const THREAD_LOCALS: u64 = 64 << 10;

impl ProcessMapping {
    fn of(entry: &MapsEntry<'_>) -> Self {
        let has_file = entry.inode != 0 || entry.device != (0, 0);
        let kind = match entry.name {
            _ if entry.is_of_kernel() => MemoryKind::Kernel,
            _ if entry.executable => MemoryKind::Code,
            _ if entry.shared => MemoryKind::Shared,
            "[heap]" => MemoryKind::Heap,
            // Kernels before 4.5 add the number of the thread.
            name if name == "[stack]" || name.starts_with("[stack:") => MemoryKind::Stack,
            _ if has_file => MemoryKind::File,
            _ => MemoryKind::Anonymous,
        };
        Self {
            range: entry.range.clone(),
            kind,
            executable: entry.executable,
            offset: entry.offset,
            file: (entry.device, entry.inode),
            name: entry.name.into(),
        }
    }

    /// Whether it contains code that a program writes while it runs.
    pub fn is_generated_code(&self) -> bool {
        // Runtimes that compile also write code into files in memory (memfd).
        let is_in_memory = self.name.starts_with("/memfd:") || self.name.starts_with("/dev/shm/");
        self.kind == MemoryKind::Code && (self.file == ((0, 0), 0) || is_in_memory)
    }

    /// What an address in the mapping is used for, by a thread with these registers. To the kernel, stacks of threads other
    /// than the first one are anonymous memory, and so is thread-local storage.
    pub fn kind_for(&self, address: u64, registers: &UserRegisters) -> MemoryKind {
        if !matches!(self.kind, MemoryKind::Anonymous | MemoryKind::Stack) {
            return self.kind;
        }
        if let Some(base) = registers.thread_base.filter(|base| self.range.contains(base))
            && (base.saturating_sub(THREAD_LOCALS)..base.saturating_add(CONTROL_BLOCK)).contains(&address)
            // The stack is below the control block, and its top may be near it.
            && !is_on_stack(address, registers.stack_pointer(), base)
        {
            return MemoryKind::ThreadLocal;
        }
        let pointer = registers.stack_pointer();
        match self.range.contains(&pointer) && address >= pointer.saturating_sub(RED_ZONE) {
            true => MemoryKind::Stack,
            false => self.kind,
        }
    }
}

/// Whether an address is nearer to the stack pointer than to the thread's base, with both in one mapping.
fn is_on_stack(address: u64, pointer: u64, base: u64) -> bool {
    (pointer.saturating_sub(RED_ZONE)..base).contains(&address)
        && address - pointer.min(address) < base - address
}

/// The mappings of the content of a file `maps`, in the order of addresses.
pub fn parse(text: &str) -> Vec<ProcessMapping> {
    MappingTable::parse(text).0
}

/// All mappings, in the order of addresses.
#[derive(Debug, Default)]
pub struct MappingTable(Vec<ProcessMapping>);

impl MappingTable {
    /// The mappings in the content of `maps`.
    pub fn parse(text: &str) -> Self {
        let mut mappings: Vec<_> =
            text.lines().filter_map(MapsEntry::parse).map(|entry| ProcessMapping::of(&entry)).collect();
        // The kernel prints them in this order.
        mappings.sort_by_key(|mapping| mapping.range.start);
        Self(mappings)
    }

    pub fn all(&self) -> &[ProcessMapping] {
        &self.0
    }

    pub fn find(&self, address: u64) -> Option<&ProcessMapping> {
        let after = self.0.partition_point(|mapping| mapping.range.start <= address);
        self.0.get(after.checked_sub(1)?).filter(|mapping| mapping.range.contains(&address))
    }

    /// Ranges whose code is different in newer mappings.
    pub fn changed_code(&self, newer: &Self) -> Vec<Range<u64>> {
        let is_same = |mapping: &ProcessMapping| {
            newer.find(mapping.range.start).is_some_and(|now| {
                let moved = mapping.range.start - now.range.start;
                now.executable
                    && now.range.end >= mapping.range.end
                    && now.file == mapping.file
                    && (mapping.file.1 == 0 || now.offset + moved == mapping.offset)
            })
        };
        let code = self.0.iter().filter(|mapping| mapping.executable && !is_same(mapping));
        code.map(|mapping| mapping.range.clone()).collect()
    }
}
