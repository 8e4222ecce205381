//! Where a process may run, and on which nodes it may allocate memory, for each of its threads.

use crate::access::TaskAccess;
use crate::page_query::ProcessSize;
use crate::search;
use numakit_model::CpuSet;
use numakit_sys::proc::TaskDir;
use numakit_sys::{ReadError, SysRoot};
use std::collections::BTreeMap;
use std::io::ErrorKind;

/// Threads with the same CPU mask and allowed nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadGroup {
    /// Their ids.
    pub threads: Vec<u32>,
    /// The CPUs.
    pub cpus: CpuSet,
    /// The nodes, if the kernel shows them.
    pub memory: Option<CpuSet>,
}

/// The memory policies of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Policies {
    /// Number of mappings with each policy, in the kernel's notation; those without a policy have
    /// that of the main thread.
    Of(BTreeMap<String, u64>),
    /// The kernel prints it with the location of all memory, which would stop a process of this
    /// size for too long.
    TooLarge,
    /// This user may not read them; the text says what permits it.
    Denied(String),
    /// The kernel has no file that shows them.
    Unknown,
}

/// A process: where its threads may run, and where its memory comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Affinity {
    /// Its number.
    pub pid: u32,
    /// The name of its program.
    pub command: String,
    /// Its threads, the main thread's group first.
    pub groups: Vec<ThreadGroup>,
    /// Where its memory comes from.
    pub policies: Policies,
}

impl Affinity {
    /// Reads a process and all of its threads.
    pub fn of(root: &SysRoot, pid: u32) -> Result<Self, ReadError> {
        let process = TaskDir::of(root, pid);
        let command = process.stat()?.name();
        let mut groups: Vec<ThreadGroup> = Vec::new();
        for tid in process.threads().unwrap_or_default() {
            // The thread may have ended.
            let Ok(status) = process.thread(tid).status() else { continue };
            let Some(cpus) = status.allowed_cpus() else { continue };
            let memory = status.allowed_nodes();
            match groups.iter_mut().find(|g| (&g.cpus, &g.memory) == (&cpus, &memory)) {
                Some(group) => group.threads.push(tid),
                None => groups.push(ThreadGroup { threads: vec![tid], cpus, memory }),
            }
        }
        Ok(Self { pid, command, groups, policies: policies(root, pid) })
    }
}

fn policies(root: &SysRoot, pid: u32) -> Policies {
    if root.pages().is_some() && !search::is_small(ProcessSize::of(root, pid)) {
        return Policies::TooLarge;
    }
    let text = match TaskDir::of(root, pid).text("numa_maps") {
        Ok(text) => text,
        Err(error) if error.kind == ErrorKind::PermissionDenied => {
            return Policies::Denied(TaskAccess::read(root).fix());
        }
        Err(_) => return Policies::Unknown,
    };
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split(' ').skip(1);
        let Some(first) = words.next().filter(|word| !word.is_empty()) else { continue };
        // `prefer (many):0-1` is two words.
        let policy = match words.next().filter(|word| word.starts_with("(many)")) {
            Some(many) => format!("{first} {many}"),
            None => first.to_owned(),
        };
        *found.entry(policy).or_insert(0) += 1;
    }
    if found.is_empty() { Policies::Unknown } else { Policies::Of(found) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_testing::sysfs::root;

    fn status(cpus: &str, memory: &str) -> String {
        format!("Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t{cpus}\nMems_allowed_list:\t{memory}\n")
    }

    const STAT: &str =
        "7 (a b) S 1 1 1 0 -1 0 1 0 0 0 5 5 0 0 20 0 4 0 70 9 5120 1 1 1 1 1 1 0 0 0 0 0 0 0 17 3 0 0\n";

    #[test]
    fn threads_with_the_same_mask_are_one_group_and_the_main_thread_comes_first() {
        let (wide, narrow) = (status("0-7", "0-3"), status("4", "0-3"));
        let root = root(&[
            ("/proc/7/stat", STAT),
            ("/proc/7/task/7/status", &narrow),
            ("/proc/7/task/3/status", &wide),
            ("/proc/7/task/9/status", &narrow),
            ("/proc/7/task/10/status", "Name:\tgone\n"),
            (
                "/proc/7/numa_maps",
                "1 default heap N0=1\n2 bind:1 N1=1\n3 default\n4 prefer (many):0-1 anon=1\n\n",
            ),
        ]);
        let found = Affinity::of(&root, 7).unwrap();
        let groups: Vec<(&[u32], String)> =
            found.groups.iter().map(|g| (g.threads.as_slice(), g.cpus.to_string())).collect();
        assert_eq!(groups, [(&[7, 9][..], "4".to_owned()), (&[3][..], "0-7".to_owned())]);
        assert_eq!(found.groups[0].memory, Some(CpuSet::range(0, 3)));
        let policies = [("bind:1", 1), ("default", 2), ("prefer (many):0-1", 1)];
        assert_eq!(found.policies, Policies::Of(policies.map(|(p, n)| (p.to_owned(), n)).into()));
        assert_eq!(found.command, "a b");
        assert!(Affinity::of(&root, 8).is_err());
    }

    #[test]
    fn an_unknown_policy_has_a_reason() {
        let root = root(&[("/proc/7/stat", STAT), ("/proc/self/status", "Uid:\t1\t1\t1\t1\n")]);
        assert_eq!(Affinity::of(&root, 7).unwrap().policies, Policies::Unknown);
        root.change(|tree| _ = tree.failing("/proc/7/numa_maps", ErrorKind::PermissionDenied));
        assert!(
            matches!(Affinity::of(&root, 7).unwrap().policies, Policies::Denied(fix) if fix.contains("root"))
        );
    }
}
