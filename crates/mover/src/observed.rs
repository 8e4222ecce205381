//! From an observation to what decisions follow from: threads with their pages, and mappings.

use crate::error::{MoveError, of_process};
use crate::parts::{MappedRange, OwnMemory, PartInput, UNNAMED, UsedPage};
use crate::record::MoveRecord;
use crate::shared_memory::{SharedMemory, counted_at_first, of_strangers};
use crate::threads::{BusyThread, ThreadDecision};
use numakit_explain::explainer::Explainer;
use numakit_explain::memory_use::{MemoryUse, MemoryUses};
use numakit_model::Topology;
use numakit_observation::samples::{SampleRequest, SamplesError};
use numakit_processes::ChosenProcesses;
use numakit_sampling::SampleSettings;
use numakit_sys::SysRoot;
use numakit_sys::proc::maps::MapsEntry;
use numakit_sys::proc::{TaskDir, tree};
use numakit_sys::sched::affinity_of;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// Samples of all threads below which nothing is decided.
const MIN_SAMPLES: u64 = 20;
/// A thread is busy that has this part of the samples of the busiest one.
const BUSY: f64 = 0.05;
/// With fewer samples, no thread is busy.
const MIN_BUSY: u64 = 4;
/// A page that more threads use says nothing of who belongs together.
const MAX_SHARERS: usize = 8;

/// What was observed.
#[derive(Debug)]
pub struct MoveObservation {
    /// The uses of memory.
    pub uses: MemoryUses,
    /// The names of objects, by their places.
    pub names: Vec<String>,
    /// A signal ended it early.
    pub interrupted: bool,
}

/// Observes processes for a time.
pub fn observe(
    chosen: &ChosenProcesses,
    topology: &Topology,
    time: Duration,
) -> Result<MoveObservation, MoveError> {
    let settings = SampleSettings::default();
    let request =
        SampleRequest { chosen: Some(chosen), command: &[], method: None, settings, names: false, log: None };
    let (samples, run) = request.open()?;
    let mut explainer = Explainer::for_moves(samples.method, run.processes(), topology.clone());
    let end = run.observe(&mut explainer, Some(time), |_| Ok::<(), SamplesError>(()))?;
    let (uses, objects) = explainer.into_memory_uses().unwrap_or_default();
    let names = objects.into_iter().map(|object| object.name).collect();
    Ok(MoveObservation { uses, names, interrupted: end.signal.is_some() })
}

impl MoveObservation {
    /// Samples of all threads.
    pub fn samples(&self) -> u64 {
        self.uses.threads.values().map(|thread| thread.samples).sum()
    }

    /// Whether decisions can be based on it.
    pub fn is_enough(&self) -> bool {
        self.samples() >= MIN_SAMPLES
    }

    /// The busy threads that still run, and the place of each among the sampled ones. Threads that were moved before have the
    /// masks of the records.
    pub fn busy_threads(
        &self,
        root: &SysRoot,
        topology: &Topology,
        records: &BTreeMap<u32, MoveRecord>,
    ) -> (Vec<BusyThread>, Vec<u32>) {
        let most = self.uses.threads.values().map(|thread| thread.samples).max().unwrap_or(0);
        let nodes = self.counts(|used| used.cpu_node);
        let homes = self.counts(|used| used.home);
        let (mut threads, mut places) = (Vec::new(), Vec::new());
        let children = tree::by_parent(root);
        for (place, used) in &self.uses.threads {
            if (used.samples as f64) < BUSY * most as f64 || used.samples < MIN_BUSY {
                continue;
            }
            let dir = TaskDir::of(root, used.process).thread(used.thread);
            let (Ok(stat), Ok(bound)) = (dir.stat(), affinity_of(used.thread)) else { continue };
            let of_record = records.get(&used.process).and_then(|record| {
                record.threads.iter().find(|of| of.thread == used.thread && of.start == stat.start)
            });
            let cpu = used.cpu().or(stat.cpu);
            let most_of = |counts: &BTreeMap<u32, u64>| {
                counts.iter().max_by_key(|(_, count)| **count).map(|(node, _)| *node)
            };
            threads.push(BusyThread {
                process: used.process,
                thread: used.thread,
                name: stat.name(),
                cpu,
                node: nodes
                    .get(place)
                    .and_then(most_of)
                    .or_else(|| Some(topology.node_of_cpu(cpu?)?.os_index)),
                mask: of_record.map_or_else(|| bound.clone(), |of| of.cpus.clone()),
                bound,
                starts_others: starts_others(root, used.process, &children),
                samples: used.samples,
                homes: homes.get(place).cloned().unwrap_or_default(),
                shared: BTreeMap::new(),
            });
            places.push(*place);
        }
        self.share(&mut threads, &places);
        (threads, places)
    }

