//! The objects of one process: fed by its mappings, by the threads of samples, and by what it allocates.

mod calls;
mod identity;

pub use self::calls::{BlocksOfCalls, PushedCalls};

use self::calls::AllocationCalls;
use crate::collector::FoundAs;
use crate::identity::{FileId, is_memory};
use crate::objects::{
    AllocatingThread, DifferingCalls, MMAP_OF_FILE, ObjectBlock, ObjectId, ObjectOrigin, ObjectRow,
    ObjectTimeline, SHARED_MMAP, SiteBlocks, SiteCallers, SmallBlocks,
};
use crate::python::is_script;
use crate::runtime::{JAVA_HEAP_NAME, LARGE_JAVA_HEAP, ProgramRuntime};
use crate::variables::VariableFiles;
use numakit_sampling::Sample;
use numakit_sampling::process::{MemoryKind, ObservedProcess, ProcessMapping};
use numakit_sys::allocation_log::{
    AllocationCall, AllocationEvent, AllocationFunction, AllocationRecord, BlockSites, LogThreshold,
};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Maximum number of pieces of objects that are known at one time, of one process.
const MAX_PIECES: usize = 1 << 18;

/// The name of small blocks' memory whose site is not known.
const HEAP: &str = "heap, site unknown";

/// Libraries with `operator new`, and the words of its stack in which its caller is.
const RUNTIMES: [&str; 3] = ["libstdc++.so", "libc++.so", "libc++abi.so"];
const MAX_WORDS: usize = 12;

/// Where a block was asked for.
#[derive(Debug, Clone, Copy)]
pub struct AllocationSite<'a> {
    /// The address behind the call.
    pub after: u64,
    /// The call chain from there on, if the block is an object by it.
    pub callers: Option<&'a [u64]>,
    /// The calls as they are on the stack.
    pub pushed: PushedCalls<'a>,
}

/// A program or library in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Module {
    /// The addresses of the module, from its first mapping to the end of its variables that are zero at first.
    addresses: Range<u64>,
    path: String,
    file: FileId,
}

/// What one process has in memory, over time.
#[derive(Debug, Clone)]
pub struct ProcessObjects {
    timeline: ObjectTimeline,
    /// Mappings that the timeline has, by address.
    mapped: Vec<(Range<u64>, ObjectOrigin)>,
    /// Those of them that only their addresses name.
    anonymous: Vec<(Range<u64>, ObjectOrigin)>,
    modules: Vec<Module>,
    /// What the program is written with.
    runtime: ProgramRuntime,
    /// The heap of a Java virtual machine that is too large for the addresses of others.
    large_heap: Option<Range<u64>>,
    /// The files that were mapped, by path.
    mapped_files: HashMap<String, FileId>,
    /// When the mappings were read, in ns.
    read: u64,
    /// Ranges of code, by address.
    code: Vec<Range<u64>>,
    /// The threads that had samples, and whether their local storage is known.
    threads: HashMap<u32, bool>,
    /// Addresses at which the local storage of threads ends.
    bases: BTreeSet<u64>,
    small: SmallBlocks,
    /// Whether the log has said anything of the process, or of the one that it was forked from.
    is_logged: bool,
    callers: SiteCallers,
    calls: AllocationCalls,
    /// The files of variables that were found, and their addresses there.
    variables: HashMap<ObjectId, (PathBuf, u64)>,
    /// The folder in which the process sees its files.
    root: PathBuf,
}

