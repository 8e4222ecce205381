//! Parents and children of processes.

use super::{TaskDir, processes};
use crate::SysRoot;
use std::collections::{BTreeSet, HashMap, HashSet};

/// The children of every process, each list in ascending order.
pub fn by_parent(root: &SysRoot) -> HashMap<u32, Vec<u32>> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for pid in processes(root).unwrap_or_default() {
        // A process that has exited meanwhile has no parent.
        if let Ok(stat) = TaskDir::of(root, pid).stat() {
            children.entry(stat.parent).or_default().push(pid);
        }
    }
    children
}

/// A process and its descendants, parents before their children.
pub fn family(root: &SysRoot, pid: u32) -> Vec<u32> {
    families(root, &[pid])
}

/// These processes and their descendants, each once, parents before their children.
pub fn families(root: &SysRoot, pids: &[u32]) -> Vec<u32> {
    families_among(&by_parent(root), pids)
}

/// These processes and their descendants in one reading of all processes, as [`families`].
pub fn families_among(children: &HashMap<u32, Vec<u32>>, pids: &[u32]) -> Vec<u32> {
    let mut known = HashSet::new();
    let mut family: Vec<u32> = pids.iter().copied().filter(|pid| known.insert(*pid)).collect();
    let mut at = 0;
    while let Some(parent) = family.get(at) {
        let new = children.get(parent).into_iter().flatten().filter(|child| known.insert(**child));
        family.extend(new.collect::<Vec<_>>());
        at += 1;
    }
    family
}

/// A process's parent, its parent and so on.
pub fn ancestors(root: &SysRoot, pid: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut pid = pid;
    while let Ok(stat) = TaskDir::of(root, pid).stat() {
        if stat.parent == 0 || !found.insert(stat.parent) {
            break;
        }
        pid = stat.parent;
    }
    found
}

/// Whether the kernel lists the children of processes (CONFIG_PROC_CHILDREN).
pub fn has_lists(root: &SysRoot, pid: u32) -> bool {
    TaskDir::of(root, pid).thread(pid).has("children")
}

/// The children of a process with this number of threads, if the kernel lists them.
pub fn listed_children(root: &SysRoot, pid: u32, threads: u64) -> Vec<u32> {
    let process = TaskDir::of(root, pid);
    let tids = if threads <= 1 { vec![pid] } else { process.threads().unwrap_or_default() };
    tids.into_iter().flat_map(|tid| process.thread(tid).children().unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::FileTree;

    fn machine(parents: &[(u32, u32)]) -> SysRoot {
        let mut tree = FileTree::new();
        for (pid, parent) in parents {
            let zeros = "0 ".repeat(20);
            tree.file(&format!("/proc/{pid}/stat"), format!("{pid} (x) S {parent} {zeros}\n"));
        }
        tree.file("/proc/8/task/8/children", "9 12 \n").file("/proc/8/task/10/children", "11");
        SysRoot::of_tree(tree)
    }

    #[test]
    fn a_family_is_everybody_below_and_ancestors_are_above() {
        let root = machine(&[(1, 0), (7, 1), (8, 7), (9, 8), (12, 8), (13, 7), (20, 1)]);
        assert_eq!(family(&root, 7), [7, 8, 13, 9, 12]);
        assert_eq!(family(&root, 99), [99]);
        assert_eq!(families(&root, &[8, 13, 9]), [8, 13, 9, 12], "a child that is named too is there once");
        assert_eq!(ancestors(&root, 9), BTreeSet::from([1, 7, 8]));
        assert_eq!(ancestors(&root, 99), BTreeSet::new());
        assert_eq!(by_parent(&root)[&1], [7, 20]);
    }

    #[test]
    fn a_circle_ends() {
        let root = machine(&[(7, 9), (8, 7), (9, 8)]);
        assert_eq!(family(&root, 7), [7, 8, 9]);
        assert_eq!(ancestors(&root, 7), BTreeSet::from([7, 8, 9]));
    }

    #[test]
    fn children_of_all_threads_are_listed() {
        let root = machine(&[]);
        assert!(has_lists(&root, 8) && !has_lists(&root, 9));
        assert_eq!(listed_children(&root, 8, 1), [9, 12]);
        assert_eq!(listed_children(&root, 8, 2), [9, 12, 11]);
    }
}
