//! The observed processes, as far as they can be read: memory, mappings, nodes of pages.

mod allocation_sites;
mod identified;
mod linked;
mod logged;
mod scripts;
mod types;

use self::logged::RecentProgram;
use crate::code::{CodeName, CodeNames};
use crate::collector::{FoundAs, FoundObject, ObservedProcesses};
use crate::fields::AddressedObject;
use crate::identity::{self, ObjectIdentity, StartedProgram};
use crate::java::MAX_NAMES;
use crate::malloc_memory::is_of_malloc;
use crate::module_files::{LoopKinds, ModuleFiles};
use crate::objects::{ObjectId, ObjectOrigin, ObjectRow};
use crate::perf_map::PerfMap;
use crate::process_objects::{ProcessObjects, inside};
use crate::python::Pythons;
use crate::report::OpenLoops;
use crate::runtime::{MallocLibrary, ProgramRuntime};
use crate::sources::SourceError;
use crate::symbols::Symbols;
use crate::thread_order::ThreadOrder;
use crate::variables::VariableFiles;
use allocation_sites::KnownCalls;
use identified::SeenProgram;
pub(crate) use identified::is_own;
use linked::linked_program;
use numakit_model::topology::Topology;
use numakit_sampling::blocked;
use numakit_sampling::call_chains::CallChains;
use numakit_sampling::operand::AddressSpace;
use numakit_sampling::pages::{PageNodes, PagePlace};
use numakit_sampling::process::{MemoryKind, ObservedProcess, ProcessMapping};
use numakit_sampling::{Sample, StackPiece};
use numakit_sys::allocation_log::{BlockSites, LogThreshold};
use numakit_sys::file::{text_named_by_program, text_of_process};
use numakit_sys::proc::syscall::BlockedPlace;
use numakit_sys::proc::{LoopSchedule, TaskDir};
use numakit_sys::registers::UserRegisters;
use numakit_sys::{SysRoot, clock};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A piece of code of a process, and where its bytes and names come from. It stays known after the process has ended.
#[derive(Debug, Clone)]
struct CodePiece {
    addresses: Range<u64>,
    offset: u64,
    path: PathBuf,
    module: String,
    has_file: bool,
}

/// All observed processes.
#[derive(Debug)]
pub struct Processes {
    open: HashMap<u32, Option<ObservedProcess>>,
    /// The place of each one, which observations name.
    places: HashMap<u32, u32>,
    /// Processes by place, for the names of their code.
    known: BTreeMap<u32, u32>,
    next_place: u32,
    code: HashMap<u32, Vec<CodePiece>>,
    /// Ranges in which code was replaced, until the decoder has forgotten them.
    changed: HashMap<u32, Vec<Range<u64>>>,
    /// The numbers of processes that a launcher started as ranks of an MPI job.
    ranks: HashMap<u32, u32>,
    /// The schedule of loops of OpenMP that leave it to the environment, if that says one that leaves work uneven.
    loop_schedule: Option<LoopSchedule>,
    /// Where the processes see their files, and who runs them.
    views: BTreeMap<u32, (PathBuf, u32)>,
    pages: PageNodes,
    node_of_cpu: HashMap<u32, u32>,
    symbols: Symbols,
    maps: HashMap<u32, PerfMap>,
    /// Addresses without a name, and the file in which they are; `None` for code that was compiled meanwhile.
    nameless: HashMap<(u32, u64), Option<PathBuf>>,
    objects: HashMap<u32, ProcessObjects>,
    /// The programs that processes run, as far as anybody asked for them.
    programs: HashMap<u32, Option<StartedProgram>>,
    variables: VariableFiles,
    /// The programs and libraries that processes have mapped.
    files: ModuleFiles,
    /// The programs of processes, as they were when they were seen first.
    seen: HashMap<u32, SeenProgram>,
    chains: CallChains,
    /// The start of programs that were executed lately, and the records of what they have allocated since.
    recent: HashMap<u32, RecentProgram>,
    /// When processes executed their programs, by the latest news, in ns.
    news: HashMap<u32, u64>,
    /// Of which blocks the log has all, and of which a sample.
    pub threshold: LogThreshold,
    /// The tables in which processes note the sites of small blocks.
    sites: HashMap<u32, BlockSites>,
    /// What functions do with the sizes that they ask for.
    calls: HashMap<u32, KnownCalls>,
    /// In which order threads were created.
    pub(crate) order: ThreadOrder,
    pythons: Pythons,
    /// Looks at threads that had just allocated: the functions of Python by process and call chain, and when the last look
    /// was, in ns.
    allocating: HashMap<(u32, Vec<u64>), HashMap<u64, u64>>,
    looked_at_allocating: u64,
    /// The number of looks at large blocks.
    large_looks: u64,
    nothing: Nothing,
}

