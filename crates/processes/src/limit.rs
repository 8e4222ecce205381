//! The CPU limit of the control group of the observed processes, and how long it kept them from running.

use numakit_sys::SysRoot;
use numakit_sys::proc::TaskDir;
use numakit_sys::proc::cgroup::{self, GroupFolder};
use numakit_sys::root::Watched;

const NS_PER_US: u64 = 1000;
/// Time between two searches for a limit while the processes stay in their groups, in ns: one can be set at any time.
const SEARCH_EVERY: u64 = 1_000_000_000;
/// How many processes are asked for their groups.
const ASKED: usize = 16;

/// The group that limits the observed processes: searched again when the first of them enters another one, and from time
/// to time.
#[derive(Debug)]
pub struct LimitWatch {
    mounted: String,
    /// The groups of the first process at the last search.
    groups: Vec<u8>,
    searched: Option<u64>,
    current: Option<CpuLimit>,
    /// The time in groups that the processes have left, in us.
    left: u64,
}

impl LimitWatch {
    /// Watches for a limit; `None` if the groups of this process have no folder where one could be.
    pub fn new(root: &SysRoot) -> Option<Self> {
        let own = TaskDir::own(root);
        let (groups, mounted) = (own.text("cgroup").ok()?, own.text("mounts").ok()?);
        let is_there = !folders(root, &groups, &mounted).is_empty();
        let watch = Self { mounted, groups: Vec::new(), searched: None, current: None, left: 0 };
        is_there.then_some(watch)
    }

    /// Searches for the limit of these processes if it is time for that.
    pub fn update(&mut self, root: &SysRoot, now: u64, processes: impl Iterator<Item = u32>) {
        let mut asked = processes.filter_map(|pid| TaskDir::of(root, pid).bytes("cgroup").ok()).take(ASKED);
        // Without a process there is nothing to search; what the last ones waited remains.
        let Some(first) = asked.next() else { return };
        let is_due = self.searched.is_none_or(|last| now.saturating_sub(last) >= SEARCH_EVERY);
        if !is_due && first == self.groups {
            return;
        }
        (self.searched, self.groups) = (Some(now), first.clone());
        let mut seen: Vec<Vec<u8>> = Vec::new();
        let mut limited = None;
        for groups in std::iter::once(first).chain(asked) {
            if limited.is_none() && !seen.contains(&groups) {
                let text = String::from_utf8_lossy(&groups);
                let mut folders = folders(root, &text, &self.mounted).into_iter();
                limited = folders.find(|folder| is_limited(root, folder));
                seen.push(groups);
            }
        }
        let path = limited.as_ref().map(|folder| folder.path.as_str());
        if path != self.current.as_ref().map(|current| current.folder.as_str()) {
            self.left = self.throttled();
            self.current = limited.and_then(|folder| CpuLimit::open(root, folder));
        }
    }

    /// How long threads were kept from running since the first search, in us, added up over CPUs; 0 without a limit.
    pub fn throttled(&mut self) -> u64 {
        let of_current = self.current.as_mut().map_or(0, CpuLimit::throttled);
        self.left.saturating_add(of_current)
    }
}

/// The statistics of a group that has a CPU limit.
#[derive(Debug)]
struct CpuLimit {
    folder: String,
    is_unified: bool,
    statistics: Watched,
    buffer: Vec<u8>,
    /// What the group had waited when it was found, for which other processes may be the reason.
    first: Option<u64>,
    last: u64,
}

impl CpuLimit {
    fn open(root: &SysRoot, folder: GroupFolder) -> Option<Self> {
        let statistics = Watched::open(root, format!("{}/cpu.stat", folder.path)).ok()?;
        let GroupFolder { path, is_unified } = folder;
        let mut limit =
            Self { folder: path, is_unified, statistics, buffer: Vec::new(), first: None, last: 0 };
        limit.throttled();
        Some(limit)
    }

    /// The time that threads waited since the group was found, in us. Once the group is gone, the last value remains.
    fn throttled(&mut self) -> u64 {
        if let Some(now) = self.read() {
            self.last = now.saturating_sub(*self.first.get_or_insert(now));
        }
        self.last
    }

    fn read(&mut self) -> Option<u64> {
        if !self.statistics.read(&mut self.buffer) {
            return None;
        }
        let (key, unit) =
            if self.is_unified { ("throttled_usec ", 1) } else { ("throttled_time ", NS_PER_US) };
        let text = std::str::from_utf8(&self.buffer).ok()?;
        let value: u64 = text.lines().find_map(|line| line.strip_prefix(key))?.trim().parse().ok()?;
        Some(value / unit)
    }
}

fn folders(root: &SysRoot, groups: &str, mounted: &str) -> Vec<GroupFolder> {
    cgroup::folders(groups, mounted, &["cpu"], |file| root.exists(file))
}

