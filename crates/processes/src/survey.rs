//! All processes of a machine, or some of them: what they did between two scans, and the nodes of
//! their memory.

use crate::access::TaskAccess;
use crate::numa_maps::MemoryByUse;
use crate::sample::{MemorySource, ProcessSample};
use crate::threads::{ThreadFields, ThreadScan, Threads};
use crate::walk::{self, Walk, WalkFindings, WalkStep, WalkedMachine};
use numakit_model::{Fix, Topology, Unavailable};
use numakit_sys::SysRoot;
use numakit_sys::proc::{self, TaskDir, TaskStat, printable};
use std::collections::{HashMap, HashSet};

/// Scans processes repeatedly.
#[derive(Debug)]
pub struct Survey {
    machine: WalkedMachine,
    only: Option<Vec<u32>>,
    users: HashMap<u32, String>,
    known: HashMap<u32, KnownProcess>,
    scanned: bool,
    counts_moved: bool,
}

/// A process as the last scan saw it.
#[derive(Debug)]
struct KnownProcess {
    start: u64,
    faults: u64,
    major: u64,
    threads: Threads,
}

/// Chooses the processes whose memory is walked, of those that a scan found. It can ask for the user of each.
pub type WalkChoice<'a> = dyn FnMut(&[WalkCandidate], &dyn Fn(u32) -> String) -> HashSet<u32> + 'a;

/// What decides when the memory of a process is walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkCandidate {
    /// Its number.
    pub pid: u32,
    /// Its start time.
    pub start: u64,
    /// CPU time since the last scan, in ns.
    pub ran: u64,
    /// Resident memory in pages.
    pub resident: u64,
}

impl Survey {
    /// Surveys all processes, or only these. This makes the first scan.
    pub fn new(root: &SysRoot, topology: &Topology, only: Option<Vec<u32>>) -> Result<Self, Unavailable> {
        const MISSING: &str = "memory of processes by node";
        proc::processes(root)
            .map_err(|error| Unavailable::new(MISSING, error.to_string(), root.fix_for(&error.path)))?;
        let mut survey = Self {
            // A user who names a process accepts the cost.
            machine: WalkedMachine::of(root, topology, only.is_some()),
            only,
            users: users(&root.text("/etc/passwd").unwrap_or_default()),
            known: HashMap::new(),
            scanned: false,
            counts_moved: false,
        };
        let pids = survey.scan();
        if !pids.is_empty() && !pids.iter().any(|p| TaskDir::of(root, p.pid).has("numa_maps")) {
            let fix = Fix::BuildOption("CONFIG_NUMA".to_owned());
            return Err(Unavailable::new(MISSING, "there is no /proc/PID/numa_maps", fix));
        }
        Ok(survey)
    }

    /// Whether the next scans also count the pages that NUMA balancing moves, which costs a file per thread and scan.
    pub fn count_moved(&mut self, counts: bool) {
        self.counts_moved = counts;
    }

    /// The node numbers, in the order of a [`MemoryByUse`].
    pub fn nodes(&self) -> &[u32] {
        self.machine.nodes.ids()
    }

    /// What this process may read of others.
    pub fn access(&self) -> TaskAccess {
        TaskAccess::read(&self.machine.root)
    }

    /// Scans again, and walks the memory of as many processes as there is time for: those that ran
    /// most come first, then those with most memory.
    pub fn measure(&mut self, time: &dyn Fn() -> bool) -> Vec<ProcessSample> {
        self.measure_by(&|process| (process.ran, process.resident), time)
    }

    /// Does the same as [`Survey::measure`], but the processes with the greatest urgency come first.
    pub fn measure_by(
        &mut self,
        urgency: &dyn Fn(&WalkCandidate) -> (u64, u64),
        time: &dyn Fn() -> bool,
    ) -> Vec<ProcessSample> {
        let all = &mut |candidates: &[WalkCandidate], _: &dyn Fn(u32) -> String| {
            candidates.iter().map(|candidate| candidate.pid).collect()
        };
        self.measure_chosen(all, urgency, time)
    }

    /// Does the same as [`Survey::measure_by`], but walks only the memory of processes that `choose` returns of all that the scan
    /// found. It can ask for the user of each.
    pub fn measure_chosen(
        &mut self,
        choose: &mut WalkChoice<'_>,
        urgency: &dyn Fn(&WalkCandidate) -> (u64, u64),
        time: &dyn Fn() -> bool,
    ) -> Vec<ProcessSample> {
        let mut scanned = self.scan();
        scanned.sort_by_key(|s| (std::cmp::Reverse(urgency(&s.candidate())), s.pid));
        let candidates: Vec<WalkCandidate> = scanned.iter().map(ScannedProcess::candidate).collect();
        let chosen = choose(&candidates, &|pid| self.user(pid));
        let mut processes: Vec<ProcessSample> = scanned
            .iter()
            .map(|s| match chosen.contains(&s.pid) {
                true => self.process(s, time),
                false => self.process(s, &|| false),
            })
            .collect();
        processes.sort_by_key(|p| p.pid);
        processes
    }

