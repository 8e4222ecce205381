//! What a cure needs to know, once the observation has ended.

use super::Explainer;
use crate::Explanation;
use crate::collector::UsePoint;
use crate::cure_facts::{CureFacts, CureProgram, Unidentified};
use crate::module_files::ModuleFile;
use crate::objects::ObjectId;
use crate::part_use::{self, BlockUse};
use crate::processes::is_own;
use crate::runtime::ProgramRuntime;
use crate::sharing::Turns;
use numakit_cure::CuredThreads;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Objects by their numbers in their process, and the numbers of their blocks.
type Blocks = HashMap<ObjectId, HashMap<(u64, u64), u64>>;

impl Explainer {
    /// What cures need to know of the objects, by their places; and adds which threads share data.
    pub(super) fn cures(&mut self, explanation: &mut Explanation) -> BTreeMap<u32, CureFacts> {
        self.list_threads();
        let (process, working) = self.most_working();
        let mut turns = Turns::new(process, working);
        let pids = self.processes.numbers();
        let mut points: BTreeMap<u32, Vec<UsePoint>> = BTreeMap::new();
        self.collector
            .points()
            .into_iter()
            .for_each(|point| points.entry(point.object).or_default().push(point));
        let blocks = self.numbered_blocks(points.keys().copied());
        let orders: HashMap<u32, HashMap<u32, u32>> =
            pids.iter().map(|pid| (*pid, self.processes.order.numbers(*pid))).collect();
        let one = |(place, mut of): (u32, Vec<UsePoint>)| {
            of.sort_by_key(|point| point.time);
            let (uses, counts) = self.block_uses(place, &of, (&pids, &orders), &blocks, &mut turns);
            let (each, all) = part_use::of(&uses, &counts);
            let count = counts.values().copied().max().unwrap_or(0);
            (place, CureFacts { identities: Err(Unidentified::Unnamed), each, blocks: all, count })
        };
        let mut facts: BTreeMap<u32, CureFacts> = points.into_iter().map(one).collect();
        let cpus = self.topology.nodes.iter().map(|node| node.cpus.len()).max();
        explanation.sharing = Some(turns.sharing(cpus.unwrap_or(0), &self.nodes_of(process)));
        for (place, of) in &mut facts {
            let listed = self.collector.listed(*place).next();
            of.identities = listed
                .map_or(Err(Unidentified::Unnamed), |(pid, object)| self.processes.identities(pid, object));
        }
        facts
    }

    /// Adds the threads that the kernel listed.
    fn list_threads(&mut self) {
        let order = &mut self.processes.order;
        self.accounts.starts().for_each(|(thread, start)| order.listed(thread, start));
    }

    /// The node on which each thread of a process nearly always was, by its number.
    fn nodes_of(&self, process: u32) -> HashMap<u32, u32> {
        let numbers = self.processes.order.numbers(process);
        let mut seen: BTreeMap<u32, BTreeMap<u32, u64>> = BTreeMap::new();
        for at in &self.collector.observations {
            if let Some(node) = at.cpu_node {
                *seen.entry(at.thread).or_default().entry(node).or_default() += 1;
            }
        }
        let one = |(place, nodes): (u32, BTreeMap<u32, u64>)| {
            let thread = self.collector.sampled_threads.get(place as usize)?;
            let number = numbers.get(&thread.tid).filter(|_| thread.pid == process)?;
            let all: u64 = nodes.values().sum();
            let (node, most) = nodes.into_iter().max_by_key(|(_, samples)| *samples)?;
            (most as f64 >= NEARLY_ALWAYS * all as f64).then_some((*number, node))
        };
        seen.into_iter().filter_map(one).collect()
    }

    fn numbered_blocks(&self, places: impl Iterator<Item = u32>) -> HashMap<u32, Blocks> {
        let mut objects: HashMap<u32, HashSet<ObjectId>> = HashMap::new();
        for (pid, object) in places.flat_map(|place| self.collector.listed(place)) {
            objects.entry(pid).or_default().insert(object);
        }
        objects.into_iter().map(|(pid, of)| (pid, self.processes.numbered(pid, &of))).collect()
    }

