//! The CPU limit of the control group of the observed processes, and how long it kept them from running.

use crate::watched::Watched;
use numakit_sys::SysRoot;
use numakit_sys::proc::TaskDir;
use numakit_sys::proc::cgroup::{self, GroupFolder};

const NS_PER_US: u64 = 1000;

/// The statistics of the nearest group that has a CPU limit.
#[derive(Debug)]
pub struct CpuLimit {
    statistics: Watched,
    is_unified: bool,
    buffer: Vec<u8>,
}

impl CpuLimit {
    /// That of a process, or of this one, whose commands inherit it; none without a limit.
    pub fn find(root: &SysRoot, pid: Option<u32>) -> Option<Self> {
        let process = pid.map_or_else(|| TaskDir::own(root), |pid| TaskDir::of(root, pid));
        let groups = process.text("cgroup").ok()?;
        let mounted = TaskDir::own(root).text("mounts").ok()?;
        let folders = cgroup::folders(&groups, &mounted, &["cpu"], |file| root.exists(file));
        let limited = folders.into_iter().find(|folder| is_limited(root, folder))?;
        let statistics = Watched::open(root, format!("{}/cpu.stat", limited.path)).ok()?;
        Some(Self { statistics, is_unified: limited.is_unified, buffer: Vec::new() })
    }

    /// How long threads of the group were kept from running so far, in us, added up over CPUs.
    pub fn throttled(&mut self) -> Option<u64> {
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
    use numakit_sys::root::FileTree;

    fn root(files: &[(&str, &str)]) -> SysRoot {
        let mut tree = FileTree::new();
        for (path, text) in files {
            tree.file(path, *text);
        }
        SysRoot::of_tree(tree)
    }

    #[test]
    fn the_nearest_group_with_a_limit_counts() {
        let root = root(&[
            ("/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"),
            ("/proc/self/cgroup", "0::/pods/one\n"),
            ("/sys/fs/cgroup/pods/one/cgroup.procs", "1\n"),
            ("/sys/fs/cgroup/pods/one/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/pods/cpu.max", "50000 100000\n"),
            ("/sys/fs/cgroup/pods/cpu.stat", "usage_usec 9\nnr_throttled 2\nthrottled_usec 1234\n"),
        ]);
        assert_eq!(CpuLimit::find(&root, None).unwrap().throttled(), Some(1234));
    }

    #[test]
    fn the_first_version_counts_in_nanoseconds() {
        let files = [
            ("/proc/self/mounts", "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"),
            ("/proc/7/cgroup", "4:cpu,cpuacct:/a\n"),
            ("/sys/fs/cgroup/cpu/a/cgroup.procs", "7\n"),
            ("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "20000\n"),
            ("/sys/fs/cgroup/cpu/a/cpu.stat", "nr_periods 5\nnr_throttled 4\nthrottled_time 2500000\n"),
        ];
        assert_eq!(CpuLimit::find(&root(&files), Some(7)).unwrap().throttled(), Some(2500));
        assert!(CpuLimit::find(&root(&files), None).is_none(), "another process");
    }

    #[test]
    fn without_a_limit_there_is_nothing_to_count() {
        let root = root(&[
            ("/proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"),
            ("/proc/self/cgroup", "0::/a\n"),
            ("/sys/fs/cgroup/a/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/a/cpu.stat", "throttled_usec 0\n"),
        ]);
        assert!(CpuLimit::find(&root, None).is_none());
    }
}
