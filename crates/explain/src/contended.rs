//! Lines that several threads use at the same time and at least one of them changes, as `perf c2c` shows them where
//! there are counters.

use crate::fields::UsedField;
use crate::observation::{LINE, Observation, ObservedAccess, SharedLine, Waited};
use numakit_sampling::operand::AccessKind;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Two threads use a line at the same time if their samples of it are less than this time apart, in ns.
const WINDOW: u64 = 100_000_000;
/// Where few samples come, windows are as long as two samples of a thread are apart, up to this time.
const MAX_WINDOW: u64 = 1_000_000_000;
/// A line is contended if several threads use it in at least this many windows.
const MIN_WINDOWS: usize = 3;
/// Of windows that are longer than the shortest, threads that only hand a line over share fewer than one in this many.
const MIN_SHARED: usize = 4;
/// A thread counts with at least this many samples.
const MIN_SAMPLES: u64 = 3;
/// Lines with less of the memory time than this are not worth a word.
const MIN_SHARE: f64 = 0.01;

/// A line of memory, whichever processes use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LineKey {
    /// Of one process.
    Own {
        /// Place of the process in the list of processes.
        process: u32,
        /// The address, divided by the size of a line.
        line: u64,
    },
    /// Of memory that processes share, each at an address of its own.
    Shared(SharedLine),
}

impl LineKey {
    /// No line of any process.
    fn nowhere() -> Self {
        Self::Own { process: u32::MAX, line: u64::MAX }
    }

    /// The line of an access of a process; `None` if the accessed line is not known.
    pub fn of(process: u32, access: &ObservedAccess) -> Option<Self> {
        let line = access.line()?;
        Some(access.shared.map_or(Self::Own { process, line }, Self::Shared))
    }
}

/// What makes a line contended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// Each thread uses bytes that no other thread uses; only the line is shared.
    False,
    /// Threads use the same bytes.
    True,
    /// Threads use the same bytes, by atomic instructions.
    Lock,
}

/// How one thread uses a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LineUser {
    /// Place of the thread in the list of threads.
    pub thread: u32,
    /// Place of its process in the list of processes.
    pub process: u32,
    /// The address at which its process has the line.
    pub address: u64,
    /// The nodes of its CPUs.
    pub nodes: BTreeSet<u32>,
    /// Offsets in the line, with the number of samples.
    #[serde(deserialize_with = "offsets")]
    pub offsets: BTreeMap<u64, u64>,
    /// Samples that only read.
    pub loads: u64,
    /// Samples that wrote, including atomic ones.
    pub stores: u64,
    /// Samples of atomic instructions.
    pub atomics: u64,
    /// The fields or bytes of the object that the thread uses, where they are known.
    pub fields: Vec<UsedField>,
    #[serde(skip)]
    bytes: LineBytes,
    #[serde(skip)]
    parts: BTreeMap<u64, UsedPart>,
}

/// Bytes of a line, a bit for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct LineBytes {
    used: u64,
    /// Those of `used` that the thread wrote.
    written: u64,
    /// Those of `written` that it wrote by atomic instructions.
    atomic: u64,
}

impl LineBytes {
    fn add(&mut self, offset: u64, access: &ObservedAccess) {
        let end = (offset + u64::from(access.size.max(1))).min(LINE);
        let bytes = (offset..end).fold(0, |bytes, byte| bytes | 1 << byte);
        self.used |= bytes;
        if access.writes() {
            self.written |= bytes;
        }
        if access.kind == AccessKind::Atomic {
            self.atomic |= bytes;
        }
    }

    /// The bytes that both threads use and at least one of them writes. What both only read, such as the length of an array
    /// beside its elements, takes no line away from anybody.
    fn shared_with(self, other: Self) -> u64 {
        (self.written & other.used) | (other.written & self.used)
    }
}

/// What the samples at one offset of a line use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UsedPart {
    /// The object, by its place in the list.
    pub(crate) object: u32,
    /// Bytes of the largest access; 0 if they are not known.
    pub(crate) size: u64,
}

impl LineUser {
    /// A thread without samples.
    pub fn new(thread: u32, process: u32, address: u64) -> Self {
        let (nodes, offsets, bytes) = (BTreeSet::new(), BTreeMap::new(), LineBytes::default());
        let (fields, parts) = (Vec::new(), BTreeMap::new());
        Self {
            thread,
            process,
            address,
            nodes,
            offsets,
            loads: 0,
            stores: 0,
            atomics: 0,
            fields,
            bytes,
            parts,
        }
    }