/// The memory of a process that cannot be read.
#[derive(Debug)]
struct Nothing;

impl AddressSpace for Nothing {
    fn read(&self, _: u64, _: &mut [u8]) -> bool {
        false
    }

    fn code(&self, _: u64, _: &mut [u8]) -> usize {
        0
    }
}

impl Processes {
    /// On a machine.
    pub fn new(topology: &Topology) -> Self {
        let cpus = |node: &numakit_model::topology::Node| {
            let node_id = node.os_index;
            node.cpus.iter().map(move |cpu| (cpu, node_id)).collect::<Vec<_>>()
        };
        let with_memory: Vec<u32> = topology
            .nodes
            .iter()
            .filter(|node| node.memory_kb != Some(0))
            .map(|node| node.os_index)
            .collect();
        Self {
            open: HashMap::new(),
            places: HashMap::new(),
            known: BTreeMap::new(),
            next_place: 0,
            code: HashMap::new(),
            changed: HashMap::new(),
            ranks: HashMap::new(),
            loop_schedule: None,
            views: BTreeMap::new(),
            pages: PageNodes::new(&SysRoot::host(), &with_memory),
            node_of_cpu: topology.nodes.iter().flat_map(cpus).collect(),
            symbols: Symbols::default(),
            maps: HashMap::new(),
            nameless: HashMap::new(),
            objects: HashMap::new(),
            programs: HashMap::new(),
            variables: VariableFiles::default(),
            files: ModuleFiles::default(),
            seen: HashMap::new(),
            chains: CallChains::default(),
            recent: HashMap::new(),
            news: HashMap::new(),
            threshold: LogThreshold::default(),
            sites: HashMap::new(),
            calls: HashMap::new(),
            order: ThreadOrder::default(),
            pythons: Pythons::default(),
            allocating: HashMap::new(),
            looked_at_allocating: 0,
            large_looks: 0,
            nothing: Nothing,
        }
    }

    /// Looks up no names of variables and identifies no files, as series need neither.
    pub fn without_variables(self) -> Self {
        Self { variables: VariableFiles::closed(), files: ModuleFiles::closed(), ..self }
    }

    /// What a process is written with.
    pub fn runtime(&self, process: u32) -> ProgramRuntime {
        self.objects.get(&process).map(ProcessObjects::runtime).unwrap_or_default()
    }

    /// Which library serves a process's `malloc`, by the files that it has loaded.
    pub fn malloc(&self, process: u32) -> MallocLibrary {
        self.objects.get(&process).map(|objects| MallocLibrary::of(objects.files())).unwrap_or_default()
    }

