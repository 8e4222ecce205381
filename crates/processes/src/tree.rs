//! A process and all its descendants. A member stays one until it exits, even if its parent exits
//! first.

use crate::account::{Account, add};
use crate::numa_maps::MemoryByUse;
use crate::threads::Threads;
use numakit_sys::SysRoot;
use numakit_sys::proc::{Counts, TaskDir, TaskStat, tree};
use std::collections::{HashMap, HashSet};

/// A process of the tree.
#[derive(Debug)]
pub struct Member {
    /// Its number.
    pub pid: u32,
    /// When it started; `None` before the first scan.
    start: Option<u64>,
    parent: u32,
    account: Account,
    /// What it and its children had counted before it joined, if it ran before the observation began.
    before: [Counts; 2],
    gone: bool,
    /// Its stat at the last scan.
    pub stat: Option<TaskStat>,
    /// Its threads.
    pub threads: Threads,
    /// Its memory as the last walk found it.
    pub memory: Option<MemoryByUse>,
}

impl Member {
    fn new(pid: u32, parent: u32) -> Self {
        Self {
            pid,
            start: None,
            parent,
            account: Account::default(),
            before: [[0; 3]; 2],
            gone: false,
            stat: None,
            threads: Threads::default(),
            memory: None,
        }
    }

    /// A process that joins: what it did before the observation began does not belong to that.
    fn joined(root: &SysRoot, pid: u32, began: u64) -> Self {
        let stat = TaskDir::of(root, pid).stat().ok().filter(|stat| stat.start < began);
        let before = stat.map_or([[0; 3]; 2], |stat| [stat.own, stat.waited]);
        Self { before, ..Self::new(pid, 0) }
    }

    /// Whether it ran before the observation began, but joined later.
    pub fn is_older(&self) -> bool {
        self.before != [[0; 3]; 2]
    }

    /// The start time of the process, which with its number identifies it.
    pub fn start(&self) -> Option<u64> {
        self.start
    }

    /// The stat of the process at the last scan, if it had not exited.
    pub fn running(&self) -> Option<&TaskStat> {
        self.stat.as_ref().filter(|stat| stat.runs())
    }

    fn scan(&mut self, root: &SysRoot) {
        let stat = TaskDir::of(root, self.pid).stat().ok();
        // The parent's counts include those of a reaped process already.
        let same = |stat: &TaskStat| !stat.reaped && self.start.is_none_or(|start| start == stat.start);
        let Some(stat) = stat.filter(same) else {
            (self.gone, self.stat) = (true, None);
            return;
        };
        self.start = Some(stat.start);
        self.parent = stat.parent;
        let [own, waited] = self.before;
        self.account.update(without(stat.own, own), without(stat.waited, waited));
        self.stat = Some(stat);
    }
}

/// How children are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Children {
    /// In the file `children` of each thread.
    Listed,
    /// From the parents of all processes, if the kernel has no such file.
    Searched,
}

/// Processes with their descendants.
#[derive(Debug)]
pub struct Tree {
    /// Those at the begin, then the others, parents before their children.
    pub members: Vec<Member>,
    lost: Counts,
    children: Children,
    /// When the observation began, in ticks since boot.
    began: u64,
}

/// Counts since these.
fn without(counts: Counts, before: Counts) -> Counts {
    std::array::from_fn(|at| counts[at].saturating_sub(before[at]))
}

/// Ticks in a second, in which the kernel gives the start of a process.
const TICKS: f64 = 100.0;

/// The time in ticks since boot; 0 if it is not known.
fn ticks(root: &SysRoot) -> u64 {
    let text = root.text("/proc/uptime").unwrap_or_default();
    let seconds = text.split_ascii_whitespace().next().and_then(|word| word.parse::<f64>().ok());
    (seconds.unwrap_or(0.0) * TICKS) as u64
}

impl Tree {
    /// The tree below these processes; one of them may be a descendant of another one.
    pub fn of(root: &SysRoot, pids: &[u32]) -> Self {
        let has_lists = pids.first().is_some_and(|pid| tree::has_lists(root, *pid));
        let children = if has_lists { Children::Listed } else { Children::Searched };
        let members = pids.iter().map(|pid| Member::new(*pid, 0)).collect();
        Self { members, lost: [0; 3], children, began: ticks(root) }
    }

    /// Adds those of these processes that are not members yet; they are scanned with the next scan.
    pub fn join(&mut self, root: &SysRoot, pids: &[u32]) {
        let known: HashSet<u32> = self.members.iter().map(|member| member.pid).collect();
        let new = pids.iter().filter(|pid| !known.contains(pid));
        self.members.extend(new.map(|pid| Member::joined(root, *pid, self.began)).collect::<Vec<_>>());
    }

