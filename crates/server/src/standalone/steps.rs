//! Lengths of buckets: 1, 2 or 5 times a power of ten milliseconds.

const MILLISECOND: u64 = 1_000_000;

/// The shortest that is not shorter than this.
pub fn at_least(ns: u64) -> u64 {
    let mut power = MILLISECOND;
    loop {
        for multiple in [1, 2, 5] {
            let step = power.saturating_mul(multiple);
            if step >= ns {
                return step;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// The next longer one.
pub fn coarser(step: u64) -> u64 {
    at_least(step.saturating_add(1))
}

/// The next shorter one.
pub fn finer(step: u64) -> Option<u64> {
    let below = if step.to_string().starts_with('5') { step / 5 * 2 } else { step / 2 };
    (below >= MILLISECOND).then_some(below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        assert_eq!(
            [0, 1, 1_000_001, 4_000_000, 60_000_000].map(at_least).map(|s| s / MILLISECOND),
            [1, 1, 2, 5, 100]
        );
        let mut step = MILLISECOND;
        assert_eq!(finer(step), None);
        for _ in 0..30 {
            let next = coarser(step);
            assert_eq!(finer(next), Some(step));
            step = next;
        }
        assert_eq!(at_least(u64::MAX), u64::MAX);
    }
}
