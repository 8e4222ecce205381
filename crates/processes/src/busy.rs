//! The program that uses most CPU time: a process with the ancestors of the same program, and all that they started.

use crate::sample::ProcessSample;
use crate::tree::descendants;
use numakit_sys::SysRoot;
use numakit_sys::proc::TaskDir;
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
    /// Whether this process may observe it.
    pub is_readable: bool,
}

impl BusyProgram {
    /// The program of the process that ran most in a scan, without this process itself; `None` if none ran.
    pub fn find(root: &SysRoot, samples: &[ProcessSample]) -> Option<Self> {
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
        // What the kernel allows to read, it allows to observe.
        let is_readable = TaskDir::of(root, first.pid).text("maps").is_ok();
        Some(Self { pid: first.pid, command: first.command.clone(), processes: all.len(), ran, is_readable })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::root::FileTree;

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
        let found = |samples: &[ProcessSample]| {
            let busy = BusyProgram::find(&SysRoot::of_tree(FileTree::new()), samples)?;
            assert!(!busy.is_readable);
            Some((busy.pid, busy.command, busy.processes, busy.ran))
        };
        assert_eq!(found(&all), Some((21, "stress".into(), 1, 100)));
        assert_eq!(found(&all[..4]), Some((10, "postgres".into(), 3, 130)));
        assert_eq!(found(&[process(1, 0, "init", 0)]), None);
        let own = BusyProgram::find(&SysRoot::host(), &[process(std::process::id(), 1, "self", 5)]);
        assert_eq!(own, None);
    }
}
