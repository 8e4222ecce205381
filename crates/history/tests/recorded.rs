//! Recordings opened by reading and from their levels, zoomed out and in.

#![allow(clippy::unwrap_used)]
use numakit_history::{Buckets, History, PartlyRead, RecordedHistory, Source, levels_of, plain};
use numakit_model::{Instance, Kind, Metric, Scope, Series, Unit};
use numakit_recording::{Header, Rates, Recorder, tail_of};
use numakit_skips::rounds;
use numakit_testing::until;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

const MS: u64 = 1_000_000;
const SERIES: usize = 24;
const ROWS: u64 = 20_000;
const BUDGET: usize = 64 << 20;
const START: u64 = 1_700_000_000_000 * MS;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("numakit-history-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
    fn file(&self) -> PathBuf {
        self.0.join("a.arrows")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn header() -> Header {
    let metric = |index: usize, kind| Metric {
        name: format!("test.m{index}"),
        unit: Unit::Count,
        kind,
        scope: Scope::Machine,
        help: String::new(),
        source: String::new(),
        confidence: None,
        maximum: None,
        resolution: if index.is_multiple_of(5) { Duration::from_millis(10) } else { Duration::ZERO },
    };
    let kind = |index: usize| if index.is_multiple_of(2) { Kind::COUNTER } else { Kind::Gauge };
    let series = (0..SERIES).map(|i| Series::new(&Arc::new(metric(i, kind(i))), Instance::Machine));
    Header { series: series.collect(), interval: MS, ..Header::default() }
}

/// Rows that do not pack well, so that the file is large.
fn rows() -> impl Iterator<Item = (u64, Vec<Option<u64>>)> {
    let mut random = 88_172_645_463_325_252u64;
    let mut counters = vec![0u64; SERIES];
    (0..ROWS).map(move |row| {
        for counter in &mut counters {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            *counter += random % 1_000_000;
        }
        let value = |(i, v): (usize, &u64)| (!(row + i as u64).is_multiple_of(31)).then_some(*v);
        (START + row * MS, counters.iter().enumerate().map(value).collect())
    })
}

fn push(recorder: &Recorder) {
    push_rows(recorder, rows());
}

fn push_rows(recorder: &Recorder, rows: impl Iterator<Item = (u64, Vec<Option<u64>>)>) {
    let ring = recorder.ring();
    for (row, (time, values)) in rows.enumerate() {
        until!(!row.is_multiple_of(5000) || ring.push_label(time, &format!("label {row}")));
        until!({
            ring.push(time, 5, &values);
            ring.take_dropped() == 0
        });
    }
}

fn record(path: &Path) {
    let recorder = Recorder::create(path, &header(), false).unwrap();
    push(&recorder);
    recorder.finish().unwrap();
}

/// The same rows, all of them in memory.
fn truth() -> &'static History {
    static TRUTH: LazyLock<History> = LazyLock::new(|| {
        let history = History::new(SERIES, usize::MAX);
        let mut rates = Rates::new(&header().series);
        rows().for_each(|(time, values)| history.push(time, rates.push(time, &values)));
        history
    });
    &TRUTH
}

fn open(path: &Path, budget: usize) -> RecordedHistory {
    RecordedHistory::open(path, budget, plain()).unwrap()
}

fn bits(answer: &Buckets) -> Vec<Vec<u32>> {
    let column = |v: &Vec<f32>| v.iter().map(|v| v.to_bits()).collect();
    answer.columns.iter().flat_map(|c| [column(&c.min), column(&c.max)]).collect()
}

const SOME: [usize; 4] = [0, 1, 2, 7];

/// Zoomed in, every row is as it was recorded.
fn check_zoomed_in(recorded: &RecordedHistory, truth: &History) {
    for (from, length) in [(0, 300), (1000, 30), (1015, 20), (9_990, 2_000), (19_900, 500)] {
        let (from, to) = (START + from * MS, START + (from + length) * MS);
        let (a, b) = (recorded.buckets(&SOME, from, to, 150), truth.buckets(&SOME, from, to, 150));
        assert_eq!(bits(&a), bits(&b), "{from}");
        let (a, b) =
            (recorded.raw(&SOME, from, to, 5000).unwrap(), truth.raw(&SOME, from, to, 5000).unwrap());
        assert_eq!((a.times, format!("{:?}", a.columns)), (b.times, format!("{:?}", b.columns)), "{from}");
    }
}

/// Zoomed out, nothing is missing.
fn check_zoomed_out(recorded: &RecordedHistory, truth: &History) {
    let (first, last) = truth.span().unwrap();
    assert_eq!(recorded.span(), Some((first, last)));
    let (a, b) = (recorded.buckets(&SOME, first, last + 1, 9), truth.buckets(&SOME, first, last + 1, 9));
    for (a, b) in a.columns.iter().zip(&b.columns) {
        for bucket in 0..b.min.len() {
            assert!(a.min[bucket] <= b.min[bucket] && a.max[bucket] >= b.max[bucket]);
            assert!((a.mean[bucket] / b.mean[bucket] - 1.0).abs() < 0.05);
        }
    }
}

#[test]
fn an_opening_tells_how_far_it_is_and_can_be_ended() {
    let folder = Folder::new("progress");
    let path = folder.file();
    record(&path);
    let mut shares = Vec::new();
    let mut open_until = |end: f64| {
        shares.clear();
        let opened = RecordedHistory::open_while(&path, BUDGET, plain(), &mut |reading| {
            shares.push(reading.share);
            if reading.share < end { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        (opened.unwrap(), shares.clone())
    };
    let (opened, shares) = open_until(0.3);
    assert!(opened.is_none() && !levels_of(&path).exists(), "{shares:?}");
    let (opened, shares) = open_until(2.0);
    assert_eq!((shares[0], shares.last()), (0.0, Some(&1.0)));
    assert!(shares.len() >= 3 && shares.is_sorted(), "{shares:?}");
    check_zoomed_out(&opened.unwrap(), truth());
}

#[test]
fn a_part_of_a_recording_has_the_samples_that_were_read() {
    let folder = Folder::new("part");
    let path = folder.file();
    record(&path);
    let truth = truth();
    let (first, last) = truth.span().unwrap();
    let mut spans = Vec::new();
    let mut look = |reading: PartlyRead<'_>| {
        let Some(part) = reading.so_far() else { return ControlFlow::Continue(()) };
        let span = part.span().unwrap();
        assert_eq!((span.0, part.ends(), part.from_levels()), (first, Some(last), false));
        let near = |source: &dyn Source| {
            let raw = source.raw(&SOME, span.1 - 100 * MS, span.1 + 1, 500).unwrap();
            (raw.times, format!("{:?}", raw.columns))
        };
        assert_eq!(near(&part), near(truth));
        let buckets = part.buckets(&SOME, first, last + 1, 100);
        let measured = buckets.columns[0].mean.iter().filter(|mean| !mean.is_nan()).count() as u64;
        assert!(measured.abs_diff(100 * (span.1 - first) / (last - first)) <= 1, "{measured}");
        spans.push(span.1);
        ControlFlow::Continue(())
    };
    let whole = RecordedHistory::open_while(&path, BUDGET, plain(), &mut look).unwrap().unwrap();
    assert!(!spans.is_empty() && spans.is_sorted() && *spans.last().unwrap() < last, "{spans:?}");
    assert_eq!((whole.span(), whole.ends()), (Some((first, last)), Some(last)));
}

#[test]
fn the_second_opening_uses_the_levels_file() {
    let folder = Folder::new("twice");
    let path = folder.file();
    record(&path);
    let truth = truth();
    for again in [false, true] {
        let recorded = open(&path, BUDGET);
        assert_eq!((recorded.from_levels(), recorded.damage(), recorded.series()), (again, None, SERIES));
        let labels: Vec<_> = recorded.labels().into_iter().map(|l| (l.time_ns, l.text)).collect();
        let label = |row: u64| (START + row * MS, format!("label {row}"));
        assert_eq!(labels, [label(0), label(5000), label(10_000), label(15_000)]);
        check_zoomed_in(&recorded, truth);
        check_zoomed_out(&recorded, truth);
        assert!(levels_of(&path).exists());
    }
    let names = std::fs::read_dir(&folder.0).unwrap().count();
    assert_eq!(names, 2, "nothing unfinished is left");
}

#[test]
fn times_after_a_clock_that_was_set_back_increase() {
    let folder = Folder::new("clock");
    let path = folder.file();
    let late = |(time, values)| (if time < START + 16_500 * MS { time } else { time - 9000 * MS }, values);
    let recorder = Recorder::create(&path, &header(), false).unwrap();
    push_rows(&recorder, rows().map(late));
    recorder.finish().unwrap();
    let truth = History::new(SERIES, usize::MAX);
    let mut rates = Rates::new(&header().series);
    rows().map(late).for_each(|(time, values)| truth.push(time, rates.push(time, &values)));
    for again in [false, true] {
        let recorded = open(&path, BUDGET);
        assert_eq!((recorded.from_levels(), recorded.span()), (again, truth.span()));
        let (from, to) = (START + 16_400 * MS, START + 16_600 * MS);
        let near = |source: &dyn Source| {
            source.raw(&SOME, from, to, 5000).map(|raw| (raw.times, format!("{:?}", raw.columns)))
        };
        assert_eq!(near(&recorded), near(&truth));
    }
}

#[test]
fn rows_before_and_after_damage_are_read() {
    let folder = Folder::new("damage");
    let path = folder.file();
    record(&path);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() * 9 / 10;
    bytes[middle] ^= 0x55;
    std::fs::write(&path, bytes).unwrap();
    for again in [false, true] {
        let recorded = open(&path, BUDGET);
        assert_eq!(recorded.from_levels(), again);
        assert!(recorded.damage().unwrap().contains("could not be read"));
        assert_eq!(recorded.span(), truth().span());
        for (from, to) in [(9990, 11_000), (19_500, 19_990)] {
            let (from, to) = (START + from * MS, START + to * MS);
            assert_eq!(
                bits(&recorded.buckets(&SOME, from, to, 150)),
                bits(&truth().buckets(&SOME, from, to, 150))
            );
        }
    }
}

#[test]
fn with_a_small_budget_a_small_range_is_still_exact() {
    let folder = Folder::new("small");
    record(&folder.file());
    let budget = 400 << 10;
    for _ in 0..2 {
        let recorded = open(&folder.file(), budget);
        check_zoomed_in(&recorded, truth());
        assert!(recorded.bytes() <= budget + (200 << 10), "{}", recorded.bytes());
    }
}

#[test]
fn levels_of_another_recording_are_not_used() {
    let folder = Folder::new("stale");
    let path = folder.file();
    record(&path);
    open(&path, BUDGET);
    let levels = std::fs::read(levels_of(&path)).unwrap();
    let mut damaged = Vec::new();
    let places = [0, levels.len() / 2, levels.len() - 2, 9, levels.len() / 3];
    for at in places.into_iter().take(rounds(3, 5)) {
        damaged.push(levels[..at].to_vec());
        damaged.push(levels.clone());
        damaged.last_mut().unwrap()[at] ^= 4;
    }
    for bytes in damaged {
        std::fs::write(levels_of(&path), bytes).unwrap();
        let recorded = open(&path, BUDGET);
        assert!(!recorded.from_levels());
        assert_eq!(recorded.span(), Some((START, START + (ROWS - 1) * MS)));
    }
    assert!(open(&path, BUDGET).from_levels(), "they are written again");
    let changed = std::fs::File::options().append(true).open(&path).unwrap();
    changed.set_modified(std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1)).unwrap();
    assert!(!open(&path, BUDGET).from_levels());
}

#[test]
fn a_recording_opens_if_levels_cannot_be_written() {
    let folder = Folder::new("unwritable");
    record(&folder.file());
    std::fs::create_dir_all(levels_of(&folder.file()).join("in the way")).unwrap();
    for _ in 0..2 {
        let recorded = open(&folder.file(), BUDGET);
        assert!(!recorded.from_levels());
        check_zoomed_in(&recorded, truth());
    }
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 2);
}

#[test]
fn a_recording_that_was_not_closed_is_read_with_its_tail() {
    let folder = Folder::new("open");
    let path = folder.file();
    let copy = folder.0.join("killed.arrows");
    let recorder = Recorder::create(&path, &header(), false).unwrap();
    push(&recorder);
    // The tail first: rows that move to the recording meanwhile are then in both.
    std::fs::copy(tail_of(&path), tail_of(&copy)).unwrap();
    std::fs::copy(&path, &copy).unwrap();
    recorder.finish().unwrap();
    let recorded = open(&copy, 1 << 20);
    check_zoomed_in(&recorded, truth());
    check_zoomed_out(&recorded, truth());
    assert!(!levels_of(&copy).exists());
}

#[test]
fn rows_of_a_numascope_recording_are_read_again() {
    let folder = Folder::new("json");
    let path = folder.0.join("a.json");
    let row = |i: u64| format!(",[{},{},{}]", i * 1000, i, if i == 2500 { 99_999 } else { 1 });
    let text: String = (0..5000).map(row).collect();
    std::fs::write(&path, format!("[[\"Card\",1,0],[\"a\",\"b\"]{text},[\"label\",7000,\"here\"]]")).unwrap();
    for budget in [BUDGET, 0] {
        let recorded = open(&path, budget);
        assert_eq!((recorded.series(), recorded.labels()[0].time_ns), (2, 7 * MS));
        assert_eq!(recorded.buckets(&[1], 0, 5000 * MS, 2).columns[0].max, [1.0, 99_999.0]);
        let near = recorded.raw(&[0, 1], 2499 * MS, 2502 * MS, 10).unwrap();
        assert_eq!(near.columns, [[2499.0, 2500.0, 2501.0], [1.0, 99_999.0, 1.0]]);
        assert!(recorded.raw(&[0], 0, 5000 * MS, 4000).is_none());
    }
}
