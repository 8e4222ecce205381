//! Quantiles of repeated measurements of one value.

use numakit_model::interval::ValueInterval;
use serde::{Deserialize, Serialize};

/// The median of measurements, with their 10 % and 90 % quantiles.
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
    /// Where it lies.
    pub fn interval(&self) -> ValueInterval {
        ValueInterval { low: self.low, high: self.high }
    }

    /// The quantiles of these values, in any order; `None` if there are no values.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        let at = |share: f64| {
            values.get((share * values.len().saturating_sub(1) as f64).round() as usize).copied()
        };
        Some(Self { median: at(0.5)?, low: at(0.1)?, high: at(0.9)?, samples: values.len() })
    }

    /// The quantiles of several runs. The median is that of their medians; the others cover the runs: the 10 % quantile of
    /// their low quantiles, and the 90 % quantile of their high ones. With up to five runs, these are the least and the
    /// greatest.
    pub fn of_runs(runs: impl IntoIterator<Item = Self>) -> Option<Self> {
        let runs: Vec<Self> = runs.into_iter().collect();
        let all = |of: fn(&Self) -> f64| Self::of(runs.iter().map(of).collect());
        // With an even number of runs, the median is the mean of the two in the middle: of two runs, neither counts more.
        let mut medians: Vec<f64> = runs.iter().map(|run| run.median).collect();
        medians.sort_by(f64::total_cmp);
        let middle = medians.len().checked_sub(1)? / 2;
        let (below, above) = (medians.get(middle)?, medians.get(medians.len() / 2)?);
        Some(Self {
            median: (below + above) / 2.0,
            low: all(|run| run.low)?.low,
            high: all(|run| run.high)?.high,
            samples: runs.iter().map(|run| run.samples).sum(),
        })
    }

    /// The width from low to high, as a share of the median.
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

    #[test]
    fn quantiles_of_runs_cover_all_of_five_runs_and_most_of_many() {
        let run = |median: f64| Quantiles { median, low: median - 0.5, high: median + 2.0, samples: 4 };
        let of = |count: u32| Quantiles::of_runs((0..count).rev().map(|at| run(f64::from(at))));
        assert_eq!(of(5), Some(Quantiles { median: 2.0, low: -0.5, high: 6.0, samples: 20 }));
        assert_eq!(of(11), Some(Quantiles { median: 5.0, low: 0.5, high: 11.0, samples: 44 }));
        assert_eq!((of(1), of(0)), (Some(run(0.0)), None));
        assert_eq!([of(2), of(4)].map(|q| q.map(|q| q.median)), [Some(0.5), Some(1.5)]);
    }
}
