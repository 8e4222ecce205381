//! What /proc says of tasks and where they may run.

use numakit_model::CpuSet;
use numakit_sys::proc::{TaskDir, Variables, cgroup, tree};
use numakit_sys::{SysRoot, sched};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Looks at a process that executes another program; on a loaded machine that takes long.
const TRIES: u32 = 2_000;
const MOMENT: Duration = Duration::from_millis(1);

/// A process that is not free to run everywhere.
#[derive(Debug, Clone, Default)]
pub struct Task {
    pub pid: u32,
    pub command: String,
    /// Where all its threads may run that may not run everywhere.
    pub cpus: CpuSet,
    /// Ticks since boot.
    pub start: u64,
    /// Its user ids: real, effective, saved, for files.
    pub users: Vec<u32>,
    /// Whether its environment says that it holds cores; none if that may not be read.
    pub marked: Option<bool>,
    /// The CPUs of the whole application, as the environment says.
    pub application: Option<CpuSet>,
    /// What it and its relatives are told by.
    pub tag: Option<u64>,
}

impl Task {
    /// Nothing for a thread of the kernel and for a process that has ended.
    pub fn read(root: &SysRoot, pid: u32, cpus: CpuSet, tag: Option<u64>) -> Option<Self> {
        let process = TaskDir::of(root, pid);
        let stat = process.stat().ok()?;
        if stat.kernel || stat.has_ended() {
            return None;
        }
        let status = process.status().ok()?;
        status.field("Uid")?;
        let environment = environment(&process, tag.is_some() && root.is_host());
        let marked = environment.as_ref().map(|known| known.get("NUMA_HOLD").is_some());
        let mask = environment.as_ref().and_then(|known| known.get("NUMA_MASK"));
        let application = mask.and_then(|mask| CpuSet::parse_list(&mask).ok());
        let (command, users) = (stat.name(), status.users());
        Some(Self { pid, command, cpus, start: stat.start, users, marked, application, tag })
    }
}

/// The environment that a program was started with; none if it may not be read. While a process executes
/// another program, the kernel shows neither its environment nor where its arguments are: a `patient` reader
/// waits for the end of that. An environment that is empty between two looks at the same arguments is empty.
fn environment(process: &TaskDir<'_>, patient: bool) -> Option<Variables> {
    let arguments = || process.stat().ok().and_then(|stat| stat.arguments);
    let mut before = if patient { arguments() } else { None };
    let mut environment = process.environment().ok();
    for _ in 0..if patient { TRIES } else { 0 } {
        if environment.as_ref().is_none_or(|known| !known.is_empty()) {
            break;
        }
        let after = arguments();
        if before.is_some() && before == after || !process.stat().is_ok_and(|stat| !stat.has_ended()) {
            break;
        }
        std::thread::sleep(MOMENT);
        before = after;
        environment = process.environment().ok();
    }
    environment
}

/// The CPUs that run.
pub fn online(root: &SysRoot) -> Option<CpuSet> {
    CpuSet::parse_list(&root.text("/sys/devices/system/cpu/online").ok()?).ok()
}

/// Where one thread may run. On this machine the kernel is asked, which is quicker than a file.
pub fn mask(root: &SysRoot, pid: u32, thread: u32) -> Option<CpuSet> {
    if root.is_host() {
        return sched::affinity_of(thread).ok();
    }
    TaskDir::of(root, pid).thread(thread).status().ok()?.allowed_cpus()
}

/// Where all threads of a process may run, each set once.
pub fn masks(root: &SysRoot, pid: u32) -> BTreeSet<CpuSet> {
    threads(root, pid).into_iter().filter_map(|thread| mask(root, pid, thread)).collect()
}

/// The threads of a process, in the cheapest way; none if it is not there.
pub fn threads(root: &SysRoot, pid: u32) -> Vec<u32> {
    let process = TaskDir::of(root, pid);
    match process.thread_count() {
        Some(0 | 1) => vec![pid],
        _ => process.threads().unwrap_or_default(),
    }
}

/// The kernel's own threads, where the kernel lists them; [`Task::read`] knows the others.
pub fn kernel_threads(root: &SysRoot) -> BTreeSet<u32> {
    let parent = TaskDir::of(root, 2);
    if !parent.text("comm").is_ok_and(|name| name.trim() == "kthreadd") {
        return BTreeSet::new();
    }
    parent.thread(2).children().unwrap_or_default().into_iter().chain([2]).collect()
}

/// Whether a process descends from one that lives and has this name.
pub fn has_ancestor(root: &SysRoot, pid: u32, name: &str) -> bool {
    let is_named = |pid: u32| TaskDir::of(root, pid).stat().is_ok_and(|stat| stat.command == name.as_bytes());
    tree::ancestors(root, pid).into_iter().any(is_named)
}

/// Where control groups allow processes to run.
#[derive(Debug)]
pub struct Confinements {
    /// What this process itself is confined to, by whatever.
    mine: CpuSet,
    known: BTreeMap<String, Option<CpuSet>>,
}

impl Confinements {
    pub fn new(mine: CpuSet) -> Self {
        Self { mine, known: BTreeMap::new() }
    }

    /// Whether a mask is nothing but the cpuset that the process is in, or what is so for this
    /// process as well.
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
