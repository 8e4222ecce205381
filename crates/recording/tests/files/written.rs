//! Recordings that are written, read, killed and recovered.

use crate::fixture::{COLUMNS, Folder, check_prefix, header, push, read};
use arrow_array::Array;
use numakit_recording::{Reader, Recorder, WriteError, recover, tail_of};
use numakit_testing::until;
use std::path::PathBuf;

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

/// The file of a recorder that was killed while it wrote a batch, whose rows are still in the tail
/// file.
#[test]
fn a_batch_that_was_being_written_is_read_from_the_tail_file() {
    let folder = Folder::new("within");
    let path = killed(&folder, 999);
    let (partial, all) = (std::fs::read(&path).unwrap(), closed(&folder, 999));
    assert!(all.starts_with(&partial));
    for length in [partial.len() + 3, partial.len() + 5000, all.len() - 20] {
        std::fs::write(&path, &all[..length]).unwrap();
        let (_, batch, damage) = read(&path);
        assert_eq!((check_prefix(&batch, 50), damage), (999, None), "{length} bytes");
    }
    let recovered = recover(&path).unwrap();
    assert_eq!((recovered.rows, recovered.added, recovered.lost), (0, 999 + 20, 0));
    assert_eq!(check_prefix(&read(&path).1, 50), 999);
}

/// Readers do not see the end of a batch whose writing they overtake.
#[test]
fn a_recording_that_grows_while_it_is_read_is_not_damaged() {
    let folder = Folder::new("grows");
    let path = killed(&folder, 999);
    let (before, all) = (std::fs::metadata(&path).unwrap().len() as usize, closed(&folder, 1999));
    let ends = [0, 3, 5000, all.len() - before - 20].map(|more| before + more);
    for (index, opened) in ends.into_iter().enumerate() {
        for read in ends.into_iter().skip(index) {
            std::fs::write(&path, &all[..opened]).unwrap();
            let mut reader = Reader::open(&path).unwrap();
            std::fs::write(&path, &all[..read]).unwrap();
            let batches: Vec<_> = std::iter::from_fn(|| reader.next_batch()).take(10).collect();
            let rows: usize = batches.iter().map(|batch| batch.len() - batch.labels()).sum();
            assert_eq!(reader.damage(), None, "{opened} bytes when it was opened, {read} when it was read");
            assert!(rows >= 999, "{rows} rows of {opened} and {read} bytes");
        }
    }
}

#[test]
fn reading_continues_at_a_position() {
    let folder = Folder::new("mark");
    let path = folder.file("a.arrows");
    let recorder = Recorder::create(&path, &header(), false).unwrap();
    push(recorder.ring(), 0..3500, 900);
    recorder.finish().unwrap();
    let mut reader = Reader::open(&path).unwrap();
    let mut places = Vec::new();
    loop {
        let position = reader.position();
        let Some(batch) = reader.next_batch() else { break };
        places.push((position, batch));
    }
    assert!(places.len() > 3);
    for (position, batch) in places.iter().rev() {
        let mut again = Reader::open(&path).unwrap();
        again.go_to(*position).unwrap();
        assert_eq!((again.position(), again.next_batch().as_ref()), (*position, Some(batch)));
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

/// The content of a recording that is closed after `rows` rows.
fn closed(folder: &Folder, rows: u64) -> Vec<u8> {
    let path = folder.file("closed.arrows");
    let recorder = Recorder::create(&path, &header(), false).unwrap();
    push(recorder.ring(), 0..rows, 50);
    recorder.finish().unwrap();
    std::fs::read(path).unwrap()
}

/// The files of a recorder that is killed after `rows` rows.
fn killed(folder: &Folder, rows: u64) -> PathBuf {
    let path = folder.file("live.arrows");
    let copy = folder.file("killed.arrows");
    let recorder = Recorder::create(&path, &header(), true).unwrap();
    push(recorder.ring(), 0..rows, 50);
    until!(recorder.ring().pending_rows() < 1000);
    std::fs::copy(tail_of(&path), tail_of(&copy)).unwrap();
    std::fs::copy(&path, &copy).unwrap();
    recorder.finish().unwrap();
    copy
}

#[test]
fn a_killed_recorder_loses_no_row_and_recover_restores_them() {
    let folder = Folder::new("killed");
    for rows in [0, 1, 999, 1700, 2600] {
        let path = killed(&folder, rows);
        let (_, batch, damage) = read(&path);
        assert_eq!((check_prefix(&batch, 50), damage), (rows, None));
        let recovered = recover(&path).unwrap();
        assert_eq!(recovered.rows + recovered.added, rows + rows.div_ceil(50));
        assert_eq!((recovered.lost, recovered.damaged.is_none()), (0, true));
        assert!(!tail_of(&path).exists());
        let (_, batch, damage) = read(&path);
        assert_eq!((check_prefix(&batch, 50), damage), (rows, None));
        assert_eq!(recover(&path).unwrap().added, 0, "again changes nothing");
    }
}

#[test]
fn a_cut_batch_that_left_the_tail_file_is_reported() {
    let folder = Folder::new("torn");
    let path = killed(&folder, 1700);
    let whole = std::fs::metadata(&path).unwrap().len();
    // The batch of rows 0..1000 is cut, but the tail file does not have its rows any more:
    // that is damage, and it is reported.
    let schema = closed(&folder, 0).len() as u64 - 8;
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
fn existing_recordings_are_not_replaced() {
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
fn the_tail_of_a_recording_that_was_moved_is_kept() {
    let folder = Folder::new("moved");
    let path = killed(&folder, 1700);
    let away = folder.file("away.arrows");
    std::fs::rename(&path, &away).unwrap();
    let error = Recorder::create(&path, &header(), false).unwrap_err();
    assert!(matches!(error, WriteError::LeftBehind(_)), "{error}");
    assert!(!path.exists() && read(&away).2.is_some());
    std::fs::rename(&away, &path).unwrap();
    let (_, batch, damage) = read(&path);
    assert_eq!((check_prefix(&batch, 50), damage), (1700, None));
}

#[test]
fn a_missing_directory_is_an_error_with_its_fix() {
    let folder = Folder::new("nodir");
    let error = Recorder::create(&folder.file("no/a.arrows"), &header(), false).unwrap_err().to_string();
    assert!(error.contains("create the directory first"), "{error}");
}

#[test]
fn a_removed_directory_loses_nothing() {
    let folder = Folder::new("removed");
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
fn a_foreign_file_is_refused_with_the_reason() {
    let folder = Folder::new("foreign");
    let path = folder.file("x");
    for (content, says) in [
        (&b""[..], "empty"),
        (b"hello", "not a recording"),
        (b"\xff\xff\xff\xff\x10\0\0\0aaaaaaaaaaaaaaaa", "damaged"),
    ] {
        std::fs::write(&path, content).unwrap();
        let error = Reader::open(&path).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    assert!(Reader::open(&folder.file("none")).unwrap_err().to_string().contains("cannot read"));
}
