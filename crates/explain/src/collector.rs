//! From samples to observations: which operand, of which mapping, on which node.

use crate::caches::CacheSizes;
use crate::observation::{LINE, MemoryPart, Observation, ObservedAccess, PAGE, Waited};
use crate::report::{SampledObject, SampledThread};
use crate::traffic::{TrafficCounter, TrafficUser};
use numakit_operand::{AccessKind, AddressSpace, Decoder, Landing, Operand, RecoveryRule};
use numakit_sampling::operands::{self, SampledMemory};
use numakit_sampling::process::MemoryKind;
use numakit_sampling::{MeasuredAccess, Sample};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Observations that are kept; beyond, every second one is dropped, and the others count twice.
const MAX_OBSERVATIONS: usize = 2 << 20;

/// A mapping of an observed process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedMapping {
    /// Its first address.
    pub start: u64,
    /// Its size in bytes.
    pub size: u64,
    /// What it is, for people.
    pub name: String,
    /// What it is, for series.
    pub kind: MemoryKind,
}

/// The observed processes, as far as they can be read now.
pub trait ObservedProcesses {
    /// The memory of the process of a sample, as it is now.
    fn space(&mut self, sample: &Sample) -> &dyn AddressSpace;
    /// The ranges in which the code of a process became another one since the last call.
    fn changed_code(&mut self, process: u32) -> Vec<Range<u64>>;
    /// The mapping that contains an address.
    fn mapping(&mut self, process: u32, address: u64) -> Option<ObservedMapping>;
    /// Whether anonymous memory is the stack or the thread-local storage of the thread of a sample.
    fn part_of_thread(&self, sample: &Sample, address: u64) -> MemoryPart;
    /// Where a thread's block of thread-local storage is, if that can be found.
    fn thread_base(&mut self, sample: &Sample) -> Option<u64>;
    /// The nodes of pages; `None` for those that are not in memory or cannot be asked for.
    fn nodes(&mut self, process: u32, pages: &[u64]) -> Vec<Option<u32>>;
    /// The node of a CPU.
    fn node_of_cpu(&self, cpu: u32) -> Option<u32>;
    /// Whether a process has ended, so that its memory cannot be read any more.
    fn has_ended(&self, process: u32) -> bool;
}

/// What waits for the nodes of pages of a process.
#[derive(Debug, Default)]
struct Waiting {
    /// Pages, and places of observations.
    observations: Vec<(u64, usize)>,
    samples: Vec<LinesAhead>,
}

/// The lines that a thread is about to use.
#[derive(Debug)]
struct LinesAhead {
    user: TrafficUser,
    time: u64,
    lines: Vec<u64>,
}

/// Gathers observations.
#[derive(Debug)]
pub struct Collector {
    landing: Landing,
    limit: usize,
    start: Option<u64>,
    decoders: HashMap<u32, Decoder>,
    threads: HashMap<(u32, u32), u32>,
    /// The threads, in the order of their first samples.
    pub sampled_threads: Vec<SampledThread>,
    processes: HashMap<u32, u32>,
    objects: HashMap<(u32, u64), u32>,
    /// The mappings, in the order of their first samples.
    pub sampled_objects: Vec<SampledObject>,
    /// The observations so far. Nodes are missing until [`Self::locate`].
    pub observations: Vec<Observation>,
    waiting: BTreeMap<u32, Waiting>,
    traffic: TrafficCounter,
    /// One in this many samples is kept, to bound memory.
    every: u64,
    /// Of these, one in this many, to bound time.
    pace: u64,
    /// Samples of each thread.
    taken: Vec<u64>,
    /// Samples that were dropped to bound memory or time.
    pub thinned: u64,
}

impl Collector {
    /// For samples that land there.
    pub fn new(landing: Landing) -> Self {
        Self::with_limit(landing, MAX_OBSERVATIONS)
    }

