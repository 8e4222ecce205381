//! Live samples.

use crate::answer::{Buckets, Raw};
use crate::gather::{self, Gather};
use crate::grid::Grid;
use crate::label::Labels;
use crate::source::Source;
use crate::store::{Keep, Store};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// The newest samples in full, older ones in less and less detail. One thread pushes, any
/// number read: a reader blocks the writer only while it collects references to blocks.
#[derive(Debug)]
pub struct History {
    store: RwLock<Store>,
    labels: Labels,
    series: usize,
}

impl History {
    /// For rows of `series` values in `budget` bytes, plus the newest block while it is filled.
    pub fn new(series: usize, budget: usize) -> Self {
        Self {
            store: RwLock::new(Store::new(series, budget, Keep::Newest)),
            labels: Labels::default(),
            series,
        }
    }

    /// Appends a row: ns since 1970, and the displayed values, one per series. A time that is
    /// not after the one before it becomes 1 ns later than that.
    pub fn push(&self, time_ns: u64, values: &[Option<f64>]) {
        self.store.write().unwrap_or_else(PoisonError::into_inner).push(time_ns, values);
    }

    fn store(&self) -> RwLockReadGuard<'_, Store> {
        self.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn gather(&self, series: &[usize], grid: Grid) -> Buckets {
        let mut gather = Gather::new(grid, series);
        let (blocks, tail) = self.store().within(series, grid.from, grid.end);
        blocks.iter().for_each(|block| gather.block(block));
        gather.tail(&tail);
        gather.finish()
    }
}

impl Source for History {
    fn series(&self) -> usize {
        self.series
    }

    fn span(&self) -> Option<(u64, u64)> {
        self.store().span()
    }

    fn full_since(&self) -> u64 {
        self.store().full_since()
    }

    fn bytes(&self) -> usize {
        self.store().bytes() + self.labels.bytes()
    }

    fn buckets(&self, series: &[usize], from_ns: u64, to_ns: u64, buckets: usize) -> Buckets {
        self.gather(series, Grid::over(from_ns, to_ns, buckets))
    }

    fn buckets_on_grid(&self, series: &[usize], first: u64, last: u64, step_ns: u64) -> Buckets {
        self.gather(series, Grid::aligned(first, last, step_ns))
    }

    fn raw(&self, series: &[usize], from_ns: u64, to_ns: u64, max_rows: usize) -> Option<Raw> {
        let store = self.store();
        if store.is_dropped(from_ns) {
            return None;
        }
        let (blocks, tail) = store.within(series, from_ns, to_ns);
        drop(store);
        gather::raw(series, from_ns, to_ns, max_rows, &blocks, &tail)
    }

    fn label_store(&self) -> &Labels {
        &self.labels
    }
}
