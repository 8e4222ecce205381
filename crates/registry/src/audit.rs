//! The second guard: what runs where, whatever the locks say. Looks at the affinity masks of all
//! tasks.
//!
//! A program whose keeper was killed and that had closed the descriptor has no locks any more, but
//! still runs on its cores: its environment has `NUMA_HOLD`, or its record is still there. What
//! others bound without us is told as well, so that it can be left alone. A process that a cpuset
//! confines, as all those of a container, is not bound by that.

mod proc;

use crate::holding::{Bound, Holding, Process, State, Who};
use crate::record::Record;
use crate::scan::{Scan, pid_namespace};
use numakit_model::CpuSet;
use numakit_sys::SysRoot;
use proc::{Confinements, Task};
use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::path::Path;

pub(crate) use proc::start_of;

/// What runs without locks.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    /// Programs that were started by us and whose locks are gone.
    pub lost: Vec<Lost>,
    /// What others bound.
    pub bound: Vec<Bound>,
}

/// A program of ours without locks.
#[derive(Debug)]
pub(crate) struct Lost {
    /// Its record, if there is one.
    pub slot: Option<u64>,
    cpus: CpuSet,
    who: Who,
    pid: u32,
}

impl Lost {
    pub fn is_within(&self, held: &CpuSet) -> bool {
        self.cpus.is_subset(held)
    }

    /// Where the process is as long as it lives.
    pub fn path(&self) -> String {
        format!("/proc/{}", self.pid)
    }

    pub fn holding(self, pids: u64) -> Holding {
        let same_pids = true;
        let who = Who { pids, ..self.who };
        Holding { cpus: self.cpus, state: State::Bound(self.pid), who: Some(who), same_pids, ours: false }
    }
}

/// Looks at all tasks but those that this process descends from. `place` is the registry that the
/// scan is of: programs of another are told as what others bound.
pub(crate) fn look(root: &SysRoot, me: u32, scan: &Scan, place: &Path) -> Audit {
    let mut audit = Audit::default();
    let Some(online) = proc::online(root) else { return audit };
    let held = scan.held();
    let ancestors = LazyCell::new(|| proc::ancestors(root, me));
    let mine = proc::mask(root, me, me).unwrap_or_default();
    let kernel = proc::kernel_threads(root);
    let mut confinements = Confinements::new(mine);
    let mut pids: Vec<u32> =
        root.list("/proc").unwrap_or_default().iter().filter_map(|n| n.parse().ok()).collect();
    pids.sort_unstable();
    let mut told = BTreeSet::new();
    for pid in pids.into_iter().filter(|pid| *pid != me && !kernel.contains(pid)) {
        let masks: Vec<CpuSet> = proc::masks(root, pid).into_iter().filter(|mask| *mask != online).collect();
        let cpus = masks.iter().fold(CpuSet::new(), |all, mask| all.or(mask));
        if masks.is_empty() || cpus.is_subset(&held) {
            continue;
        }
        let Some(task) = Task::read(root, pid, cpus) else { continue };
        if let Some(lost) = lost(&task, scan, &held, place) {
            if told.insert(lost.slot.map_or((1, u64::from(pid)), |slot| (0, slot))) {
                audit.lost.push(lost);
            }
            continue;
        }
        let few = |mask: &&CpuSet| mask.len() * 2 <= online.len() && !confinements.explain(root, pid, mask);
        let narrow = masks.iter().filter(few).fold(CpuSet::new(), |all, mask| all.or(mask)).minus(&held);
        if !narrow.is_empty() && !ancestors.contains(&pid) {
            audit.bound.push(Bound { pid, command: task.command, cpus: narrow });
        }
    }
    audit
}

/// Whether a task runs on cores that were taken and whose locks are gone.
fn lost(task: &Task, scan: &Scan, held: &CpuSet, place: &Path) -> Option<Lost> {
    let of_us = |(_, record): &&(u64, Record)| !record.ended && !record.cpus.intersects(held);
    let mut stale = scan.stale.iter().filter(of_us);
    if let Some((slot, record)) = stale.find(|(_, record)| is_of(task, record)) {
        let (cpus, who) = (record.cpus.clone(), record.who.clone());
        return Some(Lost { slot: Some(*slot), cpus, who, pid: task.pid });
    }
    if task.marked != Some(true) || task.place != place {
        return None;
    }
    // Somebody removed or emptied the file.
    let who = Who {
        application: task.command.clone(),
        user: *task.users.first()?,
        since_boot: task.start,
        program: Some(Process { pid: task.pid, start: task.start }),
        ..Who::default()
    };
    let cpus = task.application.as_ref().filter(|mask| task.cpus.is_subset(mask)).unwrap_or(&task.cpus);
    Some(Lost { slot: None, cpus: cpus.minus(held), who, pid: task.pid })
}

/// Whether a task belongs to the program of a record.
fn is_of(task: &Task, record: &Record) -> bool {
    if record.cpus.is_empty() || !task.cpus.is_subset(&record.cpus) {
        return false;
    }
    let who = &record.who;
    let is_first = who.program == Some(Process { pid: task.pid, start: task.start });
    if is_first && who.pids == pid_namespace() {
        return true;
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