    fn counts(&self, node: impl Fn(&MemoryUse) -> Option<u32>) -> BTreeMap<u32, BTreeMap<u32, u64>> {
        let mut counts: BTreeMap<u32, BTreeMap<u32, u64>> = BTreeMap::new();
        for (used, count) in &self.uses.uses {
            if let Some(node) = node(used) {
                *counts.entry(used.thread).or_default().entry(node).or_default() += count;
            }
        }
        counts
    }

    /// Notes which threads use the same pages.
    fn share(&self, threads: &mut [BusyThread], places: &[u32]) {
        let positions: HashMap<u32, usize> =
            places.iter().enumerate().map(|(position, place)| (*place, position)).collect();
        let mut pages: HashMap<(u32, u64), BTreeMap<usize, u64>> = HashMap::new();
        for (used, count) in &self.uses.uses {
            if let Some(position) = positions.get(&used.thread) {
                let key = (threads[*position].process, used.page);
                *pages.entry(key).or_default().entry(*position).or_default() += count;
            }
        }
        for users in pages.values().filter(|users| (2..=MAX_SHARERS).contains(&users.len())) {
            for (one, count) in users {
                for (other, others) in users.iter().filter(|(other, _)| *other != one) {
                    *threads[*one].shared.entry(*other).or_default() += *count.min(others);
                }
            }
        }
    }

    /// The input of the choice of parts, if threads run where this is decided. `places` are those of the decisions, and
    /// `processes` all that may share memory.
    pub fn part_input(
        &self,
        root: &SysRoot,
        processes: &[u32],
        decisions: &[ThreadDecision],
        places: &[u32],
    ) -> Result<PartInput, MoveError> {
        let nodes: HashMap<u32, u32> = places
            .iter()
            .zip(decisions)
            .filter_map(|(place, decided)| Some((*place, decided.node?)))
            .collect();
        let (mut mappings, shared) = self.mappings(root, processes)?;
        let (strange, shared) = of_strangers(root, shared);
        mappings.extend(shared.iter().filter_map(SharedMemory::first).cloned());
        let used = |(used, samples): (&MemoryUse, &u64)| {
            Some(UsedPage {
                process: self.uses.threads.get(&used.thread)?.process,
                page: used.page,
                node: nodes.get(&used.thread).copied().or(used.cpu_node)?,
                home: used.home,
                object: used.object,
                samples: *samples,
            })
        };
        let own = |(place, node): (&u32, &u32)| {
            let thread = self.uses.threads.get(place)?;
            let (process, stack, base) = (thread.process, thread.stack, thread.thread_base);
            Some(OwnMemory { process, thread: thread.thread, node: *node, stack, base })
        };
        let used: Vec<UsedPage> = self.uses.uses.iter().filter_map(used).collect();
        let strangers = self.remote_use_of_strangers(&strange, &used);
        let mut used: Vec<UsedPage> = used.into_iter().map(|used| counted_at_first(&shared, used)).collect();
        used.sort_unstable_by_key(|used| (used.process, used.page, used.node, used.home, used.object));
        let mut own: Vec<OwnMemory> = nodes.iter().filter_map(own).collect();
        own.sort_unstable_by_key(|own| own.thread);
        Ok(PartInput { mappings, shared, strangers, used, own, names: self.names.clone() })
    }