    /// The library whose `malloc` gave the memory without a name at this address, if it is known that one did. Other libraries
    /// than that of C leave no trace in the memory: they are taken for the only source where no runtime has its own.
    pub fn malloc_at(&mut self, process: u32, address: u64) -> Option<MallocLibrary> {
        let (library, runtime) = (self.malloc(process), self.runtime(process));
        let mapping = self.mapping(process, address)?;
        let (kind, addresses, is_named) = (mapping.kind, mapping.range.clone(), !mapping.name.is_empty());
        let open = self.open.get(&process)?.as_ref()?;
        let word = |at| {
            let mut bytes = [0; 8];
            open.read(at, &mut bytes).then(|| u64::from_ne_bytes(bytes))
        };
        use ProgramRuntime::{Go, Java, Node, Python};
        let has_own = matches!(runtime, Java | Python | Node | Go);
        let is_of = match (kind, library) {
            (MemoryKind::Heap, _) => true,
            (MemoryKind::Anonymous, MallocLibrary::C) if !is_named => is_of_malloc(&addresses, address, word),
            (MemoryKind::Anonymous, _) => !is_named && !has_own,
            _ => false,
        };
        is_of.then_some(library)
    }

    /// Notes code of a process: at its first sample, and when it maps more.
    fn process(&mut self, pid: u32) -> Option<&mut ObservedProcess> {
        let Self { open, code, ranks, loop_schedule, views, files, seen, .. } = self;
        let process = open.entry(pid).or_insert_with(|| {
            let host = SysRoot::host();
            let task = TaskDir::of(&host, pid);
            // A process that has ended has none of this.
            let status = task.status().ok();
            let variables = task.environment().unwrap_or_default();
            if let Some(rank) = variables.rank() {
                ranks.insert(pid, rank);
            }
            *loop_schedule = loop_schedule.or(variables.loop_schedule());
            if let Some(user) = status.and_then(|status| status.users().first().copied()) {
                views.insert(pid, (root_of(pid), user));
            }
            let process = ObservedProcess::open(pid).ok();
            note_code(code.entry(pid).or_default(), pid, process.as_ref(), files);
            if !files.is_closed() {
                seen.insert(pid, SeenProgram::of(pid));
            }
            process
        });
        process.as_mut()
    }

    /// A process, if it can be observed.
    pub fn observed(&mut self, pid: u32) -> Option<&ObservedProcess> {
        self.process(pid).map(|process| &*process)
    }

    /// The process at a place of the list, if it can be observed.
    pub fn observed_at(&mut self, place: u32) -> Option<&ObservedProcess> {
        let pid = *self.known.get(&place)?;
        self.observed(pid)
    }

    /// The number of the process at a place of the list.
    pub(crate) fn number_at(&self, place: u32) -> Option<u32> {
        self.known.get(&place).copied()
    }

    /// The call chain of a thread that waits in the kernel and is at this place in its program, innermost first.
    pub fn blocked_chain(&mut self, pid: u32, place: BlockedPlace) -> Arc<[u64]> {
        self.know(pid, place.instruction);
        match self.open.get(&pid) {
            Some(Some(process)) => {
                let (possible, stack) = blocked::registers(process, place);
                self.chains.of_one(process, &possible, &stack)
            }
            _ => [place.instruction].into(),
        }
    }

    /// A process mapped code.
    pub fn mapped(&mut self, pid: u32) {
        self.place(pid);
        let changed = self.process(pid).map(ObservedProcess::refresh);
        self.changed.entry(pid).or_default().extend(changed.into_iter().flatten());
        let (open, code) = (self.open.get(&pid).and_then(Option::as_ref), self.code.entry(pid).or_default());
        note_code(code, pid, open, &mut self.files);
    }

    /// Reads the mappings of a process again if no known mapping has this address.
    fn know(&mut self, pid: u32, address: u64) {
        let Some(process) = self.process(pid) else { return };
        let changed = process.know(address);
        let is_code = process.mapping(address).is_some_and(|mapping| mapping.executable);
        if !changed.is_empty() {
            self.changed.entry(pid).or_default().extend(changed);
        }
        let code = self.code.entry(pid).or_default();
        if is_code && !code.iter().any(|piece| piece.addresses.contains(&address)) {
            note_code(code, pid, self.open.get(&pid).and_then(Option::as_ref), &mut self.files);
        }
    }

