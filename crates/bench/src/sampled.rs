//! Repeats a measurement.

use crate::results::quantiles::Quantiles;
use numakit_sys::clock;
use std::time::Duration;

/// Minimum number of measurements of a value, however short its time is.
pub const MIN_SAMPLES: usize = 5;
/// Measurements that are kept at most.
const MAX_SAMPLES: usize = 100_000;

/// Repeats a measurement for a time. `once` returns a measurement, or `None` to end.
pub fn repeat<T>(time: Duration, once: impl FnMut() -> Option<T>) -> Vec<T> {
    repeat_at_least(MIN_SAMPLES, time, once)
}

/// Repeats a measurement for a time, and at least this often.
pub fn repeat_at_least<T>(least: usize, time: Duration, mut once: impl FnMut() -> Option<T>) -> Vec<T> {
    let mut values = Vec::new();
    let end = clock::monotonic().saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    while values.len() < least || (clock::monotonic() < end && values.len() < MAX_SAMPLES) {
        match once() {
            Some(value) => values.push(value),
            None => break,
        }
    }
    values
}

/// Quantiles of one field of measurements.
pub fn quantiles<T>(values: &[T], field: impl Fn(&T) -> f64) -> Option<Quantiles> {
    Quantiles::of(values.iter().map(field).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_some_measurements_and_an_end() {
        assert_eq!(repeat(Duration::ZERO, || Some(1)).len(), MIN_SAMPLES);
        let mut left = 3;
        let values = repeat(Duration::from_secs(60), || {
            left -= 1;
            (left > 0).then_some(left)
        });
        assert_eq!(values, [2, 1]);
        assert_eq!(quantiles(&values, |v| f64::from(*v) * 2.0).map(|q| q.high), Some(4.0));
    }
}
