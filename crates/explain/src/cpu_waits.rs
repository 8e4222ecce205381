//! Why threads that can run wait for a CPU: on which CPUs they may run, and what those CPUs and the others do meanwhile.

use crate::threads::{TICK, ThreadAccounts};
use numakit_model::CpuSet;
use numakit_processes::LimitWatch;
use numakit_sys::SysRoot;
use numakit_sys::proc::TaskDir;
use numakit_sys::proc::machine::{StatLine, numbers, stat_line};
use std::collections::BTreeMap;

/// A microsecond, in ns.
const US: u64 = 1000;
/// The place of idle time in a line of /proc/stat.
const IDLE: usize = 3;

/// Busy threads that may run on the same CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaskedThreads {
    /// The CPUs.
    pub cpus: CpuSet,
    /// How many of them lived at the same time.
    pub threads: usize,
    /// Their CPU time, in ns.
    pub ran: u64,
    /// The time in which they could have run and waited for a CPU, in ns.
    pub waited: u64,
    /// The time in which they could not run, in ns.
    pub asleep: u64,
}

/// The process that the observed one comes from, and where that process may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramParent {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its CPUs.
    pub cpus: CpuSet,
}

/// What is known of waits for a CPU.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CpuWaits {
    /// Busy threads by their CPU mask, those that waited longest first.
    pub masks: Vec<MaskedThreads>,
    /// Where the program comes from, if that process is still there.
    pub parent: Option<ProgramParent>,
    /// The CPUs of the machine with the part of the observed time that each was idle.
    pub idle: BTreeMap<u32, f64>,
    /// How long the CPU limit of its control group kept threads from running, in ns.
    pub throttled: u64,
}

impl CpuWaits {
    /// How many CPUs outside of a mask were idle on average.
    pub fn idle_outside(&self, mask: &CpuSet) -> f64 {
        self.idle.iter().filter(|(cpu, _)| !mask.contains(**cpu)).map(|(_, part)| part).sum()
    }

    /// The CPUs of the machine.
    pub fn online(&self) -> CpuSet {
        self.idle.keys().copied().collect()
    }
}

impl ProgramParent {
    /// The parent of a process; `None` if it has ended.
    pub fn of(root: &SysRoot, process: u32) -> Option<Self> {
        let pid = TaskDir::of(root, process).stat().ok()?.parent;
        let dir = TaskDir::of(root, pid);
        let (name, cpus) = (dir.stat().ok()?.name(), dir.status().ok()?.allowed_cpus()?);
        Some(Self { pid, name, cpus })
    }
}

/// Watches what keeps the threads of a program from running.
#[derive(Debug)]
pub(crate) struct CpuWaitWatch {
    root: SysRoot,
    idle: IdleTimes,
    parent: Option<ProgramParent>,
    /// The CPU limit of its control group, if groups can have one here.
    limit: Option<LimitWatch>,
}

impl CpuWaitWatch {
    /// Begins at this time, with a program whose first process this is.
    pub(crate) fn new(root: &SysRoot, process: u32, now: u64) -> Self {
        let (idle, parent) = (IdleTimes::new(root, now), ProgramParent::of(root, process));
        Self { root: root.clone(), idle, parent, limit: LimitWatch::new(root) }
    }

    /// Looks for the limit of these processes if it is time for that.
    pub(crate) fn visit(&mut self, processes: &[u32], now: u64) {
        if let Some(limit) = &mut self.limit {
            limit.update(&self.root, now, processes.iter().copied());
        }
    }

    /// What is known by now.
    pub(crate) fn waits(&mut self, accounts: &ThreadAccounts, now: u64) -> CpuWaits {
        CpuWaits {
            masks: accounts.masks(now.saturating_sub(self.idle.started)),
            parent: self.parent.clone(),
            idle: self.idle.shares(&self.root, now),
            throttled: self.limit.as_mut().map_or(0, LimitWatch::throttled) * US,
        }
    }
}

/// The idle time of each CPU of the machine, since two readings of /proc/stat.
#[derive(Debug)]
struct IdleTimes {
    started: u64,
    before: BTreeMap<u32, u64>,
}

impl IdleTimes {
    /// Begins at this time.
    fn new(root: &SysRoot, now: u64) -> Self {
        Self { started: now, before: read(root) }
    }

    /// The part of the time since then that each CPU was idle.
    fn shares(&self, root: &SysRoot, now: u64) -> BTreeMap<u32, f64> {
        let time = now.saturating_sub(self.started).max(1) as f64;
        let share = |(cpu, idle): (u32, u64)| {
            let grown = idle.saturating_sub(*self.before.get(&cpu)?);
            Some((cpu, (grown.saturating_mul(TICK) as f64 / time).min(1.0)))
        };
        read(root).into_iter().filter_map(share).collect()
    }
}

fn read(root: &SysRoot) -> BTreeMap<u32, u64> {
    let text = root.bytes("/proc/stat").unwrap_or_default();
    let idle = |line: &[u8]| match stat_line(line) {
        StatLine::Cpu(cpu, counters) => Some((cpu, numbers(counters).nth(IDLE)?)),
        StatLine::Other(..) => None,
    };
    text.split(|byte| *byte == b'\n').filter_map(idle).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::root::FileTree;

    #[test]
    fn idle_time_is_a_part_of_the_observed_time() {
        let mut tree = FileTree::new();
        tree.file("/proc/stat", "cpu  9 9 9 300 9\ncpu0 1 2 3 100 5\ncpu1 1 2 3 200 5\nintr 5\n");
        let root = SysRoot::of_tree(tree);
        let idle = IdleTimes::new(&root, 1_000_000_000);
        root.change(|tree| {
            _ = tree.file("/proc/stat", "cpu0 1 2 3 100 5\ncpu1 1 2 3 250 5\ncpu7 1 2 3 999 5\n");
        });
        let shares = idle.shares(&root, 2_000_000_000);
        assert_eq!(shares, BTreeMap::from([(0, 0.0), (1, 0.5)]), "a CPU that came meanwhile is left out");
        let waits = CpuWaits { idle: shares, ..CpuWaits::default() };
        assert_eq!((waits.online(), waits.idle_outside(&CpuSet::range(0, 0))), (CpuSet::range(0, 1), 0.5));
    }
}
