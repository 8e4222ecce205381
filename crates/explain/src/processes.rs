//! The observed processes, as far as they can be read: memory, mappings, nodes of pages.

use crate::code::{CodeName, CodeNames};
use crate::collector::{ObservedMapping, ObservedProcesses};
use crate::observation::MemoryPart;
use crate::perf_map::PerfMap;
use crate::symbols::Symbols;
use numakit_model::topology::Topology;
use numakit_operand::AddressSpace;
use numakit_sampling::Sample;
use numakit_sampling::pages::{PageNodes, PagePlace};
use numakit_sampling::process::{MemoryKind, ObservedProcess, ProcessMapping};
use numakit_sys::proc::TaskDir;
use numakit_sys::{SysRoot, clock};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

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
    /// In the order of their first samples, for names of code.
    numbers: Vec<u32>,
    code: HashMap<u32, Vec<CodePiece>>,
    /// Ranges of code that became another one, until the decoder forgets them.
    changed: HashMap<u32, Vec<Range<u64>>>,
    pages: PageNodes,
    node_of_cpu: HashMap<u32, u32>,
    symbols: Symbols,
    maps: HashMap<u32, PerfMap>,
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
            numbers: Vec::new(),
            code: HashMap::new(),
            changed: HashMap::new(),
            pages: PageNodes::new(&SysRoot::host(), &with_memory),
            node_of_cpu: topology.nodes.iter().flat_map(cpus).collect(),
            symbols: Symbols::default(),
            maps: HashMap::new(),
            nothing: Nothing,
        }
    }

    /// Notes code of a process: at its first sample, and when it maps more.
    fn process(&mut self, pid: u32) -> Option<&mut ObservedProcess> {
        let Self { open, numbers, code, .. } = self;
        let process = open.entry(pid).or_insert_with(|| {
            if !numbers.contains(&pid) {
                numbers.push(pid);
            }
            let process = ObservedProcess::open(pid).ok();
            note_code(code.entry(pid).or_default(), pid, process.as_ref());
            process
        });
        process.as_mut()
    }

    /// A process mapped code.
    pub fn mapped(&mut self, pid: u32) {
        let changed = self.process(pid).map(ObservedProcess::refresh);
        self.changed.entry(pid).or_default().extend(changed.into_iter().flatten());
        note_code(self.code.entry(pid).or_default(), pid, self.open.get(&pid).and_then(Option::as_ref));
    }

    /// Reads the mappings of a process again if none has this address.
    fn know(&mut self, pid: u32, address: u64) {
        let Some(process) = self.process(pid) else { return };
        let changed = process.know(address);
        let is_code = process.mapping(address).is_some_and(|mapping| mapping.executable);
        if !changed.is_empty() {
            self.changed.entry(pid).or_default().extend(changed);
        }
        let code = self.code.entry(pid).or_default();
        if is_code && !code.iter().any(|piece| piece.addresses.contains(&address)) {
            note_code(code, pid, self.open.get(&pid).and_then(Option::as_ref));
        }
    }

    /// A process executed another program.
    pub fn executed(&mut self, pid: u32) {
        self.open.remove(&pid);
        self.code.remove(&pid);
        self.pages.forget(pid);
        self.process(pid);
    }

    /// The processes that were seen.
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// Numbers of processes may be used again.
    pub fn ended(&mut self, pid: u32) {
        if !self.maps.contains_key(&pid) {
            self.read_map(pid);
        }
        if let Some(process) = self.open.get_mut(&pid).and_then(Option::as_mut) {
            process.refresh();
        }
    }

    fn read_map(&mut self, pid: u32) {
        let file = format!("tmp/perf-{pid}.map");
        let inside = std::fs::read_to_string(root_of(pid).join(&file));
        if let Ok(text) = inside.or_else(|_| std::fs::read_to_string(Path::new("/").join(file))) {
            self.maps.insert(pid, PerfMap::parse(&text));
        }
    }
}

/// Adds code that is not noted yet.
fn note_code(code: &mut Vec<CodePiece>, pid: u32, process: Option<&ObservedProcess>) {
    let root = root_of(pid);
    for mapping in
        process.into_iter().flat_map(ObservedProcess::mappings).filter(|mapping| mapping.executable)
    {
        let piece = CodePiece {
            addresses: mapping.range.clone(),
            offset: mapping.offset,
            path: root.join(mapping.name.trim_start_matches('/')),
            module: module(mapping),
            has_file: mapping.file != ((0, 0), 0) && !mapping.is_generated_code(),
        };
        code.retain(|known| known.addresses != piece.addresses);
        code.push(piece);
    }
}

/// Where the files of a process are. Those of a process with another root are out of reach when it has ended.
fn root_of(pid: u32) -> PathBuf {
    let host = SysRoot::host();
    let inside = TaskDir::of(&host, pid).path("root");
    let is_other = host.link(&inside).is_ok_and(|root| root != "/");
    PathBuf::from(if is_other { inside } else { "/".to_owned() })
}

/// The last part of a path; what the kernel calls memory that has none.
fn module(mapping: &ProcessMapping) -> String {
    match mapping.name.rsplit('/').next() {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => "compiled while running".to_owned(),
    }
}

impl ObservedProcesses for Processes {
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

    fn mapping(&mut self, process: u32, address: u64) -> Option<ObservedMapping> {
        self.know(process, address);
        let mapping = self.process(process)?.mapping(address)?;
        let name = match (&*mapping.name, mapping.kind) {
            ("", MemoryKind::Code) => "code that was compiled while running".to_owned(),
            ("", _) => "anonymous memory".to_owned(),
            (name, _) => name.to_owned(),
        };
        let Range { start, end } = mapping.range;
        Some(ObservedMapping { start, size: end - start, name, kind: mapping.kind })
    }

    fn part_of_thread(&self, sample: &Sample, address: u64) -> MemoryPart {
        let process = self.open.get(&sample.process).and_then(Option::as_ref);
        match process.and_then(|process| process.kind(address, &sample.registers)) {
            Some(MemoryKind::Stack | MemoryKind::ThreadLocal) => MemoryPart::Stack,
            _ => MemoryPart::Heap,
        }
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

    fn node_of_cpu(&self, cpu: u32) -> Option<u32> {
        self.node_of_cpu.get(&cpu).copied()
    }

    fn has_ended(&self, process: u32) -> bool {
        self.open.get(&process).is_some_and(|process| process.as_ref().is_none_or(ObservedProcess::has_ended))
    }
}

impl CodeNames for Processes {
    fn name(&mut self, process: u32, instruction: u64) -> CodeName {
        let unknown = |module: &str| CodeName { module: module.to_owned(), ..CodeName::default() };
        let Some(&pid) = self.numbers.get(process as usize) else { return unknown("unknown") };
        let pieces = self.code.get(&pid).map_or(&[][..], Vec::as_slice);
        // Of several pieces at one address the last is the newest.
        let Some(piece) = pieces.iter().rev().find(|piece| piece.addresses.contains(&instruction)).cloned()
        else {
            return unknown("unknown");
        };
        if piece.has_file {
            let offset = instruction - piece.addresses.start + piece.offset;
            return self.symbols.name(&piece.path, &piece.module, offset);
        }
        if !self.maps.contains_key(&pid) {
            self.read_map(pid);
        }
        match self.maps.get(&pid).and_then(|map| map.function(instruction)) {
            Some(function) => CodeName { function: Some(function.to_owned()), ..unknown(&piece.module) },
            None => unknown(&piece.module),
        }
    }
}
