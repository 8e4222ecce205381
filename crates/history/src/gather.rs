//! From blocks to answers.

use crate::answer::{Bucketed, Buckets, Raw};
use crate::block::{Block, Full};
use crate::grid::Grid;
use crate::level::{Summary, mean};
use std::ops::Range;

/// Rows that are in no block yet: their times, and a column for each requested series.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    pub times: Vec<u64>,
    pub columns: Vec<Vec<f32>>,
}

#[derive(Debug, Clone, Copy)]
struct Cell {
    min: f32,
    max: f32,
    sum: f64,
    count: u64,
}

impl Cell {
    const EMPTY: Self = Self { min: f32::INFINITY, max: f32::NEG_INFINITY, sum: 0.0, count: 0 };

    fn value(&mut self, value: f32) {
        if !value.is_nan() {
            self.min = self.min.min(value);
            self.max = self.max.max(value);
            self.sum += f64::from(value);
            self.count += 1;
        }
    }

    fn summary(&mut self, s: &Summary) {
        self.min = self.min.min(s.min);
        self.max = self.max.max(s.max);
        self.sum += f64::from(s.mean) * f64::from(s.count);
        self.count += u64::from(s.count);
    }
}

/// The buckets of a request while they are filled.
#[derive(Debug)]
pub(crate) struct Gather<'a> {
    grid: Grid,
    series: &'a [usize],
    cells: Vec<Vec<Cell>>,
    places: Vec<Option<usize>>,
    values: Vec<f32>,
}

impl<'a> Gather<'a> {
    pub fn new(grid: Grid, series: &'a [usize]) -> Self {
        let cells = vec![vec![Cell::EMPTY; grid.count]; series.len()];
        Self { grid, series, cells, places: Vec::new(), values: Vec::new() }
    }

    /// Adds a block at the coarsest level that is exact, or the finest that is stored.
    pub fn block(&mut self, block: &Block) {
        let span = block.span();
        if let Some(bucket) = self.grid.only(span.first, span.last) {
            return self.summaries(block, None, bucket..bucket + 1);
        }
        let groups = block.finest().spans.iter().enumerate();
        let mut next = 0;
        for (group, span) in groups {
            let rows = next..next + usize::from(span.rows);
            next = rows.end;
            match (self.grid.only(span.first, span.last), &block.full) {
                (Some(bucket), _) => self.summaries(block, Some(group), bucket..bucket + 1),
                (None, Some(full)) => self.full(full, rows),
                (None, None) => {
                    self.summaries(block, Some(group), self.grid.touched(span.first, span.last));
                }
            }
        }
    }

    fn summaries(&mut self, block: &Block, group: Option<usize>, buckets: Range<usize>) {
        let (level, group) = match group {
            Some(group) => (block.finest(), group),
            None => (&*block.whole, 0),
        };
        for (cells, series) in self.cells.iter_mut().zip(self.series) {
            if let Some(summary) = level.get(group, *series) {
                cells[buckets.clone()].iter_mut().for_each(|cell| cell.summary(&summary));
            }
        }
    }

    fn full(&mut self, full: &Full, rows: Range<usize>) {
        let Some(times) = full.times.get(rows.clone()) else { return };
        if times.iter().all(|t| self.grid.bucket(*t).is_none()) {
            return;
        }
        self.place(times);
        for (cells, series) in self.cells.iter_mut().zip(self.series) {
            self.values.clear();
            full.columns.read(*series, rows.clone(), &mut self.values);
            add(cells, &self.places, &self.values);
        }
    }

    /// Adds the rows that are in no block.
    pub fn tail(&mut self, tail: &Tail) {
        self.place(&tail.times);
        for (cells, column) in self.cells.iter_mut().zip(&tail.columns) {
            add(cells, &self.places, column);
        }
    }

    fn place(&mut self, times: &[u64]) {
        self.places.clear();
        self.places.extend(times.iter().map(|t| self.grid.bucket(*t)));
    }

    pub fn finish(self) -> Buckets {
        let columns = self.cells.iter().map(|cells| bucketed(cells)).collect();
        Buckets { from_ns: self.grid.from, step_ns: self.grid.step, columns }
    }
}

fn add(cells: &mut [Cell], places: &[Option<usize>], values: &[f32]) {
    for (place, value) in places.iter().zip(values) {
        if let Some(cell) = place.and_then(|place| cells.get_mut(place)) {
            cell.value(*value);
        }
    }
}

fn bucketed(cells: &[Cell]) -> Bucketed {
    let measured = |cell: &Cell, value: f32| if cell.count == 0 { f32::NAN } else { value };
    Bucketed {
        min: cells.iter().map(|c| measured(c, c.min)).collect(),
        max: cells.iter().map(|c| measured(c, c.max)).collect(),
        mean: cells.iter().map(|c| measured(c, mean(c.sum, c.count, c.min, c.max))).collect(),
    }
}

/// Every row with `from <= time < end`; `None` if a block has no full rate or there are more
/// than `max_rows`.
pub(crate) fn raw(
    series: &[usize],
    from: u64,
    end: u64,
    max_rows: usize,
    blocks: &[Block],
    tail: &Tail,
) -> Option<Raw> {
    let mut parts = Vec::with_capacity(blocks.len());
    let mut rows = tail.times.len();
    for block in blocks {
        let full = block.full.as_deref()?;
        let first = full.times.partition_point(|t| *t < from);
        let after = full.times.partition_point(|t| *t < end).max(first);
        rows += after - first;
        parts.push((full, first..after));
    }
    if rows > max_rows {
        return None;
    }
    let mut raw = Raw { times: Vec::with_capacity(rows), columns: Vec::with_capacity(series.len()) };
    parts.iter().for_each(|(full, rows)| raw.times.extend(&full.times[rows.clone()]));
    raw.times.extend(&tail.times);
    for (place, number) in series.iter().enumerate() {
        let mut column = Vec::with_capacity(rows);
        parts.iter().for_each(|(full, rows)| full.columns.read(*number, rows.clone(), &mut column));
        column.extend(&tail.columns[place]);
        raw.columns.push(column);
    }
    Some(raw)
}
