use crate::answer::{Buckets, Raw};
use crate::label::{Label, Labels};

/// Something to look at: live samples or a recording. Series are numbered from 0; a number
/// that does not exist gives a column of NaN.
pub trait Source: Send + Sync {
    /// Number of series.
    fn series(&self) -> usize;

    /// Times of the first and the last row that anything is known of.
    fn span(&self) -> Option<(u64, u64)>;

    /// From when on every row is at hand; `u64::MAX` where none is.
    fn full_since(&self) -> u64;

    /// Memory in use.
    fn bytes(&self) -> usize;

    /// The rows with `from_ns <= time < to_ns` in `buckets` buckets, or fewer if a bucket
    /// would be shorter than 1 ns; at most [`MAX_BUCKETS`](crate::MAX_BUCKETS).
    fn buckets(&self, series: &[usize], from_ns: u64, to_ns: u64, buckets: usize) -> Buckets;

    /// The buckets from `first` up to but without `last` on a fixed grid: bucket `k` begins at
    /// `k * step_ns`. At most [`MAX_BUCKETS`](crate::MAX_BUCKETS) of them.
    fn buckets_on_grid(&self, series: &[usize], first: u64, last: u64, step_ns: u64) -> Buckets;

    /// Every row with `from_ns <= time < to_ns`; `None` where the full rate of a part of the
    /// range is gone, or where these are more rows than `most_rows`.
    fn raw(&self, series: &[usize], from_ns: u64, to_ns: u64, most_rows: usize) -> Option<Raw>;

    /// Where its labels are kept.
    fn noted(&self) -> &Labels;

    /// Every label, in the order of their times.
    fn labels(&self) -> Vec<Label> {
        self.noted().all()
    }

    /// Grows with every change of a label, so that nobody need compare them.
    fn labels_version(&self) -> u64 {
        self.noted().version()
    }

    /// Adds a label and gives its number. Those of a recording are not written to its file.
    fn push_label(&self, time_ns: u64, text: &str) -> u64 {
        self.noted().push(time_ns, text)
    }

    /// Changes the text of a label; false where there is none of that number.
    fn edit_label(&self, id: u64, text: &str) -> bool {
        self.noted().edit(id, text)
    }

    /// Removes a label; false where there is none of that number.
    fn remove_label(&self, id: u64) -> bool {
        self.noted().remove(id)
    }
}
