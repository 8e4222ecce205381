//! Buckets of equal length on the time axis.

use std::ops::Range;

/// The most buckets of one answer: more than any screen has pixels.
pub const MAX_BUCKETS: usize = 1 << 16;

/// The buckets of a request. Rows from `end` on belong to none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    pub from: u64,
    pub step: u64,
    pub count: usize,
    pub end: u64,
}

impl Grid {
    /// `from <= time < to` in at most `buckets` buckets.
    pub fn over(from: u64, to: u64, buckets: usize) -> Self {
        let length = to.saturating_sub(from);
        let wanted = buckets.min(MAX_BUCKETS) as u64;
        let step = if wanted == 0 { 1 } else { length.div_ceil(wanted).max(1) };
        let count = if wanted == 0 { 0 } else { length.div_ceil(step) };
        Self { from, step, count: count as usize, end: from + if wanted == 0 { 0 } else { length } }
    }

    /// Buckets `first..last` of the grid that begins in 1970.
    pub fn aligned(first: u64, last: u64, step: u64) -> Self {
        let step = step.max(1);
        let first = first.min(u64::MAX / step);
        let count = last.saturating_sub(first).min(MAX_BUCKETS as u64).min(u64::MAX / step - first);
        let from = first * step;
        Self { from, step, count: count as usize, end: from + count * step }
    }

    /// The bucket of a time.
    pub fn bucket(&self, time: u64) -> Option<usize> {
        (self.from <= time && time < self.end).then(|| ((time - self.from) / self.step) as usize)
    }

    /// The bucket of both times, if it is the same.
    pub fn only(&self, first: u64, last: u64) -> Option<usize> {
        let bucket = self.bucket(first)?;
        (last < self.end && (last - self.from) / self.step == bucket as u64).then_some(bucket)
    }

    /// The buckets that the time from `first` to `last` touches.
    pub fn touched(&self, first: u64, last: u64) -> Range<usize> {
        if last < self.from || first >= self.end {
            return 0..0;
        }
        let bucket = |time: u64| ((time - self.from) / self.step) as usize;
        bucket(first.max(self.from))..bucket(last.min(self.end - 1)) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_cover_the_range_and_nothing_else() {
        let grid = Grid::over(100, 110, 4);
        assert_eq!((grid.step, grid.count), (3, 4));
        let found: Vec<_> = (99..112).map(|t| grid.bucket(t)).collect();
        assert_eq!(found[0], None);
        assert_eq!(found[1..11], [0, 0, 0, 1, 1, 1, 2, 2, 2, 3].map(Some));
        assert_eq!(found[11..], [None, None]);
        assert_eq!((grid.only(100, 102), grid.only(102, 103), grid.only(109, 110)), (Some(0), None, None));
        assert_eq!((grid.touched(0, 99), grid.touched(0, 103), grid.touched(108, 500)), (0..0, 0..2, 2..4));
    }

    #[test]
    fn unusual_requests_have_answers() {
        assert_eq!(Grid::over(5, 5, 10).count, 0);
        assert_eq!(Grid::over(5, 4, 10).count, 0);
        assert_eq!(Grid::over(0, u64::MAX, 0).count, 0);
        assert_eq!(Grid::over(0, 3, 10).count, 3);
        assert_eq!(Grid::over(0, u64::MAX, usize::MAX).count, MAX_BUCKETS);
        assert_eq!(Grid::aligned(0, u64::MAX, 0).count, MAX_BUCKETS);
        assert_eq!(Grid::aligned(u64::MAX, u64::MAX, u64::MAX).count, 0);
        assert_eq!(Grid::aligned(7, 9, 10).bucket(85), Some(1));
    }
}
