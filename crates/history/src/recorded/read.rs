//! From the batches of a recording to blocks. A block lies within one batch, so that reading a
//! part again gives the same blocks.

use super::row_view::{RowView, RowViewMaker};
use super::{Content, Rows};
use crate::block::{Block, Builder};
use crate::open::{ROWS, is_gap};
use crate::store::{Keep, Store};
use numakit_recording::{Batch, BatchPosition, Header, Reader};
use std::ops::Range;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Batches that a thread reads at a time. It also unpacks the batch before them.
const CHUNK: usize = 16;
/// More threads wait for each other.
const THREADS: usize = 8;

/// Cuts batches into blocks.
pub(super) struct Cutter {
    view: Box<dyn RowView>,
    rows: Rows,
    /// The number of the first row of the next block.
    pub first_row: u64,
    /// The time of the last row.
    pub last: Option<u64>,
    /// The labels so far.
    pub labels: Vec<(u64, String)>,
    times: Vec<u64>,
    columns: Vec<Vec<f32>>,
}

impl Cutter {
    pub fn new(header: &Header, show: &RowViewMaker, rows: Rows) -> Self {
        let view = show(header);
        let columns = vec![Vec::new(); view.series()];
        Self { view, rows, first_row: 0, last: None, labels: Vec::new(), times: Vec::new(), columns }
    }

    /// The next batch. A time that is not after the one before it becomes 1 ns later than that.
    pub fn batch(&mut self, batch: &Batch, found: &mut dyn FnMut(Block)) {
        // Rows whose time is in `times` and whose values are not in `columns` yet.
        let mut open = 0..0;
        for (row, time) in batch.time.iter().enumerate() {
            if let Some(text) = &batch.label[row] {
                self.values(batch, &mut open);
                self.view.label(text);
                self.labels.push((*time, text.clone()));
                open = row + 1..row + 1;
                continue;
            }
            let time = self.last.map_or(*time, |last| last.saturating_add(1).max(*time));
            if self.times.len() == ROWS || is_gap(&self.times, time) {
                self.values(batch, &mut open);
                found(self.seal());
            }
            self.times.push(time);
            self.last = Some(time);
            open.end = row + 1;
        }
        self.values(batch, &mut open);
        if !self.times.is_empty() {
            found(self.seal());
        }
    }

    fn values(&mut self, batch: &Batch, open: &mut Range<usize>) {
        self.view.rows(batch, open.clone(), &mut self.columns);
        open.start = open.end;
    }

    fn seal(&mut self) -> Block {
        let builder = Builder::new(self.first_row, &self.times, self.columns.len());
        let mut builder = if self.rows == Rows::Stored { builder } else { builder.groups_only() };
        for column in &mut self.columns {
            builder.push(column);
            column.clear();
        }
        self.first_row += self.times.len() as u64;
        self.times.clear();
        builder.finish()
    }
}

/// Makes a copy of what was read so far; none where that cannot be shown.
pub(super) type SoFar<'a> = &'a dyn Fn() -> Option<Content>;

/// Is told the share that was read, and can have it; returns whether to continue.
pub(super) type Report<'a> = &'a mut dyn FnMut(f64, SoFar<'_>) -> bool;

/// For where nothing can be shown.
pub(super) const NOTHING: SoFar<'static> = &|| None;

/// Reads all of a recording of `length` bytes, batch after batch, unless `report` ends it.
pub(super) fn in_order(
    reader: &mut Reader,
    (budget, length): (usize, u64),
    show: &RowViewMaker,
    rows: Rows,
    report: Report<'_>,
) -> Content {
    let mut cutter = Cutter::new(reader.header(), show, rows);
    let mut content = Content::new(cutter.columns.len(), budget);
    loop {
        let position = reader.position();
        if !report(position.position as f64 / length.max(1) as f64, NOTHING) {
            break;
        }
        let Some(batch) = reader.next_batch() else { break };
        content.positions.push(position);
        cutter.batch(&batch, &mut |block| content.store.add(block));
    }
    content.labels = cutter.labels;
    content.damage = reader.damage().map(str::to_owned);
    content
}

/// Reads all of a recording with all CPUs. `None` for a short recording and for one with
/// anything unexpected: then it has to be read in order. `None` also if `report` ends it.
pub(super) fn at_once(
    path: &Path,
    header: &Header,
    budget: usize,
    show: &RowViewMaker,
    report: Report<'_>,
) -> Option<Content> {
    let mut reader = Reader::open(path).ok()?;
    let mut positions = reader.batch_positions()?;
    if positions.len() <= CHUNK {
        return None;
    }
    let ends = last_time(&mut reader, &positions);
    let chunks = (positions.len() - 1).div_ceil(CHUNK);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS).min(chunks);
    let content = std::thread::scope(|scope| {
        let start = |first: usize| {
            let (to, parts) = sync_channel(1);
            let positions = &positions;
            scope.spawn(move || {
                read_chunks(path, header, show, positions, (first..chunks).step_by(threads), &to)
            });
            parts
        };
        let content = Content::new(show(header).series(), budget);
        let so_far = |content: &Content| {
            let positions = positions[..positions.len() - 1].to_vec();
            ends.map(|_| Content { positions, ends, ..content.clone() })
        };
        join((0..threads).map(start).collect(), chunks, content, report, &so_far)
    });
    positions.pop();
    content.map(|content| Content { positions, ..content })
}

