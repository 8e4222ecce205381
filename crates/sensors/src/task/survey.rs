//! All processes of a machine, or some of them: what they did between two looks, and where
//! their memory is.

use super::access::TaskAccess;
use super::nodes::TaskNodes;
pub use super::numa_maps::{MemoryByUse, Use};
use super::observer::near;
use super::threads::{ThreadFields, ThreadScan, Threads};
use super::walk::{self, Findings, Walk, WalkStep, WalkTarget};
use crate::sensor::fix_for;
use numakit_model::{Fix, Topology, Unavailable};
use numakit_sys::SysRoot;
use numakit_sys::proc::{self, TaskDir, TaskStat, printable};
use std::collections::HashMap;

/// Where the memory of a process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemorySource {
    /// Here.
    Memory(MemoryByUse),
    /// It may not be looked into.
    Denied,
    /// There was no time for it.
    Late,
    /// The kernel tells where it is only while the process is held up.
    Refused,
}

/// A process, and what it did since the last look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessSample {
    /// Its number.
    pub pid: u32,
    /// Its user: a name where one is known, else a number.
    pub user: String,
    /// The name of its program.
    pub command: String,
    /// Threads.
    pub threads: u64,
    /// CPU time in ns.
    pub ran: u64,
    /// CPU time of which it is known where it was spent, times the share of the memory there;
    /// and times the share elsewhere. Where a process did not run, each of its threads counts
    /// the same. `None` where the memory or all CPUs are unknown.
    pub near_far: Option<(u64, u64)>,
    /// Resident memory in bytes, as the kernel counts it, without huge page pools.
    pub resident: u64,
    /// Where its memory is.
    pub found: MemorySource,
    /// Standard error of the memory of a node, in bytes, at most; 0 where all pages were asked.
    pub error: u64,
    /// Its lock was held meanwhile, as there was no other way.
    pub held: bool,
}

/// Looks at processes again and again.
#[derive(Debug)]
pub struct Survey {
    root: SysRoot,
    nodes: TaskNodes,
    page_size: u64,
    only: Option<Vec<u32>>,
    users: HashMap<u32, String>,
    known: HashMap<u32, (u64, Threads)>,
    looked: bool,
}

impl Survey {
    /// Of all processes, or only of these. The first look is taken now.
    pub fn new(root: &SysRoot, topology: &Topology, only: Option<Vec<u32>>) -> Result<Self, Unavailable> {
        const MISSING: &str = "memory of processes by node";
        proc::processes(root)
            .map_err(|error| Unavailable::new(MISSING, error.to_string(), fix_for(root, &error.path)))?;
        let mut survey = Self {
            root: root.clone(),
            nodes: TaskNodes::of(topology),
            page_size: topology.page_size.max(1024),
            only,
            users: users(&root.text("/etc/passwd").unwrap_or_default()),
            known: HashMap::new(),
            looked: false,
        };
        let pids = survey.look();
        if !pids.is_empty() && !pids.iter().any(|p| TaskDir::of(root, p.pid).has("numa_maps")) {
            let fix = Fix::BuildOption("CONFIG_NUMA".to_owned());
            return Err(Unavailable::new(MISSING, "there is no /proc/PID/numa_maps", fix));
        }
        Ok(survey)
    }

    /// The kernel's numbers of the nodes, in the order of a [`MemoryByUse`].
    pub fn nodes(&self) -> &[u32] {
        self.nodes.ids()
    }

    /// Who looks.
    pub fn access(&self) -> TaskAccess {
        TaskAccess::look(&self.root)
    }

    /// Looks again, and walks the memory of as many processes as there is time for: those that
    /// ran most come first, then those with the most memory.
    pub fn measure(&mut self, time: &dyn Fn() -> bool) -> Vec<ProcessSample> {
        let mut seen = self.look();
        seen.sort_by_key(|s| (std::cmp::Reverse((s.ran(), s.stat.resident)), s.pid));
        let mut processes: Vec<ProcessSample> = seen.iter().map(|s| self.process(s, time)).collect();
        processes.sort_by_key(|p| p.pid);
        processes
    }

