//! The second guard: what runs where, whatever the locks say. Looks at the affinity masks of all
//! tasks.
//!
//! A program whose keeper was killed and that had closed the descriptor has no locks any more, but
//! still runs on its cores: it and all that it started bear the tag that its record names, whatever
//! their masks and environments have become. What others bound without us is told as well, so that
//! it can be left alone. A process that a cpuset confines, as all those of a container, is not bound
//! by that.

pub(crate) mod proc;

use crate::holding::{BoundProcess, HolderState, Holding, ProcessId, Who};
use crate::record::HolderRecord;
use crate::scan::{Scan, pid_namespace};
use crate::tag;
use numakit_model::CpuSet;
use numakit_sys::SysRoot;
use numakit_sys::proc::{TaskDir, processes, tree};
use proc::{Confinements, Task};
use std::cell::OnceCell;
use std::collections::BTreeSet;

/// What runs without locks.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    /// Programs that were started by us and whose locks are gone.
    pub lost: Vec<Lost>,
    /// What others bound.
    pub bound: Vec<BoundProcess>,
}

/// A program of ours without locks in the registry.
#[derive(Debug)]
pub(crate) struct Lost {
    /// Its record, if there is one.
    pub slot: Option<u64>,
    cpus: CpuSet,
    /// That these are its cores is written somewhere; otherwise it may run there.
    is_told: bool,
    who: Who,
    pid: u32,
}

/// Processes that come while others are looked at are looked at as well, so often at most.
const ROUNDS: usize = 16;

impl Lost {
    pub fn is_within(&self, held: &CpuSet) -> bool {
        self.cpus.is_subset(held)
    }

    /// Whether the process is still there.
    pub fn lives(&self, root: &SysRoot) -> bool {
        TaskDir::of(root, self.pid).exists()
    }

    pub fn holding(self, pids: u64) -> Holding {
        let same_pids = true;
        let own = numakit_sys::tag::own();
        let ours = own.is_some() && own == self.who.tag;
        let who = Who { pids, ..self.who };
        Holding { cpus: self.cpus, state: HolderState::Bound(self.pid), who: Some(who), same_pids, ours }
    }
}

/// Looks at all tasks but those that this process descends from. Programs whose tag is of one of
/// the `identities` are of this registry: they are looked for where it may have been removed.
pub(crate) fn look(root: &SysRoot, me: u32, scan: &Scan, identities: &[u64]) -> Audit {
    let Some(online) = proc::online(root) else { return Audit::default() };
    let mine = proc::mask(root, me, me).unwrap_or_default();
    let mut look = Look {
        root,
        me,
        scan,
        identities,
        held: scan.held(),
        online,
        ancestors: OnceCell::new(),
        confinements: Confinements::new(mine),
        by_tag: !identities.is_empty() || scan.stale.iter().any(|(_, record)| !record.ended),
        audit: Audit::default(),
    };
    let mut seen = proc::kernel_threads(root);
    seen.insert(me);
    for _ in 0..ROUNDS {
        let all = processes(root).unwrap_or_default();
        let fresh: Vec<u32> = all.into_iter().filter(|pid| !seen.contains(pid)).collect();
        // One that is gone may have left children, which are in the next list.
        seen.extend(fresh.iter().filter(|pid| look.visit(**pid)));
        if fresh.is_empty() || !look.by_tag {
            break;
        }
    }
    look.audit
}

/// A look at all processes.
struct Look<'a> {
    root: &'a SysRoot,
    me: u32,
    scan: &'a Scan,
    identities: &'a [u64],
    held: CpuSet,
    online: CpuSet,
    ancestors: OnceCell<BTreeSet<u32>>,
    confinements: Confinements,
    /// Programs are told by their tags as well.
    by_tag: bool,
    audit: Audit,
}

