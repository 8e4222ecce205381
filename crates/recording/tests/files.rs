//! Recordings as files: written, read, killed, cut, damaged, recovered.

#![allow(clippy::unwrap_used)]
use arrow_array::Array;
use numakit_model::{CpuSet, Instance, Kind, Metric, Scope, Series, Topology, Unavailable, Unit};
use numakit_recording::{AbsentMetric, Batch, Header, Reader, Recorder, Ring, WriteError, recover, tail_of};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("numakit-files-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const COLUMNS: usize = 70;

fn header() -> Header {
    let metric = |kind| {
        Arc::new(Metric {
            name: format!("test.{}", Kind::name(kind)),
            unit: Unit::Pages,
            kind,
            scope: Scope::Node,
            help: "pages, \"quoted\"".into(),
            source: "/nowhere".into(),
            confidence: None,
            maximum: None,
            resolution: Duration::from_millis(10),
        })
    };
    let (counter, gauge) = (metric(Kind::COUNTER), metric(Kind::Gauge));
    let series = (0..COLUMNS as u32)
        .map(|i| Series::new(if i % 2 == 0 { &counter } else { &gauge }, Instance::Node(i / 2)))
        .collect();
    let online: CpuSet = CpuSet::range(0, 3);
    Header {
        series,
        topology: Some(Topology { online, page_size: 4096, ..Topology::default() }),
        host: "box".into(),
        kernel: "6.1".into(),
        command: Some("sleep 1".into()),
        program: "numa test".into(),
        started: 7,
        interval: 1_000_000,
        page_size: 4096,
        absent: vec![AbsentMetric {
            name: "pressure".into(),
            why: Unavailable::new("PSI", "no file", "psi=1"),
        }],
    }
}

/// Row number `row` of the sample recording: some values are missing.
fn values(row: u64) -> Vec<Option<u64>> {
    (0..COLUMNS as u64).map(|c| (!(row + c).is_multiple_of(7)).then_some((c << 40) | (row / 3))).collect()
}

/// Pushes rows and labels; waits whenever the ring is full, as the sampler would not.
fn push(ring: &Ring, rows: std::ops::Range<u64>, label_every: u64) {
    for row in rows {
        if row % label_every == 0 {
            while !ring.push_label(row * 1000, &format!("label {row}")) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        loop {
            ring.push(row * 1000 + 1, 17, &values(row));
            if ring.take_dropped() == 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn read(path: &Path) -> (Header, Batch, Option<String>) {
    let mut reader = Reader::open(path).unwrap();
    let mut all = Batch::empty(COLUMNS);
    let mut row_values = vec![None; COLUMNS];
    while let Some(batch) = reader.next_batch() {
        for row in 0..batch.len() {
            batch.row(row, &mut row_values);
            match &batch.label[row] {
                Some(text) => all.push_label(batch.time[row], text.clone()),
                None => all.push_sample(batch.time[row], batch.took[row], &row_values),
            }
        }
    }
    (reader.header().clone(), all, reader.damage().map(str::to_owned))
}

fn check_prefix(batch: &Batch, label_every: u64) -> u64 {
    let mut row_values = vec![None; COLUMNS];
    let mut next = 0;
    let mut labelled = false;
    for row in 0..batch.len() {
        if let Some(text) = &batch.label[row] {
            assert_eq!((text.as_str(), batch.time[row]), (format!("label {next}").as_str(), next * 1000));
            labelled = true;
            continue;
        }
        assert!(next % label_every != 0 || labelled, "label before row {next}");
        labelled = false;
        batch.row(row, &mut row_values);
        assert_eq!((batch.time[row], batch.took[row]), (next * 1000 + 1, 17));
        assert_eq!(row_values, values(next));
        next += 1;
    }
    next
}

#[test]
fn a_recording_reads_back_as_it_was_written() {
    let folder = Folder::new("whole");
    let path = folder.file("a.arrows");
    let recorder = Recorder::create(&path, &header(), false).unwrap();
    push(recorder.ring(), 0..2500, 100);
    recorder.finish().unwrap();
    assert!(!tail_of(&path).exists());
    let (read_header, batch, damage) = read(&path);
    assert_eq!((read_header, damage), (header(), None));
    assert_eq!(check_prefix(&batch, 100), 2500);
}

#[test]
fn reading_goes_on_at_a_mark() {
    let folder = Folder::new("mark");
    let path = folder.file("a.arrows");
    let recorder = Recorder::create(&path, &header(), false).unwrap();
    push(recorder.ring(), 0..3500, 900);
    recorder.finish().unwrap();
    let mut reader = Reader::open(&path).unwrap();
    let mut places = Vec::new();
    loop {
        let mark = reader.mark();
        let Some(batch) = reader.next_batch() else { break };
        places.push((mark, batch));
    }
    assert!(places.len() > 3);
    for (mark, batch) in places.iter().rev() {
        let mut again = Reader::open(&path).unwrap();
        again.go_to(*mark).unwrap();
        assert_eq!((again.mark(), again.next_batch().as_ref()), (*mark, Some(batch)));
    }
}

#[test]
fn arrow_itself_reads_it() {
    let folder = Folder::new("arrow");
    let path = folder.file("a.arrows");
    let recorder = Recorder::create(&path, &header(), false).unwrap();
    push(recorder.ring(), 0..1500, 400);
    recorder.finish().unwrap();
    let file = std::fs::File::open(&path).unwrap();
    let reader = arrow_ipc::reader::StreamReader::try_new(file, None).unwrap();
    assert_eq!(reader.schema().field(0).data_type().to_string(), "Timestamp(ns, \"UTC\")");
    assert_eq!(reader.schema().field(4).name(), "test.gauge@node0");
    let (mut rows, mut labels) = (0, 0);
    for batch in reader {
        let batch = batch.unwrap();
        rows += batch.num_rows();
        labels += batch.column(2).len() - batch.column(2).null_count();
        assert_eq!(batch.num_columns(), COLUMNS + 3);
    }
    assert_eq!((rows, labels), (1504, 4));
}

/// The files of a recorder that is killed after so many rows.
fn killed(folder: &Folder, rows: u64) -> PathBuf {
    let path = folder.file("live.arrows");
    let copy = folder.file("killed.arrows");
    let recorder = Recorder::create(&path, &header(), true).unwrap();
    push(recorder.ring(), 0..rows, 50);
    while recorder.ring().waiting_rows() >= 1000 {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::fs::copy(tail_of(&path), tail_of(&copy)).unwrap();
    std::fs::copy(&path, &copy).unwrap();
    recorder.finish().unwrap();
    copy
}

#[test]
fn a_killed_recorder_loses_no_row_and_recover_joins_them() {
    let folder = Folder::new("killed");
    for rows in [0, 1, 999, 1700, 2600] {
        let path = killed(&folder, rows);
        let (_, batch, damage) = read(&path);
        assert_eq!((check_prefix(&batch, 50), damage), (rows, None));
        let recovered = recover(&path).unwrap();
        assert_eq!(recovered.held + recovered.added, rows + rows.div_ceil(50));
        assert_eq!((recovered.lost, recovered.damaged.is_none()), (0, true));
        assert!(!tail_of(&path).exists());
        let (_, batch, damage) = read(&path);
        assert_eq!((check_prefix(&batch, 50), damage), (rows, None));
        assert_eq!(recover(&path).unwrap().added, 0, "again changes nothing");
    }
}

#[test]
fn a_kill_within_the_last_batch_loses_nothing_either() {
    let folder = Folder::new("torn");
    let path = killed(&folder, 1700);
    let whole = std::fs::metadata(&path).unwrap().len();
    // The batch of rows 0..1000 is torn, but the side file's place of it is free already:
    // that is damage, and it is told. Torn before the side file moved on, nothing is lost.
    let schema = {
        let recorder = Recorder::create(&folder.file("b.arrows"), &header(), false).unwrap();
        recorder.finish().unwrap();
        std::fs::metadata(folder.file("b.arrows")).unwrap().len() - 8
    };
    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(whole - 100).unwrap();
    let (_, batch, damage) = read(&path);
    let damage = damage.unwrap();
    assert!(damage.contains("rows between were lost"), "{damage}");
    assert!(batch.len() >= 700);
    file.set_len(schema).unwrap();
    assert!(read(&path).2.unwrap().contains("1000 rows between were lost"));
}

#[test]
fn every_whole_batch_before_a_cut_or_damage_is_read() {
    let folder = Folder::new("cut");
    let path = folder.file("a.arrows");
    let recorder = Recorder::create(&path, &header(), false).unwrap();
    push(recorder.ring(), 0..3000, 5000);
    recorder.finish().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let cut = folder.file("cut.arrows");
    let mut seen = std::collections::BTreeSet::new();
    for length in (0..bytes.len()).step_by(499).chain(bytes.len() - 9..bytes.len()) {
        std::fs::write(&cut, &bytes[..length]).unwrap();
        let Ok(mut reader) = Reader::open(&cut) else { continue };
        let mut rows = 0;
        while let Some(batch) = reader.next_batch() {
            rows += batch.len();
        }
        assert!(reader.damage().is_some(), "cut at {length}");
        seen.insert(rows);
    }
    // The label before the first row is a row too.
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 1001, 2001, 3001]);
    let mut damaged = bytes.clone();
    let middle = bytes.len() / 2;
    damaged[middle..middle + 64].fill(0xa5);
    std::fs::write(&cut, &damaged).unwrap();
    let (_, batch, damage) = read(&cut);
    assert!(damage.is_some() && batch.len() >= 1000);
    let recovered = recover(&cut).unwrap();
    let (size, aside) = recovered.damaged.unwrap();
    assert_eq!(size, std::fs::metadata(aside).unwrap().len());
    let (_, again, damage) = read(&cut);
    assert_eq!((again, damage), (batch, None));
}

#[test]
fn what_exists_or_is_in_use_is_not_replaced() {
    let folder = Folder::new("exists");
    let path = folder.file("a.arrows");
    let recorder = Recorder::create(&path, &header(), false).unwrap();
    assert!(matches!(Recorder::create(&path, &header(), false), Err(WriteError::Exists(_))));
    assert!(matches!(Recorder::create(&path, &header(), true), Err(WriteError::Busy(_))));
    assert!(recover(&path).unwrap_err().to_string().contains("still being recorded"));
    recorder.finish().unwrap();
    assert!(matches!(Recorder::create(&path, &header(), false), Err(WriteError::Exists(_))));
    Recorder::create(&path, &header(), true).unwrap().finish().unwrap();
}

#[test]
fn a_missing_directory_is_told_with_its_fix() {
    let folder = Folder::new("nodir");
    let error = Recorder::create(&folder.file("no/a.arrows"), &header(), false).unwrap_err().to_string();
    assert!(error.contains("make the directory first"), "{error}");
}

#[test]
fn a_directory_that_goes_away_loses_nothing() {
    let folder = Folder::new("gone");
    let inner = folder.file("inner");
    std::fs::create_dir(&inner).unwrap();
    let name = format!("rescued-{}.arrows", std::process::id());
    let recorder = Recorder::create(&inner.join(&name), &header(), false).unwrap();
    push(recorder.ring(), 0..1200, 5000);
    std::fs::remove_dir_all(&inner).unwrap();
    let error = recorder.finish().unwrap_err().to_string();
    let saved = std::env::temp_dir().join(&name);
    assert!(error.contains(saved.to_str().unwrap()), "{error}");
    assert_eq!(check_prefix(&read(&saved).1, 5000), 1200);
    std::fs::remove_file(saved).unwrap();
}

#[test]
fn a_foreign_file_is_refused_with_what_it_is() {
    let folder = Folder::new("foreign");
    let path = folder.file("x");
    for (content, says) in [
        (&b""[..], "empty"),
        (b"hello", "no recording"),
        (b"\xff\xff\xff\xff\x10\0\0\0aaaaaaaaaaaaaaaa", "damaged"),
    ] {
        std::fs::write(&path, content).unwrap();
        let error = Reader::open(&path).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    assert!(Reader::open(&folder.file("none")).unwrap_err().to_string().contains("cannot read"));
}
