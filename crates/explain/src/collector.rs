//! From samples to observations: which operand, of which mapping, on which node.

mod blocks;
mod decoders;
mod listed;
mod observed;
mod points;
mod touched;

pub use self::observed::{FoundAs, FoundObject, ObservedProcesses};
pub use self::points::UsePoint;

use self::blocks::BlockEvidence;
use self::decoders::Decoders;
use self::listed::ObjectList;
use self::points::AheadPoints;
use crate::caches::CacheSizes;
use crate::call_tree::CallTree;
use crate::file_use::FileUses;
use crate::first_touch::{FirstTouches, TouchEvidence};
use crate::identity::{self, FileId};
use crate::memory_use::MemoryUses;
use crate::objects::ObjectId;
use crate::observation::{LINE, MemoryPart, Observation, ObservedAccess, PAGE, SharedLine, Waited};
use crate::report::{SampledObject, SampledThread};
use crate::traffic::{LineAhead, TrafficCounter, TrafficUser};
use crate::walk::MemoryWalk;
use numakit_sampling::operand::sampled::{self, SampledMemory};
use numakit_sampling::operand::{AccessKind, Decoder, Landing, MemoryAccess, Operand, Reach, RecoveryRule};
use numakit_sampling::process::MemoryKind;
use numakit_sampling::{MeasuredAccess, Sample};
use std::collections::{BTreeMap, HashMap};

/// Maximum number of observations in memory. When there are more, every second one is dropped, and the others count twice.
const MAX_OBSERVATIONS: usize = 2 << 20;

/// Files of shared memory that have numbers, at most. Afterwards they have new ones.
const MAX_SHARED: usize = 1 << 16;

/// For one in this many samples, the collector looks where the instruction goes next.
const LOOK_EACH: u32 = 4;

/// Observations and lines of one process whose pages have no node yet.
#[derive(Debug, Default)]
struct Waiting {
    /// The number of each page, and the place of its observation in the list.
    observations: Vec<(u64, usize)>,
    samples: Vec<LinesAhead>,
}

/// What the collector keeps of a thread.
#[derive(Debug)]
struct ThreadState {
    place: u32,
    /// The number of its samples so far, including those that were not looked at.
    taken: u64,
}

/// The lines that a thread is about to use.
#[derive(Debug)]
struct LinesAhead {
    user: TrafficUser,
    time: u64,
    lines: Vec<LineAhead>,
}

/// Gathers observations.
#[derive(Debug)]
pub struct Collector {
    landing: Landing,
    limit: usize,
    start: Option<u64>,
    decoders: Decoders,
    threads: HashMap<(u32, u32), ThreadState>,
    thread_count: u32,
    /// The threads, in the order of their first samples.
    pub sampled_threads: Vec<SampledThread>,
    objects: ObjectList,
    /// The numbers of the files of shared memory, and the next one.
    shared: (HashMap<FileId, u32>, u32),
    blocks: BlockEvidence,
    /// The observations so far. Nodes are missing until [`Self::locate`].
    pub observations: Vec<Observation>,
    waiting: BTreeMap<u32, Waiting>,
    traffic: TrafficCounter,
    ahead: AheadPoints,
    /// One in this many samples is kept, so that memory is bounded.
    every: u64,
    /// Of the samples that `every` keeps, one in this many is looked at, so that time is bounded.
    pace: u64,
    /// The number of samples so far that counted page faults.
    faulting: u64,
    /// Whether the collector lists threads and objects, which a report names and series do not.
    lists: bool,
    /// How instructions walk through each object, by the object's place.
    pub walks: HashMap<u32, MemoryWalk>,
    until_look: u32,
    /// Who touched the objects first.
    pub touches: FirstTouches,
    /// Who touched the objects first by the faults that samples count, for machines where page faults themselves are not
    /// seen.
    pub sampled_touches: FirstTouches,
    /// The call chains of observations and first touches.
    pub calls: CallTree,
    /// Samples that were dropped to bound memory or time.
    pub thinned: u64,
    /// The use of files. If there is one, the collector counts samples for it and keeps nothing else.
    pub files: Option<FileUses>,
    /// The use of all memory, in the same way.
    pub uses: Option<MemoryUses>,
}

impl Collector {
    /// Makes a collector for a method whose samples land there.
    pub fn new(landing: Landing) -> Self {
        Self::with_limit(landing, MAX_OBSERVATIONS)
    }

