//! The threads of a process: where each runs, and what it did since the last scan.

use crate::nodes::TaskNodes;
use numakit_sys::SysRoot;
use numakit_sys::proc::{TaskDir, TaskStat, digits};
use std::collections::{BTreeMap, HashMap};

/// A tick of CPU time, for kernels without finer values.
const NS_PER_TICK: u64 = 10_000_000;

/// What is read of each thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadFields {
    /// Whether its CPU time is read.
    pub cpu_time: bool,
    /// Whether its migrations, switches, preferred node and moved pages are read.
    pub scheduling: bool,
}

/// Migrations, voluntary and involuntary switches.
pub type SwitchCounts = [u64; 3];

/// One thread since the last scan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadSample {
    /// Position of the node of its current or last CPU.
    pub node: Option<usize>,
    /// Its CPU, if it runs or waits to run there.
    pub busy: Option<u32>,
    /// CPU time in ns since the last scan; `None` at the first one.
    pub ran: Option<u64>,
    /// Time in ns since the last scan in which it was ready and had no CPU; `None` at the first one, or if the kernel does not say.
    pub waited: Option<u64>,
    /// Migrations and switches since the last scan; `None` at the first one.
    pub switched: Option<SwitchCounts>,
    /// The number of its preferred node.
    pub preferred: Option<u32>,
    /// Pages that NUMA balancing moved for it since the last scan; `None` at the first one, or if the
    /// kernel does not count them.
    pub moved: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Last {
    scan: u64,
    cpu_time: u64,
    waited: Option<u64>,
    switches: SwitchCounts,
    moved: Option<u64>,
}

/// The threads of one process.
#[derive(Debug, Default)]
pub struct Threads {
    known: HashMap<u32, Last>,
    scans: u64,
}

/// How threads are scanned.
#[derive(Debug, Clone, Copy)]
pub struct ThreadScan<'a> {
    /// The machine.
    pub root: &'a SysRoot,
    /// Its nodes.
    pub nodes: &'a TaskNodes,
    /// The fields that are read.
    pub wanted: ThreadFields,
    /// Whether counts of new threads start at zero.
    pub from_start: bool,
}

impl Threads {
    /// Scans every thread; `process` is the stat line of the whole process. Threads that exit
    /// meanwhile are left out.
    pub fn scan(
        &mut self,
        scan: &ThreadScan<'_>,
        pid: u32,
        process: &TaskStat,
        each: &mut dyn FnMut(u32, &ThreadSample),
    ) {
        self.scans += 1;
        let folder = TaskDir::of(scan.root, pid);
        if process.threads <= 1 {
            self.one(scan, &folder.thread(pid), pid, process, each);
        } else {
            for tid in folder.threads().unwrap_or_default() {
                let thread = folder.thread(tid);
                if let Some(stat) = thread.stat().ok().filter(|s| !s.exited) {
                    self.one(scan, &thread, tid, &stat, each);
                }
            }
        }
        let scans = self.scans;
        self.known.retain(|_, last| last.scan == scans);
    }

    fn one(
        &mut self,
        scan: &ThreadScan<'_>,
        thread: &TaskDir<'_>,
        tid: u32,
        stat: &TaskStat,
        each: &mut dyn FnMut(u32, &ThreadSample),
    ) {
        let mut now = Last { scan: self.scans, ..Last::default() };
        let mut sample = ThreadSample {
            node: stat.cpu.and_then(|cpu| scan.nodes.of_cpu(cpu)),
            busy: stat.cpu.filter(|_| stat.runnable),
            ..ThreadSample::default()
        };
        if scan.wanted.cpu_time {
            let exact = thread.bytes("schedstat").ok();
            let exact = exact.as_deref().and_then(digits);
            now.waited = exact.and_then(|(_, rest)| digits(rest.strip_prefix(b" ")?)).map(|(ns, _)| ns);
            let exact = exact.map(|(ns, _)| ns);
            now.cpu_time = exact.unwrap_or_else(|| stat.own[2].saturating_mul(NS_PER_TICK));
        }
        if scan.wanted.scheduling
            && let Ok(text) = thread.bytes("sched")
        {
            let known = Scheduling::parse(&text);
            (now.switches, now.moved, sample.preferred) = (known.switches, known.moved, known.preferred);
        }
        let last = match self.known.insert(tid, now) {
            // A count that decreased belongs to another thread with a reused id.
            Some(last) if last.cpu_time <= now.cpu_time => Some(last),
            _ => scan.from_start.then(|| Last { moved: Some(0), waited: Some(0), ..Last::default() }),
        };
        if let Some(last) = last {
            sample.ran = Some(now.cpu_time - last.cpu_time);
            sample.waited = now.waited.zip(last.waited).map(|(now, last)| now.saturating_sub(last));
            let grown = |at: usize| now.switches[at].saturating_sub(last.switches[at]);
            sample.switched = Some(std::array::from_fn(grown));
            // What was not counted at the last scan may be as old as the thread.
            sample.moved = now.moved.zip(last.moved).map(|(now, last)| now.saturating_sub(last));
        }
        each(tid, &sample);
    }
}

/// The threads of a process by the number of the node where they run or ran last; `process` is the stat line of the process.
pub fn threads_by_node(
    root: &SysRoot,
    nodes: &TaskNodes,
    pid: u32,
    process: &TaskStat,
) -> BTreeMap<u32, u64> {
    let scan = ThreadScan { root, nodes, wanted: ThreadFields::default(), from_start: false };
    let mut threads = BTreeMap::new();
    Threads::default().scan(&scan, pid, process, &mut |_, thread| {
        if let Some(node) = thread.node {
            *threads.entry(nodes.ids()[node]).or_default() += 1;
        }
    });
    threads
}

/// Values from /proc/PID/task/TID/sched.
#[derive(Debug, Default, PartialEq, Eq)]
struct Scheduling {
    switches: SwitchCounts,
    preferred: Option<u32>,
    moved: Option<u64>,
}

impl Scheduling {
    fn parse(text: &[u8]) -> Self {
        let mut found = Self::default();
        for line in text.split(|&b| b == b'\n') {
            let Some(colon) = line.iter().position(|&b| b == b':') else { continue };
            let value = line[colon + 1..].trim_ascii_start();
            let Some((value, [])) = digits(value) else { continue };
            match line[..colon].trim_ascii_end() {
                b"se.nr_migrations" => found.switches[0] = value,
                b"nr_voluntary_switches" => found.switches[1] = value,
                b"nr_involuntary_switches" => found.switches[2] = value,
                b"numa_pages_migrated" => found.moved = Some(value),
                b"numa_preferred_nid" => found.preferred = u32::try_from(value).ok(),
                _ => {}
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migrations_switches_and_the_preferred_node_are_parsed() {
        let text = "cat (995, #threads: 1)\n-----\nse.sum_exec_runtime   :  0.17\n\
                    se.nr_migrations     :   4\nnr_voluntary_switches   : 5\nnr_involuntary_switches :6\n\
                    numa_preferred_nid   :  -1\n";
        let expected = Scheduling { switches: [4, 5, 6], preferred: None, moved: None };
        assert_eq!(Scheduling::parse(text.as_bytes()), expected);
        let chosen = Scheduling::parse(b"numa_pages_migrated : 77\nnuma_preferred_nid : 2");
        assert_eq!((chosen.preferred, chosen.moved), (Some(2), Some(77)));
    }
}
