//! Cut and damaged recordings: undamaged batches are read, the rest is reported.

use crate::fixture::{COLUMNS, Folder, header, push, read};
use numakit_recording::{Batch, Reader, Recorder, recover, tail_of};
use numakit_skips::rounds;
use numakit_testing::until;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A complete recording of `rows` rows and one label, and where its batches and its end mark begin.
fn recorded(folder: &Folder, rows: u64) -> (Vec<u8>, Vec<usize>) {
    let path = folder.file("whole.arrows");
    let recorder = Recorder::create(&path, &header(), true).unwrap();
    push(recorder.ring(), 0..rows, 1 << 40);
    recorder.finish().unwrap();
    let positions = Reader::open(&path).unwrap().batch_positions().unwrap();
    (std::fs::read(&path).unwrap(), positions.iter().map(|batch| batch.position as usize).collect())
}

/// The times of all samples that are read, and the report on the others.
fn times(path: &Path) -> (Vec<u64>, Option<String>) {
    let (_, batch, damage) = read(path);
    let samples = batch.time.iter().zip(&batch.label).filter(|(_, label)| label.is_none());
    (samples.map(|(time, _)| time / 1000).collect(), damage)
}

fn without(rows: u64, lost: std::ops::Range<u64>) -> Vec<u64> {
    (0..rows).filter(|row| !lost.contains(row)).collect()
}

fn put(folder: &Folder, bytes: &[u8]) -> PathBuf {
    let path = folder.file("damaged.arrows");
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn every_whole_batch_before_a_cut_is_read() {
    let folder = Folder::new("cut");
    let (bytes, starts) = recorded(&folder, 3000);
    let mut counts = BTreeSet::new();
    for length in (0..bytes.len())
        .step_by(rounds(59_991, 19_997))
        .chain([starts[0] + 9])
        .chain(bytes.len() - 9..bytes.len())
    {
        let path = put(&folder, &bytes[..length]);
        let Ok(mut reader) = Reader::open(&path) else {
            assert!(length < starts[0], "{length}");
            continue;
        };
        let rows: usize = std::iter::from_fn(|| reader.next_batch()).map(|batch| batch.len()).sum();
        assert!(reader.damage().is_some(), "cut at {length}");
        counts.insert(rows);
    }
    // The label before the first row is a row too.
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), [0, 1001, 2001, 3001]);
}

/// It may have rows, and a recording is closed without them.
#[test]
fn a_tail_file_that_cannot_be_read_is_kept() {
    let folder = Folder::new("kept");
    let (bytes, starts) = recorded(&folder, 3000);
    let path = put(&folder, &bytes[..starts[1]]);
    let tail = tail_of(&path);
    std::fs::create_dir(&tail).unwrap();
    let error = recover(&path).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot recover {}: it is a folder", tail.display())), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes[..starts[1]]);
    std::fs::remove_dir(&tail).unwrap();
    assert!(recover(&path).is_ok());
}

/// One byte at a time: in the table, the buffers and the frame of a batch.
#[test]
fn one_flipped_byte_loses_one_batch_and_says_which() {
    let folder = Folder::new("flip");
    let (bytes, starts) = recorded(&folder, 5000);
    let (begin, end) = (starts[2], starts[3]);
    let offsets =
        (0..24).step_by(3).chain((24..end - begin).step_by(rounds(71_908, 17_977))).chain([end - begin - 1]);
    for offset in offsets {
        let mut damaged = bytes.clone();
        damaged[begin + offset] ^= 0x10;
        let path = put(&folder, &damaged);
        let (rows, damage) = times(&path);
        assert_eq!(rows, without(5000, 2000..3000), "byte {offset} of the batch");
        let damage = damage.unwrap();
        let says = "1000 samples between 1970-01-01 00:00:00.001 UTC and 1970-01-01 00:00:00.003 UTC could not be read";
        assert!(damage.starts_with(says), "byte {offset}: {damage}");
        let recovered = recover(&path).unwrap();
        assert_eq!((recovered.rows, recovered.lost), (4001, 1000), "byte {offset}");
        let (size, aside) = recovered.damaged.unwrap();
        assert_eq!(
            (size, std::fs::read(&aside).unwrap()),
            ((end - begin) as u64, damaged[begin..end].to_vec())
        );
        std::fs::remove_file(aside).unwrap();
        let (_, batch, damage) = read(&path);
        assert_eq!((times(&path).0, damage), (without(5000, 2000..3000), None));
        let labels: Vec<&str> = batch.label.iter().flatten().map(String::as_str).collect();
        assert_eq!(labels, ["label 0", "numakit:damaged 1000"]);
        let again = std::fs::read(&path).unwrap();
        assert_eq!(recover(&path).unwrap().lost, 0);
        assert_eq!(std::fs::read(&path).unwrap(), again, "again changes nothing");
    }
}