    /// Makes a collector that keeps at most this many observations in memory.
    pub fn with_limit(landing: Landing, limit: usize) -> Self {
        Self {
            landing,
            limit,
            start: None,
            decoders: Decoders::default(),
            threads: HashMap::new(),
            thread_count: 0,
            sampled_threads: Vec::new(),
            objects: ObjectList::default(),
            shared: (HashMap::new(), 0),
            blocks: BlockEvidence::default(),
            observations: Vec::new(),
            waiting: BTreeMap::new(),
            traffic: TrafficCounter::default(),
            ahead: AheadPoints::default(),
            every: 1,
            pace: 1,
            faulting: 0,
            lists: true,
            walks: HashMap::new(),
            until_look: 0,
            touches: FirstTouches::new(TouchEvidence::PageFaults),
            sampled_touches: FirstTouches::new(TouchEvidence::SampledFaults),
            calls: CallTree::default(),
            thinned: 0,
            files: None,
            uses: None,
        }
    }

    /// The time of the first sample, in ns, from which the times of observations count.
    pub fn first_time(&self) -> Option<u64> {
        self.start
    }

    /// From now on looks at only one in this many samples; that sample then represents all of them.
    pub fn set_pace(&mut self, pace: u64) {
        self.pace = pace.max(1);
    }

    /// Adds a sample, unless it is one of those that are dropped to bound memory or time.
    pub fn take(&mut self, sample: &Sample, processes: &mut dyn ObservedProcesses) {
        let each = self.every * self.pace;
        let (thread, is_due) = self.thread(sample, each);
        if !is_due {
            self.thinned += 1;
            return;
        }
        let start = *self.start.get_or_insert(sample.time);
        let time = sample.time.saturating_sub(start);
        let process = processes.place(sample.process);
        let cpu_node = sample.cpu.and_then(|cpu| processes.node_of_cpu(cpu));
        let user = TrafficUser { process, thread, cpu_node };
        if self.files.is_some() {
            return self.take_for_files(sample, user, processes);
        }
        if self.uses.is_some() {
            return self.take_for_uses(sample, user, processes);
        }
        if self.landing == Landing::BlockStart && !processes.has_ended(sample.process) {
            self.look_ahead(sample, user, time, processes);
        }
        let (instruction, waited) = self.waited(sample, processes);
        let chain = self.chain(sample.process, &sample.registers, &sample.stack, processes);
        let weight = sample.weight * each;
        if let Waited::Memory(access) = &waited {
            let waiting = self.waiting.entry(sample.process).or_default();
            waiting.observations.push((access.address / PAGE, self.observations.len()));
        }
        let observation = Observation { thread, process, time, weight, cpu_node, instruction, waited, chain };
        self.blocks.add(&observation, &self.calls);
        self.observations.push(observation);
        if self.observations.len() >= self.limit {
            self.thin(processes);
        }
    }

    /// Notes the lines of a sample for the use of files.
    fn take_for_files(&mut self, sample: &Sample, user: TrafficUser, processes: &mut dyn ObservedProcesses) {
        let lines = self.lines_used(sample, processes);
        if let (true, Some(files)) = (lines.is_empty(), &mut self.files) {
            files.others += 1;
        }
        let lines = lines.into_iter().map(|line| LineAhead { line, object: 0, home: None }).collect();
        let waiting = self.waiting.entry(sample.process).or_default();
        waiting.samples.push(LinesAhead { user, time: 0, lines });
    }

    /// Notes the lines of a sample, with their objects.
    fn take_for_uses(&mut self, sample: &Sample, user: TrafficUser, processes: &mut dyn ObservedProcesses) {
        let lines = self.lines_used(sample, processes);
        let lines = self.with_objects(&lines, sample, processes);
        let base = sample.registers.thread_base.or_else(|| processes.thread_base(sample));
        self.uses.iter_mut().for_each(|uses| uses.sampled(user.thread, sample, base));
        let waiting = self.waiting.entry(sample.process).or_default();
        waiting.samples.push(LinesAhead { user, time: 0, lines });
    }

