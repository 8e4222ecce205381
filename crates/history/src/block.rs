//! Consecutive rows at three levels of detail.

use crate::level::{GROUP, Level, Span, Summary};
use crate::pack::Columns;
use std::sync::Arc;

/// Every value of the rows.
#[derive(Debug)]
pub(crate) struct Full {
    pub times: Vec<u64>,
    pub columns: Columns,
}

impl Full {
    /// Memory in use.
    pub fn size(&self) -> usize {
        self.times.capacity() * 8 + self.columns.size()
    }
}

/// Rows. The parts that are dropped to save memory are shared: a reader keeps its reference.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    /// Number of its first row, counted from the first row of all.
    pub first_row: u64,
    /// Every value.
    pub full: Option<Arc<Full>>,
    /// Groups of rows; absent also if all rows are one group.
    pub groups: Option<Arc<Level>>,
    /// All rows as one group.
    pub whole: Arc<Level>,
}

impl Block {
    /// Times and number of its rows.
    pub fn span(&self) -> Span {
        self.whole.spans.first().copied().unwrap_or(Span { first: 0, last: 0, rows: 0 })
    }

    /// The finest groups that are stored.
    pub fn finest(&self) -> &Level {
        self.groups.as_ref().unwrap_or(&self.whole)
    }

    /// Memory in use.
    pub fn size(&self) -> usize {
        let full = self.full.as_ref().map_or(0, |f| f.size());
        let groups = self.groups.as_ref().map_or(0, |g| g.size());
        size_of::<Self>() + full + groups + self.whole.size()
    }
}

/// Makes a block, series by series.
#[derive(Debug)]
pub(crate) struct Builder {
    first_row: u64,
    full: Option<Full>,
    groups: Option<Level>,
    whole: Level,
    summaries: Vec<Summary>,
}

impl Builder {
    /// For rows at these times; at most 65,535.
    pub fn new(first_row: u64, times: &[u64], series: usize) -> Self {
        let span = |times: &[u64]| Span {
            first: times.first().copied().unwrap_or(0),
            last: times.last().copied().unwrap_or(0),
            rows: times.len() as u16,
        };
        let groups =
            (times.len() > GROUP).then(|| Level::new(times.chunks(GROUP).map(span).collect(), series));
        Self {
            first_row,
            full: Some(Full { times: times.to_vec(), columns: Columns::new(series) }),
            groups,
            whole: Level::new(vec![span(times)], series),
            summaries: Vec::new(),
        }
    }

    /// Stores the groups without the values of single rows.
    pub fn groups_only(self) -> Self {
        Self { full: None, ..self }
    }

    /// The values of the next series.
    pub fn push(&mut self, values: &[f32]) {
        if let Some(full) = &mut self.full {
            full.columns.push(values);
        }
        self.summaries.clear();
        self.summaries.extend(values.chunks(GROUP).map(Summary::of));
        if let Some(groups) = &mut self.groups {
            groups.push(&self.summaries);
        }
        self.whole.push(&[Summary::of_all(&self.summaries)]);
    }

    pub fn finish(mut self) -> Block {
        if let Some(full) = &mut self.full {
            full.columns.finish();
        }
        self.whole.finish();
        if let Some(groups) = &mut self.groups {
            groups.finish();
        }
        Block {
            first_row: self.first_row,
            full: self.full.map(Arc::new),
            groups: self.groups.map(Arc::new),
            whole: Arc::new(self.whole),
        }
    }
}
