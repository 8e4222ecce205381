//! CPUs that are in use without a reservation, from their CPU time in a short interval.

use numakit_model::CpuSet;
use numakit_sys::SysRoot;
use numakit_sys::proc::machine::{StatLine, numbers, stat_line};
use numakit_sys::proc::{LoadAverage, TaskDir, processes};
use numakit_sys::sched::affinity;
use std::collections::BTreeMap;
use std::time::Duration;

/// Interval for [`measure`]: several ticks of the kernel's accounting.
pub const INTERVAL: Duration = Duration::from_millis(60);

/// A CPU that is in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Busy {
    /// The CPU.
    pub cpu: u32,
    /// How busy the CPU is, in percent of its time.
    pub percent: u32,
    /// A process that runs on the CPU, if one was found.
    pub process: Option<(u32, String)>,
}

/// The CPUs except `registered` that are in use for at least `threshold` percent of the interval.
/// On an idle machine it returns without waiting, and in a container that numbers CPUs by itself (lxcfs) nothing is known.
pub fn measure(root: &SysRoot, registered: &CpuSet, threshold: u32, interval: Duration) -> Vec<Busy> {
    let read = || root.bytes("/proc/stat").ok().map(|text| Times::parse(&text));
    let Some(before) = read() else { return Vec::new() };
    if before.running <= 1 && LoadAverage::read(root).is_some_and(|load| load.minute < 0.3) {
        return Vec::new();
    }
    let own = if root.is_host() { affinity().unwrap_or_default() } else { CpuSet::new() };
    if before.lacks_any(&own) {
        return Vec::new();
    }
    std::thread::sleep(interval);
    let Some(after) = read() else { return Vec::new() };
    let mut busy = after.since(&before, threshold);
    busy.retain(|busy| !registered.contains(busy.cpu));
    if !busy.is_empty() {
        find_processes(root, &mut busy);
    }
    busy
}

/// CPU times since boot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Times {
    /// Ticks of work and ticks of all kinds, by CPU.
    cpus: BTreeMap<u32, (u64, u64)>,
    /// Runnable threads.
    running: u64,
}

impl Times {
    fn parse(text: &[u8]) -> Self {
        let mut times = Self::default();
        for line in text.split(|&byte| byte == b'\n') {
            match stat_line(line) {
                StatLine::Other(b"procs_running", rest) => times.running = numbers(rest).next().unwrap_or(0),
                StatLine::Other(..) => {}
                StatLine::Cpu(cpu, rest) => {
                    // user nice system idle iowait irq softirq steal; guest time is in user.
                    let all = numbers(rest).take(8).fold(0, u64::saturating_add);
                    let idle = numbers(rest).skip(3).take(2).fold(0, u64::saturating_add);
                    times.cpus.insert(cpu, (all.saturating_sub(idle), all));
                }
            }
        }
        times
    }

    /// Whether CPUs that this process may run on are not listed: then the numbers are not the kernel's.
    fn lacks_any(&self, own: &CpuSet) -> bool {
        own.iter().any(|cpu| !self.cpus.contains_key(&cpu))
    }

    fn since(&self, before: &Self, threshold: u32) -> Vec<Busy> {
        let mut busy = Vec::new();
        for (&cpu, &(work, all)) in &self.cpus {
            let Some(&(work_before, all_before)) = before.cpus.get(&cpu) else { continue };
            let all = all.saturating_sub(all_before);
            // The kernel updates idle time late: less than a tick says nothing.
            if all == 0 {
                continue;
            }
            let percent = work.saturating_sub(work_before).saturating_mul(100) / all;
            let percent = percent.min(100) as u32;
            if percent >= threshold.max(1) {
                busy.push(Busy { cpu, percent, process: None });
            }
        }
        busy
    }
}

/// Finds a process that runs on each of these CPUs now.
fn find_processes(root: &SysRoot, busy: &mut [Busy]) {
    let me = root.is_host().then(std::process::id);
    for pid in processes(root).unwrap_or_default().into_iter().filter(|pid| Some(*pid) != me) {
        let process = TaskDir::of(root, pid);
        for thread in process.live_threads() {
            let stat = process.thread(thread).stat().ok();
            let Some(stat) = stat.filter(|stat| stat.runnable) else { continue };
            let there = |busy: &&mut Busy| Some(busy.cpu) == stat.cpu && busy.process.is_none();
            if let Some(busy) = busy.iter_mut().find(there) {
                busy.process = Some((pid, stat.name()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::root::FileTree;

    const BEFORE: &str = "cpu  9 9 9 9\ncpu0 100 0 0 900 0 0 0 0 0 0\ncpu1 0 0 0 1000 0 0 0 0 0 0\n\
                          cpu2 5 5 5 985 0 0 0 0 0 0\nintr 5\nprocs_running 3\n";
    const AFTER: &str = "cpu0 106 0 0 900 0 0 0 0 0 0\ncpu1 2 0 0 1004 0 0 0 0 0 0\n\
                         cpu2 5 5 8 985 3 0 0 0 0 0\ncpu3 9 9 9 9\nprocs_running 2\n";

    #[test]
    fn a_cpu_above_the_threshold_is_busy() {
        let (before, after) = (Times::parse(BEFORE.as_bytes()), Times::parse(AFTER.as_bytes()));
        assert_eq!(before.running, 3);
        let busy = |threshold| {
            let busy = after.since(&before, threshold);
            busy.iter().map(|busy| (busy.cpu, busy.percent)).collect::<Vec<_>>()
        };
        assert_eq!(busy(50), [(0, 100), (2, 50)]);
        assert_eq!(busy(51), [(0, 100)]);
        assert_eq!(busy(33), [(0, 100), (1, 33), (2, 50)]);
    }

    #[test]
    fn cpus_that_a_container_numbers_are_not_those_of_the_kernel() {
        let times = Times::parse(BEFORE.as_bytes());
        let lacks = |own: &str| times.lacks_any(&own.parse().unwrap());
        assert!(!lacks("0-2") && !lacks("1"));
        assert!(lacks("2-3") && lacks("7"));
    }

    #[test]
    fn the_process_that_runs_there_is_named() {
        let stat = |name: &str, state: &str, cpu: u32| {
            let zeros = "0 ".repeat(35);
            format!("7 ({name}) {state} {zeros}{cpu} 0 0\n")
        };
        let mut tree = FileTree::new();
        tree.file("/proc/7/task/7/stat", stat("a) R", "S", 0));
        tree.file("/proc/7/task/8/stat", stat("worker) x", "R", 2));
        tree.file("/proc/self/stat", "nothing");
        let mut busy =
            vec![Busy { cpu: 0, percent: 90, process: None }, Busy { cpu: 2, percent: 90, process: None }];
        find_processes(&SysRoot::of_tree(tree), &mut busy);
        assert_eq!(busy[0].process, None);
        assert_eq!(busy[1].process, Some((7, "worker) x".to_owned())));
    }

    #[test]
    fn an_idle_machine_costs_no_wait() {
        let mut tree = FileTree::new();
        tree.file("/proc/stat", BEFORE.replace("running 3", "running 1"));
        tree.file("/proc/loadavg", "0.05 0.9 0.9 1/300 5\n");
        let root = SysRoot::of_tree(tree);
        assert!(measure(&root, &CpuSet::new(), 50, Duration::from_secs(60)).is_empty());
    }
}