    /// The line that a thread waits for. Where samples do not name that line, all lines that the thread is about to use:
    /// wherever a sample lands, its registers are true.
    fn lines_used(&mut self, sample: &Sample, processes: &mut dyn ObservedProcesses) -> Vec<u64> {
        let landing = self.landing;
        match (sample.measured, landing) {
            (Some(measured), _) => vec![measured.address / LINE],
            (None, Landing::BlockStart | Landing::Other) => self.lines_ahead(sample, processes),
            (None, Landing::Behind | Landing::OneFurther) => {
                let decoder = self.decoder(sample, processes);
                let space = SampledMemory { now: processes.space(sample), stack: &sample.stack };
                match decoder.recover(&sampled::registers(&sample.registers), &space, landing) {
                    Operand::Memory(found) => vec![found.address / LINE],
                    Operand::Computing
                    | Operand::Object { .. }
                    | Operand::ThreadLocal { .. }
                    | Operand::Unknown { .. } => Vec::new(),
                }
            }
        }
    }

    /// Asks for the nodes of the pages of new observations. Call it every few milliseconds, before pages move or
    /// processes end.
    pub fn locate(&mut self, processes: &mut dyn ObservedProcesses) {
        for (process, waiting) in std::mem::take(&mut self.waiting) {
            let of_lines =
                waiting.samples.iter().flat_map(|sample| &sample.lines).map(|ahead| ahead.line * LINE / PAGE);
            let mut pages: Vec<u64> =
                waiting.observations.iter().map(|(page, _)| *page).chain(of_lines).collect();
            pages.sort_unstable();
            pages.dedup();
            pages.iter_mut().for_each(|page| *page *= PAGE);
            let nodes = processes.nodes(process, &pages);
            let known: HashMap<u64, u32> =
                pages.iter().zip(nodes).filter_map(|(page, node)| Some((page / PAGE, node?))).collect();
            if let Some(files) = &mut self.files {
                for LinesAhead { user, lines, .. } in waiting.samples {
                    files.add(process, user.cpu_node, &lines, &known, processes);
                }
                continue;
            }
            if let Some(uses) = &mut self.uses {
                for LinesAhead { user, lines, .. } in waiting.samples {
                    uses.add((user.thread, user.cpu_node), &lines, &known);
                }
                continue;
            }
            for (page, at) in waiting.observations {
                if let Some(Waited::Memory(access)) = self.observations.get_mut(at).map(|o| &mut o.waited) {
                    access.home = known.get(&page).copied();
                }
            }
            for LinesAhead { user, time, mut lines } in waiting.samples {
                lines
                    .iter_mut()
                    .for_each(|ahead| ahead.home = known.get(&(ahead.line * LINE / PAGE)).copied());
                self.traffic.add(user, time, &lines);
            }
        }
    }

    /// The traffic so far, if each thread has these caches; `None` where samples name the instruction that waited.
    pub fn traffic(&self, caches: CacheSizes) -> Option<crate::traffic::Traffic> {
        (self.landing == Landing::BlockStart).then(|| self.traffic.traffic(caches))
    }

    /// Forgets the code and the objects of a process that has ended or executes a different program.
    pub fn forget(&mut self, process: u32, processes: &mut dyn ObservedProcesses) {
        self.decoders.forget(process);
        self.objects.forget(process, processes);
    }

    /// Forgets a thread that has ended, for collectors whose threads no report names. If the thread has its process's
    /// number, the process is forgotten too.
    pub fn forget_thread(&mut self, process: u32, thread: u32, processes: &mut dyn ObservedProcesses) {
        self.threads.remove(&(process, thread));
        if process == thread {
            self.threads.retain(|(of, _), _| *of != process);
            self.forget(process, processes);
        }
    }

    /// How many samples each thread had that is not forgotten, by process and thread; also those that were not looked at.
    pub fn taken(&self) -> impl Iterator<Item = ((u32, u32), u64)> {
        self.threads.iter().map(|(thread, state)| (*thread, state.taken))
    }

    /// The number of threads that have samples and are not forgotten.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Makes the collector count samples of these files, and keep no sample.
    pub fn for_files(self, files: FileUses) -> Self {
        Self { files: Some(files), ..self.without_lists() }
    }

    /// Makes the collector count samples of all memory, and keep no sample.
    pub fn for_uses(self) -> Self {
        Self { uses: Some(MemoryUses::default()), ..self }
    }

    /// Makes the collector list no threads and no objects, as series need none: its memory is then bounded by what runs.
    pub fn without_lists(self) -> Self {
        Self { lists: false, objects: ObjectList::anonymous(), ..self }
    }

    /// Makes the collector keep at most about this many bytes of the code of all processes.
    pub fn keeping_code(self, bytes: usize) -> Self {
        Self { decoders: Decoders::bounded(bytes), ..self }
    }