#[test]
fn several_damaged_places_are_listed_one_by_one() {
    let folder = Folder::new("several");
    let (bytes, starts) = recorded(&folder, 12_000);
    let mut damaged = bytes.clone();
    for batch in [1, 2, 5, 11] {
        damaged[starts[batch] + 4000] ^= 1;
    }
    let (rows, damage) = times(&put(&folder, &damaged));
    let lost = [1000..3000, 5000..6000, 11_000..12_000];
    assert_eq!(rows, (0..12_000).filter(|row| !lost.iter().any(|l| l.contains(row))).collect::<Vec<_>>());
    let damage = damage.unwrap();
    let parts: Vec<&str> = damage.split("; ").collect();
    assert!(
        parts[0].starts_with("2000 samples between") && parts[1].starts_with("1000 samples between"),
        "{damage}"
    );
    assert!(parts[2].starts_with("the last ") && parts.len() == 3, "{damage}");
}

#[test]
fn a_damaged_head_is_survived() {
    let folder = Folder::new("head");
    let (bytes, starts) = recorded(&folder, 3000);
    let path = put(&folder, &bytes);
    let whole: Batch = read(&path).1;
    for at in (0..16).step_by(3).chain((16..starts[0]).step_by(4_999)) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        let path = put(&folder, &damaged);
        let (found, batch, damage) = read(&path);
        assert!(found == header() && batch == whole, "byte {at}");
        let damage = damage.unwrap();
        assert!(damage.contains("the copy of them in a batch was used"), "byte {at}: {damage}");
        let recovered = recover(&path).unwrap();
        assert_eq!((recovered.rows, recovered.lost), (3001, 0), "byte {at}");
        std::fs::remove_file(recovered.damaged.unwrap().1).unwrap();
        assert!(std::fs::read(&path).unwrap() == bytes, "byte {at}: it is restored");
    }
    // The whole head is zero; then the first batch with its copy too.
    let mut damaged = bytes.clone();
    damaged[..starts[0]].fill(0);
    assert!(read(&put(&folder, &damaged)).1 == whole);
    damaged[..starts[1]].fill(0);
    let error = Reader::open(&put(&folder, &damaged)).unwrap_err().to_string();
    assert!(error.contains("there is no message where one should begin"), "{error}");
}

#[test]
fn a_later_copy_of_the_head_is_found_too() {
    let folder = Folder::new("later");
    let (bytes, starts) = recorded(&folder, 52_000);
    let mut damaged = bytes.clone();
    damaged[..starts[2]].fill(0);
    let (rows, damage) = times(&put(&folder, &damaged));
    assert_eq!(rows, without(52_000, 0..2000));
    assert!(damage.unwrap().starts_with("2000 samples between"));
}

#[test]
fn an_end_mark_in_the_middle_is_damage_and_a_recording_after_the_end_is_ignored() {
    let folder = Folder::new("ends");
    let (bytes, starts) = recorded(&folder, 3000);
    let mut damaged = bytes.clone();
    damaged[starts[1] + 4..starts[1] + 8].fill(0);
    let (rows, damage) = times(&put(&folder, &damaged));
    assert_eq!(rows, without(3000, 1000..2000));
    assert!(damage.unwrap().contains("its end mark is before its end"));
    let joined = put(&folder, &bytes);
    let other = Recorder::create(
        &folder.file("other.arrows"),
        &numakit_recording::Header { started: 8, ..header() },
        true,
    );
    let other = other.unwrap();
    push(other.ring(), 0..1500, 1 << 40);
    other.finish().unwrap();
    let both = [bytes, std::fs::read(folder.file("other.arrows")).unwrap()].concat();
    std::fs::write(&joined, both).unwrap();
    assert_eq!(times(&joined), (without(3000, 0..0), None));
}

