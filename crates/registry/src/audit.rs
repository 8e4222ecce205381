//! The audit: which programs run on which cores, whatever the locks say. It reads the affinity masks of all tasks.
//!
//! If a program's supervisor was killed and the program had closed the descriptor, it has no locks any more but
//! still runs on its cores. It and its descendants have the tag that its record names, whatever their masks and
//! environments are now. Processes that others bound to CPUs without the registry are listed too, so that their
//! CPUs are avoided. A process in a cpuset, such as those of a container, does not count as bound for that.

mod proc;

use crate::holding::{BoundProcess, Holder, HolderState, Holding, ProcessId};
use crate::record::HolderRecord;
use crate::scan::{Scan, pid_namespace};
use crate::tag;
use numakit_model::CpuSet;
use numakit_sys::SysRoot;
use numakit_sys::proc::{TaskDir, processes, tree};
use proc::{Confinements, Task};
use std::cell::OnceCell;
use std::collections::BTreeSet;

/// Programs and processes without locks.
#[derive(Debug, Default)]
pub(crate) struct Audit {
    /// Programs of `numa run` that have lost their locks.
    pub lost: Vec<LostProgram>,
    /// Processes that were bound without the registry.
    pub bound: Vec<BoundProcess>,
}

/// A program of `numa run` without locks in the registry.
#[derive(Debug)]
pub(crate) struct LostProgram {
    /// The number of its record, if it has one.
    pub slot: Option<u64>,
    cpus: CpuSet,
    /// Whether its record or its environment says that these are its cores. Otherwise they are the CPUs that it may run on.
    is_declared: bool,
    holder: Holder,
    pid: u32,
}

/// The process name of supervisors, by which the audit recognises the programs of supervisors that live. It contains neither
/// the name `numa` nor the program's name, so that `pkill` of either does not hit it.
pub const SUPERVISOR_NAME: &str = "cores-keeper";
/// Processes that start during the audit are audited in another round.
const MAX_ROUNDS: usize = 16;

impl LostProgram {
    pub fn is_within(&self, held: &CpuSet) -> bool {
        self.cpus.is_subset(held)
    }

    /// Whether the process still exists.
    pub fn lives(&self, root: &SysRoot) -> bool {
        TaskDir::of(root, self.pid).exists()
    }

    pub fn holding(self, pid_namespace: u64) -> Holding {
        let same_pid_namespace = true;
        let own = numakit_sys::tag::own();
        let is_own = own.is_some() && own == self.holder.tag;
        let holder = Holder { pid_namespace, ..self.holder };
        Holding {
            cpus: self.cpus,
            state: HolderState::Bound(self.pid),
            holder: Some(holder),
            same_pid_namespace,
            is_own,
        }
    }
}

/// Audits all tasks. Programs with a tag of one of the `identities` belong to this registry: they are searched for
/// if the file may have been removed.
pub(crate) fn audit_tasks(root: &SysRoot, me: u32, scan: &Scan, identities: &[u64]) -> Audit {
    let Some(online) = proc::online(root) else { return Audit::default() };
    let mine = proc::mask(root, me, me).unwrap_or_default();
    let mut auditor = Auditor {
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
    let mut visited = proc::kernel_threads(root);
    visited.insert(me);
    for _ in 0..MAX_ROUNDS {
        let all = processes(root).unwrap_or_default();
        let new: Vec<u32> = all.into_iter().filter(|pid| !visited.contains(pid)).collect();
        // A process that has ended may have left children, which are in the next list.
        visited.extend(new.iter().filter(|pid| auditor.visit(**pid)));
        if new.is_empty() || !auditor.by_tag {
            break;
        }
    }
    auditor.audit
}

struct Auditor<'a> {
    root: &'a SysRoot,
    me: u32,
    scan: &'a Scan,
    identities: &'a [u64],
    held: CpuSet,
    online: CpuSet,
    ancestors: OnceCell<BTreeSet<u32>>,
    confinements: Confinements,
    /// Programs are recognised by their tags too.
    by_tag: bool,
    audit: Audit,
}

