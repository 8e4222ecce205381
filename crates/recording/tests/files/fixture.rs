//! A recording whose every value is known.

use numakit_model::{CpuSet, Fix, Instance, Kind, Metric, Scope, Series, Topology, Unavailable, Unit};
use numakit_recording::{AbsentMetric, Batch, Header, Reader, Ring};
use numakit_testing::until;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("numakit-files-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub const COLUMNS: usize = 70;

pub fn header() -> Header {
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
        utc_offset: Some(330),
        interval: 1_000_000,
        page_size: 4096,
        absent: vec![AbsentMetric {
            name: "pressure".into(),
            why: Unavailable::new("PSI", "no file", Fix::AsWorded("psi=1".into())),
        }],
    }
}

/// Row number `row` of the sample recording: some values are missing.
pub fn values(row: u64) -> Vec<Option<u64>> {
    (0..COLUMNS as u64).map(|c| (!(row + c).is_multiple_of(7)).then_some((c << 40) | (row / 3))).collect()
}

/// Pushes rows and labels; unlike the sampler, it waits if the ring is full.
pub fn push(ring: &Ring, rows: std::ops::Range<u64>, label_every: u64) {
    for row in rows {
        if row % label_every == 0 {
            until!(ring.push_label(row * 1000, &format!("label {row}")));
        }
        until!({
            ring.push(row * 1000 + 1, 17, &values(row));
            ring.take_dropped() == 0
        });
    }
}

pub fn read(path: &Path) -> (Header, Batch, Option<String>) {
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

pub fn check_prefix(batch: &Batch, label_every: u64) -> u64 {
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