    fn scan(&mut self) -> Vec<ScannedProcess> {
        let pids =
            self.only.clone().unwrap_or_else(|| proc::processes(&self.machine.root).unwrap_or_default());
        let wanted = ThreadFields { cpu_time: true, scheduling: self.counts_moved };
        let scan = ThreadScan {
            root: &self.machine.root,
            nodes: &self.machine.nodes,
            wanted,
            from_start: self.scanned,
        };
        self.scanned = true;
        let mut known = HashMap::new();
        let mut found = Vec::new();
        for pid in pids {
            let stat = TaskDir::of(&self.machine.root, pid).stat().ok();
            let Some(stat) = stat.filter(|s| s.runs() && !s.kernel) else { continue };
            let same = self.known.remove(&pid).filter(|known| known.start == stat.start);
            let all = stat.own[0].saturating_add(stat.own[1]);
            let major = stat.own[1];
            let faults = same.as_ref().map(|known| all.saturating_sub(known.faults));
            let major_faults = same.as_ref().map(|known| major.saturating_sub(known.major));
            let mut threads = same.map(|known| known.threads).unwrap_or_default();
            let mut scanned = ScannedProcess {
                pid,
                stat,
                faults,
                major_faults,
                threads: Vec::new(),
                waited: 0,
                moved: None,
            };
            threads.scan(&scan, pid, &scanned.stat, &mut |_, thread| {
                scanned.threads.push((thread.node, thread.ran.unwrap_or(0)));
                scanned.waited = scanned.waited.saturating_add(thread.waited.unwrap_or(0));
                scanned.moved =
                    thread.moved.map(|pages| pages + scanned.moved.unwrap_or(0)).or(scanned.moved);
            });
            known.insert(pid, KnownProcess { start: scanned.stat.start, faults: all, major, threads });
            found.push(scanned);
        }
        self.known = known;
        found
    }

    fn process(&self, scanned: &ScannedProcess, time: &dyn Fn() -> bool) -> ProcessSample {
        let (found, findings) = self.walk(scanned, time);
        let near_far = match &found {
            MemorySource::Memory(memory) => scanned.near_far(memory),
            _ => None,
        };
        ProcessSample {
            pid: scanned.pid,
            parent: scanned.stat.parent,
            start: scanned.stat.start,
            faults: scanned.faults,
            user: self.user(scanned.pid),
            command: scanned.stat.name(),
            threads: scanned.threads.len() as u64,
            ran: scanned.ran(),
            ran_on: scanned.ran_on(self.machine.nodes.count()),
            waited: scanned.waited,
            major_faults: scanned.major_faults,
            moved: scanned.moved,
            near_far,
            resident: scanned.stat.resident.saturating_mul(self.machine.page_size),
            found,
            error: findings.variance.sqrt() as u64,
            held: findings.held.is_some(),
        }
    }

    fn walk(&self, scanned: &ScannedProcess, time: &dyn Fn() -> bool) -> (MemorySource, WalkFindings) {
        let wanted = walk::WalkRequest { memory: true, huge_pages: false };
        let mut walk = Walk::new(wanted, vec![(scanned.pid, Some(scanned.stat.start))]);
        while time() {
            let found = match walk.step(&self.machine) {
                WalkStep::Part => continue,
                WalkStep::Process(_, memory) => MemorySource::Memory(memory),
                WalkStep::End if walk.findings.denied.is_some() => MemorySource::Denied,
                WalkStep::End if walk.findings.refused.is_some() => MemorySource::Refused,
                // The process exited after the scan.
                WalkStep::End => MemorySource::Memory(MemoryByUse::none(self.machine.nodes.count())),
            };
            return (found, walk.findings);
        }
        (MemorySource::Late, WalkFindings::default())
    }

    fn user(&self, pid: u32) -> String {
        match TaskDir::of(&self.machine.root, pid).status().unwrap_or_default().user() {
            Some(id) => self.users.get(&id).cloned().unwrap_or_else(|| id.to_string()),
            None => "?".to_owned(),
        }
    }
}

/// A process in one scan.
struct ScannedProcess {
    pid: u32,
    stat: TaskStat,
    faults: Option<u64>,
    /// Node and CPU time since the last scan of each thread.
    threads: Vec<(Option<usize>, u64)>,
    waited: u64,
    major_faults: Option<u64>,
    moved: Option<u64>,
}

impl ScannedProcess {
    fn candidate(&self) -> WalkCandidate {
        let TaskStat { start, resident, .. } = self.stat;
        WalkCandidate { pid: self.pid, start, ran: self.ran(), resident }
    }

    fn ran(&self) -> u64 {
        self.threads.iter().fold(0, |sum, (_, ran)| sum.saturating_add(*ran))
    }

    fn ran_on(&self, nodes: usize) -> Vec<u64> {
        let mut on = vec![0u64; nodes];
        for (node, ran) in &self.threads {
            if let Some(sum) = node.and_then(|node| on.get_mut(node)) {
                *sum = sum.saturating_add(*ran);
            }
        }
        on
    }

    fn near_far(&self, memory: &MemoryByUse) -> Option<(u64, u64)> {
        let idle = self.ran() == 0;
        // Fine enough to divide one thread by any memory.
        let weight = |ran: u64| if idle { 1_000_000 } else { ran };
        let known = self.threads.iter().filter_map(|(node, ran)| Some(((*node)?, weight(*ran))));
        known.filter_map(|(node, time)| memory.near(node, time).map(|near| (near, time - near))).fold(
            None,
            |sum, (near, far)| {
                let (all_near, all_far) = sum.unwrap_or((0u64, 0u64));
                Some((all_near.saturating_add(near), all_far.saturating_add(far)))
            },
        )
    }
}

/// Names of users by number, from /etc/passwd.
fn users(text: &str) -> HashMap<u32, String> {
    let user = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        Some((fields.nth(1)?.parse().ok()?, printable(name.as_bytes())))
    };
    // The first line with a number counts.
    text.lines().rev().filter_map(user).collect()
}

#[cfg(test)]
mod tests;
