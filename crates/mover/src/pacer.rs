//! How large the next piece of pages is, and how long to pause after it.

use std::time::Duration;

/// What a piece should take.
const AIM: Duration = Duration::from_millis(1);
/// Moving takes one in this many parts of the time at most.
const SHARE: u32 = 4;
/// Bytes of the first piece, and the most of any.
const FIRST: u64 = 64 << 10;
const MAX: u64 = 4 << 20;

/// Sizes pieces by how long those before took.
#[derive(Debug, Clone)]
pub struct Pacer {
    /// Bytes in a second, at most.
    rate: u64,
    bytes: u64,
    longest: Duration,
}

impl Pacer {
    /// A pacer for at most this many bytes in a second.
    pub fn new(rate: u64) -> Self {
        Self { rate: rate.max(1), bytes: FIRST, longest: Duration::ZERO }
    }

    /// Bytes of the next piece. A page that is larger is a piece of its own.
    pub fn piece(&self) -> u64 {
        self.bytes
    }

    /// The longest piece so far.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// Notes how long a piece of this many bytes took. Returns how long to pause.
    pub fn took(&mut self, bytes: u64, time: Duration) -> Duration {
        self.longest = self.longest.max(time);
        let nanos = time.as_nanos().max(1);
        let fitting = (u128::from(bytes) * AIM.as_nanos() / nanos).min(u128::from(MAX)) as u64;
        // Pieces grow step by step, since one that was quick may have had pages that were in caches; they shrink at once.
        self.bytes = fitting.min(self.bytes.saturating_mul(2)).max(numakit_sys::sched::page_size());
        let by_rate =
            Duration::from_nanos((u128::from(bytes) * 1_000_000_000 / u128::from(self.rate)) as u64);
        by_rate.saturating_sub(time).max(time * (SHARE - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pieces_grow_to_what_takes_a_millisecond_and_shrink_at_once() {
        let mut pacer = Pacer::new(u64::MAX);
        // 1 GiB/s: a millisecond has 1 MiB.
        for _ in 0..10 {
            let bytes = pacer.piece();
            pacer.took(bytes, Duration::from_nanos(bytes));
        }
        assert_eq!(pacer.piece(), 1_000_000);
        pacer.took(1_000_000, Duration::from_millis(20));
        assert_eq!((pacer.piece(), pacer.longest()), (50_000, Duration::from_millis(20)));
        pacer.took(50_000, Duration::from_secs(5));
        assert_eq!(pacer.piece(), numakit_sys::sched::page_size());
    }

    #[test]
    fn three_quarters_of_the_time_are_pauses_and_the_rate_is_kept() {
        let mut pacer = Pacer::new(1 << 20);
        assert_eq!(pacer.took(1024, Duration::from_millis(2)), Duration::from_millis(6));
        let pause = pacer.took(1 << 20, Duration::from_millis(100));
        assert_eq!(pause, Duration::from_millis(900));
    }

    proptest! {
        #[test]
        fn no_duration_makes_a_piece_empty_or_unbounded(
            rate in 0u64.., pieces in proptest::collection::vec((0u64..1 << 40, 0u64..1 << 50), 0..50)
        ) {
            let mut pacer = Pacer::new(rate);
            for (bytes, nanos) in pieces {
                let time = Duration::from_nanos(nanos);
                prop_assert!(pacer.took(bytes, time) >= time * 3);
                prop_assert!((numakit_sys::sched::page_size()..=MAX).contains(&pacer.piece()));
            }
        }
    }
}