    /// Notes that a process executed a different program at a time, in ns: its mappings and objects are new.
    pub fn executed(&mut self, pid: u32, time: u64) {
        // News come from several CPUs.
        let latest = self.news.entry(pid).or_default();
        if time < *latest {
            return;
        }
        *latest = time;
        self.open.remove(&pid);
        self.code.remove(&pid);
        self.objects.remove(&pid);
        self.programs.remove(&pid);
        self.ranks.remove(&pid);
        self.chains.forget(pid);
        self.calls.remove(&pid);
        self.pythons.forget(pid);
        self.pages.forget(pid);
        self.process(pid);
        // The log has what the new program has allocated before this was known.
        if let Some(recent) = self.recent.get_mut(&pid).filter(|recent| recent.began > time) {
            recent.hear(time);
            let records = std::mem::take(&mut recent.records);
            records.iter().for_each(|record| self.log(record));
        }
    }

    /// The variable, block or shared memory, of those that were found, that has an address.
    pub fn addressed(&mut self, pid: u32, object: ObjectId, address: u64) -> Option<AddressedObject> {
        self.know(pid, address);
        let open = self.open.get(&pid).and_then(Option::as_ref);
        let mapping = open.and_then(|process| process.mapping(address));
        let objects = self.objects.get(&pid)?;
        let is_block = match &objects.row(object)?.origin {
            ObjectOrigin::Variable { .. } => false,
            ObjectOrigin::Allocated { .. } => true,
            ObjectOrigin::SharedMemory { .. } | ObjectOrigin::File { .. } => {
                // Offsets in the file are the same in each process.
                let (_, offset) = identity::shared_offset(mapping?, address)?;
                let (start, name) = (address.checked_sub(offset)?, self.object_name(pid, object)?);
                return Some(AddressedObject { name, start, variable: None });
            }
            _ => return None,
        };
        let (start, variable) = (objects.start(object, address)?, objects.variable_in_file(object));
        let name = self.object_name(pid, object)?;
        let name = if is_block { format!("the block of {name}") } else { name };
        Some(AddressedObject { name, start, variable })
    }

    /// The text of a source file that debug information of a program names, or why there is none: as the first of the
    /// processes sees it that can.
    pub fn source(&self, file: &str) -> Result<String, SourceError> {
        if !file.starts_with('/') {
            return Err(SourceError::Relative);
        }
        let mut why = SourceError::Ended;
        let mut tried = BTreeSet::new();
        for (root, user) in self.views.values().filter(|view| tried.insert(*view)) {
            match text_named_by_program(&inside(root, file), *user, MAX_SOURCE) {
                Ok(text) => return Ok(text),
                Err(error) => why = error.into(),
            }
        }
        Err(why)
    }

    /// Whether the name of an object only says in which memory it is.
    pub fn is_unnamed(&self, pid: u32, object: ObjectId) -> bool {
        let origin = self.objects.get(&pid).and_then(|objects| objects.row(object)).map(|row| &row.origin);
        use ObjectOrigin::{Mapping, SmallBlocks, Stack};
        matches!(origin, None | Some(Mapping { .. } | SmallBlocks { .. } | Stack { .. }))
    }

    /// The processes that a launcher started as ranks of an MPI job: their places in the list, their numbers, and their ranks.
    pub(crate) fn ranks(&self) -> Vec<(u32, u32, u32)> {
        let rank = |(place, pid): (&u32, &u32)| Some((*place, *pid, *self.ranks.get(pid)?));
        self.known.iter().filter_map(rank).collect()
    }

    /// The processes that were seen.
    pub fn numbers(&self) -> Vec<u32> {
        self.known.values().copied().collect()
    }

    /// Numbers of processes may be used again.
    pub fn ended(&mut self, pid: u32) {
        // What it was asked for may be older than what it has written at its end.
        self.read_map(pid);
        if let Some(process) = self.open.get_mut(&pid).and_then(Option::as_mut) {
            process.refresh();
        }
    }