impl Look<'_> {
    /// Whether the process is there.
    fn visit(&mut self, pid: u32) -> bool {
        let all = proc::masks(self.root, pid);
        let masks: Vec<&CpuSet> = all.iter().filter(|mask| **mask != self.online).collect();
        let cpus = masks.iter().fold(CpuSet::new(), |all, mask| all.or(mask));
        let is_narrow = !cpus.is_subset(&self.held);
        let tag = if self.by_tag { numakit_sys::tag::of(self.root, pid) } else { None };
        if is_narrow || self.is_suspect(pid, tag) {
            let task = Task::read(self.root, pid, cpus, tag);
            task.into_iter().for_each(|task| self.judge(task, &masks));
        }
        !all.is_empty()
    }

    /// Whether a process may be of a program without locks, wherever it may run.
    fn is_suspect(&self, pid: u32, tag: Option<u64>) -> bool {
        let is_of = |who: &Who| {
            who.program.is_some_and(|program| program.pid == pid) || tag.is_some() && who.tag == tag
        };
        let lost = |record: &HolderRecord| self.by_tag && !record.ended && is_of(&record.who);
        self.scan.stale.iter().any(|(_, record)| lost(record)) || tag.is_some_and(|tag| self.is_orphan(tag))
    }

    /// Whether a tag is of this registry, and no record tells of it.
    fn is_orphan(&self, tag: u64) -> bool {
        let held = self.scan.holdings.iter().filter_map(|holding| holding.who.as_ref());
        let known = held.chain(self.scan.stale.iter().map(|(_, record)| &record.who));
        tag::is_of(tag, self.identities) && known.into_iter().all(|who| who.tag != Some(tag))
    }

    fn judge(&mut self, task: Task, masks: &[&CpuSet]) {
        if let Some(lost) = self.lost(&task) {
            self.add(lost);
            return;
        }
        let mut narrow = CpuSet::new();
        for mask in masks {
            if mask.len() * 2 <= self.online.len() && !self.confinements.explain(self.root, task.pid, mask) {
                narrow = narrow.or(mask);
            }
        }
        let narrow = narrow.minus(&self.held);
        let ancestors = || tree::ancestors(self.root, self.me);
        if !narrow.is_empty() && !self.ancestors.get_or_init(ancestors).contains(&task.pid) {
            self.audit.bound.push(BoundProcess { pid: task.pid, command: task.command, cpus: narrow });
        }
    }

    /// Each program once. What one of its processes says counts more than where others may run.
    fn add(&mut self, lost: Lost) {
        let is_same = |other: &&mut Lost| {
            other.slot == lost.slot && (lost.slot.is_some() || other.who.tag == lost.who.tag)
        };
        match self.audit.lost.iter_mut().find(is_same) {
            None => self.audit.lost.push(lost),
            Some(other) if lost.is_told && !other.is_told => *other = lost,
            Some(other) if !other.is_told => other.cpus = other.cpus.or(&lost.cpus),
            Some(_) => {}
        }
    }

    /// The program that a task belongs to, if it has cores without locks.
    fn lost(&self, task: &Task) -> Option<Lost> {
        let of_us = |(_, record): &&(u64, HolderRecord)| !record.ended && !record.cpus.is_subset(&self.held);
        let mut stale = self.scan.stale.iter().filter(of_us);
        if let Some((slot, record)) = stale.find(|(_, record)| is_of(task, record)) {
            let (cpus, who) = (record.cpus.minus(&self.held), record.who.clone());
            return Some(Lost { slot: Some(*slot), cpus, is_told: true, who, pid: task.pid });
        }
        let tag = task.tag.filter(|&tag| self.is_orphan(tag))?;
        // Somebody removed or emptied the file.
        let who = Who {
            application: task.command.clone(),
            user: *task.users.first()?,
            since_boot: task.start,
            program: Some(ProcessId { pid: task.pid, start: task.start }),
            tag: Some(tag),
            ..Who::default()
        };
        let cpus = self.cpus_without_record(task)?.minus(&self.held);
        let is_told = task.application.is_some();
        (!cpus.is_empty()).then_some(Lost { slot: None, cpus, is_told, who, pid: task.pid })
    }

    /// What a program was given: as its environment says, else where it runs.
    fn cpus_without_record(&self, task: &Task) -> Option<CpuSet> {
        if let Some(cpus) = &task.application {
            return Some(cpus.clone());
        }
        if !task.cpus.is_empty() {
            return Some(task.cpus.clone());
        }
        // It may run everywhere. If its keeper lives and somebody unknown has locks, these are its own.
        let is_unknown = |holding: &Holding| holding.state == HolderState::Unknown;
        let has_locks = !self.scan.elsewhere.is_empty() || self.scan.holdings.iter().any(is_unknown);
        let is_explained = has_locks && proc::has_ancestor(self.root, task.pid, crate::keeper::NAME);
        (!is_explained).then(|| self.online.clone())
    }
}

/// Whether a task belongs to the program of a record.
fn is_of(task: &Task, record: &HolderRecord) -> bool {
    let who = &record.who;
    let is_first = who.program == Some(ProcessId { pid: task.pid, start: task.start });
    if is_first && who.pids == pid_namespace() {
        return true;
    }
    if who.tag.is_some() {
        return who.tag == task.tag;
    }
    // It could not be tagged: its mask and environment must do.
    if task.cpus.is_empty() || !task.cpus.is_subset(&record.cpus) {
        return false;
    }
    let user_fits = task.start >= who.since_boot && task.users.contains(&who.user);
    match task.marked {
        Some(true) => task.application.as_ref().is_some_and(|mask| mask.is_subset(&record.cpus)),
        // Who cannot be asked is told by where it runs; who bears no mark, by all of where it runs.
        None => user_fits,
        Some(false) => user_fits && task.cpus.len() >= who.cores.unwrap_or(u32::MAX) as usize,
    }
}

#[cfg(test)]
mod tests;
