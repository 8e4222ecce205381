use super::*;
use crate::testing::{header, rows};
use proptest::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is removed at the end.
struct Temporary(PathBuf);

impl Temporary {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("numakit-spool-{}-{number}", std::process::id())))
    }

    fn spool(&self) -> Spool {
        Spool::open(&self.0, DEFAULT_LIMIT).unwrap()
    }

    fn files(&self) -> Vec<PathBuf> {
        segments(&self.0).unwrap().into_iter().map(|stored| stored.path).collect()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The times of all rows that are left, in the order in which they are sent.
fn drain(spool: &mut Spool, max: usize) -> Vec<u64> {
    let mut times = Vec::new();
    while let Some(next) = spool.peek(max) {
        times.extend(&next.batch.time);
        spool.acknowledge(next.end);
    }
    times
}

#[test]
fn rows_leave_in_order_and_only_when_they_are_acknowledged() {
    let folder = Temporary::new();
    let mut spool = folder.spool();
    let header = header(3);
    (0..10).for_each(|at| spool.append(&header, &rows(at * 5, 5, 3)));
    let first = spool.peek(12).unwrap();
    assert_eq!(first.batch, rows(0, 10, 3));
    assert_eq!(spool.peek(12).unwrap().batch, first.batch);
    spool.acknowledge(first.end);
    assert_eq!(spool.counts().waiting, 40);
    assert_eq!(drain(&mut spool, 7), (10..50).collect::<Vec<u64>>());
    drop(spool);
    assert!(folder.files().is_empty(), "{:?}", folder.files());
}

#[test]
fn a_killed_process_loses_nothing_and_repeats_nothing() {
    let folder = Temporary::new();
    let header = header(2);
    let mut spool = folder.spool();
    (0..8).for_each(|at| spool.append(&header, &rows(at, 1, 2)));
    let first = spool.peek(3).unwrap();
    spool.acknowledge(first.end);
    assert!(matches!(Spool::open(&folder.0, DEFAULT_LIMIT), Err(SpoolError::Busy(_))));
    // Its files are as a killed process leaves them.
    drop(spool);
    let mut spool = folder.spool();
    assert_eq!(spool.counts().found, 5);
    spool.append(&header, &rows(8, 2, 2));
    assert_eq!(drain(&mut spool, 100), (3..10).collect::<Vec<u64>>());
}

#[test]
fn other_columns_begin_another_file() {
    let folder = Temporary::new();
    let mut spool = folder.spool();
    spool.append(&header(2), &rows(0, 2, 2));
    spool.append(&header(3), &rows(2, 2, 3));
    assert_eq!(folder.files().len(), 2);
    let widths: Vec<usize> = std::iter::from_fn(|| {
        let next = spool.peek(100)?;
        spool.acknowledge(next.end);
        Some(next.header.series.len())
    })
    .collect();
    assert_eq!(widths, [2, 3]);
}

#[test]
fn a_full_spool_drops_the_oldest_and_counts_them() {
    let folder = Temporary::new();
    let mut spool = Spool::open(&folder.0, MIN_LIMIT).unwrap();
    let header = header(100);
    (0..300).for_each(|at| spool.append(&header, &rows(at * 10, 10, 100)));
    let counts = spool.counts();
    assert!(counts.dropped > 0 && counts.bytes <= MIN_LIMIT, "{counts:?}");
    assert_eq!(counts.dropped + counts.waiting, 3000);
    assert_eq!(drain(&mut spool, 50), (counts.dropped..3000).collect::<Vec<u64>>());
    assert_eq!(spool.counts().damaged, 0);
    assert!(matches!(Spool::open(&folder.0.join("b"), 5), Err(SpoolError::Limit(5))));
}

/// The description of a large machine is longer than a file otherwise is: there are as many bytes of rows in each.
#[test]
fn a_long_description_is_not_written_for_each_row() {
    let folder = Temporary::new();
    let mut spool = folder.spool();
    let header = header(30_000);
    (0..40).for_each(|at| spool.append(&header, &rows(at, 1, 30_000)));
    let (files, bytes) = (folder.files().len(), spool.counts().bytes);
    let rows: u64 = 40 * 30_000 * 8;
    assert!(files < 12 && bytes < rows * 3 / 2, "{files} files, {bytes} bytes");
    assert_eq!(drain(&mut spool, 50), (0..40).collect::<Vec<u64>>());
}

/// Without a folder that can be written, the newest rows wait in memory.
#[test]
fn without_its_folder_it_keeps_the_newest_rows_in_memory() {
    let folder = Temporary::new();
    let mut spool = Spool::open(&folder.0, MIN_LIMIT).unwrap();
    fs::remove_dir_all(&folder.0).unwrap();
    let header = header(100);
    (0..60).for_each(|at| spool.append(&header, &rows(at * 10, 10, 100)));
    assert_eq!(spool.trouble().map(io::Error::kind), Some(io::ErrorKind::NotFound));
    let counts = spool.counts();
    assert!(counts.dropped > 0 && counts.dropped + counts.waiting == 600, "{counts:?}");
    assert_eq!(drain(&mut spool, 50), (counts.dropped..600).collect::<Vec<u64>>());
}

#[test]
fn a_position_that_is_damaged_sends_rows_twice() {
    let folder = Temporary::new();
    let mut spool = folder.spool();
    spool.append(&header(1), &rows(0, 4, 1));
    spool.append(&header(1), &rows(4, 4, 1));
    spool.acknowledge(4);
    drop(spool);
    fs::write(folder.0.join(POSITION), [7; 12]).unwrap();
    assert_eq!(drain(&mut folder.spool(), 100), (0..8).collect::<Vec<u64>>());
}

proptest! {
    #[test]
    fn rows_are_the_same_after_the_spool(
        values in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<[Option<u64>; 3]>(), any::<Option<String>>()), 0..20),
    ) {
        let mut batch = Batch::empty(3);
        for (time, took, values, label) in values {
            batch.push_sample(time, took, &values);
            label.iter().for_each(|text| batch.push_label(time, text.clone()));
        }
        let bytes = super::rows::encode(&batch).unwrap();
        prop_assert_eq!(super::rows::decode(&bytes, 3).unwrap(), batch);
        prop_assert!(super::rows::decode(&bytes, 2).is_err());
    }

    /// Whatever happens to one byte or to the end of a file: the rows of intact records are sent, in order, and those of others are
    /// counted, unless they were the last.
    #[test]
    fn damage_is_skipped_and_counted(at: prop::sample::Index, byte: u8, cut: bool) {
        let folder = Temporary::new();
        let mut spool = folder.spool();
        let header = header(2);
        (0..20).for_each(|at| spool.append(&header, &rows(at * 2, 2, 2)));
        drop(spool);
        let path = folder.files().remove(0);
        let mut content = fs::read(&path).unwrap();
        let at = at.index(content.len());
        if cut {
            content.truncate(at);
        } else {
            content[at] ^= byte;
        }
        fs::write(&path, content).unwrap();
        let mut spool = folder.spool();
        let times = drain(&mut spool, 6);
        let damaged = spool.counts().damaged;
        prop_assert!(times.is_sorted_by(|one, other| one < other));
        prop_assert!(times.iter().all(|time| *time < 40));
        let last = times.last().map_or(0, |last| last + 1);
        prop_assert_eq!(times.len() as u64 + damaged, last);
        let is_start = !times.is_empty();
        prop_assert!(cut || !is_start || times.len() >= 38, "{:?}", times);
    }
}

#[test]
fn a_spool_with_rows_that_wait_is_taken_before_one_that_is_free() {
    let folder = Temporary::new();
    let (first, second) = (folder.0.join("url"), folder.0.join("url.2"));
    let header = header(2);
    let mut spool = Spool::open(&second, MIN_LIMIT).unwrap();
    spool.append(&header, &rows(1, 3, 2));
    drop(spool);
    drop(Spool::open(&first, MIN_LIMIT).unwrap());
    let mut left = Spool::open_free(&first, MIN_LIMIT).unwrap();
    assert_eq!((left.folder(), left.counts().found), (second.as_path(), 3));
    let other = Spool::open_free(&first, MIN_LIMIT).unwrap();
    assert_eq!(other.folder(), first);
    let third = Spool::open_free(&first, MIN_LIMIT).unwrap();
    assert_eq!(third.folder(), folder.0.join("url.3"));
    let end = left.peek(100).unwrap().end;
    left.acknowledge(end);
    drop((left, other, third));
    assert_eq!(Spool::open_free(&first, MIN_LIMIT).unwrap().folder(), first);
}
