//! Percentiles in bounded memory.

/// Buckets per doubling: a bucket is 9 % wide, so a percentile is within 5 %.
const STEPS: f64 = 8.0;
/// The bucket of 1; smaller values go down to 2^-16.
const ONE: f64 = 128.0;
/// The last bucket: 2^112.
const LAST: usize = 1024;

/// Counts of values that are not negative. It grows only to the bucket of the largest value.
#[derive(Debug, Clone, Default)]
pub(crate) struct Histogram {
    zeros: u64,
    counts: Vec<u32>,
    total: u64,
    largest: f64,
}

impl Histogram {
    pub(crate) fn add(&mut self, value: f64) {
        self.total += 1;
        self.largest = self.largest.max(value);
        if value <= 0.0 {
            self.zeros += 1;
            return;
        }
        let bucket = (value.log2() * STEPS + ONE).clamp(0.0, LAST as f64) as usize;
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] = self.counts[bucket].saturating_add(1);
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// How many of the values were above zero.
    pub(crate) fn above_zero(&self) -> u64 {
        self.total - self.zeros
    }

    /// The largest value, exactly.
    pub(crate) fn largest(&self) -> Option<f64> {
        (self.total > 0).then_some(self.largest)
    }

    /// The value that this share of the values does not exceed.
    pub(crate) fn quantile(&self, share: f64) -> Option<f64> {
        let rank = ((self.total as f64 * share).ceil() as u64).clamp(1, self.total.max(1));
        let mut seen = self.zeros;
        if self.total == 0 || rank <= seen {
            return (self.total > 0).then_some(0.0);
        }
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank {
                let middle = ((bucket as f64 + 0.5 - ONE) / STEPS).exp2();
                return Some(middle.min(self.largest));
            }
        }
        Some(self.largest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_histogram_has_no_percentile_and_zeros_count() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantile(0.5), None);
        [0.0, 0.0, 0.0, 100.0].into_iter().for_each(|v| histogram.add(v));
        assert_eq!(histogram.quantile(0.5), Some(0.0));
        assert_eq!(histogram.largest(), Some(100.0));
        assert_eq!((histogram.total(), histogram.above_zero()), (4, 1));
    }

    proptest! {
        #[test]
        fn percentiles_are_within_five_percent(mut values in prop::collection::vec(0.01f64..1e12, 1..200), share in 0.01f64..1.0) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|v| histogram.add(*v));
            values.sort_by(f64::total_cmp);
            let exact = values[((values.len() as f64 * share).ceil() as usize).clamp(1, values.len()) - 1];
            let found = histogram.quantile(share).unwrap();
            prop_assert!((found - exact).abs() <= 0.05 * exact, "{} for {}", found, exact);
            prop_assert!(found <= *values.last().unwrap());
        }

        #[test]
        fn any_number_is_accepted(value: f64) {
            let mut histogram = Histogram::default();
            histogram.add(value);
            prop_assert_eq!(histogram.total(), 1);
            prop_assert!(histogram.counts.len() <= LAST + 1);
        }
    }
}
