//! From the batches of a recording to blocks. A block never reaches over two batches, so that
//! what is cut again later is cut at the same rows.

use super::shown::{RowView, RowViewMaker};
use super::{Known, Rows};
use crate::block::{Block, Builder};
use crate::open::{ROWS, is_gap};
use crate::store::{Keep, Store};
use numakit_recording::{Batch, BatchPosition, Header, Reader};
use std::ops::Range;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Batches that one thread reads in one go. It also unpacks the one before them.
const CHUNK: usize = 16;
/// More threads than that wait for each other.
const THREADS: usize = 8;

/// Cuts batches into blocks.
pub(super) struct Cutter {
    shown: Box<dyn RowView>,
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
        let shown = show(header);
        let columns = vec![Vec::new(); shown.series()];
        Self { shown, rows, first_row: 0, last: None, labels: Vec::new(), times: Vec::new(), columns }
    }

    /// The next batch. Times always rise: one that does not is taken as just after the last.
    pub fn batch(&mut self, batch: &Batch, found: &mut dyn FnMut(Block)) {
        // Rows that have a time here and no values yet.
        let mut open = 0..0;
        for (row, time) in batch.time.iter().enumerate() {
            if let Some(text) = &batch.label[row] {
                self.values(batch, &mut open);
                self.shown.label(text);
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
        self.shown.rows(batch, open.clone(), &mut self.columns);
        open.start = open.end;
    }

    fn seal(&mut self) -> Block {
        let builder = Builder::new(self.first_row, &self.times, self.columns.len());
        let mut builder = if self.rows == Rows::Kept { builder } else { builder.of_groups() };
        for column in &mut self.columns {
            builder.push(column);
            column.clear();
        }
        self.first_row += self.times.len() as u64;
        self.times.clear();
        builder.finish()
    }
}

/// Reads all of a recording, batch after batch.
pub(super) fn in_order(reader: &mut Reader, budget: usize, show: &RowViewMaker, rows: Rows) -> Known {
    let mut cutter = Cutter::new(reader.header(), show, rows);
    let mut known = Known::new(cutter.columns.len(), budget);
    loop {
        let mark = reader.position();
        let Some(batch) = reader.next_batch() else { break };
        known.marks.push(mark);
        cutter.batch(&batch, &mut |block| known.store.add(block));
    }
    known.labels = cutter.labels;
    known.damage = reader.damage().map(str::to_owned);
    known
}

/// Reads all of a recording with all CPUs. `None` where that does not pay, and where there is
/// anything odd about the recording: then it has to be read in order.
pub(super) fn at_once(path: &Path, header: &Header, budget: usize, show: &RowViewMaker) -> Option<Known> {
    let mut marks = Reader::open(path).ok()?.batch_positions()?;
    if marks.len() <= CHUNK {
        return None;
    }
    let chunks = (marks.len() - 1).div_ceil(CHUNK);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS).min(chunks);
    let known = std::thread::scope(|scope| {
        let start = |first: usize| {
            let (to, parts) = sync_channel(1);
            let marks = &marks;
            scope
                .spawn(move || read_chunks(path, header, show, marks, (first..chunks).step_by(threads), &to));
            parts
        };
        join((0..threads).map(start).collect(), chunks, Known::new(show(header).series(), budget))
    });
    marks.pop();
    known.map(|known| Known { marks, ..known })
}

/// What a chunk holds.
struct Part {
    blocks: Vec<Block>,
    labels: Vec<(u64, String)>,
}

fn join(parts: Vec<Receiver<Option<Part>>>, chunks: usize, mut known: Known) -> Option<Known> {
    for chunk in 0..chunks {
        let part = parts[chunk % parts.len()].recv().ok()??;
        for block in part.blocks {
            if known.store.span().is_some_and(|(_, last)| block.span().first <= last) {
                return None;
            }
            known.store.add(block);
        }
        known.labels.extend(part.labels);
    }
    Some(known)
}

fn read_chunks(
    path: &Path,
    header: &Header,
    show: &RowViewMaker,
    marks: &[BatchPosition],
    chunks: impl Iterator<Item = usize>,
    to: &SyncSender<Option<Part>>,
) {
    let mut reader = Reader::open(path).ok();
    for chunk in chunks {
        let last = ((chunk + 1) * CHUNK).min(marks.len() - 1);
        let cutter = Cutter::new(header, show, Rows::LeftAway);
        let part = reader.as_mut().and_then(|r| read_chunk(r, cutter, marks, chunk * CHUNK..last));
        // Who waits for it may have given up.
        if to.send(part).is_err() {
            return;
        }
    }
}

fn read_chunk(
    reader: &mut Reader,
    mut cutter: Cutter,
    marks: &[BatchPosition],
    batches: Range<usize>,
) -> Option<Part> {
    let mut blocks = Vec::new();
    go_to(reader, &mut cutter, marks, batches.start)?;
    for number in batches {
        let batch = reader.next_batch()?;
        cutter.batch(&batch, &mut |block| blocks.push(block));
        if reader.position() != marks[number + 1] {
            return None;
        }
    }
    Some(Part { blocks, labels: cutter.labels })
}

/// Goes to a batch. Rates need the rows before it, at least one batch of them.
pub(super) fn go_to(
    reader: &mut Reader,
    cutter: &mut Cutter,
    marks: &[BatchPosition],
    batch: usize,
) -> Option<()> {
    reader.go_to(*marks.get(batch.saturating_sub(1))?).ok()?;
    if batch > 0 {
        cutter.batch(&reader.next_batch()?, &mut |_| ());
    }
    cutter.labels.clear();
    cutter.first_row = marks[batch].rows;
    Some(())
}

impl Known {
    fn new(series: usize, budget: usize) -> Self {
        let store = Store::new(series, budget, Keep::All);
        Self { store, marks: Vec::new(), labels: Vec::new(), damage: None }
    }
}
