//! Series that a client follows: buckets of a fixed grid, sent as they become complete.

use crate::client_request_error::ClientRequestError;
use crate::frame::Frame;
use crate::source::{ShownSource, numbers};
use crate::wire::Ns;

/// Steps are multiples of this.
const MILLISECOND: u64 = 1_000_000;
/// Maximum number of values per frame.
const FRAME_VALUES: usize = 200_000;

/// A watch.
pub struct Watch {
    id: u32,
    shown: ShownSource,
    series: Vec<u32>,
    columns: Vec<usize>,
    step: u64,
    next: u64,
    partial: bool,
    /// The latest row in the last partial bucket.
    seen: u64,
}

impl Watch {
    /// Follows these series from this time on.
    pub fn new(
        id: u32,
        shown: ShownSource,
        series: Vec<u32>,
        step: Ns,
        from: Ns,
        partial: bool,
    ) -> Result<Self, ClientRequestError> {
        shown.check(&series)?;
        let Ns(step) = step;
        if step == 0 || !step.is_multiple_of(MILLISECOND) {
            return Err(ClientRequestError::Step(step));
        }
        let columns = numbers(&series);
        Ok(Self { id, shown, series, columns, step, next: from.0 / step, partial, seen: 0 })
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// The buckets that were completed since the last call, or the first of them.
    pub fn frame(&mut self) -> Option<Frame> {
        let (first, last) = self.shown.data.span()?;
        self.next = self.next.max(first / self.step);
        // A recording does not grow, so its last bucket is complete.
        let live = self.shown.info.kind == crate::wire::SourceKind::Live;
        let open = last / self.step;
        let complete = if live { open } else { open + 1 };
        let grown = self.partial && live && last != self.seen;
        let end = if grown { open + 1 } else { complete };
        if self.series.is_empty() || end <= self.next {
            return None;
        }
        let max = (FRAME_VALUES / self.series.len()).max(1) as u64;
        let end = end.min(self.next + max);
        let buckets = self.shown.data.buckets_on_grid(&self.columns, self.next, end, self.step);
        let frame = Frame::of_grid(self.id, self.shown.info.id, &self.series, self.next, &buckets);
        if end > open {
            self.seen = last;
        }
        self.next = end.min(complete);
        Some(frame).filter(|frame| !frame.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::shown;

    fn header(frame: Frame) -> serde_json::Value {
        let bytes = frame.bytes(0, 0);
        let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
        serde_json::from_slice(&bytes[4..4 + length]).unwrap()
    }

    fn watch(step: u64, partial: bool) -> Watch {
        Watch::new(3, shown(&["a"], 10), vec![0], Ns(step), Ns(0), partial).unwrap()
    }

    #[test]
    fn complete_buckets_are_sent_once() {
        let mut watch = watch(2_000_000, false);
        let first = header(watch.frame().unwrap());
        assert_eq!((&first["first"], &first["rows"], &first["id"]), (&500.into(), &4.into(), &3.into()));
        assert_eq!(watch.frame(), None);
    }

    #[test]
    fn a_bucket_may_be_sent_as_it_grows() {
        let mut watch = watch(2_000_000, true);
        assert_eq!(header(watch.frame().unwrap())["rows"], 5);
        assert_eq!(watch.frame(), None, "nothing was added");
        assert_eq!(watch.next, 504, "the last bucket comes again");
    }

    #[test]
    fn invalid_watches_are_refused() {
        let new = |series: u32, step| Watch::new(1, shown(&["a"], 1), vec![series], Ns(step), Ns(0), false);
        assert!(new(0, 1_000_000).is_ok());
        for (series, step) in [(1, 1_000_000), (0, 0), (0, 1_500_000)] {
            assert!(new(series, step).is_err());
        }
    }
}
