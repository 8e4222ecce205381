//! What a control group of version 2 tells of its memory.

use crate::name::group_of_job;
use numakit_sys::SysRoot;
use numakit_sys::proc::cgroup;

/// Lines of `memory.numa_stat` that add up to the memory of a group.
const PARTS: [&str; 5] = ["anon", "file", "kernel_stack", "pagetables", "slab_unreclaimable"];

/// The memory of a group in bytes by node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMemory(pub Vec<u64>);

impl GroupMemory {
    /// The memory of the group that is the job of a process, with all groups below, unless that is the root of all groups.
    pub fn read(root: &SysRoot, groups: &str, mounted: &str, nodes: &[u32]) -> Option<Self> {
        let path = group_of_job(cgroup::unified(groups).filter(|path| *path != "/")?);
        let folders = cgroup::folders(groups, mounted, &[], |file| root.exists(file));
        let folder = folders.iter().find(|folder| folder.path.ends_with(path))?;
        Self::parse(&root.text(&format!("{}/memory.numa_stat", folder.path)).ok()?, nodes)
    }

    /// Parses lines such as `anon N0=4096 N1=0`.
    fn parse(text: &str, nodes: &[u32]) -> Option<Self> {
        let mut sums = vec![0u64; nodes.len()];
        let mut is_any = false;
        for line in text.lines() {
            let mut words = line.split(' ');
            if !words.next().is_some_and(|part| PARTS.contains(&part)) {
                continue;
            }
            for word in words {
                let (node, bytes) = word.strip_prefix('N')?.split_once('=')?;
                let (node, bytes): (u32, u64) = (node.parse().ok()?, bytes.parse().ok()?);
                if let Some(at) = nodes.iter().position(|known| *known == node) {
                    sums[at] = sums[at].saturating_add(bytes);
                    is_any = true;
                }
            }
        }
        is_any.then_some(Self(sums))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_testing::sysfs::root;

    #[test]
    fn the_steps_of_a_job_are_added_up_by_its_group() {
        let file = |of: &str, bytes: u64| {
            (format!("/cg/slurm/job_7{of}/memory.numa_stat"), format!("anon N0={bytes}\n"))
        };
        let files = [file("", 9), file("/step_0", 4), file("/step_1", 5)];
        let mut all: Vec<(&str, &str)> =
            files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        all.push(("/cg/slurm/job_7/step_0/cgroup.procs", ""));
        let read =
            GroupMemory::read(&root(&all), "0::/slurm/job_7/step_0\n", "cgroup2 /cg cgroup2 rw 0 0\n", &[0]);
        assert_eq!(read, Some(GroupMemory(vec![9])));
    }

    #[test]
    fn memory_of_a_group_is_added_up_by_node() {
        let text =
            "anon N0=100 N2=7\nfile N0=10 N2=0\ninactive_file N0=10 N2=0\nslab_unreclaimable N0=1 N2=2\n";
        let root = root(&[("/cg/a/memory.numa_stat", text), ("/cg/a/cgroup.procs", "")]);
        let read = |groups| GroupMemory::read(&root, groups, "cgroup2 /cg cgroup2 rw 0 0\n", &[0, 2]);
        assert_eq!(read("0::/a\n"), Some(GroupMemory(vec![111, 9])));
        assert_eq!((read("0::/\n"), read("0::/b\n"), read("4:memory:/a\n")), (None, None, None));
        for bad in ["anon N0", "anon X0=1", "anon N0=-1", "anon", "", "other N0=1"] {
            assert_eq!(GroupMemory::parse(bad, &[0]), None, "{bad}");
        }
    }
}
