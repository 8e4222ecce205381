//! Observes a process tree: scans its threads, which is cheap, and walks its memory in parts, which is
//! not.

use crate::allocator::{AllocatorCandidate, AllocatorWatch, RegionPages};
use crate::limit::LimitWatch;
use crate::nodes::TaskNodes;
use crate::numa_maps::MemoryByUse;
use crate::threads::{self, SwitchCounts, ThreadSample, ThreadScan};
use crate::tree::{Member, Tree};
use crate::walk::{self, ProcessKey, Walk, WalkFindings, WalkStep, WalkedMachine};
use numakit_model::CpuSet;
use numakit_sys::clock;
use numakit_sys::proc::Counts;
use std::collections::HashMap;

/// What is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct WatchTargets {
    /// What a walk reads of memory.
    pub walk: walk::WalkRequest,
    /// What a scan reads of threads.
    pub threads: threads::ThreadFields,
    /// Whether the counts of allocators are read.
    pub allocators: bool,
    /// Whether the time is read in which a CPU limit stopped the processes.
    pub limit: bool,
}

/// What threads did, and where they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Activity {
    /// CPU time by node.
    pub cpu_time: Vec<u64>,
    /// Threads by node.
    pub threads: Vec<u64>,
    /// Threads that are not on the node of their memory.
    pub away: u64,
    /// Migrations and context switches.
    pub switches: SwitchCounts,
    /// CPUs of threads that are running, or wait for these CPUs.
    pub running: CpuSet,
}

/// The result of the last complete walk.
#[derive(Debug, Clone, PartialEq)]
pub struct Walked {
    /// Memory of all processes that may be read.
    pub memory: MemoryByUse,
    /// Its other findings.
    pub findings: WalkFindings,
    /// The pages of each region of their allocators; `None` if there was no allocator with regions.
    pub regions: Option<Vec<RegionPages>>,
}

/// A process tree and its values.
#[derive(Debug)]
pub struct Observer {
    machine: WalkedMachine,
    wanted: WatchTargets,
    tree: Tree,
    scanned: bool,
    walk: Option<Walk>,
    /// Results of the current walk.
    found: Vec<(ProcessKey, MemoryByUse)>,
    /// What threads did, and where they are.
    pub activity: Activity,
    /// The last complete walk.
    pub walked: Option<Walked>,
    /// The allocators of the processes.
    pub allocators: AllocatorWatch,
    limit: Option<LimitWatch>,
    /// Time in which their CPU limit kept them from running, in us; `None` if it is not read or cannot be.
    pub throttled: Option<u64>,
}

impl Observer {
    /// Observes these processes and their descendants.
    pub fn new(mut machine: WalkedMachine, wanted: WatchTargets, pids: &[u32]) -> Self {
        // For huge pages alone no lock is held.
        machine.may_hold &= wanted.walk.memory;
        let count = machine.nodes.count();
        Self {
            wanted,
            tree: Tree::of(&machine.root, pids),
            scanned: false,
            walk: None,
            found: Vec::new(),
            activity: Activity { cpu_time: vec![0; count], threads: vec![0; count], ..Activity::default() },
            walked: None,
            allocators: AllocatorWatch::default(),
            limit: LimitWatch::new(&machine.root).filter(|_| wanted.limit),
            throttled: None,
            machine,
        }
    }

    /// The nodes of the machine.
    pub fn nodes(&self) -> &TaskNodes {
        &self.machine.nodes
    }

    /// Also observes these processes, with their descendants, unless it does already.
    pub fn join(&mut self, pids: &[u32]) {
        self.tree.join(&self.machine.root, pids);
    }

