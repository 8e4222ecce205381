//! The program that uses most CPU time: a process with the ancestors of the same program, and all that they started.

use crate::sample::ProcessSample;
use crate::tree::descendants;
use numakit_sys::proc::TaskDir;
use numakit_sys::{SysRoot, sched};
use std::cmp::Reverse;
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
    /// Whether it runs for some time, so that it can be observed now.
    pub lasts: bool,
}

/// A process that runs for longer is a program that somebody can look at, in seconds.
const LASTS: f64 = 10.0;
/// An ancestor that used less of a CPU since its start, with the children that have ended, does not do this work. A shell waits.
const WORKS: f64 = 0.05;
/// A program that lasts is named in place of one that lives shortly and uses up to this many times its CPU time.
const LESS: u64 = 4;

impl BusyProgram {
    /// The program of the process that ran most in a scan, without this process itself; `None` if none ran. One that lives shortly,
    /// such as a compiler, is part of the program that starts it.
    pub fn find(root: &SysRoot, samples: &[ProcessSample]) -> Option<Self> {
        let by_pid: HashMap<u32, &ProcessSample> = samples.iter().map(|one| (one.pid, one)).collect();
        let own = std::process::id();
        let mut running: Vec<&ProcessSample> =
            samples.iter().filter(|one| one.ran > 0 && one.pid != own).collect();
        running.sort_by_key(|one| Reverse(one.ran));
        let most = running.first()?.ran;
        let lasting = running
            .iter()
            .filter(|one| one.ran >= most / LESS)
            .find_map(|one| lasting(root, first_of_program(one, &by_pid), &by_pid));
        let first = lasting.unwrap_or_else(|| first_of_program(running[0], &by_pid));
        let tree = samples.iter().map(|one| (one.parent, one.pid));
        let all: HashSet<u32> = descendants(tree, &[first.pid]);
        let ran = samples.iter().filter(|one| all.contains(&one.pid)).map(|one| one.ran).sum();
        // What the kernel allows to read, it allows to observe.
        let is_readable = TaskDir::of(root, first.pid).text("maps").is_ok();
        let (pid, command) = (first.pid, first.command.clone());
        Some(Self { pid, command, processes: all.len(), ran, is_readable, lasts: lasting.is_some() })
    }
}

/// The ancestor that started all processes of a program. A shell that starts something else is no part of it.
fn first_of_program<'a>(
    process: &'a ProcessSample,
    by_pid: &HashMap<u32, &'a ProcessSample>,
) -> &'a ProcessSample {
    let mut first = process;
    while let Some(parent) = by_pid.get(&first.parent).filter(|parent| parent.command == first.command) {
        first = parent;
    }
    first
}

/// The process itself if it lasts, or the first of its ancestors that lasts and works, also by what it starts.
fn lasting<'a>(
    root: &SysRoot,
    process: &'a ProcessSample,
    by_pid: &HashMap<u32, &'a ProcessSample>,
) -> Option<&'a ProcessSample> {
    let (mut one, mut is_ancestor) = (process, false);
    // This process has just started.
    let now = TaskDir::own(root).stat().ok()?.start;
    loop {
        let stat = TaskDir::of(root, one.pid).stat().ok()?;
        let age = now.saturating_sub(stat.start) as f64;
        let used = stat.own[2].saturating_add(stat.waited[2]) as f64;
        if age >= LASTS * sched::ticks_per_second() as f64 && (!is_ancestor || used >= WORKS * age) {
            return Some(first_of_program(one, by_pid));
        }
        // What the first process starts are services.
        one = by_pid.get(&one.parent).filter(|parent| parent.pid != 1)?;
        is_ancestor = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::root::FileTree;

    fn process(pid: u32, parent: u32, command: &str, ran: u64) -> ProcessSample {
        ProcessSample { pid, parent, command: command.into(), ran, ..ProcessSample::default() }
    }

    /// A machine on which each process has this age and has used this CPU time with its children, in seconds; number 9 looks.
    fn machine(processes: &[(u32, u64, u64)]) -> SysRoot {
        let mut tree = FileTree::new();
        tree.symlink("/proc/self", "9");
        for (pid, age, used) in processes.iter().chain(&[(9, 0, 0)]) {
            let (start, used) =
                (1_000_000 - age * sched::ticks_per_second(), used * sched::ticks_per_second());
            let fields =
                format!("S 1 0 0 0 0 0 0 0 0 0 0 0 {used} 0 0 0 1 0 {start} 0 0 {}", "0 ".repeat(20));
            tree.file(&format!("/proc/{pid}/stat"), format!("{pid} (x) {fields}\n"));
        }
        SysRoot::of_tree(tree)
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
        let root = machine(&[(10, 60, 0), (11, 60, 30), (12, 60, 30), (20, 60, 0), (21, 60, 60)]);
        let found = |samples: &[ProcessSample]| {
            let busy = BusyProgram::find(&root, samples)?;
            assert!(!busy.is_readable && busy.lasts);
            Some((busy.pid, busy.command, busy.processes, busy.ran))
        };
        assert_eq!(found(&all), Some((21, "stress".into(), 1, 100)));
        assert_eq!(found(&all[..4]), Some((10, "postgres".into(), 3, 130)));
        assert_eq!(found(&[process(1, 0, "init", 0)]), None);
        let own = BusyProgram::find(&SysRoot::host(), &[process(std::process::id(), 1, "self", 5)]);
        assert_eq!(own, None);
    }

    #[test]
    fn what_lives_shortly_counts_for_the_program_that_starts_it() {
        let all = [
            process(20, 1, "bash", 0),
            process(30, 20, "make", 0),
            process(31, 30, "cc", 90),
            process(32, 30, "cc", 80),
            process(40, 1, "server", 30),
        ];
        let found = |root: &SysRoot, samples: &[ProcessSample]| {
            let busy = BusyProgram::find(root, samples).unwrap();
            (busy.pid, busy.ran, busy.lasts)
        };
        let young = [(31, 1, 1), (32, 1, 1), (40, 60, 5)];
        let built = machine(&[&[(20, 600, 2), (30, 30, 20)], &young[..]].concat());
        assert_eq!(found(&built, &all), (30, 170, true), "the shell waits, and make works");
        let just_started = machine(&[&[(20, 600, 2), (30, 2, 1)], &young[..]].concat());
        assert_eq!(found(&just_started, &all), (40, 30, true), "the server lasts");
        assert_eq!(found(&just_started, &all[..4]), (31, 90, false));
    }
}
