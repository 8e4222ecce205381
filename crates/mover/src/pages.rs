//! Moving pages of a process, in pieces.

use crate::error::{ESRCH, MoveError, of_process};
use crate::pacer::Pacer;
use crate::record::PageRange;
use crate::report::{LeftPages, StoppedBy};
use numakit_model::CpuSet;
use numakit_sys::file_pages::PageState;
use numakit_sys::migrate;
use numakit_sys::pages::{KernelPages, MAX_QUERY, PageRun, Pages};
use numakit_sys::sched::page_size;
use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Bytes of a huge page on machines with small pages of 4 KiB.
const HUGE: u64 = 2 << 20;
/// How often pages of a piece are tried that the kernel did not reach.
const MAX_TRIES: usize = 4;
/// Number of pieces in a row of which no page moved that end it.
const MAX_FUTILE: u32 = 16;

/// The present pages of these ranges that are on other nodes than `node`, each with its node. A huge page belongs to the range
/// that has its middle.
pub fn elsewhere(process: u32, ranges: &[Range<u64>], node: u32) -> Result<Vec<PageRange>, MoveError> {
    let failed = of_process(process, "the pages of the process cannot be read");
    let present = KernelPages.open(process).map_err(&failed)?;
    let mut found = Vec::new();
    for range in ranges {
        let mut at = range.start;
        let mut runs = Vec::new();
        while at < range.end {
            match present.runs(at, range.end, &mut runs).map_err(&failed)? {
                reached if reached > at => at = reached,
                _ => break,
            }
        }
        runs.iter().for_each(|run| found.extend(pages_of(run, range)));
    }
    let mut homes = Vec::with_capacity(found.len());
    for batch in found.chunks(MAX_QUERY) {
        let addresses: Vec<u64> = batch.iter().map(|page| page.start).collect();
        let states = migrate::states(process, &addresses).map_err(&failed)?;
        let is_elsewhere = |(page, state): (&Range<u64>, PageState)| match state {
            PageState::Node(home) if home != node => {
                Some(PageRange { start: page.start, end: page.end, node: home })
            }
            _ => None,
        };
        homes.extend(batch.iter().zip(states).filter_map(is_elsewhere));
    }
    Ok(homes)
}

/// The pages of a run, each with its size.
fn pages_of(run: &PageRun, range: &Range<u64>) -> Vec<Range<u64>> {
    let size = if run.huge == Some(true) { HUGE } else { page_size() };
    let first = run.start / size * size;
    let belongs = |start: &u64| range.contains(&(start + size / 2));
    (first..run.end).step_by(size as usize).filter(belongs).map(|start| start..start + size).collect()
}

/// A page, and the node that it is to go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageMove {
    /// The page.
    pub page: PageRange,
    /// The node.
    pub node: u32,
}

/// What moved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MovedPages {
    /// Their bytes.
    pub bytes: u64,
    /// Their number.
    pub pages: u64,
    /// The huge ones among them that moved whole.
    pub huge: u64,
    /// Huge pages of which the kernel moved a part.
    pub split: u64,
    /// Of each page that was to move, whether it is on its node.
    pub arrived: Vec<bool>,
}

/// Moves pages of one process.
pub struct PageMover<'a> {
    /// The process.
    pub process: u32,
    /// How large pieces are.
    pub pacer: &'a mut Pacer,
    /// What did not move.
    pub left: LeftPages,
    /// What ended it.
    pub stopped: Option<StoppedBy>,
    /// Waits for this time; false if moving is to end.
    pub pause: &'a mut dyn FnMut(Duration) -> bool,
    moves_mapped: bool,
    futile: u32,
    /// Nodes that had no memory for a page.
    full: CpuSet,
}

impl<'a> PageMover<'a> {
    /// A mover for a process.
    pub fn new(process: u32, pacer: &'a mut Pacer, pause: &'a mut dyn FnMut(Duration) -> bool) -> Self {
        let (left, full) = (LeftPages::default(), CpuSet::new());
        Self { process, pacer, left, stopped: None, pause, moves_mapped: true, futile: 0, full }
    }

