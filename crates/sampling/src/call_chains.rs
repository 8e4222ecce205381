//! Call chains of observed threads, from their registers and stack by the unwind tables of programs and libraries.
//!
//! The piece of the stack that comes with a sample is what it was at that moment. What is above it is read when the
//! sample is taken from its ring, milliseconds later: the outer functions still run then, for the most part.

mod tables;

use crate::process::{ObservedProcess, ProcessMapping};
use crate::sample::StackPiece;
use framehop::{CacheNative, FrameAddress, MayAllocateDuringUnwind, Unwinder, UnwinderNative};
use numakit_sys::registers::UserRegisters;
use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;
use tables::UnwindTables;

/// Frames of a chain.
pub const MAX_FRAMES: usize = 64;
/// Chains that are remembered of a process: a loop that touches pages has one.
const MAX_RECENT: usize = 4096;
/// Bytes of the stack by which a chain is found again.
const SAME: usize = 512;
/// A stack is read in parts of this size.
const PAGE: u64 = 4096;

/// A file, by device and inode.
type FileKey = ((u32, u32), u64);

/// Finds call chains.
#[derive(Debug, Default)]
pub struct CallChains {
    files: HashMap<FileKey, Option<Arc<UnwindTables>>>,
    processes: HashMap<u32, ProcessChains>,
}

/// What is known of one process.
struct ProcessChains {
    unwinder: UnwinderNative<Arc<[u8]>, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
    /// When those mappings of the process were read that the unwinder knows, in ns.
    read: u64,
    /// Their first addresses, and files.
    modules: Vec<(u64, FileKey)>,
    recent: HashMap<u64, FoundChain>,
}

/// A chain, and how many of its addresses the piece of the stack alone tells.
#[derive(Debug, Clone, Default)]
struct FoundChain {
    addresses: Arc<[u64]>,
    certain: usize,
}

impl std::fmt::Debug for ProcessChains {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessChains").field("modules", &self.modules).finish_non_exhaustive()
    }
}

impl CallChains {
    /// The chain of a thread with these registers: the instruction, then the addresses to which functions return, innermost
    /// first. It ends where the stack or the unwind tables end, and before an address that is no code.
    pub fn of(
        &mut self,
        process: &ObservedProcess,
        registers: &UserRegisters,
        stack: &StackPiece,
    ) -> Arc<[u64]> {
        self.known(process).chain(process, std::slice::from_ref(registers), stack).addresses
    }

    /// The chain of a thread whose registers are one of these, which differ in the frame pointer: the longest one.
    pub fn of_one(
        &mut self,
        process: &ObservedProcess,
        possible: &[UserRegisters],
        stack: &StackPiece,
    ) -> Arc<[u64]> {
        self.known(process).chain(process, possible, stack).addresses
    }

    /// How many addresses of a chain the piece of the stack alone tells, as they were at that moment.
    pub fn certain(
        &mut self,
        process: &ObservedProcess,
        registers: &UserRegisters,
        stack: &StackPiece,
    ) -> usize {
        self.known(process).chain(process, std::slice::from_ref(registers), stack).certain
    }

    /// What is known of a process, as its code is now.
    fn known(&mut self, process: &ObservedProcess) -> &mut ProcessChains {
        let Self { files, processes } = self;
        let known = processes.entry(process.id()).or_insert_with(ProcessChains::new);
        known.update(process, files);
        known
    }

    /// The addresses of the function that has this address, by the unwind tables of its program or library.
    pub fn function(&mut self, process: &ObservedProcess, address: u64) -> Option<Range<u64>> {
        let mapping = process.mapping(address).filter(|mapping| mapping.executable && mapping.file.1 != 0)?;
        let tables = self.files.entry(mapping.file);
        let tables = tables.or_insert_with(|| UnwindTables::of_mapped(process.id(), mapping));
        tables.as_ref()?.function(mapping, address)
    }

    /// Forgets a process that has ended or executes a different program.
    pub fn forget(&mut self, process: u32) {
        self.processes.remove(&process);
    }
}

/// The chain of a thread in a program whose file has these bytes. The program is loaded where its segments say, without
/// libraries, and of its memory only the piece of the stack is known. `None` without unwind tables. Any of these bytes may
/// be damaged.
pub fn of_elf(elf: &[u8], registers: &UserRegisters, stack: &StackPiece) -> Option<Vec<u64>> {
    let tables = Arc::new(UnwindTables::of_elf(elf)?);
    let mut chains = ProcessChains::new();
    tables.modules().into_iter().for_each(|module| chains.unwinder.add_module(module));
    let mut read = |address| {
        let mut word = [0; 8];
        stack.read(address, &mut word).then(|| u64::from_ne_bytes(word)).ok_or(())
    };
    let ProcessChains { unwinder, cache, .. } = &mut chains;
    let mut frames = unwinder.iter_frames(registers.ip, unwind_registers(registers), cache, &mut read);
    let mut chain = Vec::new();
    while let Ok(Some(frame)) = frames.next() {
        chain.push(frame.address());
        if chain.len() >= MAX_FRAMES {
            break;
        }
    }
    Some(chain)
}

impl ProcessChains {
    fn new() -> Self {
        Self {
            unwinder: UnwinderNative::new(),
            cache: CacheNative::new(),
            read: 0,
            modules: Vec::new(),
            recent: HashMap::new(),
        }
    }

