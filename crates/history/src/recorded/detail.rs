//! Rows of a recording that are read again, and their cache.

use super::read::{self, Cutter};
use super::{RowViewMaker, Rows};
use crate::block::{Block, Full};
use numakit_recording::{BatchPosition, Reader};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A cache of the rows that were read last, within a budget, by the first row of a block.
#[derive(Debug)]
pub(super) struct Detail {
    cache: Mutex<Cache>,
    budget: usize,
}

#[derive(Debug, Default)]
struct Cache {
    blocks: HashMap<u64, Used>,
    size: usize,
    requests: u64,
}

#[derive(Debug)]
struct Used {
    full: Arc<Full>,
    size: usize,
    request: u64,
}

impl Detail {
    pub fn new(budget: usize) -> Self {
        Self { cache: Mutex::default(), budget }
    }

    /// Memory in use.
    pub fn bytes(&self) -> usize {
        self.lock().size
    }

    /// Completes blocks without their full rate from the cache, and passes the others to
    /// `load`, which returns the blocks that it could read.
    pub fn complete(&self, blocks: &mut [Block], load: impl FnOnce(&[Block], &mut dyn FnMut(Block))) {
        let mut cache = self.lock();
        cache.requests += 1;
        let request = cache.requests;
        let mut missing = Vec::new();
        for block in blocks.iter_mut().filter(|b| b.full.is_none()) {
            if let Some(used) = cache.blocks.get_mut(&block.first_row) {
                used.request = request;
                block.full = Some(Arc::clone(&used.full));
            } else {
                missing.push(block.clone());
            }
        }
        // Other requests do not wait for the disk.
        drop(cache);
        if missing.is_empty() {
            return;
        }
        load(&missing, &mut |found| {
            let same = |b: &&mut Block| b.first_row == found.first_row && b.span() == found.span();
            let place = blocks.iter_mut().find(same);
            if let (Some(block), Some(full)) = (place, &found.full) {
                block.full = Some(Arc::clone(full));
                self.keep(found.first_row, Arc::clone(full), request);
            }
        });
    }

    fn keep(&self, first_row: u64, full: Arc<Full>, request: u64) {
        let mut cache = self.lock();
        let size = full.size();
        cache.size += size;
        if let Some(before) = cache.blocks.insert(first_row, Used { full, size, request }) {
            cache.size -= before.size;
        }
        while cache.size > self.budget {
            let oldest = cache.blocks.iter().min_by_key(|(row, used)| (used.request, **row));
            let Some(row) = oldest.map(|(row, _)| *row) else { break };
            let size = cache.blocks.remove(&row).map_or(0, |used| used.size);
            cache.size -= size;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the rows of blocks in increasing order, and passes on the complete ones.
pub(super) fn load(
    path: &Path,
    positions: &[BatchPosition],
    show: &RowViewMaker,
    blocks: &[Block],
    found: &mut dyn FnMut(Block),
) {
    let mut rest = blocks;
    while let Some(first) = rest.first() {
        let next = |pair: &[Block]| pair[0].first_row + u64::from(pair[0].span().rows) != pair[1].first_row;
        let length = rest.windows(2).position(next).map_or(rest.len(), |at| at + 1);
        let (run, after) = rest.split_at(length);
        load_run(path, positions, show, first, run[length - 1].first_row, found);
        rest = after;
    }
}

fn load_run(
    path: &Path,
    positions: &[BatchPosition],
    show: &RowViewMaker,
    first: &Block,
    last_row: u64,
    found: &mut dyn FnMut(Block),
) -> Option<()> {
    let mut reader = Reader::open(path).ok()?;
    let mut cutter = Cutter::new(reader.header(), show, Rows::Stored);
    let batch = positions.partition_point(|m| m.rows <= first.first_row).checked_sub(1)?;
    read::go_to(&mut reader, &mut cutter, positions, batch)?;
    if cutter.first_row == first.first_row {
        // Times that were moved the first time are moved again.
        cutter.last = first.span().first.checked_sub(1);
    }
    while cutter.first_row <= last_row {
        cutter.batch(&reader.next_batch()?, found);
    }
    Some(())
}