    /// Forgets a process. Afterwards its code has no names.
    pub fn forget(&mut self, pid: u32) {
        self.open.remove(&pid);
        self.code.remove(&pid);
        self.maps.remove(&pid);
        self.ranks.remove(&pid);
        self.views.remove(&pid);
        self.objects.remove(&pid);
        self.programs.remove(&pid);
        self.seen.remove(&pid);
        self.changed.remove(&pid);
        self.recent.remove(&pid);
        self.news.remove(&pid);
        self.sites.remove(&pid);
        self.chains.forget(pid);
        self.calls.remove(&pid);
        self.pythons.forget(pid);
        self.pages.forget(pid);
        if let Some(place) = self.places.remove(&pid) {
            self.known.remove(&place);
        }
    }

    fn read_map(&mut self, pid: u32) {
        let text = |path: &Path| text_of_process(path, pid, MAX_NAMES);
        let [own, other] = map_paths(pid);
        if let Ok(text) = text(&own).or_else(|_| text(&other)) {
            self.add_names(pid, &text);
        }
    }

    /// Adds names of code that a process has compiled, as lines of `perf-PID.map`.
    pub(crate) fn add_names(&mut self, pid: u32, text: &str) {
        self.nameless.clear();
        self.maps.entry(pid).or_default().add(PerfMap::parse(text));
    }

    /// Whether names of the code are known that a process has compiled.
    pub(crate) fn has_names(&mut self, pid: u32) -> bool {
        if !self.maps.contains_key(&pid) {
            self.read_map(pid);
        }
        self.maps.contains_key(&pid)
    }

    /// Whether a process has loaded a program or library with such a name.
    pub(crate) fn has_loaded(&self, pid: u32, is_it: impl Fn(&str) -> bool) -> bool {
        self.code.get(&pid).is_some_and(|pieces| pieces.iter().any(|piece| is_it(&piece.module)))
    }

    /// The OpenMP loops of the programs that are not static, and that `numa run --loops adaptive` would change.
    pub(crate) fn open_loops(&self) -> Option<OpenLoops> {
        if self.code.values().flatten().any(|piece| piece.module.starts_with("libnumasched.")) {
            return None;
        }
        let LoopKinds { dynamic, guided, runtime } = self.files.loops();
        let of_runtime = self.loop_schedule.filter(|_| runtime);
        match of_runtime {
            Some(LoopSchedule::Fixed) => Some(OpenLoops::Fixed),
            Some(LoopSchedule::Guided) => Some(OpenLoops::Guided),
            None if guided => Some(OpenLoops::Guided),
            None => (dynamic || runtime).then_some(OpenLoops::Even),
        }
    }

    /// The file of an address that has no name, of those that were asked for: `Some(None)` is code that was compiled meanwhile.
    pub(crate) fn nameless(&self, place: u32, address: u64) -> Option<Option<&Path>> {
        self.nameless.get(&(place, address)).map(Option::as_deref)
    }
}

/// Blocks of this size are objects by their call chains too.
const LARGE: u64 = 1 << 20;

/// The paths at which a process may have its map: in its own root by its number there, as runtimes write it, and here.
pub(crate) fn map_paths(pid: u32) -> [PathBuf; 2] {
    let status = TaskDir::of(&SysRoot::host(), pid).status();
    let inner = status.ok().and_then(|status| status.inner_number()).unwrap_or(pid);
    let file = |number: u32| format!("tmp/perf-{number}.map");
    [root_of(pid).join(file(inner)), Path::new("/").join(file(pid))]
}

/// A source file with more bytes is not read.
const MAX_SOURCE: u64 = 16 << 20;

