//! Opening times of an hour of 190 series at 1 kHz: `hour [FILE]`; a missing file is recorded.

#![allow(clippy::print_stdout, clippy::unwrap_used)]
use numakit_history::{History, RecordedHistory, Source, levels_of, plain};
use numakit_model::{Instance, Kind, Metric, Scope, Series, Unit};
use numakit_recording::{Header, Recorder};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const SERIES: usize = 190;
const ROWS: u64 = 3_600_000;
const MS: u64 = 1_000_000;
const BUDGET: usize = 256 << 20;

fn header() -> Header {
    let series = |index: usize| {
        let metric = Metric {
            name: format!("test.m{index}"),
            unit: Unit::Pages,
            kind: Kind::COUNTER,
            scope: Scope::Machine,
            help: String::new(),
            source: String::new(),
            confidence: None,
            maximum: None,
            resolution: Duration::ZERO,
        };
        Series::new(&Arc::new(metric), Instance::Machine)
    };
    Header { series: (0..SERIES).map(series).collect(), interval: MS, ..Header::default() }
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// A busy machine: 1 in 15 differences is not zero, all in one half of the series.
fn record(path: &Path) {
    let recorder = Recorder::create(path, &header(), true).unwrap();
    let mut state = 88_172_645_463_325_252;
    let mut row = vec![Some(0u64); SERIES];
    for number in 0..ROWS {
        for counter in row[SERIES / 2..].iter_mut().flatten() {
            let bits = random(&mut state);
            *counter += if bits.is_multiple_of(8) { bits >> 52 } else { 0 };
        }
        loop {
            recorder.ring().push(number * MS + random(&mut state) % 20_000, 0, &row);
            if recorder.ring().take_dropped() == 0 {
                break;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    recorder.finish().unwrap();
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    println!("{what}: {:.3} s", start.elapsed().as_secs_f64());
    result
}

fn main() {
    let argument = std::env::args().nth(1).map(PathBuf::from);
    let path = argument.unwrap_or_else(|| std::env::temp_dir().join("numakit-hour.arrows"));
    if !path.exists() {
        timed("recording", || record(&path));
    }
    let size = |path: &Path| path.metadata().map_or(0, |m| m.len() >> 20);
    let _ = std::fs::remove_file(levels_of(&path));
    for which in ["first opening", "second opening"] {
        let recorded = timed(which, || RecordedHistory::open(&path, BUDGET, plain()).unwrap());
        let (first, last) = recorded.span().unwrap();
        println!("  {} MiB of memory", recorded.bytes() >> 20);
        let series: Vec<usize> = (0..24).map(|i| i * 7).collect();
        timed("  all of it, 24 series, 1,500 buckets", || recorded.buckets(&series, first, last, 1500));
        let middle = u64::midpoint(first, last);
        timed("  10 s of it", || recorded.buckets(&series, middle, middle + 10_000 * MS, 1500));
        timed("  the same again", || recorded.buckets(&series, middle, middle + 10_000 * MS, 1500));
        timed("  60 s of it", || recorded.buckets(&series, middle, middle + 60_000 * MS, 1500));
        println!("  {} MiB of memory", recorded.bytes() >> 20);
    }
    println!("file {} MiB, levels {} MiB", size(&path), size(&levels_of(&path)));
    live();
}

/// The cost of a row for its writer.
fn live() {
    let history = History::new(336, BUDGET);
    let mut state = 88_172_645_463_325_252;
    let mut row = vec![Some(0.0); 336];
    let rows = 100_000;
    timed("100,000 rows of 336 series", || {
        for number in 0..rows {
            for value in &mut row[200..] {
                let bits = random(&mut state);
                *value = Some(if bits.is_multiple_of(15) { bits as f64 / 7.0 } else { 0.0 });
            }
            history.push(number * MS, &row);
        }
    });
    println!("  {} MiB of memory", history.bytes() >> 20);
    let series: Vec<usize> = (100..124).map(|i| i * 2).collect();
    timed("  all of it, 24 series, 1,500 buckets", || history.buckets(&series, 0, rows * MS, 1500));
    timed("  3 buckets of 50 ms at its end, 24 series", || {
        history.buckets_on_grid(&series, rows / 50 - 3, rows / 50, 50 * MS)
    });
}
