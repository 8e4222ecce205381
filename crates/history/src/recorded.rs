//! Recordings.

mod detail;
mod levels;
mod read;
mod row_view;

pub use levels::levels_of;
pub use row_view::{RowView, RowViewMaker, plain};

use crate::answer::{Buckets, Raw};
use crate::block::Block;
use crate::gather::{self, Gather};
use crate::grid::Grid;
use crate::label::Labels;
use crate::source::Source;
use crate::store::Store;
use detail::Detail;
use levels::Stamp;
use numakit_recording::{BatchPosition, Header, OpenError, Reader};
use read::{NOTHING, SoFar};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Maximum number of blocks that are read again for an answer.
const MAX_READ: usize = 64;

/// A recording: its levels are in memory, its rows are read again for a small range.
///
/// The levels of a large recording are also stored next to it as `FILE.levels`, so that the next
/// opening does not read all of it. If this file cannot be written, nothing is stored.
pub struct RecordedHistory {
    path: PathBuf,
    header: Header,
    content: Content,
    labels: Labels,
    from_levels: bool,
    show: RowViewMaker,
    detail: Detail,
}

/// The values of single rows when a recording is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rows {
    /// Stored within the budget.
    Stored,
    /// Dropped, and read again when they are needed.
    Dropped,
}

/// What was read of a recording: all, or the batches up to some time.
#[derive(Clone)]
struct Content {
    store: Store,
    /// The start of each batch.
    positions: Vec<BatchPosition>,
    labels: Vec<(u64, String)>,
    damage: Option<String>,
    /// The time of the last row, while it was not read yet.
    ends: Option<u64>,
}

/// How far the opening of a recording is.
pub struct PartlyRead<'a> {
    /// The share that was read, from 0 to 1.
    pub share: f64,
    so_far: &'a dyn Fn() -> Option<RecordedHistory>,
}

impl PartlyRead<'_> {
    /// The recording up to the last row that was read; none before the first one, and where nobody knows when it ends.
    pub fn so_far(&self) -> Option<RecordedHistory> {
        (self.so_far)().filter(|recorded| recorded.span().is_some())
    }
}

impl RecordedHistory {
    /// Opens a recording: from its levels if they exist and belong to it, else by reading all
    /// of it. Three quarters of the budget are for levels, the rest is for rows.
    pub fn open(path: &Path, budget: usize, show: RowViewMaker) -> Result<Self, OpenError> {
        Ok(Self::opened(path, budget, show, &mut |_| true)?.0)
    }

    /// Like [`RecordedHistory::open`]. `progress` receives how much was read; if it breaks, the rest is not read and
    /// the result is `None`.
    pub fn open_while(
        path: &Path,
        budget: usize,
        show: RowViewMaker,
        progress: &mut dyn FnMut(PartlyRead<'_>) -> ControlFlow<()>,
    ) -> Result<Option<Self>, OpenError> {
        let mut ended = false;
        let mut report = |reading: PartlyRead<'_>| {
            ended = ended || progress(reading).is_break();
            !ended
        };
        let opened = Self::opened(path, budget, show, &mut report)?;
        Ok(opened.1.then_some(opened.0))
    }

    /// The recording, and whether all of it was read.
    fn opened(
        path: &Path,
        budget: usize,
        show: RowViewMaker,
        report: &mut dyn FnMut(PartlyRead<'_>) -> bool,
    ) -> Result<(Self, bool), OpenError> {
        let mut reader = Reader::open(path)?;
        let before = Stamp::of(path);
        let header = reader.header().clone();
        let identity = row_view::identity(&header, &*show(&header));
        let room = budget / 4 * 3;
        let series = show(&header).series();
        let stored = before.and_then(|stamp| levels::read(path, stamp, identity, series, room));
        let from_levels = stored.is_some();
        let mut whole = true;
        let make = |content, from_levels| Self::of(path, &header, content, from_levels, &show, budget);
        let mut report = |share: f64, so_far: SoFar<'_>| {
            report(PartlyRead {
                share: share.min(1.0),
                so_far: &|| so_far().map(|content| make(content, false)),
            })
        };
        let content = stored.unwrap_or_else(|| {
            let length = path.metadata().map_or(0, |data| data.len());
            let at_once = before.and_then(|_| read::at_once(path, &header, room, &show, &mut report));
            let content = at_once.unwrap_or_else(|| {
                let rows = if before.is_some() { Rows::Dropped } else { Rows::Stored };
                read::in_order(&mut reader, (room, length), &show, rows, &mut report)
            });
            whole = report(1.0, NOTHING);
            if let Some(stamp) = before.filter(|_| whole && Stamp::of(path) == before) {
                levels::write(path, stamp, identity, &content);
            }
            content
        });
        Ok((make(content, from_levels), whole))
    }

