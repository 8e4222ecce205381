//! The program that uses most CPU time: a process with the ancestors of the same program, and all that they started.

use crate::sample::ProcessSample;
use crate::tree::descendants;
use std::collections::{HashMap, HashSet};

/// A program, and what it used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusyProgram {
    /// The process that started the others.
    pub pid: u32,
    /// The name of its program.
    pub command: String,
    /// Its processes.
    pub processes: usize,
    /// Their CPU time between two scans, ns.
    pub ran: u64,
}

impl BusyProgram {
    /// The program of the process that ran most in a scan, without this process itself; `None` if none ran.
    pub fn find(samples: &[ProcessSample]) -> Option<Self> {
        let by_pid: HashMap<u32, &ProcessSample> = samples.iter().map(|one| (one.pid, one)).collect();
        let own = std::process::id();
        let most = samples.iter().filter(|one| one.ran > 0 && one.pid != own).max_by_key(|one| one.ran)?;
        let mut first = most;
        // A server starts workers of its own program; a shell that starts something else is no part of it.
        while let Some(parent) = by_pid.get(&first.parent).filter(|parent| parent.command == first.command) {
            first = parent;
        }
        let tree = samples.iter().map(|one| (one.parent, one.pid));
        let all: HashSet<u32> = descendants(tree, &[first.pid]);
        let ran = samples.iter().filter(|one| all.contains(&one.pid)).map(|one| one.ran).sum();
        Some(Self { pid: first.pid, command: first.command.clone(), processes: all.len(), ran })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, parent: u32, command: &str, ran: u64) -> ProcessSample {
        ProcessSample { pid, parent, command: command.into(), ran, ..ProcessSample::default() }
    }

    #[test]
    fn workers_count_for_the_process_that_started_them() {
        let all = [
            process(1, 0, "init", 5),
            process(10, 1, "postgres", 0),
            process(11, 10, "postgres", 60),
            process(12, 10, "postgres", 70),
            process(20, 1, "bash", 0),
            process(21, 20, "stress", 100),
        ];
        let busy = BusyProgram::find(&all);
        assert_eq!(busy, Some(BusyProgram { pid: 21, command: "stress".into(), processes: 1, ran: 100 }));
        let busy = BusyProgram::find(&all[..4]);
        assert_eq!(busy, Some(BusyProgram { pid: 10, command: "postgres".into(), processes: 3, ran: 130 }));
        assert_eq!(BusyProgram::find(&[process(1, 0, "init", 0)]), None);
    }
}
