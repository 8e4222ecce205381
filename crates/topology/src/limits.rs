//! What the control group of this process is limited to: CPU time and memory.

use crate::reader::Reader;
use numakit_model::topology::{ControlLimits, HugePageLimit, Node};
use numakit_sys::proc::cgroup::{self, GroupFolder};

/// A controller of cgroup v1 that gives no memory limit says so with a number near 2^63.
const NO_LIMIT: u64 = 1 << 60;
/// The controllers of cgroup v1 that have limits.
const CONTROLLERS: [&str; 3] = ["cpu", "memory", "hugetlb"];

/// The smallest limits of this process's groups and of the groups above them.
pub(crate) fn read(reader: &mut Reader<'_>, nodes: &[Node]) -> ControlLimits {
    let mut limits = ControlLimits::default();
    let mut sizes: Vec<u64> = nodes.iter().flat_map(|n| &n.huge_pages).map(|pool| pool.size_kb).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let groups = reader.text(format_args!("/proc/self/cgroup")).unwrap_or_default().to_owned();
    let mounted = reader.text(format_args!("/proc/mounts")).unwrap_or_default().to_owned();
    let exists = |file: &str| reader.text(format_args!("{file}")).is_some();
    for GroupFolder { path, is_unified } in cgroup::folders(&groups, &mounted, &CONTROLLERS, exists) {
        let (cpus, memory) = if is_unified { unified(reader, &path) } else { of_controllers(reader, &path) };
        limits.cpus = least(limits.cpus, cpus, f64::min);
        limits.memory_kb = least(limits.memory_kb, memory.map(|bytes| bytes / 1024), u64::min);
        for &size_kb in &sizes {
            let bytes = huge_pages(reader, &path, size_kb, is_unified);
            limit_huge_pages(&mut limits.huge_pages, size_kb, bytes);
        }
    }
    limits
}

fn least<T>(one: Option<T>, other: Option<T>, min: fn(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(min(one, other)),
        (one, other) => one.or(other),
    }
}

/// The limit in bytes of a group for huge pages of one size.
fn huge_pages(reader: &mut Reader<'_>, folder: &str, size_kb: u64, is_unified: bool) -> Option<u64> {
    let size = match size_kb {
        kb if kb >= 1 << 20 => format!("{}GB", kb >> 20),
        kb if kb >= 1 << 10 => format!("{}MB", kb >> 10),
        kb => format!("{kb}KB"),
    };
    let file = if is_unified { "max" } else { "limit_in_bytes" };
    let text = reader.text(format_args!("{folder}/hugetlb.{size}.{file}"))?;
    text.trim().parse().ok().filter(|bytes| *bytes < NO_LIMIT)
}

fn limit_huge_pages(limits: &mut Vec<HugePageLimit>, size_kb: u64, bytes: Option<u64>) {
    let Some(memory_kb) = bytes.map(|bytes| bytes / 1024) else { return };
    match limits.iter_mut().find(|known| known.size_kb == size_kb) {
        Some(known) => known.memory_kb = known.memory_kb.min(memory_kb),
        None => limits.push(HugePageLimit { size_kb, memory_kb }),
    }
}

/// CPUs' worth of time, and bytes.
type Limits = (Option<f64>, Option<u64>);

fn unified(reader: &mut Reader<'_>, folder: &str) -> Limits {
    let cpus = reader.text(format_args!("{folder}/cpu.max")).and_then(|text| {
        let (quota, period) = text.trim().split_once(' ')?;
        worth(quota.parse().ok()?, period.parse().ok()?)
    });
    let memory = reader.text(format_args!("{folder}/memory.max")).and_then(|text| text.trim().parse().ok());
    (cpus, memory)
}

fn of_controllers(reader: &mut Reader<'_>, folder: &str) -> Limits {
    let mut number = |name: &str| reader.text(format_args!("{folder}/{name}"))?.trim().parse::<i64>().ok();
    let quota = number("cpu.cfs_quota_us").filter(|quota| *quota > 0);
    let cpus = quota.zip(number("cpu.cfs_period_us")).and_then(|(quota, period)| worth(quota, period));
    let memory = number("memory.limit_in_bytes").and_then(|bytes| u64::try_from(bytes).ok());
    (cpus, memory.filter(|bytes| *bytes < NO_LIMIT))
}