    /// Scans every member, finds new ones, and removes those that exited.
    pub fn scan(&mut self, root: &SysRoot) {
        let mut known: HashSet<u32> = self.members.iter().map(|m| m.pid).collect();
        let searched = match self.children {
            Children::Searched => tree::by_parent(root),
            Children::Listed => HashMap::new(),
        };
        let mut at = 0;
        while at < self.members.len() {
            let member = &mut self.members[at];
            member.scan(root);
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

    /// Moves the counts of exited members to their nearest ancestors.
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

    /// The nearest ancestor that still exists.
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

    /// Minor and major faults and ticks of all present and past members.
    pub fn counts(&self) -> Counts {
        let mut sum = self.lost;
        self.members.iter().for_each(|m| add(&mut sum, &m.account.total()));
        sum
    }
}

/// These processes and their descendants, among processes that are pairs of their parent's number and their own.
pub fn descendants(processes: impl IntoIterator<Item = (u32, u32)>, pids: &[u32]) -> HashSet<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    processes.into_iter().for_each(|(parent, pid)| children.entry(parent).or_default().push(pid));
    let (mut found, mut next) = (HashSet::new(), pids.to_vec());
    while let Some(pid) = next.pop() {
        if found.insert(pid) {
            next.extend(children.get(&pid).into_iter().flatten());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_testing::processes::MadeProcess;

    /// The tree's minor faults after a scan of these processes.
    fn faults(tree: &mut Tree, processes: &[&MadeProcess]) -> u64 {
        tree.scan(&MadeProcess::machine(processes));
        tree.counts()[0]
    }

    #[test]
    fn several_trees_are_one_whose_members_count_once() {
        let parent = MadeProcess { children: vec![8], ..MadeProcess::new(7, 1, 0) };
        let child = MadeProcess { counts: [80, 0, 0, 0, 0, 0, 0, 0], ..MadeProcess::new(8, 7, 0) };
        let other = MadeProcess { counts: [5, 0, 0, 0, 0, 0, 0, 0], ..MadeProcess::new(20, 1, 0) };
        let mut tree = Tree::of(&MadeProcess::machine(&[&parent]), &[8, 20, 7]);
        assert_eq!(faults(&mut tree, &[&parent, &child, &other]), 85);
        assert_eq!(tree.members.len(), 3);
        // The parent has waited for the child, and nobody waits for the other one.
        let parent = MadeProcess { children: vec![], counts: [0, 81, 0, 0, 0, 0, 0, 0], ..parent };
        assert_eq!(faults(&mut tree, &[&parent]), 86);
        // Others join, one of which ran before the observation began: its first 50 faults do not count.
        let old = MadeProcess { counts: [50, 0, 0, 0, 0, 0, 0, 0], ..MadeProcess::new(30, 1, 0) };
        let root = MadeProcess::machine(&[&parent, &old]);
        tree.began = u64::MAX;
        tree.join(&root, &[7, 30]);
        let old = MadeProcess { counts: [57, 0, 0, 0, 0, 0, 0, 0], ..old };
        let new = MadeProcess { counts: [3, 0, 0, 0, 0, 0, 0, 0], ..MadeProcess::new(31, 1, 0) };
        let root = MadeProcess::machine(&[&parent, &old, &new]);
        tree.began = 0;
        tree.join(&root, &[30, 31]);
        assert_eq!(faults(&mut tree, &[&parent, &old, &new]), 86 + 7 + 3);
        let processes = [(1, 7), (7, 8), (1, 20), (1, 30)];
        assert_eq!(descendants(processes, &[7, 20]), HashSet::from([7, 8, 20]));
    }

    #[test]
    fn a_reaped_child_that_still_exists_counts_once() {
        let mut parent = MadeProcess { children: vec![8], ..MadeProcess::new(7, 1, 0) };
        let mut child = MadeProcess { counts: [80, 0, 0, 0, 0, 0, 0, 0], ..MadeProcess::new(8, 7, 0) };
        let mut tree = Tree::of(&MadeProcess::machine(&[&parent]), &[7]);
        assert_eq!(faults(&mut tree, &[&parent, &child]), 80);
        // The parent has waited: its counts of waited-for children include the child's.
        parent.counts[1] = 85;
        (child.state, child.counts[0]) = ('X', 85);
        assert_eq!(faults(&mut tree, &[&parent, &child]), 85);
        parent.children.clear();
        for _ in 0..3 {
            assert_eq!(faults(&mut tree, &[&parent]), 85);
        }
    }
}