    /// Moves pages in their order. A piece may have pages for several nodes: each call of the kernel first waits for all CPUs.
    pub fn go(&mut self, moves: &[PageMove]) -> Result<MovedPages, MoveError> {
        let mut moved = MovedPages { arrived: vec![false; moves.len()], ..MovedPages::default() };
        let mut at = 0;
        while at < moves.len() && self.stopped.is_none() {
            let (piece, bytes) = self.piece(moves, &mut at);
            if piece.is_empty() {
                continue;
            }
            let start = Instant::now();
            let wanted: Vec<PageMove> = piece.iter().map(|at| moves[*at]).collect();
            let states = match self.call(&wanted) {
                Ok(states) => states,
                Err(error) if error.raw_os_error() == Some(ESRCH) => {
                    self.left.gone += bytes;
                    self.stopped = Some(StoppedBy::Ended);
                    break;
                }
                Err(error) => return Err(of_process(self.process, "pages cannot be moved")(error)),
            };
            let pause = self.pacer.took(bytes, start.elapsed());
            let before = moved.bytes;
            for (at, state) in piece.iter().zip(states) {
                moved.arrived[*at] = self.count(&moves[*at], state, &mut moved);
            }
            self.futile = if moved.bytes > before { 0 } else { self.futile + 1 };
            if self.futile >= MAX_FUTILE {
                self.stopped = Some(StoppedBy::Busy);
            } else if !(self.pause)(pause) {
                self.stopped = Some(StoppedBy::Signal);
            }
        }
        self.left.stopped += moves[at..].iter().map(|one| size(&one.page)).sum::<u64>();
        Ok(moved)
    }

    /// The next pages that fit into a piece, without those for full nodes, and their bytes. Sets `at` behind them.
    fn piece(&mut self, moves: &[PageMove], at: &mut usize) -> (Vec<usize>, u64) {
        let (mut piece, mut bytes) = (Vec::new(), 0);
        while let Some(next) = moves.get(*at) {
            let more = size(&next.page);
            if self.full.contains(next.node) {
                self.left.full += more;
            } else if piece.is_empty() || bytes + more <= self.pacer.piece() {
                piece.push(*at);
                bytes += more;
            } else {
                break;
            }
            *at += 1;
        }
        (piece, bytes)
    }

    /// Moves the pages of a piece. Returns where they are, or why those are not where they should be. What the kernel gave up
    /// when one page stayed is tried again, as long as that moves something.
    fn call(&mut self, piece: &[PageMove]) -> io::Result<Vec<PageState>> {
        let mut states = vec![PageState::Unreached; piece.len()];
        let mut open: Vec<usize> = (0..piece.len()).collect();
        for _ in 0..MAX_TRIES {
            let pages: Vec<u64> = open.iter().map(|at| piece[*at].page.start).collect();
            let nodes: Vec<u32> = open.iter().map(|at| piece[*at].node).collect();
            let moved = self.relocate(&pages, &nodes)?;
            let now = migrate::states(self.process, &pages)?;
            // The kernel ends at the first node without memory.
            let is_there = |(node, now): (&u32, &PageState)| *now == PageState::Node(*node);
            let first = nodes.iter().zip(&now).position(|of| !is_there(of)).map(|at| nodes[at]);
            for (index, at) in open.iter().enumerate() {
                let is_told = is_there((&nodes[index], &now[index])) || now[index] == PageState::Absent;
                states[*at] = match &moved {
                    _ if is_told => now[index],
                    Some(moved) => moved[index],
                    None if first == Some(nodes[index]) => PageState::NoMemory,
                    None => PageState::Unreached,
                };
            }
            let before = open.len();
            open.retain(|at| states[*at] == PageState::Unreached);
            if open.is_empty() || open.len() == before {
                break;
            }
        }
        Ok(states)
    }

    /// What became of each page; none if a node has no memory.
    fn relocate(&mut self, pages: &[u64], nodes: &[u32]) -> io::Result<Option<Vec<PageState>>> {
        match migrate::relocate(self.process, pages, nodes, self.moves_mapped) {
            // Only CAP_SYS_NICE permits moving pages of other processes.
            Err(error) if self.moves_mapped && error.kind() == io::ErrorKind::PermissionDenied => {
                self.moves_mapped = false;
                migrate::relocate(self.process, pages, nodes, false).map(Some)
            }
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory => Ok(None),
            result => result.map(Some),
        }
    }

    /// Counts what became of a page; whether it is on its node.
    fn count(&mut self, one: &PageMove, state: PageState, moved: &mut MovedPages) -> bool {
        let bytes = size(&one.page);
        let left = match state {
            PageState::Node(there) if there == one.node => {
                moved.bytes += bytes;
                moved.pages += 1;
                self.count_huge(one, moved);
                return true;
            }
            PageState::Mapped => &mut self.left.mapped,
            PageState::NoMemory => {
                self.full.insert(one.node);
                &mut self.left.full
            }
            PageState::Absent => &mut self.left.gone,
            PageState::Node(_) | PageState::Busy | PageState::Unreached => &mut self.left.busy,
        };
        *left += bytes;
        false
    }

