//! The only place where differences, wraps and rates are computed.

use crate::batch::Batch;
use numakit_model::label::RecorderEvent;
use numakit_model::{Kind, Series};
use std::ops::Range;

/// Converts rows of raw values: counters become rates per second in
/// the metric's unit, gauges stay levels, rates stay rates.
///
/// No rate is computed over less time than the metric's resolution; until enough time has
/// passed, the value is `None` and the difference accumulates.
#[derive(Debug, Clone)]
pub struct Rates {
    series: Vec<State>,
    out: Vec<Option<f64>>,
}

#[derive(Debug, Clone)]
struct State {
    kind: Kind,
    resolution: u64,
    last: Option<(u64, u64)>,
    began: Option<u64>,
}

/// Consecutive samples of a batch, without a label between them.
#[derive(Debug, Clone)]
pub struct Samples<'a> {
    /// The batch.
    pub batch: &'a Batch,
    /// The rows.
    pub rows: Range<usize>,
    is_ordered: bool,
}

impl<'a> Samples<'a> {
    /// These rows, none of which is a label.
    pub fn new(batch: &'a Batch, rows: Range<usize>) -> Self {
        let is_ordered = batch.time[rows.clone()].is_sorted();
        Self { batch, rows, is_ordered }
    }

    /// Their times.
    pub fn times(&self) -> &'a [u64] {
        &self.batch.time[self.rows.clone()]
    }

    /// The first row from `row` on that is not before a time.
    fn reaches(&self, row: usize, due: u64) -> usize {
        let times = &self.batch.time[row..self.rows.end];
        let before = |time: &u64| *time < due;
        row + match self.is_ordered {
            true => times.partition_point(before),
            false => times.iter().position(|time| !before(time)).unwrap_or(times.len()),
        }
    }
}

impl Rates {
    /// For rows of these series.
    pub fn new(series: &[Series]) -> Self {
        let state = |s: &Series| State {
            kind: s.metric.kind,
            resolution: u64::try_from(s.metric.resolution.as_nanos()).unwrap_or(u64::MAX),
            last: None,
            began: None,
        };
        Self { series: series.iter().map(state).collect(), out: vec![None; series.len()] }
    }

    /// The next row: its time in ns and its raw values.
    pub fn push(&mut self, time: u64, values: &[Option<u64>]) -> &[Option<f64>] {
        for ((state, out), value) in self.series.iter_mut().zip(&mut self.out).zip(values) {
            *out = value.and_then(|v| state.next(time, v));
        }
        &self.out
    }

    /// The next rows of one series: the same values as from [`Rates::push`], one after the
    /// other. Rows are samples; every series must get the same ones.
    pub fn column(
        &mut self,
        series: usize,
        batch: &Batch,
        rows: Range<usize>,
        mut each: impl FnMut(Option<f64>),
    ) {
        let Some((state, column)) = self.series.get_mut(series).zip(batch.columns.get(series)) else {
            return;
        };
        let (times, values) = (&batch.time[rows.clone()], &column.values[rows.clone()]);
        let valid = &column.valid[rows];
        if valid.iter().all(|valid| *valid) && state.is_constant(times, values) {
            return times.iter().for_each(|_| each(Some(0.0)));
        }
        for ((time, value), valid) in times.iter().zip(values).zip(valid) {
            each(if *valid { state.next(*time, *value) } else { None });
        }
    }

    /// The rows of one series that have a rate, and their rates: those that [`Rates::column`] gives one by one.
    pub fn rated(&mut self, series: usize, of: &Samples<'_>, mut each: impl FnMut(usize, f64)) {
        let Some((state, column)) = self.series.get_mut(series).zip(of.batch.columns.get(series)) else {
            return;
        };
        let mut row = of.rows.start;
        while row < of.rows.end {
            if let (Kind::Counter { .. }, Some((last, _))) = (state.kind, state.last) {
                row = of.reaches(row, last.saturating_add(state.resolution.max(1)));
            }
            if let Some(value) = column.get(row).filter(|_| row < of.rows.end)
                && let Some(rate) = state.next(of.batch.time[row], value)
            {
                each(row, rate);
            }
            row += 1;
        }
    }

