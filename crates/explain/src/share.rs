//! Shares of time, with their uncertainty.

pub use numakit_model::share::ShareEstimate;

use numakit_model::share::Z;
use std::collections::HashMap;

/// Samples of a thread within this time, in ns, are not independent: a program does one thing for a while.
pub const CLUSTER: u64 = 100_000_000;
/// Weights that are gathered by thread and time.
#[derive(Debug, Default)]
pub struct Clusters {
    of: HashMap<(u32, u64), (f64, f64)>,
    closed: Moments,
}

/// Sums over clusters: of the part `p`, of all `a`, and of their squares and products.
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    count: f64,
    part: f64,
    all: f64,
    part_part: f64,
    part_all: f64,
    all_all: f64,
}

impl Moments {
    fn add(&mut self, (part, all): (f64, f64)) {
        self.count += 1.0;
        self.part += part;
        self.all += all;
        self.part_part += part * part;
        self.part_all += part * all;
        self.all_all += all * all;
    }
}

impl Clusters {
    /// Adds the weight of a sample that counts, and whether it is part of the share.
    pub fn add(&mut self, thread: u32, time: u64, weight: u64, is_part: bool) {
        let (part, all) = self.of.entry((thread, time / CLUSTER)).or_default();
        *all += weight as f64;
        *part += if is_part { weight as f64 } else { 0.0 };
    }

    /// No sample from before this time, in ns, will come: bounds memory.
    pub fn close(&mut self, before: u64) {
        let Self { of, closed } = self;
        of.retain(|(_, cluster), weights| {
            let is_open = (*cluster + 1) * CLUSTER > before;
            if !is_open {
                closed.add(*weights);
            }
            is_open
        });
    }

    /// The number of clusters.
    pub fn count(&self) -> u64 {
        self.closed.count as u64 + self.of.len() as u64
    }

    /// The share, by the ratio estimator for clusters of unequal size. `None` without samples.
    pub fn estimate(&self) -> Option<ShareEstimate> {
        let mut sums = self.closed;
        self.of.values().for_each(|weights| sums.add(*weights));
        let Moments { count, part, all, part_part, part_all, all_all } = sums;
        if all <= 0.0 {
            return None;
        }
        let share = part / all;
        if count < 2.0 {
            return Some(ShareEstimate { share, low: 0.0, high: 1.0 });
        }
        // The sum of (p - share a) squared; of sums that cancel, a rounding error may be left.
        let squares = (part_part - 2.0 * share * part_all + share * share * all_all).max(0.0);
        let error = (squares * count / (count - 1.0)).sqrt() / all;
        // Without a single exception among n clusters, 3 / n is the bound of 95 %.
        let least = if part <= 0.0 || part >= all { (3.0 / count).min(1.0) } else { 0.0 };
        let half = (Z * error).max(least);
        Some(ShareEstimate { share, low: (share - half).max(0.0), high: (share + half).min(1.0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn clusters(samples: impl IntoIterator<Item = (u32, u64, bool)>) -> Clusters {
        let mut clusters = Clusters::default();
        samples.into_iter().for_each(|(thread, at, part)| clusters.add(thread, at * CLUSTER, 5, part));
        clusters
    }

    #[test]
    fn closed_clusters_count_like_open_ones() {
        let samples = || (0..400).map(|n| (0, n, n % 4 == 0));
        let (open, mut closed) = (clusters(samples()), clusters(samples()));
        closed.close(300 * CLUSTER);
        assert_eq!(closed.of.len(), 100);
        let [one, other] = [open, closed].map(|all| all.estimate().unwrap());
        assert!((one.high - other.high).abs() < 1e-9 && one.share == other.share, "{one:?} {other:?}");
    }

    #[test]
    fn the_interval_narrows_with_independent_samples_only() {
        let spread = clusters((0..400).map(|n| (0, n, n % 4 == 0))).estimate().unwrap();
        assert_eq!(spread.share, 0.25);
        assert!((0.20..0.22).contains(&spread.low) && (0.28..0.30).contains(&spread.high), "{spread:?}");
        let together = clusters((0..400).map(|n| (0, n / 100, n / 100 == 0))).estimate().unwrap();
        assert_eq!(together.share, 0.25);
        assert!(together.low == 0.0 && together.high > 0.6, "{together:?}");
    }

    #[test]
    fn few_or_equal_samples_are_not_certain() {
        assert_eq!(Clusters::default().estimate(), None);
        let one = clusters([(0, 0, true)]).estimate().unwrap();
        assert_eq!((one.share, one.low, one.high), (1.0, 0.0, 1.0));
        let all = clusters((0..60).map(|n| (0, n, true))).estimate().unwrap();
        assert_eq!((all.share, all.low, all.high), (1.0, 0.95, 1.0));
    }

    proptest! {
        #[test]
        fn the_interval_contains_the_share(samples in proptest::collection::vec((0u32..4, 0u64..50, any::<bool>()), 1..200)) {
            let found = clusters(samples).estimate().unwrap();
            prop_assert!(0.0 <= found.low && found.low <= found.share && found.share <= found.high && found.high <= 1.0);
        }
    }
}