    fn look(&mut self) -> Vec<Seen> {
        let pids = self.only.clone().unwrap_or_else(|| proc::processes(&self.root).unwrap_or_default());
        let wanted = ThreadFields { cpu_time: true, scheduling: false };
        let look = ThreadScan { root: &self.root, nodes: &self.nodes, wanted, from_start: self.looked };
        self.looked = true;
        let mut known = HashMap::new();
        let mut found = Vec::new();
        for pid in pids {
            let stat = TaskDir::of(&self.root, pid).stat().ok();
            let Some(stat) = stat.filter(|s| s.runs() && !s.kernel) else { continue };
            let same = self.known.remove(&pid).filter(|(start, _)| *start == stat.start);
            let (_, mut threads) = same.unwrap_or((stat.start, Threads::default()));
            let mut seen = Seen { pid, stat, threads: Vec::new() };
            threads.look(&look, pid, &seen.stat, &mut |_, thread| {
                seen.threads.push((thread.node, thread.ran.unwrap_or(0)));
            });
            known.insert(pid, (seen.stat.start, threads));
            found.push(seen);
        }
        self.known = known;
        found
    }

    fn process(&self, seen: &Seen, time: &dyn Fn() -> bool) -> ProcessSample {
        let (found, findings) = self.walk(seen, time);
        let near_far = match &found {
            MemorySource::Memory(memory) => seen.near_far(memory),
            _ => None,
        };
        ProcessSample {
            pid: seen.pid,
            user: self.user(seen.pid),
            command: seen.stat.name(),
            threads: seen.threads.len() as u64,
            ran: seen.ran(),
            near_far,
            resident: seen.stat.resident.saturating_mul(self.page_size),
            found,
            error: findings.variance.sqrt() as u64,
            held: findings.held.is_some(),
        }
    }

    fn walk(&self, seen: &Seen, time: &dyn Fn() -> bool) -> (MemorySource, Findings) {
        let place = WalkTarget {
            root: &self.root,
            nodes: &self.nodes,
            page_size: self.page_size,
            // Who names a process wants to know.
            may_hold: self.only.is_some(),
        };
        let wanted = walk::WalkRequest { memory: true, huge_pages: false };
        let mut walk = Walk::new(wanted, vec![(seen.pid, Some(seen.stat.start))]);
        while time() {
            let found = match walk.step(&place) {
                WalkStep::Part => continue,
                WalkStep::Process(_, memory) => MemorySource::Memory(memory),
                WalkStep::End if walk.findings.denied.is_some() => MemorySource::Denied,
                WalkStep::End if walk.findings.refused.is_some() => MemorySource::Refused,
                // It exited after the look.
                WalkStep::End => MemorySource::Memory(MemoryByUse::none(self.nodes.count())),
            };
            return (found, walk.findings);
        }
        (MemorySource::Late, Findings::default())
    }

    fn user(&self, pid: u32) -> String {
        match TaskDir::of(&self.root, pid).status().unwrap_or_default().user() {
            Some(id) => self.users.get(&id).cloned().unwrap_or_else(|| id.to_string()),
            None => "?".to_owned(),
        }
    }
}

/// A process at one look.
struct Seen {
    pid: u32,
    stat: TaskStat,
    /// Node and CPU time since the last look of each thread.
    threads: Vec<(Option<usize>, u64)>,
}

impl Seen {
    fn ran(&self) -> u64 {
        self.threads.iter().fold(0, |sum, (_, ran)| sum.saturating_add(*ran))
    }

    fn near_far(&self, memory: &MemoryByUse) -> Option<(u64, u64)> {
        let idle = self.ran() == 0;
        // Fine enough to part one thread over any memory.
        let weight = |ran: u64| if idle { 1_000_000 } else { ran };
        let known = self.threads.iter().filter_map(|(node, ran)| Some(((*node)?, weight(*ran))));
        known.filter_map(|(node, time)| near(memory, node, time).map(|near| (near, time - near))).fold(
            None,
            |sum, (near, far)| {
                let (all_near, all_far) = sum.unwrap_or((0u64, 0u64));
                Some((all_near.saturating_add(near), all_far.saturating_add(far)))
            },
        )
    }
}

/// Names of users by number, from the lines of /etc/passwd.
fn users(text: &str) -> HashMap<u32, String> {
    let user = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        Some((fields.nth(1)?.parse().ok()?, printable(name.as_bytes())))
    };
    // The first line of a number names it.
    text.lines().rev().filter_map(user).collect()
}

#[cfg(test)]
mod tests;
