//! Moving the chosen pages, as far as their nodes have room.

use crate::error::MoveError;
use crate::pacer::Pacer;
use crate::pages::{PageMove, PageMover, size};
use crate::record::PageRange;
use crate::report::MoveReport;
use crate::session::{Decisions, MoveSession, is_ended};
use numakit_sys::proc::TaskDir;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// One in this many parts of a node's memory stays free.
const RESERVE: u64 = 32;
/// Threads do not go where more than one in this many parts of their memory, and more than this many bytes, could not follow.
const CANNOT_FOLLOW: u64 = 10;
const LITTLE: u64 = 1 << 20;

impl MoveSession<'_> {
    /// Counts what would leave a node too little free memory, or is outside of a cpuset.
    pub(crate) fn keep_reserves(&self, decisions: &Decisions, report: &mut MoveReport) {
        let mut room = self.room();
        for (moved, (_, pages)) in report.parts.iter().zip(&decisions.pages) {
            let bytes: u64 = pages.iter().map(size).sum();
            match self.allows(moved.part.process, moved.part.node) {
                false => report.left.cpuset += bytes,
                true => {
                    let room = room.entry(moved.part.node).or_default();
                    report.left.reserve += bytes.saturating_sub(*room);
                    *room = room.saturating_sub(bytes);
                }
            }
        }
    }

    /// An error if the only node that was asked for has no room for most of what would have to follow the threads.
    pub(crate) fn check_room(&self, decisions: &Decisions, report: &MoveReport) -> Result<(), MoveError> {
        let needed: u64 = report.parts.iter().map(|part| part.elsewhere).sum();
        match self.only_node(decisions.threads.iter().map(|(decided, _)| decided)) {
            Some(node) if report.left.reserve > LITTLE.max(needed / CANNOT_FOLLOW) => {
                let room = self.room().get(&node).copied().unwrap_or(0);
                Err(MoveError::NoRoom { node, room, needed })
            }
            _ => Ok(()),
        }
    }

    /// Whether the cpuset of a process has a node.
    fn allows(&self, process: u32, node: u32) -> bool {
        let status = TaskDir::of(self.root, process).status().ok();
        status.and_then(|status| status.allowed_nodes()).is_none_or(|nodes| nodes.contains(node))
    }

    /// Bytes that may move to each node.
    fn room(&self) -> BTreeMap<u32, u64> {
        let room = |node: &numakit_model::topology::Node| {
            let free = node.free_kb.unwrap_or(0).saturating_sub(node.memory_kb.unwrap_or(0) / RESERVE);
            (node.os_index, free * 1024)
        };
        self.topology.nodes.iter().map(room).collect()
    }

    /// Moves the pages of all parts.
    pub(crate) fn move_parts(
        &mut self,
        pages: &[(u32, Vec<PageRange>)],
        report: &mut MoveReport,
    ) -> Result<(), MoveError> {
        // What was counted before as staying is counted again by what happens.
        let cpuset = std::mem::take(&mut report.left).cpuset;
        report.left.cpuset = cpuset;
        let fitting = self.fitting(pages, report);
        let processes = self.processes();
        let mut pacer = Pacer::new(self.settings.rate);
        let start = Instant::now();
        for process in processes {
            let of_process = |at: &usize| report.parts[*at].part.process == process;
            let parts: Vec<usize> = (0..report.parts.len()).filter(of_process).collect();
            let moves: Vec<(usize, PageMove)> =
                parts.iter().flat_map(|at| fitting[*at].iter().map(|one| (*at, *one))).collect();
            self.move_pages(process, &moves, &mut pacer, report)?;
            for at in parts.into_iter().filter(|at| !fitting[*at].is_empty()) {
                report.parts[at].part.ranges.iter().for_each(|range| self.recent.moved(process, range));
            }
        }
        (report.took, report.longest) = (start.elapsed(), pacer.longest());
        Ok(())
    }

    /// The pages of each part that its node has room for. Counts the others.
    fn fitting(&self, pages: &[(u32, Vec<PageRange>)], report: &mut MoveReport) -> Vec<Vec<PageMove>> {
        let mut room = self.room();
        let mut all = Vec::with_capacity(pages.len());
        for (moved, (_, pages)) in report.parts.iter().zip(pages) {
            let node = moved.part.node;
            let mut fitting = Vec::new();
            if self.allows(moved.part.process, node) {
                let room = room.entry(node).or_default();
                for page in pages {
                    let Some(rest) = room.checked_sub(size(page)) else { break };
                    *room = rest;
                    fitting.push(PageMove { page: *page, node });
                }
                report.left.reserve += pages[fitting.len()..].iter().map(size).sum::<u64>();
            }
            all.push(fitting);
        }
        all
    }

    /// Moves pages of one process, each with the index of its part.
    fn move_pages(
        &self,
        process: u32,
        moves: &[(usize, PageMove)],
        pacer: &mut Pacer,
        report: &mut MoveReport,
    ) -> Result<(), MoveError> {
        let signals = &self.signals;
        let mut pause = |time: Duration| !is_ended(signals, time);
        let mut mover = PageMover::new(process, pacer, &mut pause);
        (mover.left, mover.stopped) = (report.left, report.stopped);
        let moved = mover.go(&moves.iter().map(|(_, one)| *one).collect::<Vec<_>>())?;
        (report.left, report.stopped) = (mover.left, mover.stopped);
        for ((at, one), _) in moves.iter().zip(&moved.arrived).filter(|(_, arrived)| **arrived) {
            report.parts[*at].moved += size(&one.page);
        }
        report.moved_bytes += moved.bytes;
        report.moved_pages += moved.pages;
        report.huge += moved.huge;
        report.split += moved.split;
        Ok(())
    }
}