    /// The uses of an object's blocks, and how many blocks each process has.
    fn block_uses(
        &self,
        place: u32,
        points: &[UsePoint],
        (pids, orders): (&[u32], &HashMap<u32, HashMap<u32, u32>>),
        blocks: &HashMap<u32, Blocks>,
        turns: &mut Turns,
    ) -> (Vec<BlockUse>, HashMap<u32, u64>) {
        let own: HashMap<u32, ObjectId> = self.collector.listed(place).collect();
        let mut counts = HashMap::new();
        let mut used = |point: &UsePoint| {
            let pid = *pids.get(point.process as usize)?;
            let object = *own.get(&pid)?;
            let block = self.processes.block_at(pid, object, point.address, point.time)?;
            let numbers = blocks.get(&pid)?.get(&object)?;
            let addresses = block.addresses;
            let number = *numbers.get(&(block.since, addresses.start))?;
            counts.insert(pid, numbers.len() as u64);
            let tid = self.collector.sampled_threads.get(point.thread as usize)?.tid;
            let thread = *orders.get(&pid)?.get(&tid)?;
            turns.add(pid, thread, point.address, &addresses);
            Some(BlockUse {
                block: (pid, number),
                fraction: part_use::fraction(
                    point.address - addresses.start,
                    addresses.end - addresses.start,
                ),
                thread,
            })
        };
        let uses = points.iter().filter_map(&mut used).collect();
        (uses, counts)
    }

    /// What a cure needs to know of the program. Launchers of this project start another program.
    pub(super) fn cure_program(&self) -> CureProgram {
        let numbers = self.processes.numbers();
        let (most, working) = self.most_working();
        let seen = |pid: &u32| self.processes.seen_program(*pid);
        let mut files = numbers.iter().filter_map(|pid| seen(pid)?.file.clone());
        let started = || Some(ModuleFile::read(self.observed.file.as_deref()?)?.file);
        let file = files.find(|file| !is_own(&file.file)).or_else(started).unwrap_or_default();
        let at_first = seen(&most).map_or(0, |program| program.cpus);
        let cpus = at_first.max(self.accounts.cpus_of(most).len() as u32);
        let open_mp = self.processes.runtime(most) == ProgramRuntime::OpenMp;
        let count = self.processes.order.numbers(most).len() as u32;
        CureProgram { file, threads: CuredThreads { working, count, cpus, open_mp } }
    }

    /// The process with most threads that worked, and the numbers of these.
    fn most_working(&self) -> (u32, Vec<u32>) {
        let all = self.processes.numbers().into_iter().rev().map(|pid| (pid, self.working(pid)));
        all.max_by_key(|(_, working)| working.len()).unwrap_or_default()
    }

    /// The numbers of the threads of a process that worked, by the number of their samples: a thread may have ended before its
    /// account was read. One that fills memory for others hardly works beside them.
    fn working(&self, pid: u32) -> Vec<u32> {
        let numbers = self.processes.order.numbers(pid);
        let of_process = self.collector.taken().filter(|(thread, _)| thread.0 == pid);
        let of_process: Vec<(u32, u64)> = of_process.map(|((_, tid), samples)| (tid, samples)).collect();
        let most = of_process.iter().map(|(_, samples)| *samples).max().unwrap_or(0);
        let working = of_process.iter().filter(|(_, samples)| *samples >= most / HARDLY);
        let mut working: Vec<u32> = working.filter_map(|(tid, _)| numbers.get(tid).copied()).collect();
        working.sort_unstable();
        working
    }
}

/// A thread with less than one in this many parts of the samples of another hardly works. On emulated processors, threads that do
/// the same work were seen with a sixth.
const HARDLY: u64 = 10;

/// A thread with this part of its samples on one node was there, but for its start.
const NEARLY_ALWAYS: f64 = 0.9;