fn worth(quota: i64, period: i64) -> Option<f64> {
    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_model::topology::HugePagePool;
    use numakit_sys::SysRoot;
    use numakit_sys::root::FileTree;

    fn limits(files: &[(&str, &str)]) -> ControlLimits {
        let mut tree = FileTree::new();
        for (path, text) in files {
            tree.file(path, *text);
        }
        let root = SysRoot::of_tree(tree);
        let pools = [1 << 20, 2048].map(|size_kb| HugePagePool { size_kb, count: 0 }).to_vec();
        read(&mut Reader::new(&root), &[Node { huge_pages: pools, ..Node::default() }])
    }

    const UNIFIED: (&str, &str) = ("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");

    #[test]
    fn the_least_of_the_groups_own_limits_and_of_those_above_counts() {
        let files = [
            UNIFIED,
            ("/proc/self/cgroup", "0::/pods/one\n"),
            ("/sys/fs/cgroup/pods/one/cgroup.procs", "1\n"),
            ("/sys/fs/cgroup/pods/one/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/pods/one/memory.max", "2147483648\n"),
            ("/sys/fs/cgroup/pods/cpu.max", "250000 100000\n"),
            ("/sys/fs/cgroup/pods/memory.max", "max\n"),
        ];
        assert_eq!(
            limits(&files),
            ControlLimits { cpus: Some(2.5), memory_kb: Some(2 << 20), ..Default::default() }
        );
        assert_eq!(limits(&files).threads(), Some(2));
    }

    #[test]
    fn in_a_namespace_of_control_groups_the_mount_is_the_own_group() {
        let own = [
            UNIFIED,
            ("/proc/self/cgroup", "0::/../../kubepods/pod1\n"),
            ("/sys/fs/cgroup/cpu.max", "50000 100000\n"),
        ];
        assert_eq!(limits(&own).cpus, Some(0.5));
        assert_eq!(limits(&own).threads(), Some(1));
    }

    #[test]
    fn controllers_of_version_1_have_their_own_files() {
        let mounts =
            "x /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\nx /sys/fs/cgroup/memory cgroup rw,memory 0 0\n";
        let files = [
            ("/proc/mounts", mounts),
            ("/proc/self/cgroup", "4:cpu,cpuacct:/docker/a\n3:memory:/docker/a\n"),
            ("/sys/fs/cgroup/cpu/docker/a/cgroup.procs", "1\n"),
            ("/sys/fs/cgroup/cpu/docker/a/cpu.cfs_quota_us", "400000\n"),
            ("/sys/fs/cgroup/cpu/docker/a/cpu.cfs_period_us", "100000\n"),
            ("/sys/fs/cgroup/memory/docker/a/cgroup.procs", "1\n"),
            ("/sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes", "1073741824\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        assert_eq!(
            limits(&files),
            ControlLimits { cpus: Some(4.0), memory_kb: Some(1 << 20), ..Default::default() }
        );
        assert_eq!(limits(&[]), ControlLimits::default());
    }
    #[test]
    fn huge_pages_are_limited_by_size() {
        let files = [
            UNIFIED,
            ("/proc/self/cgroup", "0::/pods/one\n"),
            ("/sys/fs/cgroup/pods/one/cgroup.procs", "1\n"),
            ("/sys/fs/cgroup/pods/one/hugetlb.2MB.max", "4194304\n"),
            ("/sys/fs/cgroup/pods/one/hugetlb.1GB.max", "max\n"),
            ("/sys/fs/cgroup/pods/hugetlb.2MB.max", "2097152\n"),
        ];
        assert_eq!(limits(&files).huge_pages, [HugePageLimit { size_kb: 2048, memory_kb: 2048 }]);
        let of_version_1 = [
            ("/proc/mounts", "x /sys/fs/cgroup/hugetlb cgroup rw,hugetlb 0 0\n"),
            ("/proc/self/cgroup", "4:hugetlb:/a\n"),
            ("/sys/fs/cgroup/hugetlb/a/cgroup.procs", "1\n"),
            ("/sys/fs/cgroup/hugetlb/a/hugetlb.2MB.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/hugetlb/a/hugetlb.1GB.limit_in_bytes", "1073741824\n"),
        ];
        assert_eq!(
            limits(&of_version_1).huge_pages,
            [HugePageLimit { size_kb: 1 << 20, memory_kb: 1 << 20 }]
        );
    }
}