fn is_limited(root: &SysRoot, folder: &GroupFolder) -> bool {
    let path = &folder.path;
    if folder.is_unified {
        let limit = root.text(&format!("{path}/cpu.max"));
        return limit.is_ok_and(|text| !text.starts_with("max"));
    }
    let quota = root.text(&format!("{path}/cpu.cfs_quota_us"));
    quota.is_ok_and(|text| text.trim().parse::<i64>().is_ok_and(|quota| quota > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_testing::sysfs::root;

    fn set(root: &SysRoot, path: &str, text: &str) {
        root.change(|tree| _ = tree.file(path, text));
    }

    /// cgroup v2 with process 7 in `/pods/one`, whose parent has a limit, and the group `/free` without.
    fn pods() -> SysRoot {
        root(&[
            ("/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"),
            ("/proc/self/cgroup", "0::/free\n"),
            ("/proc/7/cgroup", "0::/pods/one\n"),
            ("/sys/fs/cgroup/free/cgroup.procs", "1\n"),
            ("/sys/fs/cgroup/free/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/free/cpu.stat", "throttled_usec 70\n"),
            ("/sys/fs/cgroup/pods/one/cgroup.procs", "1\n"),
            ("/sys/fs/cgroup/pods/one/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/pods/cpu.max", "50000 100000\n"),
            ("/sys/fs/cgroup/pods/cpu.stat", "usage_usec 9\nnr_throttled 2\nthrottled_usec 1234\n"),
        ])
    }

    #[test]
    fn the_nearest_group_with_a_limit_counts_from_when_it_was_found() {
        let root = pods();
        let mut watch = LimitWatch::new(&root).unwrap();
        watch.update(&root, 0, [7].into_iter());
        assert_eq!(watch.throttled(), 0);
        set(&root, "/sys/fs/cgroup/pods/cpu.stat", "throttled_usec 1300\n");
        assert_eq!(watch.throttled(), 66);
    }

    #[test]
    fn a_process_that_enters_a_group_is_followed_and_what_it_waited_is_kept() {
        let root = pods();
        set(&root, "/proc/7/cgroup", "0::/free\n");
        let mut watch = LimitWatch::new(&root).unwrap();
        let mut at = |now: u64| {
            watch.update(&root, now, [7].into_iter());
            watch.throttled()
        };
        assert_eq!(at(0), 0, "no limit");
        set(&root, "/proc/7/cgroup", "0::/pods/one\n");
        assert_eq!(at(1), 0, "the 1234 are of others");
        set(&root, "/sys/fs/cgroup/pods/cpu.stat", "throttled_usec 1300\n");
        assert_eq!(at(2), 66);
        set(&root, "/proc/7/cgroup", "0::/free\n");
        assert_eq!(at(3), 66);
        set(&root, "/sys/fs/cgroup/pods/cpu.stat", "throttled_usec 9999\n");
        assert_eq!(at(SEARCH_EVERY * 2), 66, "it left");
        root.change(|tree| _ = tree.remove("/proc/7/cgroup"));
        assert_eq!(at(SEARCH_EVERY * 4), 66, "it ended");
    }

    #[test]
    fn a_limit_that_is_set_later_is_found_within_a_second() {
        let root = pods();
        set(&root, "/proc/7/cgroup", "0::/free\n");
        let mut watch = LimitWatch::new(&root).unwrap();
        watch.update(&root, 0, [7].into_iter());
        set(&root, "/sys/fs/cgroup/free/cpu.max", "10000 100000\n");
        watch.update(&root, SEARCH_EVERY - 1, [7].into_iter());
        assert!(watch.current.is_none(), "it searches rarely");
        watch.update(&root, SEARCH_EVERY, [7].into_iter());
        set(&root, "/sys/fs/cgroup/free/cpu.stat", "throttled_usec 90\n");
        assert_eq!(watch.throttled(), 20);
    }

    #[test]
    fn the_limit_of_a_descendant_counts_if_the_first_process_has_none() {
        let root = pods();
        set(&root, "/proc/6/cgroup", "0::/free\n");
        let mut watch = LimitWatch::new(&root).unwrap();
        watch.update(&root, 0, [5, 6, 7].into_iter());
        assert_eq!(watch.current.unwrap().folder, "/sys/fs/cgroup/pods");
    }

    #[test]
    fn the_first_version_counts_in_nanoseconds() {
        let root = root(&[
            ("/proc/self/mounts", "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"),
            ("/proc/self/cgroup", "4:cpu,cpuacct:/\n"),
            ("/proc/7/cgroup", "4:cpu,cpuacct:/a\n"),
            ("/sys/fs/cgroup/cpu/a/cgroup.procs", "7\n"),
            ("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "20000\n"),
            ("/sys/fs/cgroup/cpu/a/cpu.stat", "nr_periods 5\nnr_throttled 4\nthrottled_time 2500000\n"),
        ]);
        let mut watch = LimitWatch::new(&root).unwrap();
        watch.update(&root, 0, [7].into_iter());
        set(&root, "/sys/fs/cgroup/cpu/a/cpu.stat", "nr_throttled 6\nthrottled_time 5500999\n");
        assert_eq!(watch.throttled(), 3000);
    }

    #[test]
    fn without_mounted_groups_nothing_is_known() {
        let files = [("/proc/self/mounts", "proc /proc proc rw 0 0\n"), ("/proc/self/cgroup", "0::/\n")];
        assert!(LimitWatch::new(&root(&files)).is_none());
        assert!(LimitWatch::new(&root(&[])).is_none());
    }
}