impl ProcessObjects {
    /// The objects of a process that sees its files in this folder.
    pub fn new(root: PathBuf) -> Self {
        let timeline = ObjectTimeline::new(MAX_PIECES);
        let (mapped, modules, code) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            timeline,
            mapped,
            anonymous: Vec::new(),
            modules,
            runtime: ProgramRuntime::default(),
            large_heap: None,
            mapped_files: HashMap::new(),
            code,
            read: 0,
            threads: HashMap::new(),
            bases: BTreeSet::new(),
            small: SmallBlocks::default(),
            is_logged: false,
            callers: SiteCallers::default(),
            calls: AllocationCalls::default(),
            variables: HashMap::new(),
            root,
        }
    }

    /// When its mappings were read last; 0 before.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// Whether the log has said anything of the process, or of the one that it was forked from.
    pub fn is_logged(&self) -> bool {
        self.is_logged
    }

    /// Compares these mappings, which were read at that time, with the ones before. A new mapping may be as old as the
    /// reading before: its objects begin then.
    pub fn update(&mut self, mappings: &[ProcessMapping], read: u64) {
        if read == self.read {
            return;
        }
        self.modules = modules(mappings);
        for mapping in mappings.iter().filter(|mapping| mapping.file.1 != 0) {
            self.mapped_files.entry(mapping.name.to_string()).or_insert(mapping.file);
        }
        let code = mappings.iter().filter(|mapping| mapping.executable);
        self.code = code.map(|mapping| mapping.range.clone()).collect();
        if self.runtime != ProgramRuntime::Go {
            self.runtime = ProgramRuntime::of(self.files());
        }
        let large_heap = large_java_heap(mappings).filter(|_| self.runtime == ProgramRuntime::Java);
        if large_heap != self.large_heap {
            // What the log said of its parts was before anybody knew what they are.
            if let Some(heap) = &large_heap {
                self.timeline.unmap(heap, self.read);
                self.mapped.retain(|(range, _)| range.end <= heap.start || range.start >= heap.end);
            }
            self.large_heap = large_heap;
        }
        let mut anonymous = Vec::new();
        let mut new = Vec::with_capacity(mappings.len());
        for mapping in mappings {
            let range = mapping.range.clone();
            let mut origin = origin(mapping, self.module(range.start), self.runtime);
            if self.large_heap.as_ref().is_some_and(|heap| heap.contains(&range.start)) {
                origin = ObjectOrigin::Mapping { name: JAVA_HEAP_NAME.to_owned() };
            }
            if origin == by_address(range.start) {
                // A mapping that grows downwards, or of which a part is unmapped, is the one before.
                origin = overlapping(&self.anonymous, &range).unwrap_or(origin);
                anonymous.push((range.clone(), origin.clone()));
            }
            new.push((range, origin));
        }
        let is_known = |(range, origin): &(Range<u64>, ObjectOrigin)| {
            let at = self.mapped.binary_search_by_key(&range.start, |(range, _)| range.start);
            at.is_ok_and(|at| self.mapped[at].0 == *range && self.mapped[at].1 == *origin)
        };
        for (range, origin) in new.iter().filter(|mapping| !is_known(mapping)) {
            self.timeline.add(range.clone(), self.read, origin);
        }
        for (range, _) in &self.mapped {
            for gone in without(range, &new) {
                self.timeline.unmap(&gone, read);
            }
        }
        (self.mapped, self.anonymous, self.read) = (new, anonymous, read);
    }

    /// Applies a record of the log to the objects. `site` is where a new block was asked for.
    pub fn log(
        &mut self,
        record: &AllocationRecord,
        site: Option<AllocationSite<'_>>,
        threshold: LogThreshold,
        node: Option<u32>,
    ) {
        self.is_logged = true;
        let time = record.time;
        let thread = node.map(|node| AllocatingThread { thread: record.thread, node });
        match record.event {
            // The virtual machine's heap has its name, however it was mapped.
            AllocationEvent::Mapped { address, .. }
                if self.runtime.heap_at(address).is_some()
                    || self.large_heap.as_ref().is_some_and(|heap| heap.contains(&address)) => {}
            AllocationEvent::Allocated { address, size, is_sample: false, .. }
            | AllocationEvent::Mapped { address, size, .. } => {
                if let (Some(call), Some(site)) = (&record.call, site) {
                    let by = match record.event {
                        AllocationEvent::Mapped { protection, flags, .. } => {
                            mapped_by(call, protection, flags)
                        }
                        _ => call.function.name(),
                    };
                    let callers = site.callers.and_then(|chain| self.callers.place(site.after, chain));
                    let origin = ObjectOrigin::Allocated { by, site: site.after, callers };
                    let is_part = callers.is_some();
                    if let Some(object) = self.timeline.add_by(address..address + size, time, &origin, thread)
                    {
                        let calls = (site.pushed, is_part);
                        self.calls.add(object, call.function.name(), calls, (size, 1));
                    }
                }
            }
            AllocationEvent::Allocated { address, size, .. } => {
                if let (Some(call), Some(site)) = (&record.call, site) {
                    let by = call.function.name();
                    let count = threshold.blocks_of_a_sample(size);
                    let AllocationSite { after: site, pushed, .. } = site;
                    self.small.allocated_by(self.caller(call), size, site);
                    self.small.add(address..address + size, by, site, count, thread, &mut self.timeline);
                    if let Some(object) = self.timeline.name(&ObjectOrigin::SmallBlocks { site }) {
                        self.calls.add(object, by, (pushed, false), (size, count.round() as u64));
                    }
                }
            }
            AllocationEvent::Freed { address } => {
                _ = self.timeline.free(address, time) || self.small.free(address, &mut self.timeline);
            }
            AllocationEvent::Unmapped { address, size } => {
                self.timeline.unmap(&(address..address + size), time)
            }
            // A block that was not freed after all is found by its mapping; all other records say nothing of memory.
            _ => {}
        }
    }

    /// The caller of the allocating function; for C++'s `new`, which is a function itself, the caller of that: the first address
    /// of code of another module on its small piece of the stack.
    fn caller(&self, call: &AllocationCall) -> u64 {
        let direct = call.frames().first().copied().unwrap_or(0);
        if !self.is_runtime(direct) {
            return direct;
        }
        let words = call.stack().chunks_exact(8).take(MAX_WORDS).filter_map(|word| word.try_into().ok());
        let caller =
            words.map(u64::from_le_bytes).find(|word| self.is_code(*word) && !self.is_runtime(*word));
        caller.unwrap_or(direct)
    }

    fn is_runtime(&self, code: u64) -> bool {
        let is_runtime =
            |module: &Module| RUNTIMES.iter().any(|runtime| name(&module.path).starts_with(runtime));
        self.module(code).is_some_and(is_runtime)
    }

    /// The object of the small block that has an address, where `found` is the mapping around the address; `found` if there
    /// is no such block.
    pub fn block(
        &mut self,
        found: ObjectId,
        address: u64,
        sites: Option<BlockSites>,
        process: &ObservedProcess,
    ) -> (ObjectId, FoundAs) {
        let is_mapping =
            matches!(self.timeline.row(found).map(|row| &row.origin), Some(ObjectOrigin::Mapping { .. }));
        // Of a program with few small blocks none is in the sample, and the table of sites has them all the same.
        let heap = process.mapping(address).filter(|mapping| {
            matches!(mapping.kind, MemoryKind::Heap | MemoryKind::Anonymous)
                && (sites.is_some() || self.small.are_in(&mapping.range))
        });
        if !is_mapping || heap.is_none() {
            return (found, FoundAs::Object);
        }
        let noted = || sites?.find(address, |at, into| process.read(at, into));
        let site = self.small.find(address).or_else(|| {
            let block = noted().filter(|block| self.is_code(block.site) && !self.is_runtime(block.site))?;
            let site = self.small.site(block.site, block.size);
            self.small.note(site, block.size);
            Some(site)
        });
        let has_blocks = heap.is_some_and(|mapping| self.small.are_in(&mapping.range));
        let (origin, found_as) = match site {
            Some(site) => (ObjectOrigin::SmallBlocks { site }, FoundAs::Block),
            None if has_blocks => (ObjectOrigin::Mapping { name: HEAP.to_owned() }, FoundAs::Heap),
            None => return (found, FoundAs::Object),
        };
        self.timeline.name(&origin).map_or((found, FoundAs::Object), |object| (object, found_as))
    }

    /// What is known of the small blocks of a site.
    pub fn blocks_of(&self, site: u64) -> Option<&SiteBlocks> {
        self.small.of_site(site)
    }

    /// The calls that tell an object from the others of its allocation site, if there are others.
    pub fn differing_calls(&self, origin: &ObjectOrigin) -> Option<DifferingCalls> {
        match origin {
            ObjectOrigin::Allocated { site, callers: Some(place), .. } => {
                self.callers.differing(*site, *place, usize::from(self.script(origin).is_some()))
            }
            _ => None,
        }
    }

    /// The number of the function of Python for which the blocks of an object were allocated, where that tells them from others of
    /// their allocation site.
    pub fn script(&self, origin: &ObjectOrigin) -> Option<u64> {
        self.chain(origin)?.first().copied().filter(|call| is_script(*call))
    }

    /// The call chain that led to the allocation site of an object, if the object is one by it.
    pub fn chain(&self, origin: &ObjectOrigin) -> Option<&[u64]> {
        match origin {
            ObjectOrigin::Allocated { site, callers: Some(place), .. } => self.callers.chain(*site, *place),
            _ => None,
        }
    }

    /// Whether there is code at an address.
    fn is_code(&self, address: u64) -> bool {
        let after = self.code.partition_point(|range| range.start <= address);
        after.checked_sub(1).is_some_and(|at| self.code[at].contains(&address))
    }

    /// Whether the stack of a thread and its local storage are known. A thread that just begins has none yet.
    pub fn knows(&self, thread: u32) -> bool {
        self.threads.get(&thread).copied().unwrap_or(false)
    }

    /// Notes a thread with one of its samples, and the base of its local storage if that is known.
    pub fn note_thread(&mut self, sample: &Sample, base: Option<u64>) {
        self.bases.extend(base);
        if self.threads.insert(sample.thread, base.is_some()).is_none() {
            self.note_stack(sample.registers.stack_pointer());
        }
    }

    /// The object that had an address at a time.
    pub fn find(&mut self, address: u64, time: u64, files: &mut VariableFiles) -> Option<ObjectId> {
        // An object that is found late may be older than its first time says: so the latest one at the address is taken.
        let found = self.timeline.find(address, time).or_else(|| self.timeline.find(address, u64::MAX - 1));
        let origin = found.and_then(|found| Some(&self.timeline.row(found)?.origin));
        if matches!(origin, Some(ObjectOrigin::Variable { .. } | ObjectOrigin::ThreadLocal { .. })) {
            return found;
        }
        if let Some(variable) = self.thread_local(address, files) {
            return Some(variable);
        }
        let found = found?;
        match &self.timeline.row(found)?.origin {
            ObjectOrigin::Mapping { .. } => self.variable(address, files).or(Some(found)),
            ObjectOrigin::Allocated { by: MMAP_OF_FILE, .. } => {
                let file = |time| self.timeline.file(address, time);
                file(time).or_else(|| file(u64::MAX - 1)).or(Some(found))
            }
            _ => Some(found),
        }
    }

    /// The object for memory around a thread's base that is no variable of the program.
    pub fn other_thread_local(&mut self) -> Option<ObjectId> {
        self.timeline.name(&ObjectOrigin::ThreadLocal { name: None })
    }

    /// An object that was found.
    pub fn row(&self, object: ObjectId) -> Option<&ObjectRow> {
        self.timeline.row(object)
    }

    /// The blocks of an object, by the calls that allocated them.
    pub fn calls(&self, object: ObjectId) -> Vec<BlocksOfCalls> {
        self.calls.of(object)
    }

    /// The file of a program or library that has an address, and the distance from where it was loaded.
    pub fn in_file(&self, address: u64) -> Option<(FileId, u64)> {
        let module = self.module(address)?;
        Some((module.file, address - module.addresses.start))
    }

    /// The block of an object that had an address at a time, by its place in the list of the object's blocks.
    pub fn block_at(&self, object: ObjectId, address: u64, time: u64) -> Option<ObjectBlock> {
        self.timeline.block_at(object, address, time)
    }

    /// The numbers of the blocks of these objects, in their order of allocation.
    pub fn numbered(&self, objects: &HashSet<ObjectId>) -> HashMap<ObjectId, HashMap<(u64, u64), u64>> {
        self.timeline.numbered(objects)
    }

    /// Where the piece of an object begins that had an address; `None` if that is not certain.
    pub fn start(&self, object: ObjectId, address: u64) -> Option<u64> {
        Some(self.timeline.piece_of(object, address)?.start)
    }

    /// The file of a variable that was found, and the variable's address there.
    pub fn variable_in_file(&self, object: ObjectId) -> Option<(PathBuf, u64)> {
        self.variables.get(&object).cloned()
    }

    /// Notes that the program is one of Go, before the first mappings.
    pub fn note_go(&mut self) {
        self.runtime = ProgramRuntime::Go;
    }

    /// What the program is written with.
    pub fn runtime(&self) -> ProgramRuntime {
        self.runtime
    }

    /// The names of the programs and libraries that are loaded.
    pub fn files(&self) -> impl Iterator<Item = &str> + Clone {
        self.modules.iter().map(|module| module.path.rsplit('/').next().unwrap_or(&module.path))
    }

    fn module(&self, address: u64) -> Option<&Module> {
        let after = self.modules.partition_point(|module| module.addresses.start <= address);
        self.modules.get(after.checked_sub(1)?).filter(|module| module.addresses.contains(&address))
    }

    /// The stack of a thread is the mapping with its stack pointer; that of the first one has the kernel's name.
    fn note_stack(&mut self, pointer: u64) {
        let after = self.mapped.partition_point(|(range, _)| range.start <= pointer);
        let stack = after.checked_sub(1).and_then(|at| self.mapped.get(at));
        if let Some((range, ObjectOrigin::Mapping { .. })) =
            stack.filter(|(range, _)| range.contains(&pointer))
            && self.module(pointer).is_none()
            // Stacks of Go are blocks of its heap.
            && self.runtime != ProgramRuntime::Go
        {
            self.timeline.add(range.clone(), self.read, &ObjectOrigin::Stack { is_first: false });
        }
    }

    /// The program's variable in the storage of a thread, whichever thread uses it.
    fn thread_local(&mut self, address: u64, files: &mut VariableFiles) -> Option<ObjectId> {
        let base = *self.bases.range(address.checked_add(1)?..).next()?;
        let elf = files.of(&inside(&self.root, &self.modules.first()?.path))?;
        let variable = elf.below_base(base - address)?;
        let start = base - elf.distance(variable);
        let addresses = start..start + (variable.addresses.end - variable.addresses.start);
        let origin = ObjectOrigin::ThreadLocal { name: Some(elf.name(variable)?) };
        self.timeline.add_known(addresses, self.read, &origin)
    }

    /// The variable of a program or library at an address.
    fn variable(&mut self, address: u64, files: &mut VariableFiles) -> Option<ObjectId> {
        // A segment with a large alignment may be apart from the other segments of its file.
        let after = self.modules.partition_point(|module| module.addresses.start <= address);
        let module = &self.modules[after.checked_sub(1)?];
        let path = inside(&self.root, &module.path);
        let elf = files.of(&path)?;
        let variable = elf.find(elf.address(address - module.addresses.start)?)?;
        let bias = address - elf.address(address - module.addresses.start)?;
        let addresses = variable.addresses.start + bias..variable.addresses.end + bias;
        let origin = ObjectOrigin::Variable { name: elf.name(variable)?, module: name(&module.path) };
        let found = self.timeline.add_known(addresses, self.read, &origin)?;
        self.variables.insert(found, (path, variable.addresses.start));
        Some(found)
    }
}