    /// Scans all processes and threads.
    pub fn scan(&mut self) {
        self.settle();
        self.tree.scan(&self.machine.root);
        // Counts before the first scan do not belong to this observation.
        let from_start = std::mem::replace(&mut self.scanned, true);
        self.activity.threads.fill(0);
        self.activity.away = 0;
        self.activity.running = CpuSet::default();
        for member in &mut self.tree.members {
            let scan = ThreadScan {
                root: &self.machine.root,
                nodes: &self.machine.nodes,
                wanted: self.wanted.threads,
                from_start: from_start && !member.is_older(),
            };
            let Member { pid, stat, threads, memory, .. } = member;
            let Some(stat) = stat.as_ref().filter(|stat| stat.runs()) else {
                *memory = None;
                continue;
            };
            let activity = &mut self.activity;
            let mut count =
                |_, seen: &ThreadSample| activity.count(seen, &self.machine.nodes, memory.as_ref());
            threads.scan(&scan, *pid, stat, &mut count);
        }
        if let Some(limit) = &mut self.limit {
            limit.update(
                &self.machine.root,
                clock::monotonic(),
                self.tree.members.iter().map(|member| member.pid),
            );
            self.throttled = Some(limit.throttled());
        }
        if self.wanted.allocators {
            let running = self.tree.members.iter().filter_map(|member| {
                let stat = member.running()?;
                Some(AllocatorCandidate {
                    pid: member.pid,
                    start: member.start(),
                    arguments: stat.arguments.as_ref().map(|range| range.start),
                    mapped: stat.mapped,
                })
            });
            self.allocators.scan(&self.machine.nodes, &running.collect::<Vec<_>>());
        }
    }

    /// Continues the walk, or starts one, while there is time. True when it is complete.
    pub fn walk(&mut self, time: &dyn Fn() -> bool) -> bool {
        let mut walk = self.walk.take().unwrap_or_else(|| {
            let running = self.tree.members.iter().filter(|member| member.running().is_some());
            Walk::new(self.wanted.walk, running.map(|m| (m.pid, m.start())).collect())
                .with_spaces(self.allocators.spaces().collect())
        });
        loop {
            match walk.step(&self.machine) {
                WalkStep::Part => {}
                WalkStep::Process(name, memory) => self.found.push((name, memory)),
                WalkStep::End => break,
            }
            if !time() {
                self.walk = Some(walk);
                return false;
            }
        }
        self.settle();
        let mut memory = MemoryByUse::none(self.machine.nodes.count());
        self.tree.members.iter().filter_map(|m| m.memory.as_ref()).for_each(|m| memory.add(m));
        let regions = walk.has_spaces().then_some(walk.regions);
        self.walked = Some(Walked { memory, findings: walk.findings, regions });
        true
    }

    /// Whether the walk held the lock of a process for long.
    pub fn held_a_lock(&self) -> bool {
        let walk = self.walk.as_ref().map(|walk| walk.findings);
        walk.or(self.walked.as_ref().map(|walked| walked.findings)).is_some_and(|f| f.held.is_some())
    }

    /// Assigns the memory that was found since the last call to the members.
    fn settle(&mut self) {
        let mut found: HashMap<ProcessKey, MemoryByUse> = self.found.drain(..).collect();
        if found.is_empty() {
            return;
        }
        for member in &mut self.tree.members {
            if let Some(memory) = found.remove(&(member.pid, member.start())) {
                member.memory = Some(memory);
            }
        }
    }

    /// Minor and major faults and ticks of all present and past members.
    pub fn counts(&self) -> Counts {
        self.tree.counts()
    }

    /// Number of processes that have not exited.
    pub fn processes(&self) -> u64 {
        self.tree.members.iter().filter(|member| member.running().is_some()).count() as u64
    }
}

impl Activity {
    fn count(&mut self, thread: &ThreadSample, nodes: &TaskNodes, memory: Option<&MemoryByUse>) {
        let switched = thread.switched.unwrap_or_default();
        self.switches.iter_mut().zip(switched).for_each(|(sum, more)| *sum = sum.saturating_add(more));
        if let Some(cpu) = thread.busy {
            self.running.insert(cpu);
        }
        let Some(node) = thread.node else { return };
        let ran = thread.ran.unwrap_or(0);
        self.threads[node] += 1;
        self.cpu_time[node] = self.cpu_time[node].saturating_add(ran);
        let preferred = thread.preferred.and_then(|id| nodes.place(id));
        let home = preferred.or_else(|| memory.and_then(MemoryByUse::home));
        self.away += u64::from(home.is_some_and(|home| home != node));
    }
}

#[cfg(test)]
mod tests;
