//! From recorded to displayed values.

use crate::answer::stored_value;
use numakit_recording::{Batch, Header, Rates};
use std::ops::Range;
use std::sync::Arc;

/// Turns the rows of a recording, in their order, into displayed values.
pub trait RowView {
    /// Number of values per row.
    fn series(&self) -> usize;

    /// The next rows of a batch, all of them samples: appends one value per row to the column
    /// of each series, converted by [`crate::stored_value`].
    fn rows(&mut self, batch: &Batch, rows: Range<usize>, columns: &mut [Vec<f32>]);

    /// A label between the rows.
    fn label(&mut self, text: &str);

    /// What the values depend on besides the recording, such as the text of formulas. Levels of
    /// another identity are not used.
    fn identity(&self) -> String;
}

/// Creates the view of a recording; it is called again to read a part of it.
pub type RowViewMaker = Arc<dyn Fn(&Header) -> Box<dyn RowView> + Send + Sync>;

/// The series of the recording without derived metrics.
pub fn plain() -> RowViewMaker {
    Arc::new(|header| Box::new(Plain { rates: Rates::new(&header.series), series: header.series.len() }))
}

struct Plain {
    rates: Rates,
    series: usize,
}

impl RowView for Plain {
    fn series(&self) -> usize {
        self.series
    }

    fn rows(&mut self, batch: &Batch, rows: Range<usize>, columns: &mut [Vec<f32>]) {
        for (series, column) in columns.iter_mut().enumerate() {
            self.rates.column(series, batch, rows.clone(), |value| column.push(stored_value(value)));
        }
    }

    fn label(&mut self, text: &str) {
        self.rates.label(text);
    }

    fn identity(&self) -> String {
        String::new()
    }
}

/// A hash of the series of a recording and of the identity of their view.
pub(super) fn identity(header: &Header, view: &dyn RowView) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |text: &str| {
        for byte in text.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for series in &header.series {
        add(&series.name());
        add(&format!("{:?} {:?}", series.metric.kind, series.metric.resolution));
    }
    add(&view.identity());
    hash
}