/// The path by which this program reaches a path of the process.
pub(crate) fn inside(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

fn name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

/// A module that may continue in the next mapping.
struct OpenModule {
    module: Module,
    /// Whether it has code: other files are data.
    has_code: bool,
    /// Whether it has its memory without file.
    has_rest: bool,
    /// Where in the file its last mapping begins.
    offset: u64,
}

/// Programs and libraries: mappings of one file from its beginning on, and the memory without file that follows.
fn modules(mappings: &[ProcessMapping]) -> Vec<Module> {
    let mut modules: Vec<OpenModule> = Vec::new();
    for mapping in mappings {
        let has_file = mapping.file.1 != 0;
        let Range { start, end } = mapping.range;
        match modules.last_mut() {
            // Runtimes map code of their file again elsewhere: V8 its builtins, near the code that it compiles.
            Some(last)
                if has_file
                    && mapping.file == last.module.file
                    && mapping.offset > 0
                    && mapping.offset >= last.offset =>
            {
                (last.module.addresses.end, last.offset) = (end, mapping.offset);
                last.has_code |= mapping.executable;
            }
            Some(last)
                if mapping.kind == MemoryKind::Anonymous
                    && mapping.name.is_empty()
                    && start == last.module.addresses.end
                    && last.has_code
                    && !last.has_rest =>
            {
                (last.module.addresses.end, last.has_rest) = (end, true);
            }
            _ if has_file && mapping.offset == 0 => {
                let path = mapping.name.to_string();
                let module = Module { addresses: start..end, path, file: mapping.file };
                let has_code = mapping.executable;
                modules.push(OpenModule { module, has_code, has_rest: false, offset: 0 });
            }
            _ => {}
        }
    }
    modules.into_iter().filter(|open| open.has_code).map(|open| open.module).collect()
}

/// What a mapping is, as far as the kernel tells it.
fn origin(mapping: &ProcessMapping, module: Option<&Module>, runtime: ProgramRuntime) -> ObjectOrigin {
    let path = || mapping.name.to_string();
    let start = mapping.range.start;
    let mapped = |name: &str| ObjectOrigin::Mapping { name: name.to_owned() };
    match (mapping.kind, module) {
        (MemoryKind::Stack, _) => ObjectOrigin::Stack { is_first: true },
        (MemoryKind::Heap, _) => mapped("heap"),
        (MemoryKind::Code, _) if mapping.file.1 == 0 => mapped("code that was compiled while running"),
        (MemoryKind::Code, _) => ObjectOrigin::File { path: path() },
        (MemoryKind::Kernel, _) => mapped(&path()),
        (MemoryKind::File | MemoryKind::Anonymous, Some(module)) => {
            mapped(&format!("data of {}", name(&module.path)))
        }
        (MemoryKind::Shared, _) if is_memory(&mapping.name) => {
            let name = mapping.name.trim_end_matches(" (deleted)");
            // Without a name of its own its address names it.
            let is_named = !name.starts_with("/dev/zero");
            let name = if is_named {
                format!("shared memory {name}")
            } else {
                format!("shared memory at {start:#x}")
            };
            ObjectOrigin::SharedMemory { name, file: mapping.file }
        }
        (MemoryKind::File | MemoryKind::Shared, _) if !mapping.name.is_empty() => {
            ObjectOrigin::File { path: path() }
        }
        _ if !mapping.name.is_empty() => mapped(&format!("{} at {start:#x}", mapping.name)),
        _ => match runtime.heap_at(start) {
            Some(heap) => mapped(heap),
            None => by_address(start),
        },
    }
}

/// The heap of a Java virtual machine that is larger than 32 GiB, which the kernel places: what the machine uses of it, with what it
/// has reserved beside that. No other memory of such a machine is as large.
fn large_java_heap(mappings: &[ProcessMapping]) -> Option<Range<u64>> {
    let is_unnamed = |mapping: &ProcessMapping| {
        mapping.kind == MemoryKind::Anonymous
            && mapping.name.is_empty()
            && mapping.range.start >= LARGE_JAVA_HEAP
    };
    let heap = |pair: &[ProcessMapping]| {
        let [first, second] = pair else { return None };
        let is_one = first.range.end == second.range.start && is_unnamed(second) && is_unnamed(first);
        let end = if is_one { second.range.end } else { first.range.end };
        (is_unnamed(first) && end - first.range.start >= LARGE_JAVA_HEAP).then_some(first.range.start..end)
    };
    mappings.windows(2).find_map(heap)
}

/// Memory that only its address names.
fn by_address(start: u64) -> ObjectOrigin {
    ObjectOrigin::Mapping { name: format!("anonymous memory at {start:#x}") }
}

/// What the first of these mappings is, which are sorted, that overlaps a range.
fn overlapping(mappings: &[(Range<u64>, ObjectOrigin)], range: &Range<u64>) -> Option<ObjectOrigin> {
    let first = mappings.partition_point(|(other, _)| other.end <= range.start);
    mappings.get(first).filter(|(other, _)| other.start < range.end).map(|(_, origin)| origin.clone())
}

/// What a call that maps memory is to its object: memory and files that processes share are not the program's own.
fn mapped_by(call: &AllocationCall, protection: u32, flags: u32) -> &'static str {
    const WRITE: u32 = 0x02;
    const SHARED: u32 = 0x01;
    const ANONYMOUS: u32 = 0x20;
    let is_shared = flags & SHARED != 0;
    match (call.function, flags & ANONYMOUS != 0) {
        (AllocationFunction::Mmap, true) if is_shared => SHARED_MMAP,
        // What is written to a private mapping is a copy, and no page of the file.
        (AllocationFunction::Mmap, false) if is_shared || protection & WRITE == 0 => MMAP_OF_FILE,
        _ => call.function.name(),
    }
}

/// The parts of a range that are in none of these, which are sorted.
fn without(range: &Range<u64>, others: &[(Range<u64>, ObjectOrigin)]) -> Vec<Range<u64>> {
    let mut rest = Vec::new();
    let mut at = range.start;
    let first = others.partition_point(|(other, _)| other.end <= range.start);
    for (other, _) in others[first..].iter().take_while(|(other, _)| other.start < range.end) {
        if at < other.start {
            rest.push(at..other.start);
        }
        at = at.max(other.end);
    }
    if at < range.end {
        rest.push(at..range.end);
    }
    rest
}

#[cfg(test)]
mod tests;
