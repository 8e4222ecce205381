//! Answers of a history compared with its input, and its memory.

#![allow(clippy::print_stdout, clippy::unwrap_used)]
use numakit_history::{Buckets, History, Source};
use numakit_skips::rounds;
use proptest::prelude::*;
use std::time::{Duration, Instant};

const MS: u64 = 1_000_000;
/// Rows of 15 minutes at 1 kHz.
const MINUTES_15: u64 = 15 * 60 * 1000;

type Rows = Vec<(u64, Vec<Option<f64>>)>;

fn history(rows: &Rows, series: usize, budget: usize) -> History {
    let history = History::new(series, budget);
    rows.iter().for_each(|(time, values)| history.push(*time, values));
    history
}

/// Minimum, maximum and mean from every row.
fn naive(rows: &Rows, series: usize, from: u64, to: u64) -> Option<(f32, f32, f64)> {
    let inside = rows.iter().filter(|(time, _)| from <= *time && *time < to);
    let values: Vec<f32> = inside.filter_map(|(_, v)| v[series]).map(|v| v as f32).collect();
    let mean = values.iter().map(|v| f64::from(*v)).sum::<f64>() / values.len() as f64;
    let min = values.iter().copied().reduce(f32::min)?;
    Some((min, values.iter().copied().reduce(f32::max)?, mean))
}

fn check(rows: &Rows, answer: &Buckets, series: &[usize], to: u64) -> Result<(), TestCaseError> {
    for (column, number) in answer.columns.iter().zip(series) {
        for bucket in 0..column.min.len() {
            let from = answer.from_ns + bucket as u64 * answer.step_ns;
            let found = (column.min[bucket], column.max[bucket], column.mean[bucket]);
            match naive(rows, *number, from, (from + answer.step_ns).min(to)) {
                None => prop_assert!(found.0.is_nan() && found.1.is_nan() && found.2.is_nan()),
                Some((min, max, mean)) => {
                    prop_assert_eq!((found.0, found.1), (min, max), "bucket {}", bucket);
                    let near =
                        (f64::from(found.2) - mean).abs() <= 1e-4 * f64::from(max.abs().max(min.abs()));
                    prop_assert!(near, "{} for {}", found.2, mean);
                }
            }
        }
    }
    Ok(())
}

const SERIES: usize = 3;

fn value() -> impl Strategy<Value = Option<f64>> {
    prop_oneof![
        4 => Just(Some(0.0)),
        1 => Just(None),
        2 => (-1e6..1e6f64).prop_map(Some),
        2 => (0..300u32).prop_map(|v| Some(f64::from(v))),
    ]
}

