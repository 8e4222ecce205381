//! A process and all that descend from it. Whoever was seen as a member stays one until it
//! exits, also when its parent exits first.

use super::numa_maps::MemoryByUse;
use super::tally::{Account, add};
use super::threads::Threads;
use numakit_sys::SysRoot;
use numakit_sys::proc::{Counts, TaskDir, TaskStat, tree};
use std::collections::{HashMap, HashSet};

/// A process of the tree.
#[derive(Debug)]
pub struct Member {
    /// Its number.
    pub pid: u32,
    /// When it started; `None` before it was looked at.
    start: Option<u64>,
    parent: u32,
    account: Account,
    gone: bool,
    /// What the last look saw.
    pub stat: Option<TaskStat>,
    /// Its threads.
    pub threads: Threads,
    /// Its memory, since the first walk.
    pub memory: Option<MemoryByUse>,
}

impl Member {
    fn new(pid: u32, parent: u32) -> Self {
        Self {
            pid,
            start: None,
            parent,
            account: Account::default(),
            gone: false,
            stat: None,
            threads: Threads::default(),
            memory: None,
        }
    }

    /// With the pid, a name for ever.
    pub fn start(&self) -> Option<u64> {
        self.start
    }

    fn look(&mut self, root: &SysRoot) {
        let stat = TaskDir::of(root, self.pid).stat().ok();
        // The counts of a reaped process are among its parent's already: it must not count twice.
        let same = |stat: &TaskStat| !stat.reaped && self.start.is_none_or(|start| start == stat.start);
        let Some(stat) = stat.filter(same) else {
            (self.gone, self.stat) = (true, None);
            return;
        };
        self.start = Some(stat.start);
        self.parent = stat.parent;
        self.account.look(stat.own, stat.waited);
        self.stat = Some(stat);
    }
}

/// How children are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Children {
    /// In the file `children` of each thread.
    Listed,
    /// By the parents of all processes, where the kernel has no such file.
    Searched,
}

/// The tree.
#[derive(Debug)]
pub struct Tree {
    /// Parents come before their children.
    pub members: Vec<Member>,
    lost: Counts,
    children: Children,
}

impl Tree {
    /// A tree that has this root.
    pub fn of(root: &SysRoot, pid: u32) -> Self {
        let children = if tree::has_lists(root, pid) { Children::Listed } else { Children::Searched };
        Self { members: vec![Member::new(pid, 0)], lost: [0; 3], children }
    }

    /// Looks at every member and for new ones. Members that exited go.
    pub fn look(&mut self, root: &SysRoot) {
        let mut known: HashSet<u32> = self.members.iter().map(|m| m.pid).collect();
        let searched = match self.children {
            Children::Searched => tree::by_parent(root),
            Children::Listed => HashMap::new(),
        };
        let mut at = 0;
        while at < self.members.len() {
            let member = &mut self.members[at];
            member.look(root);
            let pid = member.pid;
            let children = match (&member.stat, self.children) {
                (None, _) => Vec::new(),
                (Some(stat), Children::Listed) => tree::listed_children(root, pid, stat.threads),
                (Some(_), Children::Searched) => searched.get(&pid).cloned().unwrap_or_default(),
            };
            let new = children.into_iter().filter(|&child| known.insert(child));
            self.members.extend(new.map(|child| Member::new(child, pid)).collect::<Vec<_>>());
            at += 1;
        }
        self.settle();
    }

    /// Passes the counts of those that are gone to who answers for them.
    fn settle(&mut self) {
        let places: HashMap<u32, usize> =
            self.members.iter().enumerate().map(|(at, m)| (m.pid, at)).collect();
        for at in 0..self.members.len() {
            if !self.members[at].gone {
                continue;
            }
            let account = self.members[at].account;
            match self.ancestor(at, &places) {
                Some(place) => self.members[place].account.inherit(&account),
                None => add(&mut self.lost, &account.total()),
            }
        }
        self.members.retain(|m| !m.gone);
        for member in &mut self.members {
            member.account.settle(&mut self.lost);
        }
    }

    /// The nearest ancestor that is still there.
    fn ancestor(&self, at: usize, places: &HashMap<u32, usize>) -> Option<usize> {
        let mut at = at;
        for _ in 0..self.members.len() {
            at = *places.get(&self.members[at].parent)?;
            if !self.members[at].gone {
                return Some(at);
            }
        }
        None
    }

    /// Minor and major faults and ticks of all that are or were members.
    pub fn counts(&self) -> Counts {
        let mut sum = self.lost;
        self.members.iter().for_each(|m| add(&mut sum, &m.account.total()));
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::machine::Made;
    use numakit_sys::root::FileTree;

    /// The tree's minor faults after a look at these processes.
    fn faults(tree: &mut Tree, processes: &[&Made]) -> u64 {
        let mut files = FileTree::new();
        processes.iter().for_each(|made| made.put(&mut files));
        tree.look(&SysRoot::of_tree(files));
        tree.counts()[0]
    }

    #[test]
    fn a_child_that_is_reaped_and_still_there_counts_once() {
        let mut parent = Made { children: vec![8], ..Made::new(7, 1, 0) };
        let mut child = Made { counts: [80, 0, 0, 0, 0, 0, 0, 0], ..Made::new(8, 7, 0) };
        let mut files = FileTree::new();
        parent.put(&mut files);
        let mut tree = Tree::of(&SysRoot::of_tree(files), 7);
        assert_eq!(faults(&mut tree, &[&parent, &child]), 80);
        // The parent has waited: its count of waited-for children has them.
        parent.counts[1] = 85;
        (child.state, child.counts[0]) = ('X', 85);
        assert_eq!(faults(&mut tree, &[&parent, &child]), 85);
        parent.children.clear();
        for _ in 0..3 {
            assert_eq!(faults(&mut tree, &[&parent]), 85);
        }
    }
}