/// The time of the last row of a recording with these batches and its end.
fn last_time(reader: &mut Reader, positions: &[BatchPosition]) -> Option<u64> {
    reader.go_to(*positions.iter().rev().nth(1)?).ok()?;
    let batch = reader.next_batch()?;
    let rows = batch.time.iter().zip(&batch.label).rev();
    rows.filter(|(_, label)| label.is_none()).map(|(time, _)| *time).next()
}

/// The contents of a chunk.
struct Part {
    blocks: Vec<Block>,
    labels: Vec<(u64, String)>,
}

fn join(
    parts: Vec<Receiver<Option<Part>>>,
    chunks: usize,
    mut content: Content,
    report: Report<'_>,
    so_far: &dyn Fn(&Content) -> Option<Content>,
) -> Option<Content> {
    for chunk in 0..chunks {
        if !report(chunk as f64 / chunks as f64, &|| so_far(&content)) {
            return None;
        }
        let part = parts[chunk % parts.len()].recv().ok()??;
        for block in part.blocks {
            if content.store.span().is_some_and(|(_, last)| block.span().first <= last) {
                return None;
            }
            content.store.add(block);
        }
        content.labels.extend(part.labels);
    }
    Some(content)
}

fn read_chunks(
    path: &Path,
    header: &Header,
    show: &RowViewMaker,
    positions: &[BatchPosition],
    chunks: impl Iterator<Item = usize>,
    to: &SyncSender<Option<Part>>,
) {
    let mut reader = Reader::open(path).ok();
    for chunk in chunks {
        let last = ((chunk + 1) * CHUNK).min(positions.len() - 1);
        let cutter = Cutter::new(header, show, Rows::Dropped);
        let part = reader.as_mut().and_then(|r| read_chunk(r, cutter, positions, chunk * CHUNK..last));
        // The receiver stops at the first failure.
        if to.send(part).is_err() {
            return;
        }
    }
}

fn read_chunk(
    reader: &mut Reader,
    mut cutter: Cutter,
    positions: &[BatchPosition],
    batches: Range<usize>,
) -> Option<Part> {
    let mut blocks = Vec::new();
    go_to(reader, &mut cutter, positions, batches.start)?;
    for number in batches {
        let batch = reader.next_batch()?;
        cutter.batch(&batch, &mut |block| blocks.push(block));
        if reader.position() != positions[number + 1] {
            return None;
        }
    }
    Some(Part { blocks, labels: cutter.labels })
}

/// Goes to a batch. Rates need the rows before it: those of one batch are read.
pub(super) fn go_to(
    reader: &mut Reader,
    cutter: &mut Cutter,
    positions: &[BatchPosition],
    batch: usize,
) -> Option<()> {
    reader.go_to(*positions.get(batch.saturating_sub(1))?).ok()?;
    if batch > 0 {
        cutter.batch(&reader.next_batch()?, &mut |_| ());
    }
    cutter.labels.clear();
    cutter.first_row = positions[batch].rows;
    Some(())
}

impl Content {
    fn new(series: usize, budget: usize) -> Self {
        let store = Store::new(series, budget, Keep::All);
        Self { store, positions: Vec::new(), labels: Vec::new(), damage: None, ends: None }
    }
}