    /// Remote samples of memory that others use too, by the names of its objects, most first.
    fn remote_use_of_strangers(&self, memory: &[SharedMemory], used: &[UsedPage]) -> Vec<(String, u64)> {
        let mut names: BTreeMap<String, u64> = BTreeMap::new();
        for used in used.iter().filter(|used| used.home.is_some_and(|home| home != used.node)) {
            if memory.iter().any(|memory| memory.has(used)) {
                let name = self.names.get(used.object as usize).cloned();
                *names.entry(name.unwrap_or_else(|| UNNAMED.to_owned())).or_default() += used.samples;
            }
        }
        let mut names: Vec<(String, u64)> = names.into_iter().collect();
        names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        names
    }

    /// The mappings of processes that may be moved in parts: memory of their own that they may write to, and shared memory.
    fn mappings(
        &self,
        root: &SysRoot,
        processes: &[u32],
    ) -> Result<(Vec<MappedRange>, Vec<SharedMemory>), MoveError> {
        let mut samples: BTreeMap<u32, u64> = BTreeMap::new();
        for thread in self.uses.threads.values() {
            *samples.entry(thread.process).or_default() += thread.samples;
        }
        let (mut own, mut shared) = (Vec::new(), BTreeMap::<_, Vec<MappedRange>>::new());
        let all: BTreeSet<u32> = processes.iter().chain(samples.keys()).copied().collect();
        for process in all {
            let Some(text) = maps(root, process)? else { continue };
            for entry in text.lines().filter_map(MapsEntry::parse) {
                let is_pool = entry.name.starts_with("/anon_hugepage");
                if entry.is_of_kernel() || !entry.writable || is_pool || is_of_page_cache(&entry) {
                    continue;
                }
                let mapped = MappedRange { process, range: entry.range.clone() };
                match entry.shared {
                    true => shared.entry((entry.device, entry.inode, entry.offset)).or_default().push(mapped),
                    false if samples.contains_key(&process) => own.push(mapped),
                    false => {}
                }
            }
        }
        Ok((own, shared.into_values().map(|members| SharedMemory::new(members, &samples)).collect()))
    }

    /// Remote samples of mapped files, by their paths, most first.
    pub fn remote_files(&self, root: &SysRoot) -> Vec<(String, u64)> {
        let mut files: BTreeMap<String, u64> = BTreeMap::new();
        let processes: BTreeSet<u32> = self.uses.threads.values().map(|thread| thread.process).collect();
        for process in processes {
            let text = TaskDir::of(root, process).text("maps").unwrap_or_default();
            let entries: Vec<MapsEntry<'_>> =
                text.lines().filter_map(MapsEntry::parse).filter(is_of_page_cache).collect();
            for (used, count) in &self.uses.uses {
                let is_its_own =
                    self.uses.threads.get(&used.thread).is_some_and(|thread| thread.process == process);
                let is_remote = used.home.is_some() && used.cpu_node.is_some() && used.home != used.cpu_node;
                if is_its_own
                    && is_remote
                    && let Some(entry) = entries.iter().find(|entry| entry.range.contains(&used.page))
                {
                    *files.entry(entry.name.to_owned()).or_default() += count;
                }
            }
        }
        let mut files: Vec<(String, u64)> = files.into_iter().collect();
        files.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        files
    }
}

/// Whether children of a process run its own program: it starts workers, and more may come.
fn starts_others(root: &SysRoot, process: u32, children: &HashMap<u32, Vec<u32>>) -> bool {
    let program = |process: u32| root.link(&TaskDir::of(root, process).path("exe")).ok();
    let own = program(process);
    own.is_some() && children.get(&process).into_iter().flatten().any(|child| program(*child) == own)
}

/// The text of `maps`; `None` if the process has ended.
pub fn maps(root: &SysRoot, process: u32) -> Result<Option<String>, MoveError> {
    match TaskDir::of(root, process).text("maps") {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => {
            let error = std::io::Error::new(error.kind, error.to_string());
            Err(of_process(process, "its mappings cannot be read")(error))
        }
    }
}

/// Whether a mapping shows pages of the page cache: those of a file that is not in memory.
fn is_of_page_cache(entry: &MapsEntry<'_>) -> bool {
    const IN_MEMORY: [&str; 4] = ["/dev/shm/", "/SYSV", "/memfd:", "/dev/zero"];
    let has_file = entry.inode != 0;
    has_file
        && (entry.shared || !entry.writable)
        && !IN_MEMORY.iter().any(|start| entry.name.starts_with(start))
}