#[test]
fn the_tail_file_is_read_after_damage() {
    let folder = Folder::new("side");
    let live = folder.file("live.arrows");
    let recorder = Recorder::create(&live, &header(), true).unwrap();
    push(recorder.ring(), 0..2700, 1 << 40);
    until!(recorder.ring().pending_rows() < 1000);
    let mut bytes = std::fs::read(&live).unwrap();
    let path = folder.file("killed.arrows");
    std::fs::copy(tail_of(&live), tail_of(&path)).unwrap();
    recorder.finish().unwrap();
    // Within the second batch, which is the last in the file.
    let at = bytes.len() - 100;
    bytes[at] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let (rows, damage) = times(&path);
    assert_eq!(rows, without(2700, 1000..2000));
    assert!(damage.unwrap().ends_with("1000 rows between were lost"));
    let recovered = recover(&path).unwrap();
    assert_eq!((recovered.rows, recovered.added, recovered.lost), (1001, 700, 1000));
    assert_eq!(times(&path), (without(2700, 1000..2000), None));
}

/// Recordings from before there were checksums, with unsigned columns.
#[test]
fn old_recordings_are_read_and_damage_in_them_is_skipped() {
    let folder = Folder::new("old");
    let old = include_bytes!("old/unsigned.arrows");
    let path = put(&folder, old);
    let mut reader = Reader::open(&path).unwrap();
    let batch = reader.next_batch().unwrap();
    assert_eq!((batch.len(), batch.columns.len(), reader.next_batch(), reader.damage()), (4, 2, None, None));
    let values: Vec<_> = (0..4).map(|row| batch.columns[0].get(row)).collect();
    assert_eq!(values.into_iter().flatten().collect::<Vec<_>>(), [0, 7, 14]);
    let start = Reader::open(&path).unwrap().position().position as usize;
    let end = old.len() - 8;
    let message = &old[start..end];
    let three = [&old[..start], message, message, message, &old[end..]].concat();
    for at in 0..message.len() {
        let mut damaged = three.clone();
        damaged[end + at] ^= 0xff;
        let mut reader = Reader::open(&put(&folder, &damaged)).unwrap();
        let read: Vec<Batch> = std::iter::from_fn(|| reader.next_batch()).collect();
        assert!(read.len() >= 2 && read[0] == batch && read[read.len() - 1] == batch, "byte {at}");
        assert!(read.len() == 3 || reader.damage().is_some(), "byte {at}");
    }
    assert_eq!(COLUMNS, header().series.len());
}

/// Times of samples, and whether damage is reported.
fn found(path: &Path) -> Option<(Vec<u64>, bool)> {
    let mut reader = Reader::open(path).ok()?;
    let batches = std::iter::from_fn(|| reader.next_batch());
    let rows = batches.flat_map(|batch| batch.time.into_iter().zip(batch.label));
    let times = rows.filter(|(_, label)| label.is_none()).map(|(time, _)| time).collect();
    Some((times, reader.damage().is_some()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(rounds(24, 256) as u32))]

    /// Whatever is damaged: a recovered recording is undamaged, and has all rows that could be read before.
    #[test]
    fn what_is_recovered_is_what_was_read(
        sealed: bool,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..5),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        static SEALED: LazyLock<Vec<u8>> = LazyLock::new(|| recorded(&Folder::new("sample"), 2500).0);
        let folder = Folder::new("any");
        let mut bytes = if sealed { SEALED.clone() } else { include_bytes!("old/unsigned.arrows").to_vec() };
        for (at, value) in &changes {
            let at = at.index(bytes.len());
            bytes[at] = *value;
        }
        cut.iter().for_each(|cut| bytes.truncate(cut.index(bytes.len())));
        let path = put(&folder, &bytes);
        let before = found(&path);
        // Unless both the schema and the batch with its copy are damaged.
        if let (true, None, Some((times, _))) = (sealed, &cut, &before) {
            prop_assert!(times.len() + changes.len() * 1000 >= 2500);
        }
        if recover(&path).is_ok() {
            prop_assert_eq!(found(&path), before.map(|(times, _)| (times, false)));
        }
    }
}