impl Auditor<'_> {
    /// Returns whether the process exists.
    fn visit(&mut self, pid: u32) -> bool {
        let all = proc::masks(self.root, pid);
        let masks: Vec<&CpuSet> = all.iter().filter(|mask| **mask != self.online).collect();
        let cpus = masks.iter().fold(CpuSet::new(), |all, mask| all.or(mask));
        let is_narrow = !cpus.is_subset(&self.held);
        let tag = if self.by_tag { numakit_sys::tag::of(self.root, pid) } else { None };
        if is_narrow || self.is_suspect(pid, tag) {
            let task = Task::read(self.root, pid, cpus, tag);
            task.into_iter().for_each(|task| self.classify(task, &masks));
        }
        !all.is_empty()
    }

    /// Whether a process may belong to a program that has lost its locks, whatever its mask is.
    fn is_suspect(&self, pid: u32, tag: Option<u64>) -> bool {
        let is_of = |holder: &Holder| {
            holder.program.is_some_and(|program| program.pid == pid) || tag.is_some() && holder.tag == tag
        };
        let lost = |record: &HolderRecord| self.by_tag && !record.ended && is_of(&record.holder);
        self.scan.stale.iter().any(|(_, record)| lost(record)) || tag.is_some_and(|tag| self.is_orphan(tag))
    }

    /// Whether a tag belongs to this registry, but to none of its records.
    fn is_orphan(&self, tag: u64) -> bool {
        let held = self.scan.holdings.iter().filter_map(|holding| holding.holder.as_ref());
        let known = held.chain(self.scan.stale.iter().map(|(_, record)| &record.holder));
        tag::is_of(tag, self.identities) && known.into_iter().all(|holder| holder.tag != Some(tag))
    }

    fn classify(&mut self, task: Task, masks: &[&CpuSet]) {
        if let Some(lost) = self.lost_program(&task) {
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

    /// Adds a program, each only once. If one of its processes declares cores, these replace the CPUs that its other
    /// processes may run on.
    fn add(&mut self, lost: LostProgram) {
        let is_same = |other: &&mut LostProgram| {
            other.slot == lost.slot && (lost.slot.is_some() || other.holder.tag == lost.holder.tag)
        };
        match self.audit.lost.iter_mut().find(is_same) {
            None => self.audit.lost.push(lost),
            Some(other) if lost.is_declared && !other.is_declared => *other = lost,
            Some(other) if !other.is_declared => other.cpus = other.cpus.or(&lost.cpus),
            Some(_) => {}
        }
    }

    /// The program that a task belongs to, if it has cores without locks.
    fn lost_program(&self, task: &Task) -> Option<LostProgram> {
        let is_unlocked =
            |(_, record): &&(u64, HolderRecord)| !record.ended && !record.cpus.is_subset(&self.held);
        let mut stale = self.scan.stale.iter().filter(is_unlocked);
        if let Some((slot, record)) = stale.find(|(_, record)| is_of(task, record)) {
            let (cpus, holder) = (record.cpus.minus(&self.held), record.holder.clone());
            return Some(LostProgram { slot: Some(*slot), cpus, is_declared: true, holder, pid: task.pid });
        }
        let tag = task.tag.filter(|&tag| self.is_orphan(tag))?;
        // The file was removed or emptied.
        let holder = Holder {
            application: task.command.clone(),
            user: *task.users.first()?,
            since_boot: task.start,
            program: Some(ProcessId { pid: task.pid, start: task.start }),
            tag: Some(tag),
            ..Holder::default()
        };
        let cpus = self.cpus_without_record(task)?.minus(&self.held);
        let is_declared = task.application_cpus.is_some();
        (!cpus.is_empty()).then_some(LostProgram { slot: None, cpus, is_declared, holder, pid: task.pid })
    }

    /// The CPUs of a program: those that its environment names, else those that it may run on.
    fn cpus_without_record(&self, task: &Task) -> Option<CpuSet> {
        if let Some(cpus) = &task.application_cpus {
            return Some(cpus.clone());
        }
        if !task.cpus.is_empty() {
            return Some(task.cpus.clone());
        }
        // The task may run everywhere. If its supervisor lives and there are locks of an unknown holder, these locks are the
        // program's.
        let is_unknown = |holding: &Holding| holding.state == HolderState::Unknown;
        let has_locks = !self.scan.in_removed_files.is_empty() || self.scan.holdings.iter().any(is_unknown);
        let is_explained = has_locks && proc::has_ancestor(self.root, task.pid, SUPERVISOR_NAME);
        (!is_explained).then(|| self.online.clone())
    }
}

/// Whether a task belongs to the program of a record.
fn is_of(task: &Task, record: &HolderRecord) -> bool {
    let holder = &record.holder;
    let is_first = holder.program == Some(ProcessId { pid: task.pid, start: task.start });
    if is_first && holder.pid_namespace == pid_namespace() {
        return true;
    }
    if holder.tag.is_some() {
        return holder.tag == task.tag;
    }
    // The program could not be tagged, so the task's mask and environment decide.
    if task.cpus.is_empty() || !task.cpus.is_subset(&record.cpus) {
        return false;
    }
    let user_fits = task.start >= holder.since_boot && task.users.contains(&holder.user);
    match task.has_marker {
        Some(true) => task.application_cpus.as_ref().is_some_and(|mask| mask.is_subset(&record.cpus)),
        // If the environment cannot be read, any CPUs of the record are enough. If it has no marker, the mask must have all
        // of them.
        None => user_fits,
        Some(false) => user_fits && task.cpus.len() >= holder.cores.unwrap_or(u32::MAX) as usize,
    }
}

#[cfg(test)]
mod tests;