    /// The decoder for the process of a sample. It has forgotten the code that the process has replaced since the last
    /// sample.
    fn decoder(&mut self, sample: &Sample, processes: &mut dyn ObservedProcesses) -> &mut Decoder {
        let decoder = self.decoders.of(sample.process);
        // If no known mapping has the address of the sample, this reads the mappings again.
        processes.space(sample);
        processes.changed_code(sample.process).into_iter().for_each(|range| decoder.forget(range));
        decoder
    }

    /// The place of a sample's thread, and whether this is the one sample of `each` that is looked at. Each thread counts
    /// its own samples and begins at a different number: samples of several threads come in turn, so that one count for all
    /// would always meet the same threads.
    fn thread(&mut self, sample: &Sample, each: u64) -> (u32, bool) {
        let Self { threads, thread_count, sampled_threads, lists, .. } = self;
        let thread = threads.entry((sample.process, sample.thread)).or_insert_with(|| {
            if *lists {
                let (pid, tid) = (sample.process, sample.thread);
                sampled_threads.push(SampledThread { pid, tid, name: String::new() });
            }
            *thread_count += 1;
            ThreadState { place: *thread_count - 1, taken: 0 }
        });
        thread.taken += 1;
        (thread.place, (thread.taken + u64::from(thread.place)).is_multiple_of(each))
    }

    /// The instruction of a sample, and what it waited for.
    fn waited(&mut self, sample: &Sample, processes: &mut dyn ObservedProcesses) -> (u64, Waited) {
        if let Some(MeasuredAccess { instruction, address, .. }) = sample.measured {
            let access = self.access(sample, processes, address, 0, AccessKind::Load, RecoveryRule::Direct);
            return (instruction, Waited::Memory(access));
        }
        let landing = self.landing;
        let decoder = self.decoder(sample, processes);
        let operand = {
            let space = SampledMemory { now: processes.space(sample), stack: &sample.stack };
            decoder.recover(&sampled::registers(&sample.registers), &space, landing)
        };
        match operand {
            Operand::Computing => (sample.registers.ip, Waited::Computing),
            Operand::Memory(found) => {
                let access =
                    self.access(sample, processes, found.address, found.size, found.kind, found.rule);
                self.look_at_walk(sample, &found, access.object, processes);
                (found.instruction, Waited::Memory(access))
            }
            Operand::Object { instruction, base, kind } => {
                let access = self.access(sample, processes, base, 0, kind, RecoveryRule::Object);
                (instruction, Waited::Memory(access))
            }
            Operand::ThreadLocal { instruction, offset, kind } => {
                let waited = processes.thread_base(sample).map(|base| {
                    let address = base.wrapping_add(offset);
                    self.access(sample, processes, address, 0, kind, RecoveryRule::ThreadLocal)
                });
                (instruction, waited.map_or(Waited::Unknown, Waited::Memory))
            }
            Operand::Unknown { instruction, .. } => (instruction, Waited::Unknown),
        }
    }

    /// Looks, for some of the samples, where the instruction goes next.
    fn look_at_walk(
        &mut self,
        sample: &Sample,
        found: &MemoryAccess,
        object: u32,
        processes: &mut dyn ObservedProcesses,
    ) {
        self.until_look = self.until_look.checked_sub(1).unwrap_or(LOOK_EACH - 1);
        if !self.lists || self.until_look > 0 {
            return;
        }
        let process = processes.place(sample.process);
        let space = SampledMemory { now: processes.space(sample), stack: &sample.stack };
        let decoder = self.decoders.of(sample.process);
        let reach = Reach::to_next(found.instruction);
        let ahead = decoder.ahead(&sampled::registers(&sample.registers), &space, reach);
        let walk = match self.blocks.walk(process, object, found.instruction) {
            Some(walk) => walk,
            None => self.walks.entry(object).or_default(),
        };
        walk.look(found.instruction, found.address, found.rule, ahead.accesses);
    }

