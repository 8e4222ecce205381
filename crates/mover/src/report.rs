//! What was moved, as values.

use crate::parts::{MovablePart, SharedRange};
use crate::threads::ThreadDecision;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Samples of pages whose node is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RemoteSamples {
    /// All of them.
    pub all: u64,
    /// Those whose thread was on another node.
    pub remote: u64,
}

/// Standard errors by which two shares must differ, and the least difference.
const ERRORS: f64 = 3.0;
const LEAST: f64 = 0.03;

impl RemoteSamples {
    /// The remote share; none without samples.
    pub fn share(&self) -> Option<f64> {
        (self.all > 0).then(|| self.remote as f64 / self.all as f64)
    }

    /// Whether the remote share is larger than it was before, by more than chance gives.
    pub fn has_grown(&self, before: &Self) -> bool {
        let (Some(now), Some(then)) = (self.share(), before.share()) else { return false };
        let variance = |share: f64, count: u64| share * (1.0 - share) / count as f64;
        let error = (variance(now, self.all) + variance(then, before.all)).sqrt();
        now - then > (ERRORS * error).max(LEAST)
    }
}

/// Bytes that did not move, by the kernel's reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LeftPages {
    /// Other processes map them (EACCES): moving these needs CAP_SYS_NICE.
    pub mapped: u64,
    /// They were in use (EBUSY).
    pub busy: u64,
    /// The node has no free memory (ENOMEM).
    pub full: u64,
    /// They are not there any more (ENOENT, EFAULT).
    pub gone: u64,
    /// Moving them would leave the node less free memory than is kept in reserve, so that this was not tried.
    pub reserve: u64,
    /// The cpuset of the process lacks their node, so that this was not tried.
    pub cpuset: u64,
    /// Moving had ended before their turn.
    pub stopped: u64,
}

/// What ended moving early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StoppedBy {
    /// A signal.
    Signal,
    /// The process has ended.
    Ended,
    /// Pages stayed where they were, one piece after the other.
    Busy,
}

/// A part, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartMoved {
    /// The part.
    #[serde(flatten)]
    pub part: MovablePart,
    /// Its bytes that were on other nodes.
    pub elsewhere: u64,
    /// The bytes of these that moved.
    pub moved: u64,
}

/// The objects of a cure that a running process does not get, by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NotCured {
    /// Blocks: which memory these are is known only to who sees them allocated. Samples decide about it.
    pub blocks: BTreeSet<String>,
    /// Variables of files or builds that no process has loaded.
    pub absent: BTreeSet<String>,
    /// Those whose policy can only be had from the start.
    pub at_start: BTreeSet<String>,
    /// Those whose parts do not fit the threads, with the reason.
    pub unfit: BTreeMap<String, String>,
}

/// What was observed, decided and done.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MoveReport {
    /// Whether nothing was to be changed.
    pub dry_run: bool,
    /// The processes.
    pub processes: Vec<u32>,
    /// Nodes with memory of the machine.
    pub nodes: usize,
    /// Samples of threads.
    pub samples: u64,
    /// Whether these were too few to decide anything, and no cure decides either.
    pub too_few: bool,
    /// How long was observed.
    pub observed: Duration,
    /// Remote samples before.
    pub before: RemoteSamples,
    /// Remote samples afterwards, if that was observed.
    pub after: Option<RemoteSamples>,
    /// The busy threads.
    pub threads: Vec<ThreadDecision>,
    /// What the choice of cores lacks.
    pub warnings: Vec<String>,
    /// The parts.
    pub parts: Vec<PartMoved>,
    /// What of a cure does nothing here; absent without a cure.
    pub not_cured: Option<NotCured>,
    /// What threads of several nodes use, and therefore stays.
    pub shared: Vec<SharedRange>,
    /// Remote samples of memory that processes use too which were not chosen, by the names of its objects. It stays.
    pub strangers: Vec<(String, u64)>,
    /// Remote samples of files, by their paths: these are moved by 'numa file'.
    pub files: Vec<(String, u64)>,
    /// Pages that moved, in bytes and in number; a huge page is one.
    pub moved_bytes: u64,
    /// See `moved_bytes`.
    pub moved_pages: u64,
    /// Huge pages that moved whole.
    pub huge: u64,
    /// Huge pages that the kernel split.
    pub split: u64,
    /// Bytes that did not move.
    pub left: LeftPages,
    /// How long moving pages took, with its pauses.
    pub took: Duration,
    /// How long the longest piece took.
    pub longest: Duration,
    /// What ended it early.
    pub stopped: Option<StoppedBy>,
    /// Whether the kernel's NUMA balancing is switched on, which moves pages too.
    pub balancing: bool,
    /// Moved bytes whose old nodes the record has no room for.
    pub forgotten: u64,
}

impl MoveReport {
    /// Whether anything changes.
    pub fn changes(&self) -> bool {
        self.threads.iter().any(|thread| thread.changes) || self.parts.iter().any(|part| part.elsewhere > 0)
    }

    /// Bytes that should have moved and did not, beside those that are not there any more.
    pub fn remaining(&self) -> u64 {
        let LeftPages { mapped, busy, full, gone: _, reserve, cpuset, stopped } = self.left;
        mapped + busy + full + reserve + cpuset + stopped
    }
}

/// What was restored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Restored {
    /// The process.
    pub process: u32,
    /// Threads that have their CPU masks again.
    pub threads: u64,
    /// Threads of the record that have ended.
    pub ended: u64,
    /// Threads that were created meanwhile and had inherited a mask, which were freed.
    pub inherited: u64,
    /// Bytes that were on other nodes, and those that are back.
    pub elsewhere: u64,
    /// See `elsewhere`.
    pub moved: u64,
    /// Bytes that stayed.
    pub left: LeftPages,
    /// Bytes whose nodes the record has not.
    pub forgotten: u64,
    /// How long the longest piece took.
    pub longest: Duration,
    /// Whether the record was removed: everything was tried.
    pub is_complete: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_no_growth() {
        let samples = |remote, all| RemoteSamples { all, remote };
        assert!(!samples(12, 100).has_grown(&samples(9, 100)));
        assert!(samples(60, 100).has_grown(&samples(9, 100)));
        assert!(!samples(9, 100).has_grown(&samples(60, 100)));
        assert!(!samples(20_200, 1_000_000).has_grown(&samples(0, 1_000_000)), "it must be worth it");
        assert!(!samples(0, 0).has_grown(&samples(9, 100)));
        assert_eq!(samples(0, 0).share(), None);
    }
}
