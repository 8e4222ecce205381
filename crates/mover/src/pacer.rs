//! How large the next piece of pages is, and how long to pause after it.

use std::ops::RangeInclusive;
use std::time::Duration;

/// What a piece should take.
const AIM: Duration = Duration::from_millis(1);
/// After a piece, a pause is at least one in this many parts of its time: moving takes at most 16 of 17 parts of the time.
const PAUSE: u32 = 16;
/// Shorter pauses are put off until they are this long together: waking up takes longer than they last.
const SHORTEST: Duration = Duration::from_millis(1);
/// A pause for the piece's time alone is at most this long: what takes longer is no copying.
const MAX_PAUSE: Duration = Duration::from_millis(5);
/// Bytes of a piece. Each call waits for all CPUs first, in which threads go on, and the kernel copies up to 512 small pages for
/// each interruption of the other CPUs: smaller pieces would only wait and interrupt more often.
const BYTES: RangeInclusive<u64> = 2 << 20..=4 << 20;

/// Sizes pieces by how long those before took.
#[derive(Debug, Clone)]
pub struct Pacer {
    /// Bytes in a second, at most.
    rate: u64,
    bytes: u64,
    longest: Duration,
    owed: Duration,
}

impl Pacer {
    /// A pacer for at most this many bytes in a second.
    pub fn new(rate: u64) -> Self {
        Self { rate: rate.max(1), bytes: *BYTES.start(), longest: Duration::ZERO, owed: Duration::ZERO }
    }

    /// Bytes of the next piece. A page that is larger is a piece of its own.
    pub fn piece(&self) -> u64 {
        self.bytes
    }

    /// The longest piece so far.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// Notes how long a piece of this many bytes took. Returns how long to pause, often not at all.
    pub fn took(&mut self, bytes: u64, time: Duration) -> Duration {
        self.longest = self.longest.max(time);
        let nanos = time.as_nanos().max(1);
        let fitting = u128::from(bytes) * AIM.as_nanos() / nanos;
        let fitting = u64::try_from(fitting).unwrap_or(u64::MAX);
        // Pieces grow step by step, since one that was quick may have had pages that were in caches; they shrink at once.
        self.bytes = fitting.min(self.bytes.saturating_mul(2)).clamp(*BYTES.start(), *BYTES.end());
        let by_rate =
            Duration::from_nanos((u128::from(bytes) * 1_000_000_000 / u128::from(self.rate)) as u64);
        self.owed += by_rate.saturating_sub(time).max((time / PAUSE).min(MAX_PAUSE));
        if self.owed < SHORTEST { Duration::ZERO } else { std::mem::take(&mut self.owed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pieces_grow_to_what_takes_a_millisecond_and_shrink_at_once() {
        let mut pacer = Pacer::new(u64::MAX);
        // 3 GB/s: a millisecond has 3 MB.
        for _ in 0..10 {
            let bytes = pacer.piece();
            pacer.took(bytes, Duration::from_nanos(bytes / 3));
        }
        assert!(pacer.piece().abs_diff(3_000_000) < 10);
        pacer.took(3_000_000, Duration::from_millis(2));
        assert_eq!((pacer.piece(), pacer.longest()), (*BYTES.start(), Duration::from_millis(2)));
        pacer.took(500_000, Duration::from_secs(5));
        assert_eq!(pacer.piece(), *BYTES.start(), "smaller pieces would not be faster");
    }

    #[test]
    fn pauses_are_a_seventeenth_of_the_time_and_the_rate_is_kept() {
        let mut pacer = Pacer::new(1 << 20);
        let short = Duration::from_millis(4);
        let pauses: Vec<u128> = (0..8).map(|_| pacer.took(64, short).as_micros()).collect();
        assert_eq!(pauses, [0, 0, 0, 1000, 0, 0, 0, 1000]);
        assert_eq!(pacer.took(64, Duration::from_secs(2)), MAX_PAUSE);
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
                let pause = pacer.took(bytes, time);
                prop_assert!(pause >= (time / PAUSE).min(MAX_PAUSE) || pause.is_zero() && pacer.owed < SHORTEST);
                prop_assert!(BYTES.contains(&pacer.piece()));
            }
        }
    }
}