/// Adds code that is not noted yet.
fn note_code(
    code: &mut Vec<CodePiece>,
    pid: u32,
    process: Option<&ObservedProcess>,
    files: &mut ModuleFiles,
) {
    let root = root_of(pid);
    let linked = linked_program(&SysRoot::host(), pid, &root);
    let name = |mapping: &ProcessMapping| match &linked {
        Some((program, name)) if *mapping.name == **program => name.clone(),
        _ => module(mapping),
    };
    for mapping in
        process.into_iter().flat_map(ObservedProcess::mappings).filter(|mapping| mapping.executable)
    {
        let piece = CodePiece {
            addresses: mapping.range.clone(),
            offset: mapping.offset,
            path: root.join(mapping.name.trim_start_matches('/')),
            module: name(mapping),
            has_file: mapping.file != ((0, 0), 0) && !mapping.is_generated_code(),
        };
        if piece.has_file {
            files.note(mapping.file, &piece.path);
        }
        code.retain(|known| known.addresses != piece.addresses);
        code.push(piece);
    }
}

/// The folder in which the files of a process are. If the process has a root of its own, they are out of reach when it has
/// ended.
fn root_of(pid: u32) -> PathBuf {
    TaskDir::of(&SysRoot::host(), pid).other_root().unwrap_or_else(|| PathBuf::from("/"))
}

/// Tells the objects of a process what it has mapped.
fn update(objects: &mut ProcessObjects, process: &ObservedProcess) {
    if process.is_go() {
        objects.note_go();
    }
    objects.update(process.mappings(), process.refreshed());
}

/// The last part of a path; what the kernel calls memory that has none.
fn module(mapping: &ProcessMapping) -> String {
    match mapping.name.rsplit('/').next() {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => "compiled while running".to_owned(),
    }
}

impl ObservedProcesses for Processes {
    fn place(&mut self, process: u32) -> u32 {
        *self.places.entry(process).or_insert_with(|| {
            let place = self.next_place;
            self.next_place += 1;
            self.known.insert(place, process);
            place
        })
    }

    fn space(&mut self, sample: &Sample) -> &dyn AddressSpace {
        self.know(sample.process, sample.registers.ip);
        match self.open.get(&sample.process) {
            Some(Some(process)) => process,
            _ => &self.nothing,
        }
    }

    fn changed_code(&mut self, process: u32) -> Vec<Range<u64>> {
        self.changed.remove(&process).unwrap_or_default()
    }

    fn object(&mut self, sample: &Sample, address: u64) -> Option<FoundObject> {
        let pid = sample.process;
        self.know(pid, address);
        self.begin_objects(pid);
        let process = self.open.get_mut(&pid)?.as_mut()?;
        let kind = process.kind(address, &sample.registers).unwrap_or(MemoryKind::Anonymous);
        let objects = self.objects.get_mut(&pid)?;
        update(objects, process);
        if !objects.knows(sample.thread) {
            let pointer = sample.registers.stack_pointer();
            let base = sample.registers.thread_base;
            let base = base.or_else(|| process.thread_base(sample.thread, pointer));
            objects.note_thread(sample, base);
        }
        let found = objects.find(address, sample.time, &mut self.variables)?;
        let is_stack = matches!(objects.row(found)?.origin, ObjectOrigin::Stack { .. });
        let (id, found_as) = match kind == MemoryKind::ThreadLocal && is_stack {
            true => (objects.other_thread_local()?, FoundAs::Object),
            false => objects.block(found, address, self.sites.get(&pid).copied(), process),
        };
        Some(FoundObject { id, found_as, kind })
    }

    fn row(&self, process: u32, object: ObjectId) -> Option<&ObjectRow> {
        self.objects.get(&process)?.row(object)
    }

    fn thread_base(&mut self, sample: &Sample) -> Option<u64> {
        self.process(sample.process)?.thread_base(sample.thread, sample.registers.stack_pointer())
    }

    fn nodes(&mut self, process: u32, pages: &[u64]) -> Vec<Option<u32>> {
        self.pages.ask(process, pages.iter().copied(), clock::monotonic());
        let node = |page: &u64| match self.pages.place(process, *page) {
            PagePlace::Node(node) => Some(node),
            PagePlace::Among(_) | PagePlace::Absent | PagePlace::Unknown => None,
        };
        pages.iter().map(node).collect()
    }

