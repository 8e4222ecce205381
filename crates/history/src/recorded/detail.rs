//! Rows of a recording that are read again, and kept for a while.

use super::read::{self, Cutter};
use super::{RowViewMaker, Rows};
use crate::block::{Block, Full};
use numakit_recording::{BatchPosition, Reader};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What was read last, within a budget. Blocks go by the number of their first row.
#[derive(Debug)]
pub(super) struct Detail {
    kept: Mutex<Kept>,
    budget: usize,
}

#[derive(Debug, Default)]
struct Kept {
    blocks: HashMap<u64, Used>,
    size: usize,
    questions: u64,
}

#[derive(Debug)]
struct Used {
    full: Arc<Full>,
    size: usize,
    question: u64,
}

impl Detail {
    pub fn new(budget: usize) -> Self {
        Self { kept: Mutex::default(), budget }
    }

    /// Memory in use.
    pub fn bytes(&self) -> usize {
        self.lock().size
    }

    /// Gives blocks that lack their full rate what is kept of it, and the others to `load`,
    /// which hands over what it finds.
    pub fn complete(&self, blocks: &mut [Block], load: impl FnOnce(&[Block], &mut dyn FnMut(Block))) {
        let mut kept = self.lock();
        kept.questions += 1;
        let question = kept.questions;
        let mut lacking = Vec::new();
        for block in blocks.iter_mut().filter(|b| b.full.is_none()) {
            if let Some(used) = kept.blocks.get_mut(&block.first_row) {
                used.question = question;
                block.full = Some(Arc::clone(&used.full));
            } else {
                lacking.push(block.clone());
            }
        }
        // Other questions need not wait for the disk.
        drop(kept);
        if lacking.is_empty() {
            return;
        }
        load(&lacking, &mut |found| {
            let same = |b: &&mut Block| b.first_row == found.first_row && b.span() == found.span();
            let place = blocks.iter_mut().find(same);
            if let (Some(block), Some(full)) = (place, &found.full) {
                block.full = Some(Arc::clone(full));
                self.keep(found.first_row, Arc::clone(full), question);
            }
        });
    }

    fn keep(&self, first_row: u64, full: Arc<Full>, question: u64) {
        let mut kept = self.lock();
        let size = full.size();
        kept.size += size;
        if let Some(before) = kept.blocks.insert(first_row, Used { full, size, question }) {
            kept.size -= before.size;
        }
        while kept.size > self.budget {
            let oldest = kept.blocks.iter().min_by_key(|(row, used)| (used.question, **row));
            let Some(row) = oldest.map(|(row, _)| *row) else { break };
            let size = kept.blocks.remove(&row).map_or(0, |used| used.size);
            kept.size -= size;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the rows of blocks, which rise, and hands over those that are whole.
pub(super) fn load(
    path: &Path,
    marks: &[BatchPosition],
    show: &RowViewMaker,
    blocks: &[Block],
    found: &mut dyn FnMut(Block),
) {
    let mut rest = blocks;
    while let Some(first) = rest.first() {
        let next = |pair: &[Block]| pair[0].first_row + u64::from(pair[0].span().rows) != pair[1].first_row;
        let length = rest.windows(2).position(next).map_or(rest.len(), |at| at + 1);
        let (run, after) = rest.split_at(length);
        load_run(path, marks, show, first, run[length - 1].first_row, found);
        rest = after;
    }
}

fn load_run(
    path: &Path,
    marks: &[BatchPosition],
    show: &RowViewMaker,
    first: &Block,
    last_row: u64,
    found: &mut dyn FnMut(Block),
) -> Option<()> {
    let mut reader = Reader::open(path).ok()?;
    let mut cutter = Cutter::new(reader.header(), show, Rows::Kept);
    let batch = marks.partition_point(|m| m.rows <= first.first_row).checked_sub(1)?;
    read::go_to(&mut reader, &mut cutter, marks, batch)?;
    if cutter.first_row == first.first_row {
        // Where times were moved, they are moved again.
        cutter.last = first.span().first.checked_sub(1);
    }
    while cutter.first_row <= last_row {
        cutter.batch(&reader.next_batch()?, found);
    }
    Some(())
}
