//! What /proc says of tasks and where they may run.

use numakit_model::CpuSet;
use numakit_sys::{SysRoot, sched};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Kernel threads have this flag.
const PF_KTHREAD: u64 = 0x0020_0000;
/// Threads that are about to end have this one.
const PF_EXITING: u64 = 4;

/// What takes a moment is over after so many tries.
const TRIES: u32 = 50;
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
        let stat = root.text(&format!("/proc/{pid}/stat")).ok()?;
        if field(&stat, 9)? & PF_KTHREAD != 0 || has_ended(&stat) {
            return None;
        }
        let command = stat.split_once('(')?.1.rsplit_once(')')?.0;
        let command = command.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        let status = root.text(&format!("/proc/{pid}/status")).ok()?;
        let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
        let users = users.split_whitespace().filter_map(|id| id.parse().ok()).collect();
        let environment = environment(root, pid, tag.is_some());
        let value = |name: &str| {
            let pairs = environment.as_deref().unwrap_or_default().split(|&byte| byte == 0);
            let mut pairs = pairs.filter_map(|pair| pair.strip_prefix(name.as_bytes()));
            pairs.next().map(|value| String::from_utf8_lossy(value).into_owned())
        };
        let marked = environment.as_ref().map(|_| value("NUMA_HOLD=").is_some());
        let application = value("NUMA_MASK=").and_then(|mask| CpuSet::parse_list(&mask).ok());
        Some(Self { pid, command, cpus, start: field(&stat, 22)?, users, marked, application, tag })
    }
}

/// The environment that a program was started with; none if it may not be read. Of a process that
/// is just becoming another program the kernel tells an empty one, so a `patient` reader asks again.
fn environment(root: &SysRoot, pid: u32, patient: bool) -> Option<Vec<u8>> {
    let read = || root.bytes(&format!("/proc/{pid}/environ")).ok();
    let mut environment = read();
    for _ in 0..if patient && root.is_host() { TRIES } else { 0 } {
        if environment.as_ref().is_none_or(|bytes| !bytes.is_empty()) {
            break;
        }
        std::thread::sleep(MOMENT);
        environment = read();
    }
    environment
}

/// When a process started, in ticks since boot, from its `stat`.
pub fn start_of(stat: &str) -> Option<u64> {
    field(stat, 22)
}

/// Whether a process runs nothing any more: it is about to go, or nobody has asked for its status
/// yet. Threads may go on after the first one ended.
fn has_ended(stat: &str) -> bool {
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next());
    let is_leaving = field(stat, 9).is_some_and(|flags| flags & PF_EXITING != 0);
    (is_leaving || matches!(state, Some("Z" | "X" | "x"))) && field(stat, 20).unwrap_or(0) <= 1
}

/// Fields are counted from 1; the second, the name, may hold anything.
fn field(stat: &str, number: usize) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
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
    let status = root.text(&format!("/proc/{pid}/task/{thread}/status")).ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    CpuSet::parse_list(list).ok()
}

/// Where all threads of a process may run, each set once.
pub fn masks(root: &SysRoot, pid: u32) -> BTreeSet<CpuSet> {
    if root.is_host() && sched::threads_of(pid).is_some_and(|threads| threads <= 1) {
        return mask(root, pid, pid).into_iter().collect();
    }
    let threads = root.list(&format!("/proc/{pid}/task")).unwrap_or_default();
    threads.iter().filter_map(|name| mask(root, pid, name.parse().ok()?)).collect()
}

/// All processes, in rising order.
pub fn processes(root: &SysRoot) -> Vec<u32> {
    let names = root.list("/proc").unwrap_or_default();
    let mut pids: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
    pids.sort_unstable();
    pids
}

/// The kernel's own threads, where the kernel lists them; [`Task::read`] knows the others.
pub fn kernel_threads(root: &SysRoot) -> BTreeSet<u32> {
    let is_their_parent = root.text("/proc/2/comm").is_ok_and(|name| name.trim() == "kthreadd");
    let list = root.text("/proc/2/task/2/children").ok().filter(|_| is_their_parent);
    let list = list.unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).chain(is_their_parent.then_some(2)).collect()
}

/// A process's parent, its parent and so on.
pub fn ancestors(root: &SysRoot, pid: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut pid = pid;
    while let Some(parent) = root.text(&format!("/proc/{pid}/stat")).ok().and_then(|stat| field(&stat, 4)) {
        let parent = parent as u32;
        if parent == 0 || !found.insert(parent) {
            break;
        }
        pid = parent;
    }
    found
}

/// Whether a process descends from one that lives and has this name.
pub fn has_ancestor(root: &SysRoot, pid: u32, name: &str) -> bool {
    let stat = |pid: &u32| root.text(&format!("/proc/{pid}/stat")).unwrap_or_default();
    ancestors(root, pid).iter().any(|pid| stat(pid).contains(&format!("({name})")))
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
        let Ok(groups) = root.text(&format!("/proc/{pid}/cgroup")) else { return false };
        let allowed = self.known.entry(groups).or_insert_with_key(|groups| cpuset(root, groups));
        allowed.as_ref().is_some_and(|allowed| allowed.is_subset(mask))
    }
}

/// The CPUs of the nearest group that has a cpuset, in the lines of `/proc/PID/cgroup`.
fn cpuset(root: &SysRoot, groups: &str) -> Option<CpuSet> {
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (kind, path) = (parts.next()?, parts.next()?);
        let (top, file) = match kind {
            "" => ("/sys/fs/cgroup", "cpuset.cpus.effective"),
            kind if kind.split(',').any(|name| name == "cpuset") => {
                ("/sys/fs/cgroup/cpuset", "cpuset.effective_cpus")
            }
            _ => continue,
        };
        let mut path = path.trim_end_matches('/');
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