/// Up to a few blocks, at an interval that changes, with gaps.
fn rows() -> impl Strategy<Value = Rows> {
    let step = prop_oneof![20 => Just(1u64), 5 => 1..4u64, 1 => 1..2000u64];
    let row = (step, proptest::collection::vec(value(), SERIES));
    proptest::collection::vec(row, 1..2600).prop_map(|rows| {
        let mut time = 1000;
        let place = |(step, values): (u64, Vec<Option<f64>>)| {
            time += step * 10;
            (time, values)
        };
        rows.into_iter().map(place).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: rounds(12, 48) as u32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn buckets_are_those_of_every_row(rows in rows(), from in 0..40_000u64, length in 1..60_000u64, buckets in 1..200usize) {
        let history = history(&rows, SERIES, usize::MAX);
        prop_assert_eq!(history.span(), Some((rows[0].0, rows[rows.len() - 1].0)));
        let answer = history.buckets(&[2, 0], from, from + length, buckets);
        check(&rows, &answer, &[2, 0], from + length)?;
        let step = 1 + length / buckets as u64;
        let answer = history.buckets_on_grid(&[1], from / step, from / step + buckets as u64, step);
        check(&rows, &answer, &[1], u64::MAX)?;
    }

    #[test]
    fn every_row_comes_back(rows in rows(), from in 0..40_000u64, length in 1..60_000u64) {
        let history = history(&rows, SERIES, usize::MAX);
        prop_assert_eq!(history.full_since(), rows[0].0);
        let inside = || rows.iter().filter(|(time, _)| from <= *time && *time < from + length);
        let count = inside().count();
        let raw = history.raw(&[1, 9], from, from + length, count).unwrap();
        prop_assert_eq!(raw.times, inside().map(|(time, _)| *time).collect::<Vec<_>>());
        let bits = |v: f32| if v.is_nan() { None } else { Some(v.to_bits()) };
        let found: Vec<_> = raw.columns[0].iter().map(|v| bits(*v)).collect();
        prop_assert_eq!(found, inside().map(|(_, v)| v[1].map(|v| (v as f32).to_bits())).collect::<Vec<_>>());
        prop_assert!(raw.columns[1].len() == count && raw.columns[1].iter().all(|v| v.is_nan()));
        prop_assert!(count == 0 || history.raw(&[1], from, from + length, count - 1).is_none());
    }

    #[test]
    fn a_small_budget_loses_no_spike(rows in rows(), budget in 0..60_000usize, buckets in 1..200usize) {
        let history = history(&rows, SERIES, budget);
        // The open block, and the overhead of a block.
        prop_assert!(history.bytes() <= budget + 1024 * (SERIES * 4 + 8) + 2048, "{}", history.bytes());
        let (first, last) = history.span().unwrap();
        prop_assert_eq!(last, rows[rows.len() - 1].0);
        let kept: Rows = rows.iter().filter(|(time, _)| *time >= first).cloned().collect();
        let answer = history.buckets(&[0], first, last + 1, buckets);
        for bucket in 0..answer.columns[0].min.len() {
            let from = answer.from_ns + bucket as u64 * answer.step_ns;
            if let Some((min, max, _)) = naive(&kept, 0, from, from + answer.step_ns) {
                prop_assert!(answer.columns[0].min[bucket] <= min && answer.columns[0].max[bucket] >= max);
            }
        }
        // The part at full rate is exact.
        let full = history.full_since();
        if full <= last {
            check(&rows, &history.buckets(&[0, 1], full, last + 1, buckets), &[0, 1], last + 1)?;
        }
        prop_assert_eq!(history.raw(&[0], first, last + 1, usize::MAX).is_some(), full == first);
    }
}

#[test]
fn a_gap_stays_empty_when_only_levels_are_left() {
    let history = History::new(1, 0);
    (0..100u64).for_each(|i| history.push(i * MS, &[Some(1.0)]));
    (0..100u64).for_each(|i| history.push((60_000 + i) * MS, &[Some(2.0)]));
    // A budget of 0 bytes stores no sealed block.
    assert_eq!(history.span(), Some((60_000 * MS, 60_099 * MS)));
    let history = History::new(1, 14_000);
    (0..100u64).for_each(|i| history.push(i * MS, &[Some(1.0)]));
    (0..2000u64).for_each(|i| history.push((60_000 + i) * MS, &[Some(2.0)]));
    assert_eq!(history.span().unwrap().0, 0);
    let answer = history.buckets(&[0], 0, 62_000 * MS, 62);
    let mean = &answer.columns[0].mean;
    assert_eq!((mean[0], mean[60], mean[61]), (1.0, 2.0, 2.0));
    assert!(mean[1..60].iter().all(|v| v.is_nan()));
}

#[test]
fn stored_times_strictly_increase() {
    let history = History::new(1, usize::MAX);
    for time in [50, 50, 20, u64::MAX, u64::MAX, 3] {
        history.push(time, &[Some(1.0)]);
    }
    let raw = history.raw(&[0], 0, u64::MAX, 10).unwrap();
    assert_eq!(raw.times, [50, 51, 52]);
    assert_eq!(history.buckets(&[0], 0, u64::MAX, 2).columns[0].max[0], 1.0);
    let empty = History::new(0, usize::MAX);
    (0..3000).for_each(|time| empty.push(time, &[Some(1.0)]));
    assert_eq!(empty.raw(&[], 0, 10, 10).unwrap().times.len(), 10);
    assert_eq!(History::new(5, 0).span(), None);
}

/// 15 minutes, or a fifth of them in a fifth of the memory.
fn fifths() -> u64 {
    rounds(1, 5) as u64
}

fn minutes() -> u64 {
    MINUTES_15 / 5 * fifths()
}

/// Fewer series in proportionally less memory in a debug build.
const SCALE: usize = if cfg!(debug_assertions) { 16 } else { 1 };
const MANY: usize = 336 / SCALE;
const BUDGET: usize = (256 << 20) / SCALE;
/// Size of the newest block while it is filled.
const BLOCK: usize = (2 << 20) / SCALE;

/// A column of a busy machine: most are constant, some count now and then, few are noise.
fn realistic(series: usize, row: u64, random: u64) -> Option<f64> {
    let jitter = 1000.0 + (random % 97) as f64 / 7.0;
    match series * SCALE {
        0..200 => Some((series * 1000) as f64),
        200..290 => Some(if (random ^ series as u64).is_multiple_of(15) { jitter } else { 0.0 }),
        290..320 => Some((1_000_000 + row / 40 * (series as u64 % 5)) as f64),
        320..330 => row.is_multiple_of(10).then_some(jitter * 3.0),
        _ => Some((random >> 20) as f64 / 13.0),
    }
}

/// Minutes at 1 kHz.
fn fill(value: impl Fn(usize, u64, u64) -> Option<f64>) -> History {
    let budget = BUDGET / 5 * fifths() as usize;
    let history = History::new(MANY, budget);
    let mut random = 88_172_645_463_325_252u64;
    let mut row = vec![None; MANY];
    for number in 0..minutes() {
        for (column, slot) in row.iter_mut().enumerate() {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            *slot = value(column, number, random);
        }
        history.push(number * MS, &row);
    }
    let since = history.full_since() / 1000 / MS;
    println!("{MANY} series: {} KiB, full since {since} s", history.bytes() >> 10);
    assert!(history.bytes() <= budget + BLOCK);
    assert_eq!(history.span().unwrap().0, 0);
    history
}

#[test]
fn minutes_of_a_real_machine_stay_at_full_rate() {
    let history = fill(realistic);
    assert_eq!(history.full_since(), 0);
    assert_eq!(history.raw(&[300 / SCALE], 0, 5 * MS, 5).unwrap().times.len(), 5);
}

#[test]
fn minutes_of_noise_are_stored_in_levels() {
    let history = fill(|_, _, random| Some(random as f64 / 3.0));
    assert!(history.full_since() > 0, "the first are not");
    assert!(
        history.full_since() < (minutes() - 20_000 * fifths()) * MS,
        "the last 20 s, or 100 s, are at full rate"
    );
    let answer = history.buckets(&[0, MANY - 1], 0, minutes() * MS, 5000);
    assert!(answer.columns.iter().all(|c| c.min.iter().zip(&c.max).all(|(a, b)| a < b)));
}

#[test]
fn many_series_take_little_memory_at_first() {
    let history = History::new(32_000, 256 << 20);
    let row: Vec<Option<f64>> = (0..32_000).map(|i| Some(f64::from(i))).collect();
    (0..200u64).for_each(|i| history.push(i * 100 * MS, &row));
    assert!(history.bytes() < 16 << 20, "{}", history.bytes());
    assert_eq!(history.full_since(), 0);
}

#[test]
fn a_concurrent_reader_sees_whole_rows() {
    let rows = rounds(5000, 30_000) as u64;
    let history = History::new(2, 60_000);
    std::thread::scope(|scope| {
        scope.spawn(|| (1..=rows).for_each(|i| history.push(i, &[Some(i as f64), Some(-(i as f64))])));
        let (mut seen, started) = (0, Instant::now());
        while seen < rows {
            assert!(started.elapsed() < Duration::from_secs(120), "{seen} of {rows} rows arrived");
            let Some((first, last)) = history.span() else { continue };
            assert!(last >= seen, "time increases");
            seen = last;
            let answer = history.buckets(&[0, 1], first, last + 1, 7);
            assert!(answer.columns.iter().all(|c| c.mean.len() <= 7));
            let from = last.saturating_sub(20);
            if let Some(raw) = history.raw(&[0, 1], from, last + 1, 50) {
                assert_eq!(raw.times.last(), Some(&last));
                let whole = |(i, time): (usize, &u64)| {
                    raw.columns[0][i] == *time as f32 && raw.columns[1][i] == -(*time as f32)
                };
                assert!(raw.times.iter().enumerate().all(whole));
            }
        }
    });
    assert_eq!(history.span().map(|(_, last)| last), Some(rows));
}