    /// What the thread uses of the line, by the offset in the line.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u64, UsedPart)> {
        self.parts.iter().map(|(offset, part)| (*offset, *part))
    }

    fn samples(&self) -> u64 {
        self.loads + self.stores
    }

    fn add(&mut self, node: Option<u32>, access: &ObservedAccess) {
        let offset = access.address % LINE;
        self.nodes.extend(node);
        *self.offsets.entry(offset).or_default() += 1;
        self.bytes.add(offset, access);
        let part = self.parts.entry(offset).or_insert(UsedPart { object: access.object, size: 0 });
        *part = UsedPart { object: access.object, size: part.size.max(access.size.into()) };
        self.atomics += u64::from(access.kind == AccessKind::Atomic);
        match access.writes() {
            true => self.stores += 1,
            false => self.loads += 1,
        }
    }
}

/// Numbers that are names in JSON, which serde does not read as numbers in a structure that is flattened.
fn offsets<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<u64, u64>, D::Error> {
    let named = BTreeMap::<String, u64>::deserialize(from)?;
    named.into_iter().map(|(at, time)| Ok((at.parse().map_err(D::Error::custom)?, time))).collect()
}

/// A contended line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ContendedLine {
    /// Which one it is; nowhere in a result that was read from a file.
    #[serde(skip, default = "LineKey::nowhere")]
    pub key: LineKey,
    /// The process of the thread with most samples.
    pub process: u32,
    /// All processes that use it, by their places in the list of processes.
    pub processes: BTreeSet<u32>,
    /// The address of its first byte in `process`.
    pub address: u64,
    /// The mapping that contains it.
    pub object: u32,
    /// The node of its page.
    pub home: Option<u32>,
    /// What the threads share.
    pub sharing: Sharing,
    /// Whether CPUs of several nodes use it.
    pub across_nodes: bool,
    /// CPU time of the samples that hit it, in ns.
    pub weight: u64,
    /// The threads, the one with most samples first.
    pub users: Vec<LineUser>,
    /// The instructions, with the CPU time of their samples; that with most first.
    pub instructions: Vec<(u64, u64)>,
}

/// How many samples of a line there are for a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SampleRate {
    /// Those of an observation of one program: a hundred or more a second of each thread.
    Dense,
    /// Those of all programs of a machine, of which few are looked at. A line matters that matters to the programs that use it.
    Sparse,
}

#[derive(Debug, Default)]
struct Line {
    object: u32,
    home: Option<u32>,
    weight: u64,
    users: BTreeMap<u32, LineUser>,
    /// The time and the thread of each sample.
    samples: Vec<(u64, u32)>,
    instructions: BTreeMap<u64, u64>,
}

impl Line {
    fn add(&mut self, at: &Observation, access: &ObservedAccess) {
        self.object = access.object;
        self.home = access.home.or(self.home);
        self.weight += at.weight;
        *self.instructions.entry(at.instruction).or_default() += at.weight;
        self.samples.push((at.time, at.thread));
        let new = || LineUser::new(at.thread, at.process, access.address / LINE * LINE);
        self.users.entry(at.thread).or_insert_with(new).add(at.cpu_node, access);
    }

    /// Whether several threads use it at the same time, again and again.
    fn is_used_together(&self, rate: SampleRate) -> bool {
        let times = || self.samples.iter().map(|(time, _)| *time);
        let span = times().max().unwrap_or_default() - times().min().unwrap_or_default();
        // Two samples of each of its threads, on average.
        let apart = 2 * span * self.users.len() as u64 / self.samples.len().max(1) as u64;
        let window = match rate {
            SampleRate::Dense => WINDOW,
            SampleRate::Sparse => apart.clamp(WINDOW, MAX_WINDOW),
        };
        let mut windows: HashMap<u64, HashSet<u32>> = HashMap::new();
        for (time, thread) in &self.samples {
            windows.entry(time / window).or_default().insert(*thread);
        }
        let shared = windows.values().filter(|threads| threads.len() > 1).count();
        shared >= MIN_WINDOWS && (window == WINDOW || shared * MIN_SHARED >= windows.len())
    }