    /// The same, with at most this many observations in memory.
    pub fn with_limit(landing: Landing, limit: usize) -> Self {
        Self {
            landing,
            limit,
            start: None,
            decoders: HashMap::new(),
            threads: HashMap::new(),
            sampled_threads: Vec::new(),
            processes: HashMap::new(),
            objects: HashMap::new(),
            sampled_objects: Vec::new(),
            observations: Vec::new(),
            waiting: BTreeMap::new(),
            traffic: TrafficCounter::default(),
            every: 1,
            pace: 1,
            taken: Vec::new(),
            thinned: 0,
        }
    }

    /// From now on looks at one in this many samples only, which then represents them all.
    pub fn set_pace(&mut self, pace: u64) {
        self.pace = pace.max(1);
    }

    /// Adds a sample.
    pub fn take(&mut self, sample: &Sample, processes: &mut dyn ObservedProcesses) {
        let thread = self.thread(sample);
        let each = self.every * self.pace;
        if !self.is_due(thread, each) {
            self.thinned += 1;
            return;
        }
        let start = *self.start.get_or_insert(sample.time);
        let time = sample.time.saturating_sub(start);
        let count = self.processes.len() as u32;
        let process = *self.processes.entry(sample.process).or_insert(count);
        let cpu_node = sample.cpu.and_then(|cpu| processes.node_of_cpu(cpu));
        if self.landing == Landing::BlockStart && !processes.has_ended(sample.process) {
            self.look_ahead(sample, TrafficUser { process, thread, cpu_node }, time, processes);
        }
        let (instruction, waited) = self.waited(sample, processes);
        let weight = sample.weight * each;
        if let Waited::Memory(access) = &waited {
            let waiting = self.waiting.entry(sample.process).or_default();
            waiting.observations.push((access.address / PAGE, self.observations.len()));
        }
        self.observations.push(Observation { thread, process, time, weight, cpu_node, instruction, waited });
        if self.observations.len() >= self.limit {
            self.thin(processes);
        }
    }

    /// Asks for the nodes of the pages of new observations. Call it every few milliseconds, before pages move or
    /// processes end.
    pub fn locate(&mut self, processes: &mut dyn ObservedProcesses) {
        for (process, waiting) in std::mem::take(&mut self.waiting) {
            let of_lines =
                waiting.samples.iter().flat_map(|sample| &sample.lines).map(|line| line * LINE / PAGE);
            let mut pages: Vec<u64> =
                waiting.observations.iter().map(|(page, _)| *page).chain(of_lines).collect();
            pages.sort_unstable();
            pages.dedup();
            pages.iter_mut().for_each(|page| *page *= PAGE);
            let nodes = processes.nodes(process, &pages);
            let known: HashMap<u64, u32> =
                pages.iter().zip(nodes).filter_map(|(page, node)| Some((page / PAGE, node?))).collect();
            for (page, at) in waiting.observations {
                if let Some(Waited::Memory(access)) = self.observations.get_mut(at).map(|o| &mut o.waited) {
                    access.home = known.get(&page).copied();
                }
            }
            for LinesAhead { user, time, lines } in waiting.samples {
                let home = |line: u64| (line, known.get(&(line * LINE / PAGE)).copied());
                let lines: Vec<_> = lines.into_iter().map(home).collect();
                self.traffic.add(user, time, &lines);
            }
        }
    }

    /// Whether this sample of a thread is one of `each` that are looked at. Each thread counts its own, since samples of
    /// several threads come in turn, and begins elsewhere.
    fn is_due(&mut self, thread: u32, each: u64) -> bool {
        let place = thread as usize;
        if self.taken.len() <= place {
            self.taken.resize(place + 1, 0);
        }
        let taken = &mut self.taken[place];
        *taken += 1;
        (*taken + u64::from(thread)).is_multiple_of(each)
    }

    /// The traffic so far, where each thread has these caches; of samples that name the instruction that waited there is none.
    pub fn traffic(&self, caches: CacheSizes) -> Option<crate::traffic::Traffic> {
        (self.landing == Landing::BlockStart).then(|| self.traffic.traffic(caches))
    }

    /// A process executes another program or has ended: its code and mappings are others from now on.
    pub fn forget(&mut self, process: u32) {
        self.decoders.remove(&process);
        self.objects.retain(|(of, _), _| *of != process);
    }

