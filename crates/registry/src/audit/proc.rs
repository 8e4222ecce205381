//! Tasks and the CPUs that they may run on, from /proc.

use numakit_model::CpuSet;
use numakit_sys::proc::{TaskDir, Variables, cgroup, tree};
use numakit_sys::{SysRoot, sched};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Reads of a process that executes another program, which takes long on a loaded machine.
const MAX_READS: u32 = 2_000;
const RETRY_DELAY: Duration = Duration::from_millis(1);

/// A process that is bound to CPUs, or may belong to a program without locks.
#[derive(Debug, Clone, Default)]
pub struct Task {
    pub pid: u32,
    pub command: String,
    /// The CPUs of all its threads that may not run everywhere.
    pub cpus: CpuSet,
    /// Ticks since boot.
    pub start: u64,
    /// Its user ids: real, effective, saved, for files.
    pub users: Vec<u32>,
    /// Whether the task's environment says that it holds cores; `None` if that cannot be read.
    pub has_marker: Option<bool>,
    /// The CPUs of the whole application, as the environment says.
    pub application_cpus: Option<CpuSet>,
    /// The tag of the task's program.
    pub tag: Option<u64>,
}

impl Task {
    /// Reads a task; `None` for a kernel thread and for a process that has ended.
    pub fn read(root: &SysRoot, pid: u32, cpus: CpuSet, tag: Option<u64>) -> Option<Self> {
        let process = TaskDir::of(root, pid);
        let stat = process.stat().ok()?;
        if stat.kernel || stat.has_ended() {
            return None;
        }
        let status = process.status().ok()?;
        status.field("Uid")?;
        let environment = environment(&process, tag.is_some() && root.is_host());
        let has_marker = environment.as_ref().map(|known| known.get("NUMA_HOLD").is_some());
        let mask = environment.as_ref().and_then(|known| known.get("NUMA_MASK"));
        let application_cpus = mask.and_then(|mask| CpuSet::parse_list(&mask).ok());
        let (command, users) = (stat.name(), status.users());
        Some(Self { pid, command, cpus, start: stat.start, users, has_marker, application_cpus, tag })
    }
}

/// The environment that a program was started with; `None` if it cannot be read. While a process executes a different
/// program, the kernel shows neither its environment nor the addresses of its arguments; with `wait`, this waits until that
/// is over. An environment is really empty if it is empty between two reads that show the same addresses.
fn environment(process: &TaskDir<'_>, wait: bool) -> Option<Variables> {
    if !wait {
        return process.environment().ok();
    }
    let mut before = process.stat().ok()?.arguments;
    for _ in 0..MAX_READS {
        let environment = process.environment().ok()?;
        let stat = process.stat().ok().filter(|stat| !stat.has_ended());
        let is_settled = stat.as_ref().is_none_or(|stat| before.is_some() && stat.arguments == before);
        if !environment.is_empty() || is_settled {
            return Some(environment);
        }
        before = stat.and_then(|stat| stat.arguments);
        std::thread::sleep(RETRY_DELAY);
    }
    process.environment().ok()
}

/// The CPUs that are online.
pub fn online(root: &SysRoot) -> Option<CpuSet> {
    CpuSet::parse_list(&root.text("/sys/devices/system/cpu/online").ok()?).ok()
}

/// The CPU mask of one thread; on this machine from a system call, which is faster than a file.
pub fn mask(root: &SysRoot, pid: u32, thread: u32) -> Option<CpuSet> {
    if root.is_host() {
        return sched::affinity_of(thread).ok();
    }
    TaskDir::of(root, pid).thread(thread).status().ok()?.allowed_cpus()
}

/// The CPU masks of all threads of a process, without duplicates.
pub fn masks(root: &SysRoot, pid: u32) -> BTreeSet<CpuSet> {
    let threads = TaskDir::of(root, pid).live_threads();
    threads.into_iter().filter_map(|thread| mask(root, pid, thread)).collect()
}

/// The kernel's threads, if the kernel lists them; [`Task::read`] recognises the others.
pub fn kernel_threads(root: &SysRoot) -> BTreeSet<u32> {
    let parent = TaskDir::of(root, 2);
    if !parent.text("comm").is_ok_and(|name| name.trim() == "kthreadd") {
        return BTreeSet::new();
    }
    parent.thread(2).children().unwrap_or_default().into_iter().chain([2]).collect()
}

/// Whether a process has a living ancestor of this name.
pub fn has_ancestor(root: &SysRoot, pid: u32, name: &str) -> bool {
    let is_named = |pid: u32| TaskDir::of(root, pid).stat().is_ok_and(|stat| stat.command == name.as_bytes());
    tree::ancestors(root, pid).into_iter().any(is_named)
}

/// The CPUs that control groups allow.
#[derive(Debug)]
pub struct Confinements {
    /// The CPU mask of this process.
    mine: CpuSet,
    known: BTreeMap<String, Option<CpuSet>>,
}

impl Confinements {
    pub fn new(mine: CpuSet) -> Self {
        Self { mine, known: BTreeMap::new() }
    }

    /// Whether a mask needs no other explanation: it is the cpuset of the process, or equal to the mask of this process.
    pub fn explain(&mut self, root: &SysRoot, pid: u32, mask: &CpuSet) -> bool {
        if *mask == self.mine {
            return true;
        }
        let Ok(groups) = TaskDir::of(root, pid).text("cgroup") else { return false };
        let allowed = self.known.entry(groups).or_insert_with_key(|groups| cpuset(root, groups));
        allowed.as_ref().is_some_and(|allowed| allowed.is_subset(mask))
    }
}

/// The CPUs of the nearest group that has a cpuset, in the lines of `/proc/PID/cgroup`.
fn cpuset(root: &SysRoot, groups: &str) -> Option<CpuSet> {
    for group in cgroup::lines(groups) {
        let (top, file) = match group {
            _ if group.is_unified => ("/sys/fs/cgroup", "cpuset.cpus.effective"),
            _ if group.has("cpuset") => ("/sys/fs/cgroup/cpuset", "cpuset.effective_cpus"),
            _ => continue,
        };
        let mut path = group.path.trim_end_matches('/');
        loop {
            let text = root.text(&format!("{top}{path}/{file}")).unwrap_or_default();
            if let Some(set) = CpuSet::parse_list(&text).ok().filter(|set| !set.is_empty()) {
                return Some(set);
            }
            let Some((parent, _)) = path.rsplit_once('/') else { break };
            path = parent;
        }
    }
    None
}