    fn object_at(&mut self, pid: u32, address: u64, time: u64) -> Option<ObjectId> {
        self.know(pid, address);
        self.begin_objects(pid);
        let process = self.open.get(&pid)?.as_ref()?;
        let objects = self.objects.get_mut(&pid)?;
        update(objects, process);
        let found = objects.find(address, time, &mut self.variables)?;
        Some(objects.block(found, address, self.sites.get(&pid).copied(), process).0)
    }

    fn call_chain(&mut self, pid: u32, registers: &UserRegisters, stack: &StackPiece) -> Arc<[u64]> {
        self.know(pid, registers.ip);
        match self.open.get(&pid) {
            Some(Some(process)) => self.chains.of(process, registers, stack),
            _ => [registers.ip].into(),
        }
    }

    fn identity(&mut self, process: u32, object: ObjectId) -> Option<ObjectIdentity> {
        let Self { objects, programs, .. } = self;
        let of = || StartedProgram::of(&SysRoot::host(), process);
        let program = || programs.entry(process).or_insert_with(of).clone();
        objects.get(&process)?.identity(object, program)
    }

    fn object_name(&mut self, process: u32, object: ObjectId) -> Option<String> {
        let objects = self.objects.get(&process)?;
        let (mut origin, mut blocks) = (objects.row(object)?.origin.clone(), String::new());
        if let ObjectOrigin::SmallBlocks { site } = origin
            && let Some(known) = objects.blocks_of(site)
        {
            blocks = format!("{}, ", known.words());
            origin = ObjectOrigin::Allocated { by: known.by, site, callers: None };
        }
        let differing = objects.differing_calls(&origin);
        let script = objects.script(&origin).and_then(|script| self.script_name(script)?.in_script());
        let place = self.place(process);
        let name = blocks + &origin.named(|instruction| CodeNames::name(self, place, instruction));
        let name = script.map_or_else(|| name.clone(), |script| format!("{script}, {name}"));
        Some(match differing {
            Some(calls) => format!("{name}, for {}", self.caller_name(place, &calls)),
            None => name,
        })
    }

    fn mapping(&mut self, process: u32, address: u64) -> Option<&ProcessMapping> {
        self.know(process, address);
        self.open.get(&process)?.as_ref()?.mapping(address)
    }

    fn node_of_cpu(&self, cpu: u32) -> Option<u32> {
        self.node_of_cpu.get(&cpu).copied()
    }

    fn has_ended(&self, process: u32) -> bool {
        self.open.get(&process).is_some_and(|process| process.as_ref().is_none_or(ObservedProcess::has_ended))
    }
}

impl CodeNames for Processes {
    fn name(&mut self, process: u32, instruction: u64) -> CodeName {
        if let Some(name) = self.pythons.name(instruction) {
            return name.clone();
        }
        let unknown = |module: &str| CodeName { module: module.to_owned(), ..CodeName::default() };
        let Some(&pid) = self.known.get(&process) else { return unknown("unknown") };
        let pieces = self.code.get(&pid).map_or(&[][..], Vec::as_slice);
        // Of several pieces at one address the last is the newest.
        let Some(piece) = pieces.iter().rev().find(|piece| piece.addresses.contains(&instruction)).cloned()
        else {
            return unknown("unknown");
        };
        if piece.has_file {
            let offset = instruction - piece.addresses.start + piece.offset;
            let name = self.symbols.name(&piece.path, &piece.module, offset);
            if name.function.is_none() {
                self.nameless.insert((process, instruction), Some(piece.path));
            }
            return name;
        }
        let known = self.has_names(pid);
        match self.maps.get(&pid).filter(|_| known).and_then(|map| map.function(instruction)) {
            Some(function) => CodeName { function: Some(function.to_owned()), ..unknown(&piece.module) },
            None => {
                self.nameless.insert((process, instruction), None);
                unknown(&piece.module)
            }
        }
    }
}
