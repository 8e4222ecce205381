use crate::answer::{Buckets, Raw};
use crate::label::{Label, Labels};

/// Live samples or a recording. Series are numbered from 0; a number that does not exist gives
/// a column of NaN.
pub trait Source: Send + Sync {
    /// Number of series.
    fn series(&self) -> usize;

    /// Times of the first and the last row.
    fn span(&self) -> Option<(u64, u64)>;

    /// The time from which on every row is available; `u64::MAX` if none is.
    fn full_since(&self) -> u64;

    /// Memory in use.
    fn bytes(&self) -> usize;

    /// The rows with `from_ns <= time < to_ns` in `buckets` buckets, or fewer if a bucket
    /// would be shorter than 1 ns; at most [`MAX_BUCKETS`](crate::MAX_BUCKETS).
    fn buckets(&self, series: &[usize], from_ns: u64, to_ns: u64, buckets: usize) -> Buckets;

    /// The buckets `first..last` of a fixed grid: bucket `k` begins at `k * step_ns`. At most
    /// [`MAX_BUCKETS`](crate::MAX_BUCKETS) of them.
    fn buckets_on_grid(&self, series: &[usize], first: u64, last: u64, step_ns: u64) -> Buckets;

    /// Every row with `from_ns <= time < to_ns`; `None` if a part of the range has no full rate
    /// any more, or if there are more than `max_rows` rows.
    fn raw(&self, series: &[usize], from_ns: u64, to_ns: u64, max_rows: usize) -> Option<Raw>;

    /// The store of its labels.
    fn label_store(&self) -> &Labels;

    /// Every label, in the order of their times.
    fn labels(&self) -> Vec<Label> {
        self.label_store().all()
    }

    /// Grows with every change of a label.
    fn labels_version(&self) -> u64 {
        self.label_store().version()
    }

    /// Adds a label and returns its number. Labels added to a recording are not written to its file.
    fn push_label(&self, time_ns: u64, text: &str) -> u64 {
        self.label_store().push(time_ns, text)
    }

    /// Changes the text of a label; false if the number does not exist.
    fn edit_label(&self, id: u64, text: &str) -> bool {
        self.label_store().edit(id, text)
    }

    /// Removes a label; false if the number does not exist.
    fn remove_label(&self, id: u64) -> bool {
        self.label_store().remove(id)
    }
}
