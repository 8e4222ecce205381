//! Shares that were found by counting some, with their uncertainty.

use crate::interval::ValueInterval;
use serde::{Deserialize, Serialize};

/// Standard errors of a 95 % interval.
pub const Z: f64 = 1.96;

/// A share between 0 and 1, and its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ShareEstimate {
    /// The share.
    pub share: f64,
    /// The low end of the interval.
    pub low: f64,
    /// The high end of the interval.
    pub high: f64,
}

impl ShareEstimate {
    /// A share that was found in this number of independent samples. By Wilson: sound for few samples and for shares near 0
    /// and 1.
    pub fn of_samples(share: f64, samples: f64) -> Self {
        let count = samples.max(1.0);
        let middle = share + Z * Z / (2.0 * count);
        let half = Z * (share * (1.0 - share) / count + Z * Z / (4.0 * count * count)).sqrt();
        let [low, high] =
            [middle - half, middle + half].map(|end| (end / (1.0 + Z * Z / count)).clamp(0.0, 1.0));
        Self { share, low: low.min(share), high: high.max(share) }
    }

    /// Where it lies.
    pub fn interval(&self) -> ValueInterval {
        ValueInterval { low: self.low, high: self.high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_share_narrows_with_samples() {
        let few = ShareEstimate::of_samples(0.5, 10.0);
        let many = ShareEstimate::of_samples(0.5, 1000.0);
        assert!(few.low < 0.3 && few.high > 0.7 && many.low > 0.46 && many.high < 0.54, "{few:?} {many:?}");
        let all = ShareEstimate::of_samples(1.0, 50.0);
        assert!(all.high == 1.0 && (0.9..0.95).contains(&all.low), "{all:?}");
    }
}
