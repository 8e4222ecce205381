//! The traced threads, and which of them are due for a sample.

use numakit_sys::proc::{TaskDir, TaskStat, digits};
use numakit_sys::{RootFile, SysRoot};
use std::collections::BTreeMap;

/// A thread that used no CPU is looked at less and less often, at last every 64 ticks.
const MAX_PAUSE: u32 = 64;

/// A traced thread.
#[derive(Debug)]
pub struct TracedThread {
    /// Its process.
    pub process: u32,
    /// CPU time at its last sample, in ns.
    sampled: u64,
    /// CPU time of the thread when it was last looked at.
    seen: u64,
    /// Page faults at its last sample.
    faults: u64,
    /// Ticks until the thread is looked at again, and the number of ticks that the last pause had.
    pause: u32,
    step: u32,
    /// What is known of the thread, once an interruption was asked for that has not stopped it yet.
    pub pending: Option<Due>,
    /// Its open files, as long as it uses CPU time.
    files: Option<TaskFiles>,
}

/// The files of a thread that are read again and again.
#[derive(Debug)]
struct TaskFiles {
    schedstat: RootFile,
    stat: RootFile,
}

/// What is known of a thread when it is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// CPU time since its last sample, in ns.
    pub weight: u64,
    /// Page faults since then.
    pub faults: u32,
    /// The CPU on which it ran.
    pub cpu: Option<u32>,
}

/// All traced threads by number.
#[derive(Debug, Default)]
pub struct TracedThreads(BTreeMap<u32, TracedThread>);

impl TracedThreads {
    /// Adds a thread that is not known yet; true if it is new.
    pub fn add(&mut self, root: &SysRoot, thread: u32) -> bool {
        if self.0.contains_key(&thread) {
            return false;
        }
        let status = TaskDir::of(root, thread).status().unwrap_or_default();
        let process = status.field("Tgid").and_then(|field| field.parse().ok()).unwrap_or(thread);
        let task = TaskDir::of(root, process).thread(thread);
        // CPU time and faults from before the thread was traced are not sampled.
        let files = TaskFiles::open(&task);
        let seen = files.as_ref().and_then(TaskFiles::cpu_time).unwrap_or(0);
        let faults = files.as_ref().and_then(TaskFiles::stat).map_or(0, |stat| faults(&stat));
        let added = TracedThread {
            process,
            sampled: seen,
            seen,
            faults,
            pause: 0,
            step: 0,
            pending: None,
            files: None,
        };
        self.0.insert(thread, added);
        true
    }

    /// The thread with this number.
    pub fn get(&mut self, thread: u32) -> Option<&mut TracedThread> {
        self.0.get_mut(&thread)
    }

    /// Removes a thread that has ended; returns its process.
    pub fn remove(&mut self, thread: u32) -> Option<u32> {
        self.0.remove(&thread).map(|removed| removed.process)
    }

    /// Removes the threads of a process that executes a different program: only the thread with the process's number is
    /// left.
    pub fn executed(&mut self, root: &SysRoot, process: u32, former: u32) {
        self.0.retain(|thread, known| *thread != former && known.process != process);
        self.add(root, process);
    }

    /// The threads that are running now and have used some CPU time of a `period` since their last sample. They are pending
    /// from now on.
    pub fn due(&mut self, root: &SysRoot, period: u64, due: &mut Vec<u32>) {
        due.clear();
        for (&number, thread) in &mut self.0 {
            if thread.pause > 0 {
                thread.pause -= 1;
                continue;
            }
            if thread.pending.is_none() && thread.is_due(root, number, period) {
                due.push(number);
            }
        }
    }
}

impl TracedThread {
    fn is_due(&mut self, root: &SysRoot, number: u32, period: u64) -> bool {
        if self.files.is_none() {
            self.files = TaskFiles::open(&TaskDir::of(root, self.process).thread(number));
        }
        let Some(time) = self.files.as_ref().and_then(TaskFiles::cpu_time) else { return false };
        if time == self.seen {
            // A thread that waits for a CPU may run at any moment, possibly for a short time only: it is looked at again at
            // the next tick.
            if self.files.as_ref().and_then(TaskFiles::stat).is_some_and(|stat| stat.runnable) {
                return false;
            }
            self.step = (self.step * 2).clamp(1, MAX_PAUSE);
            self.pause = self.step;
            // Thousands of sleeping threads keep no file open.
            self.files = None;
            return false;
        }
        (self.step, self.seen) = (0, time);
        // The kernel updates the time of a running thread only in its tick, so the time may be some ms too low.
        if time.saturating_sub(self.sampled) < period / 2 {
            return false;
        }
        // A thread that sleeps is left alone: its system call would be interrupted.
        let stat = self.files.as_ref().and_then(TaskFiles::stat).filter(|stat| stat.runnable);
        let Some(stat) = stat else { return false };
        let total = faults(&stat);
        self.pending = Some(Due {
            weight: time - self.sampled,
            faults: u32::try_from(total.saturating_sub(self.faults)).unwrap_or(u32::MAX),
            cpu: stat.cpu,
        });
        true
    }

