//! The values of a row for all formats.

use numakit_model::{Kind, Series};
use numakit_recording::{Batch, Rates};
use std::fmt;

/// Which values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportedValues {
    /// Raw values.
    Raw,
    /// Counters per second, gauges as levels.
    Rates,
}

/// A measured value. A float is finite.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs)]
pub enum Number {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
}

impl Number {
    /// The nearest float.
    pub fn float(self) -> f64 {
        match self {
            Self::Unsigned(value) => value as f64,
            Self::Signed(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsigned(value) => value.fmt(f),
            Self::Signed(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
        }
    }
}

impl ExportedValues {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Rates => "rates",
        }
    }

    /// Whether values of this kind are floats.
    pub fn are_floats(self, kind: Kind) -> bool {
        self == Self::Rates && matches!(kind, Kind::Counter { .. })
    }

    /// Whether values of this kind are per second.
    pub fn are_per_second(self, kind: Kind) -> bool {
        self.are_floats(kind) || kind == Kind::Rate
    }
}

/// Converts rows of a recording to numbers.
#[derive(Debug)]
pub struct Numbers {
    kinds: Vec<Kind>,
    rates: Option<Rates>,
    raw: Vec<Option<u64>>,
    row: Vec<Option<Number>>,
}

impl Numbers {
    /// For rows of these series.
    pub fn new(series: &[Series], values: ExportedValues) -> Self {
        Self {
            kinds: series.iter().map(|s| s.metric.kind).collect(),
            rates: (values == ExportedValues::Rates).then(|| Rates::new(series)),
            raw: vec![None; series.len()],
            row: vec![None; series.len()],
        }
    }

    /// The numbers of the next sample, one slot per series.
    pub fn row(&mut self, batch: &Batch, row: usize) -> &[Option<Number>] {
        batch.row(row, &mut self.raw);
        for ((slot, raw), kind) in self.row.iter_mut().zip(&self.raw).zip(&self.kinds) {
            *slot = raw.map(|raw| match kind {
                Kind::Rate => Number::Signed(raw as i64),
                Kind::Counter { .. } | Kind::Gauge => Number::Unsigned(raw),
            });
        }
        if let Some(rates) = &mut self.rates {
            let rates = rates.push(batch.time[row], &self.raw);
            for ((slot, rate), kind) in self.row.iter_mut().zip(rates).zip(&self.kinds) {
                if matches!(kind, Kind::Counter { .. }) {
                    *slot = rate.filter(|r| r.is_finite()).map(Number::Float);
                }
            }
        }
        &self.row
    }

    /// The number of one series in the last row.
    pub fn latest(&self, series: usize) -> Option<Number> {
        *self.row.get(series)?
    }

    /// When the interval of a series' latest rate began; `None` if it is not a
    /// rate over an interval.
    pub fn began(&self, series: usize) -> Option<u64> {
        self.rates.as_ref()?.began(series)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{batch, series};

    #[test]
    fn raw_values_keep_their_sign_and_rates_their_intervals() {
        let series =
            series(&[("a.counter", Kind::COUNTER), ("a.gauge", Kind::Gauge), ("a.rate", Kind::Rate)]);
        let rows = batch(&[
            (1_000, &[Some(u64::MAX - 1), Some(u64::MAX), Some(-7i64 as u64)]),
            (500_001_000, &[Some(u64::MAX), None, None]),
        ]);
        let mut raw = Numbers::new(&series, ExportedValues::Raw);
        use Number::{Float, Signed, Unsigned};
        let first = [Some(Unsigned(u64::MAX - 1)), Some(Unsigned(u64::MAX)), Some(Signed(-7))];
        assert_eq!(raw.row(&rows, 0), first);
        let mut rates = Numbers::new(&series, ExportedValues::Rates);
        assert_eq!(rates.row(&rows, 0), [None, Some(Unsigned(u64::MAX)), Some(Signed(-7))]);
        assert_eq!(rates.row(&rows, 1), [Some(Float(2.0)), None, None]);
        assert_eq!((rates.began(0), rates.began(1)), (Some(1_000), None));
    }
}
