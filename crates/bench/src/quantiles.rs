//! What many measurements of the same say.

use serde::{Deserialize, Serialize};

/// The middle of measurements, and what a tenth of them is below and above.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Half of them are less.
    pub median: f64,
    /// A tenth of them are less.
    pub low: f64,
    /// A tenth of them are more.
    pub high: f64,
    /// How many there are.
    pub samples: usize,
}

impl Quantiles {
    /// Of these values, in any order; none of no values.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        let at = |share: f64| {
            values.get((share * values.len().saturating_sub(1) as f64).round() as usize).copied()
        };
        Some(Self { median: at(0.5)?, low: at(0.1)?, high: at(0.9)?, samples: values.len() })
    }

    /// From low to high, as a share of the median.
    pub fn spread(&self) -> f64 {
        if self.median > 0.0 { (self.high - self.low) / self.median } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_measured_values() {
        let of = |values: &[f64]| Quantiles::of(values.to_vec());
        let eleven: Vec<f64> = (0..11).rev().map(f64::from).collect();
        assert_eq!(of(&eleven), Some(Quantiles { median: 5.0, low: 1.0, high: 9.0, samples: 11 }));
        assert_eq!(of(&[2.0]).map(|q| (q.median, q.low, q.high, q.spread())), Some((2.0, 2.0, 2.0, 0.0)));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[f64::NAN]), None);
        assert_eq!(of(&eleven).map(|q| q.spread()), Some(8.0 / 5.0));
    }
}