    /// When the interval of a counter's latest rate began; `None` before the
    /// first, and for gauges and rates.
    pub fn began(&self, series: usize) -> Option<u64> {
        self.series.get(series)?.began
    }

    /// Processes a label: no rate spans a pause. Returns whether the label begins or ends a pause.
    pub fn label(&mut self, text: &str) -> bool {
        let is_pause =
            matches!(RecorderEvent::parse(text), Some(RecorderEvent::Paused | RecorderEvent::Resumed));
        if is_pause {
            self.forget();
        }
        is_pause
    }

    /// Forgets earlier rows, so that no rate spans a gap such as a pause.
    pub fn forget(&mut self) {
        self.series.iter_mut().for_each(|s| s.last = None);
    }
}

impl State {
    /// Whether a counter has its last value in all these rows, as most counters do most of the time;
    /// then the rows are processed.
    fn is_constant(&mut self, times: &[u64], values: &[u64]) -> bool {
        let (Kind::Counter { .. }, 0, Some((before, last))) = (self.kind, self.resolution, self.last) else {
            return false;
        };
        let (Some(&first), Some(&end)) = (times.first(), times.last()) else { return false };
        if before >= first || times.windows(2).any(|w| w[0] >= w[1]) || values.iter().any(|v| *v != last) {
            return false;
        }
        self.began = Some(times.iter().rev().nth(1).copied().unwrap_or(before));
        self.last = Some((end, last));
        true
    }

    fn next(&mut self, time: u64, value: u64) -> Option<f64> {
        let bits = match self.kind {
            Kind::Gauge => return Some(value as f64),
            Kind::Rate => return Some(value as i64 as f64),
            Kind::Counter { bits } => bits,
        };
        let Some((last_time, last)) = self.last else {
            self.last = Some((time, value));
            return None;
        };
        let elapsed = time.saturating_sub(last_time);
        if elapsed == 0 || elapsed < self.resolution {
            return None;
        }
        self.last = Some((time, value));
        let moved = difference(last, value, bits)?;
        self.began = Some(last_time);
        Some(moved as f64 * 1e9 / elapsed as f64)
    }
}

