//! The threads of a process: where each runs, and what it did since the last look.

use super::nodes::TaskNodes;
use numakit_sys::SysRoot;
use numakit_sys::proc::{TaskDir, TaskStat, digits};
use std::collections::HashMap;

/// A tick of CPU time, where nothing finer is to be had.
const NS_PER_TICK: u64 = 10_000_000;

/// What is read of each thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadFields {
    /// Its CPU time.
    pub cpu_time: bool,
    /// Its moves, switches and preferred node.
    pub scheduling: bool,
}

/// Moves to another CPU, voluntary and involuntary switches.
pub type SwitchCounts = [u64; 3];

/// One thread since the last look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadSample {
    /// Place of the node of the CPU that it is or last was on.
    pub node: Option<usize>,
    /// CPU time in ns since the last look; `None` at the first one.
    pub ran: Option<u64>,
    /// Moves and switches since the last look; `None` at the first one.
    pub switched: Option<SwitchCounts>,
    /// The kernel's number of the node that it prefers.
    pub preferred: Option<u32>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Last {
    look: u64,
    cpu_time: u64,
    switches: SwitchCounts,
}

/// The threads of one process.
#[derive(Debug, Default)]
pub struct Threads {
    known: HashMap<u32, Last>,
    looks: u64,
}

/// Where one process is found, and what is read of its threads.
#[derive(Debug, Clone, Copy)]
pub struct ThreadScan<'a> {
    /// The machine.
    pub root: &'a SysRoot,
    /// Its nodes.
    pub nodes: &'a TaskNodes,
    /// What is wanted.
    pub wanted: ThreadFields,
    /// Counts of threads that were not seen before start at zero.
    pub from_start: bool,
}

impl Threads {
    /// Looks at every thread; `process` is the line of the whole process. Threads that exit
    /// meanwhile are left out.
    pub fn look(
        &mut self,
        look: &ThreadScan<'_>,
        pid: u32,
        process: &TaskStat,
        each: &mut dyn FnMut(u32, &ThreadSample),
    ) {
        self.looks += 1;
        let folder = TaskDir::of(look.root, pid);
        if process.threads <= 1 {
            self.one(look, &folder.thread(pid), pid, process, each);
        } else {
            for tid in folder.threads().unwrap_or_default() {
                let thread = folder.thread(tid);
                if let Some(stat) = thread.stat().ok().filter(|s| !s.exited) {
                    self.one(look, &thread, tid, &stat, each);
                }
            }
        }
        let looks = self.looks;
        self.known.retain(|_, last| last.look == looks);
    }

    fn one(
        &mut self,
        look: &ThreadScan<'_>,
        thread: &TaskDir<'_>,
        tid: u32,
        stat: &TaskStat,
        each: &mut dyn FnMut(u32, &ThreadSample),
    ) {
        let mut now = Last { look: self.looks, ..Last::default() };
        let mut seen =
            ThreadSample { node: stat.cpu.and_then(|cpu| look.nodes.of_cpu(cpu)), ..ThreadSample::default() };
        if look.wanted.cpu_time {
            let exact = thread.bytes("schedstat").ok();
            let exact = exact.and_then(|text| digits(&text).map(|(ns, _)| ns));
            now.cpu_time = exact.unwrap_or_else(|| stat.own[2].saturating_mul(NS_PER_TICK));
        }
        if look.wanted.scheduling
            && let Ok(text) = thread.bytes("sched")
        {
            let known = Scheduling::parse(&text);
            (now.switches, seen.preferred) = (known.switches, known.preferred);
        }
        let last = match self.known.insert(tid, now) {
            // A number that went back is of another thread that got the same id.
            Some(last) if last.cpu_time <= now.cpu_time => Some(last),
            _ => look.from_start.then(Last::default),
        };
        if let Some(last) = last {
            seen.ran = Some(now.cpu_time - last.cpu_time);
            let moved = now.switches.iter().zip(last.switches).map(|(now, last)| now.saturating_sub(last));
            let mut switched = SwitchCounts::default();
            switched.iter_mut().zip(moved).for_each(|(to, from)| *to = from);
            seen.switched = Some(switched);
        }
        each(tid, &seen);
    }
}

/// What is used of /proc/PID/task/TID/sched.
#[derive(Debug, Default, PartialEq, Eq)]
struct Scheduling {
    switches: SwitchCounts,
    preferred: Option<u32>,
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
    fn the_scheduler_tells_moves_switches_and_the_preferred_node() {
        let text = "cat (995, #threads: 1)\n-----\nse.sum_exec_runtime   :  0.17\n\
                    se.nr_migrations     :   4\nnr_voluntary_switches   : 5\nnr_involuntary_switches :6\n\
                    numa_preferred_nid   :  -1\n";
        assert_eq!(Scheduling::parse(text.as_bytes()), Scheduling { switches: [4, 5, 6], preferred: None });
        let chosen = Scheduling::parse(b"numa_preferred_nid : 2");
        assert_eq!(chosen.preferred, Some(2));
    }
}