    /// The line with its users; `None` if threads do not contend for it.
    fn finish(mut self, key: LineKey, rate: SampleRate) -> Option<ContendedLine> {
        self.users.retain(|_, user| user.samples() >= MIN_SAMPLES);
        let writes = self.users.values().any(|user| user.stores > 0);
        if self.users.len() < 2 || !writes || !self.is_used_together(rate) {
            return None;
        }
        let mut users: Vec<LineUser> = self.users.into_values().collect();
        users.sort_by_key(|user| std::cmp::Reverse(user.samples()));
        let (process, address) = users.first().map(|user| (user.process, user.address))?;
        let nodes: BTreeSet<u32> = users.iter().flat_map(|user| &user.nodes).copied().collect();
        let mut instructions: Vec<(u64, u64)> = self.instructions.into_iter().collect();
        instructions.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
        Some(ContendedLine {
            key,
            process,
            processes: users.iter().map(|user| user.process).collect(),
            address,
            object: self.object,
            home: self.home,
            sharing: sharing(&users),
            across_nodes: nodes.len() > 1,
            weight: self.weight,
            users,
            instructions,
        })
    }
}

/// How threads share a line.
fn sharing(users: &[LineUser]) -> Sharing {
    let pairs =
        users.iter().enumerate().flat_map(|(at, one)| users[at + 1..].iter().map(move |other| (one, other)));
    let shared = pairs.fold(0, |shared, (one, other)| shared | one.bytes.shared_with(other.bytes));
    let atomic = users.iter().fold(0, |atomic, user| atomic | user.bytes.atomic);
    match shared {
        0 => Sharing::False,
        shared if shared & atomic != 0 => Sharing::Lock,
        _ => Sharing::True,
    }
}

/// The contended lines, that with most time first.
pub fn find(observations: &[Observation], rate: SampleRate) -> Vec<ContendedLine> {
    // Most lines have samples of one thread only, and cannot be contended: only lines of several threads are looked at in
    // detail.
    let mut first: HashMap<LineKey, Option<u32>> = HashMap::new();
    for (at, _, key) in lines(observations) {
        let thread = first.entry(key).or_insert(Some(at.thread));
        if *thread != Some(at.thread) {
            *thread = None;
        }
    }
    let mut shared: HashMap<LineKey, Line> = HashMap::new();
    for (at, access, key) in lines(observations).filter(|(_, _, key)| first.get(key) == Some(&None)) {
        shared.entry(key).or_default().add(at, access);
    }
    let mut found: Vec<_> = shared.into_iter().filter_map(|(key, line)| line.finish(key, rate)).collect();
    found.sort_by_key(|line| (std::cmp::Reverse(line.weight), line.process, line.address));
    found
}

/// The contended lines for which threads wait so long that they matter.
pub fn costly(observations: &[Observation], rate: SampleRate) -> Vec<ContendedLine> {
    let mut memory: BTreeMap<u32, u64> = BTreeMap::new();
    for at in observations.iter().filter(|at| at.waited != Waited::Computing) {
        *memory.entry(at.process).or_default() += at.weight;
    }
    let of_all: u64 = memory.values().sum();
    let of_users = |line: &ContendedLine| line.processes.iter().filter_map(|user| memory.get(user)).sum();
    let mut found = find(observations, rate);
    found.retain(|line| {
        let memory: u64 = if rate == SampleRate::Sparse { of_users(line) } else { of_all };
        line.weight as f64 >= MIN_SHARE * memory as f64
    });
    found
}

