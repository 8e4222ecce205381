//! Recordings.

mod detail;
mod levels;
mod read;
mod shown;

pub use levels::levels_of;
pub use shown::{RowView, RowViewMaker, plain};

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
use std::path::{Path, PathBuf};

/// The most blocks that are read again for one answer.
const MAX_READ: usize = 64;

/// A recording: its levels in memory, its rows read again where a view comes near enough.
///
/// The levels of a large recording are also kept beside it as `FILE.levels`, so that the next
/// opening need not read all of it; where that cannot be written, it is done without.
pub struct RecordedHistory {
    path: PathBuf,
    header: Header,
    known: Known,
    labels: Labels,
    from_levels: bool,
    show: RowViewMaker,
    detail: Detail,
}

/// What becomes of the values of single rows when a recording is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rows {
    /// They are kept as long as there is room.
    Kept,
    /// They are read again where they are needed.
    LeftAway,
}

/// What reading all of a recording tells.
struct Known {
    store: Store,
    /// Where each batch begins.
    marks: Vec<BatchPosition>,
    labels: Vec<(u64, String)>,
    damage: Option<String>,
}

impl RecordedHistory {
    /// Opens a recording: from its levels if they are there and belong to it, else by reading
    /// all of it. Three quarters of the budget are for levels, the rest is for details.
    pub fn open(path: &Path, budget: usize, show: RowViewMaker) -> Result<Self, OpenError> {
        let mut reader = Reader::open(path)?;
        let before = Stamp::of(path);
        let header = reader.header().clone();
        let identity = shown::identity(&header, &*show(&header));
        let room = budget / 4 * 3;
        let series = show(&header).series();
        let stored = before.and_then(|stamp| levels::read(path, stamp, identity, series, room));
        let from_levels = stored.is_some();
        let known = stored.unwrap_or_else(|| {
            let known = match before {
                Some(_) => read::at_once(path, &header, room, &show)
                    .unwrap_or_else(|| read::in_order(&mut reader, room, &show, Rows::LeftAway)),
                None => read::in_order(&mut reader, room, &show, Rows::Kept),
            };
            if let Some(stamp) = before.filter(|_| Stamp::of(path) == before) {
                levels::write(path, stamp, identity, &known);
            }
            known
        });
        let labels = Labels::default();
        known.labels.iter().for_each(|(time, text)| _ = labels.push(*time, text));
        let detail = Detail::new(budget / 4);
        Ok(Self { path: path.to_owned(), header, known, labels, from_levels, show, detail })
    }

    /// What the recording says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What was lost and why; `None` when nothing was.
    pub fn damage(&self) -> Option<&str> {
        self.known.damage.as_deref()
    }

    /// Whether it was opened by its levels alone.
    pub fn from_levels(&self) -> bool {
        self.from_levels
    }

    fn gather(&self, series: &[usize], grid: Grid) -> Buckets {
        let mut gather = Gather::new(grid, series);
        let (mut blocks, tail) = self.known.store.within(series, grid.from, grid.end);
        if is_near(&blocks, grid.step) {
            self.read_again(&mut blocks);
        }
        blocks.iter().for_each(|block| gather.block(block));
        gather.tail(&tail);
        gather.finish()
    }

    /// Completes blocks by reading their rows; those that cannot be read stay as they are.
    fn read_again(&self, blocks: &mut [Block]) {
        self.detail.complete(blocks, |lacking, found| {
            detail::load(&self.path, &self.known.marks, &self.show, lacking, found);
        });
    }
}

/// Whether groups of rows are too coarse for buckets of that length, and few enough.
fn is_near(blocks: &[Block], step: u64) -> bool {
    let lacking = blocks.iter().filter(|b| b.full.is_none()).count();
    let groups: u64 = blocks.iter().map(|b| b.finest().spans.len() as u64).sum();
    let time: u64 = blocks.iter().map(|b| b.span().last - b.span().first).fold(0, u64::saturating_add);
    (1..=MAX_READ).contains(&lacking) && step / 4 < time / groups.max(1)
}

impl Source for RecordedHistory {
    fn series(&self) -> usize {
        self.known.store.series()
    }

    fn span(&self) -> Option<(u64, u64)> {
        self.known.store.span()
    }

    fn full_since(&self) -> u64 {
        self.span().map_or(u64::MAX, |(first, _)| first)
    }

    fn bytes(&self) -> usize {
        let marks = self.known.marks.len() * size_of::<BatchPosition>();
        self.known.store.bytes() + marks + self.detail.bytes() + self.labels.bytes()
    }

    fn buckets(&self, series: &[usize], from_ns: u64, to_ns: u64, buckets: usize) -> Buckets {
        self.gather(series, Grid::over(from_ns, to_ns, buckets))
    }

    fn buckets_on_grid(&self, series: &[usize], first: u64, last: u64, step_ns: u64) -> Buckets {
        self.gather(series, Grid::aligned(first, last, step_ns))
    }

    fn raw(&self, series: &[usize], from_ns: u64, to_ns: u64, most_rows: usize) -> Option<Raw> {
        let (mut blocks, tail) = self.known.store.within(series, from_ns, to_ns);
        // All blocks but the first and the last lie in the range whole.
        let inner = blocks.get(1..blocks.len().saturating_sub(1)).unwrap_or_default();
        let rows: usize = inner.iter().map(|b| usize::from(b.span().rows)).sum();
        let lacking = blocks.iter().filter(|b| b.full.is_none()).count();
        if rows > most_rows || lacking > MAX_READ {
            return None;
        }
        self.read_again(&mut blocks);
        gather::raw(series, from_ns, to_ns, most_rows, &blocks, &tail)
    }

    fn noted(&self) -> &Labels {
        &self.labels
    }
}