    /// Notes that the sample was taken, or that it could not be: then the next sample includes its time.
    pub fn done(&mut self, taken: bool) {
        if let Some(due) = self.pending.take()
            && taken
        {
            self.sampled += due.weight;
            self.faults = self.faults.saturating_add(due.faults.into());
        }
    }
}

impl TaskFiles {
    fn open(task: &TaskDir<'_>) -> Option<Self> {
        Some(Self { schedstat: task.source("schedstat").ok()?, stat: task.source("stat").ok()? })
    }

    /// Time on a CPU in ns: the first number.
    fn cpu_time(&self) -> Option<u64> {
        let mut text = [0; 64];
        let length = self.schedstat.read_at(&mut text, 0).ok()?;
        digits(&text[..length]).map(|(time, _)| time)
    }

    fn stat(&self) -> Option<TaskStat> {
        let mut text = [0; 1024];
        let length = self.stat.read_at(&mut text, 0).ok()?;
        TaskStat::parse(&text[..length])
    }
}

fn faults(stat: &TaskStat) -> u64 {
    stat.own[0].saturating_add(stat.own[1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::root::FileTree;

    /// A process 7 with the threads 7 and 9: state, CPU time in ns and faults of the second one.
    fn machine(state: char, time: u64, faults: u64) -> SysRoot {
        let mut tree = FileTree::new();
        for (thread, state, time, faults) in [(7, 'S', 5, 1), (9, state, time, faults)] {
            let folder = format!("/proc/7/task/{thread}");
            let zeros = "0 ".repeat(12);
            let stat = format!(
                "{thread} (a b) {state} 1 7 7 0 -1 0 {faults} 0 0 0 0 0 0 0 0 0 2 0 55 0 0 {zeros}0 0 3 0 0"
            );
            tree.file(&format!("{folder}/stat"), stat);
            tree.file(&format!("{folder}/schedstat"), format!("{time} 77 3\n"));
            tree.file(&format!("/proc/{thread}/status"), "Name:\ta\nTgid:\t7\n");
        }
        SysRoot::of_tree(tree)
    }

    #[test]
    fn only_running_threads_are_due_and_only_after_a_period() {
        let mut threads = TracedThreads::default();
        let (before, mut due) = (machine('R', 1_000, 10), Vec::new());
        assert!(threads.add(&before, 9) && threads.add(&before, 7) && !threads.add(&before, 9));
        assert_eq!(threads.get(9).unwrap().process, 7);
        for (state, time, expected) in [('R', 1_400, false), ('S', 2_500, false)] {
            threads.get(9).unwrap().files = None;
            threads.due(&machine(state, time, 12), 1_000, &mut due);
            assert_eq!(due.contains(&9), expected, "{state} {time}");
        }
        // The same time twice makes it pause for a tick.
        let now = machine('R', 2_700, 14);
        (threads.get(9).unwrap().files, threads.get(9).unwrap().pause) = (None, 0);
        threads.due(&now, 1_000, &mut due);
        assert_eq!(due, [9]);
        let expected = Due { weight: 1_700, faults: 4, cpu: threads.get(9).unwrap().pending.unwrap().cpu };
        assert_eq!(threads.get(9).unwrap().pending, Some(expected));
        threads.due(&now, 1_000, &mut due);
        assert!(due.is_empty(), "it is pending");
        threads.get(9).unwrap().done(true);
        assert_eq!((threads.get(9).unwrap().sampled, threads.get(9).unwrap().faults), (2_700, 14));
    }

    #[test]
    fn threads_that_sleep_are_looked_at_less_and_less_often() {
        let mut threads = TracedThreads::default();
        let (root, mut due) = (machine('S', 1_000, 0), Vec::new());
        threads.add(&root, 9);
        let mut pauses = Vec::new();
        for _ in 0..300 {
            threads.due(&root, 1, &mut due);
            pauses.push(threads.get(9).unwrap().step);
        }
        assert!(pauses.starts_with(&[1, 1, 2, 2, 2, 4]) && pauses.ends_with(&[64]), "{pauses:?}");
        assert!(threads.get(9).unwrap().files.is_none());
    }

    #[test]
    fn a_thread_that_waits_for_a_cpu_is_looked_at_in_each_tick() {
        let mut threads = TracedThreads::default();
        let (root, mut due) = (machine('R', 1_000, 0), Vec::new());
        threads.add(&root, 9);
        for _ in 0..100 {
            threads.due(&root, 1, &mut due);
            assert_eq!((threads.get(9).unwrap().pause, due.len()), (0, 0));
        }
    }

    #[test]
    fn a_program_that_is_executed_leaves_one_thread() {
        let mut threads = TracedThreads::default();
        let root = machine('R', 1_000, 0);
        assert!(threads.add(&root, 7) && threads.add(&root, 9));
        threads.executed(&root, 7, 9);
        assert!(threads.get(7).is_some() && threads.get(9).is_none());
        assert_eq!((threads.remove(7), threads.remove(7)), (Some(7), None));
        assert!(threads.0.is_empty());
    }
}