/// The samples whose line is known.
fn lines(observations: &[Observation]) -> impl Iterator<Item = (&Observation, &ObservedAccess, LineKey)> {
    observations.iter().filter_map(|at| {
        let access = at.access()?;
        Some((at, access, LineKey::of(at.process, access)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::MemoryPart;
    use numakit_sampling::operand::RecoveryRule;

    const MS: u64 = 1_000_000;

    /// Samples of a thread, one each 5 ms, at an offset of line 100.
    fn used(thread: u32, samples: u64, offset: u64, kind: AccessKind) -> Vec<Observation> {
        let access = ObservedAccess {
            address: 100 * LINE + offset,
            size: 8,
            kind,
            rule: RecoveryRule::Direct,
            object: 7,
            home: Some(0),
            part: MemoryPart::Heap,
            shared: None,
        };
        let one = |n| Observation {
            thread,
            process: 0,
            time: n * 5 * MS,
            weight: 5 * MS,
            cpu_node: Some(thread),
            instruction: 0x400 + u64::from(thread),
            chain: 0,
            waited: Waited::Memory(access),
        };
        (0..samples).map(one).collect()
    }

    fn sharing_of(samples: [Vec<Observation>; 2]) -> Option<Sharing> {
        find(&samples.concat(), SampleRate::Dense).first().map(|line| line.sharing)
    }

    #[test]
    fn offsets_and_instructions_tell_how_a_line_is_shared() {
        use AccessKind::{Atomic, Load, Store, Update};
        for (one, other, expected) in [
            ((0, Atomic), (8, Atomic), Some(Sharing::False)),
            ((0, Update), (8, Update), Some(Sharing::False)),
            ((0, Atomic), (0, Atomic), Some(Sharing::Lock)),
            ((0, Store), (8, Load), Some(Sharing::False)),
            ((0, Store), (4, Load), Some(Sharing::True)),
            ((0, Load), (0, Load), None),
        ] {
            assert_eq!(sharing_of([used(0, 200, one.0, one.1), used(1, 200, other.0, other.1)]), expected);
        }
    }

    /// Elements of an array that threads count in, and its length before them, which all read.
    #[test]
    fn a_length_that_is_only_read_is_not_shared() {
        use AccessKind::{Atomic, Load, Store};
        let counting =
            |thread, offset| [used(thread, 200, offset, Atomic), used(thread, 50, 0, Load)].concat();
        assert_eq!(sharing_of([counting(0, 16), counting(1, 24)]), Some(Sharing::False));
        // One thread writes what the other one reads, beside elements of their own.
        let writes = [counting(0, 16), used(0, 50, 0, Store)].concat();
        assert_eq!(sharing_of([writes, counting(1, 24)]), Some(Sharing::True));
        assert_eq!(sharing_of([counting(0, 16), counting(1, 16)]), Some(Sharing::Lock));
    }

    /// Two processes have one page at different addresses.
    #[test]
    fn processes_contend_for_lines_of_memory_that_they_share() {
        let of_process = |process: u32, line, offset, file: Option<u32>| {
            let mut all = used(process, 200, offset, AccessKind::Update);
            for at in &mut all {
                at.process = process;
                if let Waited::Memory(access) = &mut at.waited {
                    access.address += u64::from(process) << 30;
                    access.shared = file.map(|file| SharedLine { file, line });
                }
            }
            all
        };
        let all = [of_process(0, 5, 0, Some(1)), of_process(1, 5, 8, Some(1))].concat();
        let found = find(&all, SampleRate::Dense);
        assert_eq!((found.len(), found[0].sharing), (1, Sharing::False));
        assert_eq!(found[0].processes, BTreeSet::from([0, 1]));
        let addresses = found[0].users.iter().map(|user| (user.process, user.address));
        assert_eq!(addresses.collect::<Vec<_>>(), [(0, 100 * LINE), (1, 100 * LINE + (1 << 30))]);
        // The next line but one, another file, and memory of their own.
        for other in [of_process(1, 7, 8, Some(1)), of_process(1, 5, 8, Some(2)), of_process(1, 5, 8, None)] {
            assert_eq!(find(&[of_process(0, 5, 0, Some(1)), other].concat(), SampleRate::Dense), []);
        }
        let mut own = [of_process(0, 5, 0, None), of_process(1, 5, 8, None)].concat();
        own.iter_mut().for_each(|at| match &mut at.waited {
            Waited::Memory(access) => access.address = 100 * LINE + access.address % LINE,
            Waited::Computing | Waited::Unknown => {}
        });
        assert_eq!(find(&own, SampleRate::Dense), []);
    }

    #[test]
    fn threads_offsets_and_nodes_are_kept() {
        let all = [used(0, 200, 0, AccessKind::Update), used(1, 100, 8, AccessKind::Load)].concat();
        let line = &find(&all, SampleRate::Dense)[0];
        assert_eq!((line.address, line.object, line.across_nodes), (100 * LINE, 7, true));
        assert_eq!(line.weight, 300 * 5 * MS);
        assert_eq!(line.users.iter().map(|user| user.thread).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(line.users[1].offsets, BTreeMap::from([(8, 100)]));
        assert_eq!((line.users[0].stores, line.users[1].loads), (200, 100));
        assert_eq!(line.instructions, [(0x400, 1000 * MS), (0x401, 500 * MS)]);
    }

    #[test]
    fn use_one_after_the_other_is_not_contention() {
        let mut later = used(1, 200, 0, AccessKind::Store);
        later.iter_mut().for_each(|at| at.time += 2_000 * MS);
        assert_eq!(sharing_of([used(0, 200, 0, AccessKind::Store), later]), None);
        assert_eq!(sharing_of([used(0, 200, 0, AccessKind::Store), used(1, 2, 0, AccessKind::Store)]), None);
    }

    #[test]
    fn addresses_of_other_executions_name_no_line() {
        let mut all = [used(0, 200, 0, AccessKind::Store), used(1, 200, 0, AccessKind::Store)].concat();
        for at in &mut all {
            if let Waited::Memory(access) = &mut at.waited {
                access.rule = RecoveryRule::Next;
            }
        }
        assert_eq!(find(&all, SampleRate::Dense), []);
    }
}
