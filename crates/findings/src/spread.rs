//! How much neighbouring values of a series differ: what of its course is noise.

use crate::histogram::Histogram;

/// This share of the differences is not larger than the noise; the others may be changes.
const USUAL: f64 = 0.75;
/// With fewer differences than this, the noise is not known.
const MIN_STEPS: u64 = 4;

/// The differences of neighbouring values, in slots of time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spread {
    last: Option<f64>,
    steps: Histogram,
}

impl Spread {
    /// The next value.
    pub(crate) fn push(&mut self, value: f64) {
        if let Some(last) = self.last.replace(value) {
            self.steps.add((value - last).abs());
        }
    }

    /// Notes a gap: the next value has no neighbour before it.
    pub(crate) fn gap(&mut self) {
        self.last = None;
    }

    /// The difference that three of four neighbouring values do not exceed; `None` with too few of them.
    pub(crate) fn noise(&self) -> Option<f64> {
        self.steps.quantile(USUAL).filter(|_| self.steps.total() >= MIN_STEPS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut spread = Spread::default();
        values.into_iter().for_each(|value| spread.push(value));
        spread
    }

    #[test]
    fn one_step_is_no_noise_and_alternating_values_are() {
        assert_eq!(fed((0..100).map(|at| if at < 50 { 10.0 } else { 1000.0 })).noise(), Some(0.0));
        let noise = fed((0..100).map(|at| f64::from(at % 2) * 1000.0)).noise().unwrap();
        assert!((950.0..=1050.0).contains(&noise), "{noise}");
        assert_eq!(fed([1.0, 2.0]).noise(), None);
    }

    #[test]
    fn no_difference_spans_a_gap() {
        let mut spread = fed([1.0; 10]);
        spread.gap();
        (0..10).for_each(|_| spread.push(500.0));
        assert_eq!((spread.noise(), spread.steps.largest()), (Some(0.0), Some(0.0)));
    }
}
