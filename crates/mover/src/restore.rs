//! Undoing a move by its record.

use crate::error::{ESRCH, MoveError, of_process};
use crate::pacer::Pacer;
use crate::pages::{PageMove, PageMover, elsewhere, size};
use crate::record::{MoveRecord, PageRange, RecordError, ThreadMask};
use crate::report::{Restored, StoppedBy};
use numakit_model::CpuSet;
use numakit_sys::SysRoot;
use numakit_sys::proc::{TaskDir, tree};
use numakit_sys::sched::{affinity_of, set_affinity_of};
use numakit_sys::signal::{self, Signals};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// Gives the threads of a process their CPU masks again, moves its pages back, at most this many bytes in a second, and removes
/// the record. If a signal ends it early, the record stays.
pub fn restore(root: &SysRoot, process: u32, rate: u64) -> Result<Restored, MoveError> {
    if !TaskDir::of(root, process).exists() {
        return Err(MoveError::NoProcess(process));
    }
    let record = MoveRecord::load(process)?.ok_or(RecordError::None(process))?;
    let mut restored = Restored { process, forgotten: record.forgotten, ..Restored::default() };
    threads(root, &record, &mut restored)?;
    let signals = Signals::collect(&[signal::INTERRUPT, signal::TERMINATE, signal::HANGUP])
        .map_err(|error| MoveError::System { what: "cannot receive signals", error })?;
    let mut by_node: BTreeMap<u32, Vec<&PageRange>> = BTreeMap::new();
    record.pages.iter().for_each(|pages| by_node.entry(pages.node).or_default().push(pages));
    let mut moves = Vec::new();
    for (node, ranges) in by_node {
        let ranges: Vec<_> = ranges.iter().map(|pages| pages.start..pages.end).collect();
        moves.extend(elsewhere(process, &ranges, node)?.into_iter().map(|page| PageMove { page, node }));
    }
    restored.elsewhere = moves.iter().map(|one| size(&one.page)).sum();
    let mut pacer = Pacer::new(rate);
    let mut pause = |time: Duration| !crate::session::is_ended(&signals, time);
    let mut mover = PageMover::new(process, &mut pacer, &mut pause);
    restored.moved = mover.go(&moves)?.bytes;
    restored.left = mover.left;
    restored.is_complete = mover.stopped != Some(StoppedBy::Signal);
    restored.longest = pacer.longest();
    if restored.is_complete {
        record.remove()?;
    }
    Ok(restored)
}

/// Gives threads their masks again, and those that were created meanwhile by bound ones all CPUs of these: also those of processes
/// that its process started.
fn threads(root: &SysRoot, record: &MoveRecord, restored: &mut Restored) -> Result<(), MoveError> {
    let mut all = CpuSet::new();
    record.threads.iter().for_each(|thread| all.insert_all(&thread.cpus));
    let mut known = 0;
    for process in tree::family(root, record.process) {
        let dir = TaskDir::of(root, process);
        // One that was moved itself has a record of its own.
        if process != record.process && (all.is_empty() || MoveRecord::load(process)?.is_some()) {
            continue;
        }
        let Ok(running) = dir.threads() else { continue };
        for thread in running {
            let Ok(stat) = dir.thread(thread).stat() else { continue };
            let of = |mask: &&ThreadMask| mask.thread == thread && mask.start == stat.start;
            let result = match record.threads.iter().find(of) {
                Some(mask) => {
                    known += 1;
                    set_affinity_of(thread, &mask.cpus).map(|()| restored.threads += 1)
                }
                None if is_bound(thread) && !all.is_empty() && is_younger(record, stat.start) => {
                    set_affinity_of(thread, &all).map(|()| restored.inherited += 1)
                }
                None => Ok(()),
            };
            match result {
                Err(error) if error.raw_os_error() == Some(ESRCH) => {}
                // A mask whose CPUs are all gone or outside of the cpuset: the thread stays as it is.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                other => other.map_err(of_process(record.process, "a thread cannot be bound"))?,
            }
        }
    }
    restored.ended = record.threads.len() as u64 - known;
    Ok(())
}

fn is_bound(thread: u32) -> bool {
    affinity_of(thread).is_ok_and(|cpus| cpus.len() == 1)
}

/// Whether a thread is at least as young as all that were bound: only such a thread can have inherited a mask.
fn is_younger(record: &MoveRecord, start: u64) -> bool {
    record.threads.iter().all(|thread| thread.start <= start)
}