    fn access(
        &mut self,
        sample: &Sample,
        processes: &mut dyn ObservedProcesses,
        address: u64,
        size: u32,
        kind: AccessKind,
        rule: RecoveryRule,
    ) -> ObservedAccess {
        let found = processes.object(sample, address);
        let part = match found.map_or(MemoryKind::Anonymous, |found| found.kind) {
            _ if rule == RecoveryRule::ThreadLocal => MemoryPart::Stack,
            MemoryKind::Stack | MemoryKind::ThreadLocal => MemoryPart::Stack,
            MemoryKind::Heap | MemoryKind::Anonymous => MemoryPart::Heap,
            MemoryKind::Code | MemoryKind::File | MemoryKind::Kernel => MemoryPart::File,
            MemoryKind::Shared => MemoryPart::Shared,
        };
        let object = self.objects.place(sample.process, found.map(|found| found.id), processes);
        if self.lists {
            found.into_iter().for_each(|found| self.blocks.note(object, found.found_as));
            if part == MemoryPart::Shared {
                self.objects.share(object);
            }
        }
        let is_shared = part == MemoryPart::Shared;
        let shared = if is_shared { self.shared_line(sample.process, address, processes) } else { None };
        ObservedAccess { address, size, kind, rule, object, home: None, part, shared }
    }

    /// The line of shared memory that a process has at an address.
    fn shared_line(
        &mut self,
        process: u32,
        address: u64,
        processes: &mut dyn ObservedProcesses,
    ) -> Option<SharedLine> {
        let (file, offset) = identity::shared_offset(processes.mapping(process, address)?, address)?;
        let (known, next) = &mut self.shared;
        if known.len() >= MAX_SHARED && !known.contains_key(&file) {
            known.clear();
        }
        let file = *known.entry(file).or_insert_with(|| {
            *next = next.wrapping_add(1);
            *next
        });
        Some(SharedLine { file, line: offset / LINE })
    }

    /// The objects, in the order of their first samples.
    pub fn sampled_objects(&self, processes: &mut dyn ObservedProcesses) -> Vec<SampledObject> {
        self.objects.named(processes)
    }

    /// The sizes in bytes of the objects that have one, by their places.
    pub fn sizes(&self, processes: &dyn ObservedProcesses) -> HashMap<u32, u64> {
        self.objects.sizes(processes)
    }

    /// The processes and their objects that are one at a place of the list, without processes that have executed a different
    /// program since.
    pub fn listed(&self, place: u32) -> impl Iterator<Item = (u32, ObjectId)> {
        self.objects.at(place)
    }

    /// Adds all operands that a thread is about to use.
    fn look_ahead(
        &mut self,
        sample: &Sample,
        user: TrafficUser,
        time: u64,
        processes: &mut dyn ObservedProcesses,
    ) {
        let lines = self.lines_ahead(sample, processes);
        let lines = self.with_objects(&lines, sample, processes);
        if self.lists {
            self.ahead.add((user.process, user.thread), sample.time, &lines);
        }
        let ahead = LinesAhead { user, time, lines };
        self.waiting.entry(sample.process).or_default().samples.push(ahead);
    }

    /// The lines with the places of their objects.
    fn with_objects(
        &mut self,
        lines: &[u64],
        sample: &Sample,
        processes: &mut dyn ObservedProcesses,
    ) -> Vec<LineAhead> {
        // Most lines of a page belong to one object, so that it is not searched for again for each of them.
        let mut last = (u64::MAX, 0);
        let ahead = |&line: &u64| {
            if last.0 != line * LINE / PAGE {
                let found = processes.object(sample, line * LINE).map(|found| found.id);
                last = (line * LINE / PAGE, self.objects.place(sample.process, found, processes));
            }
            LineAhead { line, object: last.1, home: None }
        };
        lines.iter().map(ahead).collect()
    }

    /// The lines that a thread is about to use, in order.
    fn lines_ahead(&mut self, sample: &Sample, processes: &mut dyn ObservedProcesses) -> Vec<u64> {
        let mut registers = sample.registers;
        registers.thread_base = registers.thread_base.or_else(|| processes.thread_base(sample));
        let decoder = self.decoder(sample, processes);
        let space = SampledMemory { now: processes.space(sample), stack: &sample.stack };
        let ahead = decoder.ahead(&sampled::registers(&registers), &space, Reach::NEAR);
        let mut lines: Vec<u64> = ahead.accesses.iter().map(|access| access.address / LINE).collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    /// Drops every second observation, and lets the collector drop every second sample from now on.
    fn thin(&mut self, processes: &mut dyn ObservedProcesses) {
        self.locate(processes);
        let before = self.observations.len();
        let mut at = 0u64;
        self.observations.retain_mut(|observation| {
            at += 1;
            observation.weight *= 2;
            at.is_multiple_of(2)
        });
        self.thinned += (before - self.observations.len()) as u64;
        self.every *= 2;
    }
}

#[cfg(test)]
mod tests;