    /// Loads the unwind tables of code that is new, and forgets the tables of code that is gone.
    fn update(&mut self, process: &ObservedProcess, files: &mut HashMap<FileKey, Option<Arc<UnwindTables>>>) {
        if self.read == process.refreshed() {
            return;
        }
        self.read = process.refreshed();
        let is_code = |mapping: &&ProcessMapping| mapping.executable && mapping.file.1 != 0;
        let code: Vec<&ProcessMapping> = process.mappings().iter().filter(is_code).collect();
        let now: Vec<(u64, FileKey)> =
            code.iter().map(|mapping| (mapping.range.start, mapping.file)).collect();
        if now == self.modules {
            return;
        }
        for (start, _) in self.modules.iter().filter(|known| !now.contains(known)) {
            self.unwinder.remove_module(*start);
        }
        for mapping in
            code.iter().filter(|mapping| !self.modules.contains(&(mapping.range.start, mapping.file)))
        {
            let tables =
                files.entry(mapping.file).or_insert_with(|| UnwindTables::of_mapped(process.id(), mapping));
            let module = tables.as_ref().and_then(|tables| tables.module(mapping));
            module.into_iter().for_each(|module| self.unwinder.add_module(module));
        }
        self.modules = now;
        self.recent.clear();
    }

    fn chain(
        &mut self,
        process: &ObservedProcess,
        possible: &[UserRegisters],
        stack: &StackPiece,
    ) -> FoundChain {
        let key = possible.first().map_or(0, |registers| key(registers, stack));
        if let Some(chain) = self.recent.get(&key) {
            return chain.clone();
        }
        let chains = possible.iter().rev().map(|registers| self.unwound(process, registers, stack));
        let chain = chains.max_by_key(|chain| chain.addresses.len()).unwrap_or_default();
        if self.recent.len() >= MAX_RECENT {
            self.recent.clear();
        }
        self.recent.insert(key, chain.clone());
        chain
    }

    fn unwound(
        &mut self,
        process: &ObservedProcess,
        registers: &UserRegisters,
        stack: &StackPiece,
    ) -> FoundChain {
        let has_left = Cell::new(false);
        let mut reader = StackReader { process, stack, has_left: &has_left, page: Vec::new(), start: 0 };
        let mut read = |address| reader.word(address).ok_or(());
        let mut frames =
            self.unwinder.iter_frames(registers.ip, unwind_registers(registers), &mut self.cache, &mut read);
        let (mut chain, mut certain) = (Vec::new(), 0);
        while let Ok(Some(frame)) = frames.next() {
            let address = frame.address();
            let at = match frame {
                FrameAddress::InstructionPointer(address) => address,
                FrameAddress::ReturnAddress(_) => address - 1,
            };
            // The instruction itself may be of code that was mapped a moment ago.
            let is_code = process.mapping(at).is_some_and(|mapping| mapping.executable);
            if !is_code && !chain.is_empty() || chain.len() >= MAX_FRAMES {
                break;
            }
            chain.push(address);
            if !has_left.get() {
                certain = chain.len();
            }
        }
        FoundChain { addresses: chain.into(), certain }
    }
}

/// The key of a chain among recent ones. While a thread goes on in its function, the key stays the same; a thread with a
/// different stack has a different key.
fn key(registers: &UserRegisters, stack: &StackPiece) -> u64 {
    let mut hasher = DefaultHasher::new();
    (registers.ip, registers.stack_pointer()).hash(&mut hasher);
    stack.bytes[..stack.bytes.len().min(SAME)].hash(&mut hasher);
    hasher.finish()
}

#[cfg(target_arch = "x86_64")]
fn unwind_registers(registers: &UserRegisters) -> framehop::UnwindRegsNative {
    const BASE_POINTER: usize = 5;
    framehop::UnwindRegsNative::new(registers.ip, registers.stack_pointer(), registers.general[BASE_POINTER])
}

#[cfg(target_arch = "aarch64")]
fn unwind_registers(registers: &UserRegisters) -> framehop::UnwindRegsNative {
    const FRAME_POINTER: usize = 29;
    const LINK: usize = 30;
    let general = &registers.general;
    framehop::UnwindRegsNative::new(general[LINK], registers.stack_pointer(), general[FRAME_POINTER])
}

/// Reads words of a stack. Words in the sampled piece are as they were then; all others are as they are now.
struct StackReader<'a> {
    process: &'a ObservedProcess,
    stack: &'a StackPiece,
    /// Set when it reads what is not in the piece. An error in its place would make the unwinder remember another way to unwind this
    /// code.
    has_left: &'a Cell<bool>,
    /// The memory from `start` to the end of its page.
    page: Vec<u8>,
    start: u64,
}

impl StackReader<'_> {
    fn word(&mut self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        if self.stack.read(address, &mut bytes) {
            return Some(u64::from_ne_bytes(bytes));
        }
        self.has_left.set(true);
        let offset = |start: u64| usize::try_from(address.checked_sub(start)?).ok();
        let known = offset(self.start).and_then(|at| self.page.get(at..at.checked_add(8)?));
        if let Some(known) = known {
            return known.try_into().ok().map(u64::from_ne_bytes);
        }
        let rest = usize::try_from(PAGE - address % PAGE).unwrap_or(0);
        self.start = address;
        self.page.resize(rest, 0);
        if !self.process.read(address, &mut self.page) {
            self.page.clear();
        }
        self.page.get(..8)?.try_into().ok().map(u64::from_ne_bytes)
    }
}

#[cfg(test)]
mod tests;