/// The increase of a counter of that width. `None` if it decreased: a counter of 64 bits
/// does not wrap in practice, and a counter that dropped by less than half its range was corrected
/// or reset, not wrapped.
pub fn difference(from: u64, to: u64, bits: u8) -> Option<u64> {
    if to >= from {
        return Some(to - from);
    }
    if bits >= 64 {
        return None;
    }
    let range = 1u64 << bits;
    let moved = range.checked_sub(from)?.checked_add(to)?;
    (moved < range / 2).then_some(moved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_model::{Instance, Metric, Scope, Unit};
    use proptest::prelude::*;
    use std::sync::Arc;
    use std::time::Duration;

    fn series(kind: Kind, resolution: Duration) -> Series {
        let metric = Metric {
            name: "test.value".into(),
            unit: Unit::Count,
            kind,
            scope: Scope::Machine,
            help: String::new(),
            source: String::new(),
            resolution,
            confidence: None,
            maximum: None,
        };
        Series::new(&Arc::new(metric), Instance::Machine)
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn a_counter_becomes_a_rate_and_a_gauge_stays() {
        let mut rates = Rates::new(&[
            series(Kind::COUNTER, Duration::ZERO),
            series(Kind::Gauge, Duration::ZERO),
            series(Kind::Rate, Duration::ZERO),
        ]);
        assert_eq!(rates.push(0, &[Some(100), Some(7), Some(-5i64 as u64)]), [None, Some(7.0), Some(-5.0)]);
        assert_eq!(rates.push(100 * MS, &[Some(150), Some(3), None]), [Some(500.0), Some(3.0), None]);
    }

    #[test]
    fn a_gap_is_bridged_and_a_step_back_is_not_a_rate() {
        let mut rates = Rates::new(&[series(Kind::COUNTER, Duration::ZERO)]);
        rates.push(0, &[Some(10)]);
        assert_eq!(rates.push(100 * MS, &[None]), [None]);
        assert_eq!(rates.push(200 * MS, &[Some(20)]), [Some(50.0)]);
        assert_eq!(rates.push(300 * MS, &[Some(19)]), [None]);
        assert_eq!(rates.push(400 * MS, &[Some(29)]), [Some(100.0)]);
    }

    #[test]
    fn no_rate_is_finer_than_the_resolution() {
        let mut rates = Rates::new(&[series(Kind::COUNTER, Duration::from_millis(10))]);
        rates.push(0, &[Some(0)]);
        for ms in 1..10 {
            assert_eq!(rates.push(ms * MS, &[Some(0)]), [None]);
        }
        assert_eq!(rates.began(0), None);
        assert_eq!(rates.push(10 * MS, &[Some(1)]), [Some(100.0)]);
        assert_eq!(rates.began(0), Some(0));
    }

    #[test]
    fn narrow_counters_wrap() {
        assert_eq!(difference(u64::from(u32::MAX), 1, 32), Some(2));
        assert_eq!(difference(1 << 31, 0, 32), None);
        assert_eq!(difference(u64::MAX, 0, 64), None);
        assert_eq!(difference(u64::MAX, 3, 48), None);
        // The difference is right for any distance to the wrap.
        let end = 1u64 << 48;
        assert_eq!([1, 2, 1000].map(|n| difference(end - n, 5, 48)), [6, 7, 1005].map(Some));
    }

    fn rows() -> impl Strategy<Value = Vec<(u64, Option<u64>)>> {
        let step = prop_oneof![6 => 1..40u64, 1 => Just(0u64)];
        let value = prop_oneof![8 => Just(Some(7u64)), 1 => Just(None), 2 => (0..20u64).prop_map(Some)];
        proptest::collection::vec((step, value), 0..40)
    }

    proptest! {
        #[test]
        fn a_column_has_the_values_of_its_rows(rows in rows(), cuts in proptest::collection::vec(1..9usize, 0..9), coarse: bool) {
            let mut batch = Batch::empty(2);
            let mut time = 5;
            for (step, value) in rows {
                time += step;
                batch.push_sample(time, 0, &[value, value]);
            }
            let resolution = Duration::from_nanos(if coarse { 30 } else { 0 });
            let series = [series(Kind::COUNTER, resolution), series(Kind::Gauge, resolution)];
            let (mut one, mut all, mut some) = (Rates::new(&series), Rates::new(&series), Rates::new(&series));
            let (mut from, mut columns) = (0usize, [Vec::new(), Vec::new()]);
            let mut rated = [vec![None; batch.len()], vec![None; batch.len()]];
            for cut in cuts.into_iter().chain([usize::MAX]) {
                let to = batch.len().min(from.saturating_add(cut));
                (0..2).for_each(|s| all.column(s, &batch, from..to, |v| columns[s].push(v)));
                let samples = Samples::new(&batch, from..to);
                (0..2).for_each(|s| some.rated(s, &samples, |row, v| rated[s][row] = Some(v)));
                from = to;
            }
            prop_assert_eq!(&rated, &columns);
            let mut raw = [None; 2];
            for (row, (counted, level)) in columns[0].iter().zip(&columns[1]).enumerate() {
                batch.row(row, &mut raw);
                prop_assert_eq!(one.push(batch.time[row], &raw), [*counted, *level]);
            }
            prop_assert_eq!(columns[0].len(), batch.len());
            prop_assert_eq!((0..3).map(|s| one.began(s)).collect::<Vec<_>>(), (0..3).map(|s| all.began(s)).collect::<Vec<_>>());
        }

        #[test]
        fn differences_invert_addition(from: u64, step in 0u64..1 << 31, bits in 32u8..64) {
            let from = from & ((1 << bits) - 1);
            let to = (from + step) & ((1 << bits) - 1);
            prop_assume!(step < 1 << (bits - 1));
            prop_assert_eq!(difference(from, to, bits), Some(step));
        }
    }
}