    fn of(
        path: &Path,
        header: &Header,
        content: Content,
        from_levels: bool,
        show: &RowViewMaker,
        budget: usize,
    ) -> Self {
        let labels = Labels::default();
        content.labels.iter().for_each(|(time, text)| _ = labels.push(*time, text));
        let (path, header, show) = (path.to_owned(), header.clone(), show.clone());
        Self { path, header, content, labels, from_levels, show, detail: Detail::new(budget / 4) }
    }

    /// The header of the recording.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was lost and why; `None` if the recording is complete.
    pub fn damage(&self) -> Option<&str> {
        self.content.damage.as_deref()
    }

    /// The time of the last row, also while only a part was read.
    pub fn ends(&self) -> Option<u64> {
        self.content.ends.max(self.span().map(|(_, last)| last))
    }

    /// Whether it was opened from its levels.
    pub fn from_levels(&self) -> bool {
        self.from_levels
    }

    fn gather(&self, series: &[usize], grid: Grid) -> Buckets {
        let mut gather = Gather::new(grid, series);
        let (mut blocks, tail) = self.content.store.within(series, grid.from, grid.end);
        if is_near(&blocks, grid.step) {
            self.read_again(&mut blocks);
        }
        blocks.iter().for_each(|block| gather.block(block));
        gather.tail(&tail);
        gather.finish()
    }

    /// Completes blocks by reading their rows; those that cannot be read stay as they are.
    fn read_again(&self, blocks: &mut [Block]) {
        self.detail.complete(blocks, |missing, found| {
            detail::load(&self.path, &self.content.positions, &self.show, missing, found);
        });
    }
}

/// Whether groups of rows are too coarse for buckets of `step` ns, and few enough to read.
fn is_near(blocks: &[Block], step: u64) -> bool {
    let missing = blocks.iter().filter(|b| b.full.is_none()).count();
    let groups: u64 = blocks.iter().map(|b| b.finest().spans.len() as u64).sum();
    let time: u64 = blocks.iter().map(|b| b.span().last - b.span().first).fold(0, u64::saturating_add);
    (1..=MAX_READ).contains(&missing) && step / 4 < time / groups.max(1)
}

impl Source for RecordedHistory {
    fn series(&self) -> usize {
        self.content.store.series()
    }

    fn span(&self) -> Option<(u64, u64)> {
        self.content.store.span()
    }

    fn full_since(&self) -> u64 {
        self.span().map_or(u64::MAX, |(first, _)| first)
    }

    fn bytes(&self) -> usize {
        let positions = self.content.positions.len() * size_of::<BatchPosition>();
        self.content.store.bytes() + positions + self.detail.bytes() + self.labels.bytes()
    }

    fn buckets(&self, series: &[usize], from_ns: u64, to_ns: u64, buckets: usize) -> Buckets {
        self.gather(series, Grid::over(from_ns, to_ns, buckets))
    }

    fn buckets_on_grid(&self, series: &[usize], first: u64, last: u64, step_ns: u64) -> Buckets {
        self.gather(series, Grid::aligned(first, last, step_ns))
    }

    fn raw(&self, series: &[usize], from_ns: u64, to_ns: u64, max_rows: usize) -> Option<Raw> {
        let (mut blocks, tail) = self.content.store.within(series, from_ns, to_ns);
        // All blocks but the first and the last are completely in the range.
        let inner = blocks.get(1..blocks.len().saturating_sub(1)).unwrap_or_default();
        let rows: usize = inner.iter().map(|b| usize::from(b.span().rows)).sum();
        let missing = blocks.iter().filter(|b| b.full.is_none()).count();
        if rows > max_rows || missing > MAX_READ {
            return None;
        }
        self.read_again(&mut blocks);
        gather::raw(series, from_ns, to_ns, max_rows, &blocks, &tail)
    }

    fn label_store(&self) -> &Labels {
        &self.labels
    }
}
