//! Blocks within a budget.

use crate::block::Block;
use crate::gather::Tail;
use crate::open::Open;
use std::collections::VecDeque;

/// Rows in blocks, and the newest rows. To stay within the budget, the oldest blocks lose first
/// their full rate, then their groups, then everything.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    blocks: VecDeque<Block>,
    open: Open,
    rows: u64,
    last: Option<u64>,
    size: usize,
    budget: usize,
    keep: Keep,
    /// Number of blocks, from the oldest on, without the full rate.
    without_full: usize,
    /// Number of blocks, from the oldest on, without groups.
    without_groups: usize,
    /// Rows up to this time were dropped.
    dropped_until: Option<u64>,
}

/// What is stored when even the groups of all blocks exceed the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The newest blocks.
    Newest,
    /// The summary of every block.
    All,
}

impl Store {
    pub fn new(series: usize, budget: usize, keep: Keep) -> Self {
        Self {
            blocks: VecDeque::new(),
            open: Open::new(series),
            rows: 0,
            last: None,
            size: 0,
            budget,
            keep,
            without_full: 0,
            without_groups: 0,
            dropped_until: None,
        }
    }

    pub fn series(&self) -> usize {
        self.open.series()
    }

    /// Memory in use.
    pub fn bytes(&self) -> usize {
        self.size + self.open.size()
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub fn blocks(&self) -> &VecDeque<Block> {
        &self.blocks
    }

    pub fn span(&self) -> Option<(u64, u64)> {
        let first = self.blocks.front().map(|b| b.span().first);
        Some((first.or_else(|| self.open.times.first().copied())?, self.last?))
    }

    pub fn full_since(&self) -> u64 {
        let block = self.blocks.get(self.without_full).map(|b| b.span().first);
        block.or_else(|| self.open.times.first().copied()).unwrap_or(u64::MAX)
    }

    /// Appends a row. A time that is not after the last one becomes 1 ns later than that.
    pub fn push(&mut self, time: u64, values: &[Option<f64>]) {
        let time = self.last.map_or(time, |last| time.max(last.saturating_add(1)));
        if self.open.is_full() || self.open.is_gap(time) {
            self.seal();
        }
        self.open.push(time, values);
        self.last = Some(time);
        self.rows += 1;
    }

    /// Turns the open rows into a block.
    pub fn seal(&mut self) {
        let rows = self.open.times.len() as u64;
        if rows > 0 {
            let block = self.open.seal(self.rows - rows);
            self.add(block);
        }
    }

    /// Appends a block that follows the others.
    pub fn add(&mut self, block: Block) {
        let span = block.span();
        self.rows = block.first_row + u64::from(span.rows);
        self.last = Some(span.last);
        self.size += block.size();
        self.blocks.push_back(block);
        while self.bytes() > self.budget && self.drop_oldest() {}
    }

    /// Drops the oldest part of the finest level; false if nothing more can be dropped.
    fn drop_oldest(&mut self) -> bool {
        if self.without_full < self.blocks.len() {
            self.without_full += 1;
            self.change(self.without_full - 1, |block| block.full = None);
        } else if self.without_groups < self.blocks.len() {
            self.without_groups += 1;
            self.change(self.without_groups - 1, |block| block.groups = None);
        } else if self.keep == Keep::Newest
            && let Some(block) = self.blocks.pop_front()
        {
            self.size -= block.size();
            self.dropped_until = Some(block.span().last);
            self.without_full -= 1;
            self.without_groups -= 1;
        } else {
            return false;
        }
        true
    }

    fn change(&mut self, block: usize, change: impl FnOnce(&mut Block)) {
        if let Some(block) = self.blocks.get_mut(block) {
            self.size -= block.size();
            change(block);
            self.size += block.size();
        }
    }

    /// The blocks with rows in `from <= time < end`, and the open rows of these series there.
    pub fn within(&self, series: &[usize], from: u64, end: u64) -> (Vec<Block>, Tail) {
        let first = self.blocks.partition_point(|b| b.span().last < from);
        let after = self.blocks.partition_point(|b| b.span().first < end).max(first);
        let blocks = self.blocks.range(first..after).cloned().collect();
        let times = &self.open.times;
        let first = times.partition_point(|t| *t < from);
        let after = times.partition_point(|t| *t < end).max(first);
        let columns = series.iter().map(|s| self.open.column(*s, first..after)).collect();
        (blocks, Tail { times: times[first..after].to_vec(), columns })
    }

    /// Whether rows from this time on were dropped.
    pub fn is_dropped(&self, from: u64) -> bool {
        self.dropped_until.is_some_and(|until| from <= until)
    }
}