    /// Whether a huge page moved whole: its last page is there too.
    fn count_huge(&self, one: &PageMove, moved: &mut MovedPages) {
        if size(&one.page) > page_size() {
            let last = migrate::states(self.process, &[one.page.end - page_size()]);
            let is_whole = last.is_ok_and(|states| states == [PageState::Node(one.node)]);
            *(if is_whole { &mut moved.huge } else { &mut moved.split }) += 1;
        }
    }
}

/// Bytes of a page.
pub fn size(page: &PageRange) -> u64 {
    page.end - page.start
}

/// Pages with the hot ones first, in their order; then the others by address.
pub fn hot_first(pages: Vec<PageRange>, hot: &[u64]) -> Vec<PageRange> {
    let mut seen = HashSet::new();
    let of = |address: &u64| {
        let at = pages.partition_point(|page| page.end <= *address);
        pages.get(at).filter(|page| page.start <= *address).map(|_| at)
    };
    let first: Vec<usize> = hot.iter().filter_map(of).filter(|at| seen.insert(*at)).collect();
    let rest = (0..pages.len()).filter(|at| !seen.contains(at));
    first.iter().copied().chain(rest).map(|at| pages[at]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_page_belongs_to_one_range() {
        let run = PageRun { start: HUGE, end: 3 * HUGE, huge: Some(true) };
        let border = 2 * HUGE + HUGE / 4;
        let (first, second) = (HUGE..border, border..3 * HUGE);
        let (one, other) = (HUGE..2 * HUGE, 2 * HUGE..3 * HUGE);
        assert_eq!(pages_of(&run, &first), std::slice::from_ref(&one));
        let clipped = PageRun { start: border, ..run };
        assert_eq!(pages_of(&clipped, &second), std::slice::from_ref(&other));
        let small = PageRun { start: HUGE, end: HUGE + 3 * page_size(), huge: None };
        assert_eq!(pages_of(&small, &first).len(), 3);
    }

    #[test]
    fn hot_pages_come_first_and_each_once() {
        let page = |start: u64| PageRange { start: start * 4096, end: (start + 1) * 4096, node: 0 };
        let pages: Vec<PageRange> = (0..5).map(page).collect();
        let order = hot_first(pages, &[3 * 4096, 9 * 4096, 4096, 3 * 4096]);
        assert_eq!(order, [3, 1, 0, 2, 4].map(page));
    }

    #[test]
    fn pages_that_are_not_there_are_counted_and_a_process_that_ended_ends_it() {
        let own = std::process::id();
        let mut pacer = Pacer::new(u64::MAX);
        let mut pauses = 0;
        let mut pause = |_| {
            pauses += 1;
            true
        };
        let absent =
            PageMove { page: PageRange { start: page_size(), end: 2 * page_size(), node: 1 }, node: 0 };
        let mut mover = PageMover::new(own, &mut pacer, &mut pause);
        match mover.go(&[absent]) {
            Ok(moved) => {
                assert_eq!((moved.pages, moved.arrived, mover.left.gone), (0, vec![false], page_size()))
            }
            Err(error) => {
                return numakit_skips::PRIVILEGES.skip(format_args!("move_pages is refused here: {error}"));
            }
        }
        let mut gone = PageMover::new(u32::MAX >> 2, &mut pacer, &mut pause);
        gone.go(&[absent, absent]).unwrap();
        assert_eq!((gone.stopped, gone.left.gone), (Some(StoppedBy::Ended), 2 * page_size()));
        assert_eq!(pauses, 1);
    }

    #[test]
    fn memory_that_is_there_is_not_elsewhere() {
        let memory = vec![1u8; 64 << 10];
        let start = (memory.as_ptr() as u64).next_multiple_of(page_size());
        let range = start..start + (32 << 10);
        let all: usize = (0..2)
            .map(|node| {
                elsewhere(std::process::id(), std::slice::from_ref(&range), node)
                    .map_or(0, |pages| pages.len())
            })
            .sum();
        // On a machine with one node, all are elsewhere for node 1.
        assert!(all <= 2 * (32 << 10) / page_size() as usize);
        assert_eq!(memory[0], 1);
        assert!(matches!(elsewhere(u32::MAX >> 2, &[range], 0), Err(MoveError::NoProcess(_))));
    }
}