    /// The decoder of the process of a sample, without code that is another one by now.
    fn decoder(&mut self, sample: &Sample, processes: &mut dyn ObservedProcesses) -> &mut Decoder {
        let decoder = self.decoders.entry(sample.process).or_default();
        // Its mappings are read again if none has the address of the sample.
        processes.space(sample);
        processes.changed_code(sample.process).into_iter().for_each(|range| decoder.forget(range));
        decoder
    }

    fn thread(&mut self, sample: &Sample) -> u32 {
        let count = self.threads.len() as u32;
        let Self { threads, sampled_threads, .. } = self;
        *threads.entry((sample.process, sample.thread)).or_insert_with(|| {
            sampled_threads.push(SampledThread {
                pid: sample.process,
                tid: sample.thread,
                name: String::new(),
            });
            count
        })
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
            decoder.recover(&operands::registers(&sample.registers), &space, landing)
        };
        match operand {
            Operand::Computing => (sample.registers.ip, Waited::Computing),
            Operand::Memory(found) => {
                let access =
                    self.access(sample, processes, found.address, found.size, found.kind, found.rule);
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

    fn access(
        &mut self,
        sample: &Sample,
        processes: &mut dyn ObservedProcesses,
        address: u64,
        size: u32,
        kind: AccessKind,
        rule: RecoveryRule,
    ) -> ObservedAccess {
        let mapping = processes.mapping(sample.process, address);
        let part = match mapping.as_ref().map_or(MemoryKind::Anonymous, |mapping| mapping.kind) {
            _ if rule == RecoveryRule::ThreadLocal => MemoryPart::Stack,
            MemoryKind::Anonymous | MemoryKind::Stack | MemoryKind::ThreadLocal => {
                processes.part_of_thread(sample, address)
            }
            MemoryKind::Heap => MemoryPart::Heap,
            MemoryKind::Code | MemoryKind::File | MemoryKind::Kernel => MemoryPart::File,
            MemoryKind::Shared => MemoryPart::Shared,
        };
        let object = self.object(sample.process, mapping);
        ObservedAccess { address, size, kind, rule, object, home: None, part }
    }

    /// The place of the mapping in the list of objects. Addresses that are not mapped any more are an object together.
    fn object(&mut self, process: u32, mapping: Option<ObservedMapping>) -> u32 {
        let start = mapping.as_ref().map_or(0, |mapping| mapping.start);
        let count = self.sampled_objects.len() as u32;
        let Self { objects, sampled_objects, .. } = self;
        let place = *objects.entry((process, start)).or_insert_with(|| {
            let (size, name) = mapping
                .as_ref()
                .map_or((0, "no longer mapped".to_owned()), |mapping| (mapping.size, mapping.name.clone()));
            sampled_objects.push(SampledObject { pid: process, address: start, size, name });
            count
        });
        // Heaps and stacks grow.
        if let (Some(object), Some(mapping)) = (sampled_objects.get_mut(place as usize), mapping) {
            object.size = object.size.max(mapping.size);
        }
        place
    }

    /// Adds all operands that a thread is about to use.
    fn look_ahead(
        &mut self,
        sample: &Sample,
        user: TrafficUser,
        time: u64,
        processes: &mut dyn ObservedProcesses,
    ) {
        let mut registers = sample.registers;
        registers.thread_base = registers.thread_base.or_else(|| processes.thread_base(sample));
        let decoder = self.decoder(sample, processes);
        let space = SampledMemory { now: processes.space(sample), stack: &sample.stack };
        let ahead = decoder.ahead(&operands::registers(&registers), &space);
        let mut lines: Vec<u64> = ahead.accesses.iter().map(|access| access.address / LINE).collect();
        lines.sort_unstable();
        lines.dedup();
        let ahead = LinesAhead { user, time, lines };
        self.waiting.entry(sample.process).or_default().samples.push(ahead);
    }

    /// Drops every second observation, and from now on every second sample.
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
