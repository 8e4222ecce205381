//! Where recordings may be written, and what happens to existing files.

use crate::fixture::{Folder, check_prefix, header, push, read, values};
use numakit_recording::{Reader, Recorder, WriteError, tail_of};
use std::fs::File;
use std::io::Read;
use std::path::Path;

fn names(folder: &Folder) -> Vec<String> {
    let entries = std::fs::read_dir(&folder.0).unwrap();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn only_regular_files_are_replaced() {
    let folder = Folder::new("odd");
    let fifo = folder.file("fifo");
    drop(numakit_sys::command::named_pipe(&fifo, 0o600).unwrap());
    let link = folder.file("link");
    std::os::unix::fs::symlink("/dev/null", &link).unwrap();
    for path in [fifo.as_path(), Path::new("/dev/null"), &link, &folder.0] {
        for force in [false, true] {
            let error = Recorder::create(path, &header(), force).unwrap_err().to_string();
            assert!(error.contains("not a regular file") && error.contains("-o -"), "{error}");
        }
        let error = Reader::open(path).unwrap_err().to_string();
        assert!(error.contains("not a regular file"), "{error}");
    }
    assert_eq!(names(&folder), ["fifo", "link"]);
    let path = folder.file("a.arrows");
    drop(numakit_sys::command::named_pipe(&tail_of(&path), 0o600).unwrap());
    let error = Recorder::create(&path, &header(), true).unwrap_err().to_string();
    assert!(error.contains("a.arrows.tail: it is a FIFO"), "{error}");
    std::fs::write(&path, include_bytes!("old/unsigned.arrows")).unwrap();
    assert!(Reader::open(&path).is_ok(), "an invalid tail file is ignored");
}

#[test]
fn a_recording_that_cannot_be_started_leaves_the_old_one() {
    let folder = Folder::new("begun");
    let path = folder.file("a.arrows");
    std::fs::write(&path, "old").unwrap();
    std::fs::write(tail_of(&path), "old tail").unwrap();
    // A tail file that cannot be created is an error before anything is replaced.
    let long = folder.file(&format!("{}.arrows", "x".repeat(245)));
    std::fs::write(&long, "old").unwrap();
    assert!(Recorder::create(&long, &header(), true).is_err());
    assert_eq!(std::fs::read(&long).unwrap(), b"old");
    assert!(matches!(Recorder::create(&folder.file("b.arrows"), &header(), false).unwrap().finish(), Ok(())));
    let kept = File::options().write(true).open(tail_of(&path)).unwrap();
    kept.try_lock().unwrap();
    assert!(matches!(Recorder::create(&path, &header(), true), Err(WriteError::Busy(_))));
    drop(kept);
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_eq!(std::fs::read(tail_of(&path)).unwrap(), b"old tail");
    Recorder::create(&path, &header(), true).unwrap().finish().unwrap();
    assert!(Reader::open(&path).is_ok() && !tail_of(&path).exists());
}

#[test]
fn a_link_leads_to_the_recording_and_its_side_file() {
    let folder = Folder::new("link");
    let (link, file) = (folder.file("link.arrows"), folder.file("file.arrows"));
    std::fs::write(&file, "old").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let recorder = Recorder::create(&link, &header(), true).unwrap();
    push(recorder.ring(), 0..7, 100);
    assert!(folder.file("file.arrows.tail").exists());
    assert!(matches!(Recorder::create(&file, &header(), true), Err(WriteError::Busy(_))));
    for path in [&link, &file] {
        assert_eq!(check_prefix(&read(path).1, 100), 7);
    }
    recorder.finish().unwrap();
    assert_eq!(names(&folder), ["file.arrows", "link.arrows"]);
}

#[test]
fn extensions_of_other_formats_are_refused_with_the_fix() {
    let folder = Folder::new("promise");
    for name in ["w.json", "w.CSV", "w.parquet", "w.arrow"] {
        let error = Recorder::create(&folder.file(name), &header(), true).unwrap_err().to_string();
        assert!(error.contains("; record to ") && error.contains("w.arrows, and "), "{error}");
    }
    for name in ["w", "w.arrows", "run.2026-11-22", "w.json.arrows"] {
        Recorder::create(&folder.file(name), &header(), true).unwrap().finish().unwrap();
    }
    assert_eq!(names(&folder).len(), 4);
}

#[test]
fn a_pipe_gets_a_whole_recording() {
    let folder = Folder::new("pipe");
    let (mut from, to) = std::io::pipe().unwrap();
    let reading = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).map(|_| bytes)
    });
    let to = File::from(std::os::fd::OwnedFd::from(to));
    let recorder = Recorder::stream(to, "standard output", &header()).unwrap();
    push(recorder.ring(), 0..2500, 100);
    recorder.finish().unwrap();
    let path = folder.file("a.arrows");
    std::fs::write(&path, reading.join().unwrap().unwrap()).unwrap();
    let (_, batch, damage) = read(&path);
    assert_eq!((check_prefix(&batch, 100), damage), (2500, None));
}

/// A reader that reads nothing does not delay the end of the recording.
#[test]
fn a_full_pipe_does_not_block_the_end() {
    let (from, to) = std::io::pipe().unwrap();
    let to = File::from(std::os::fd::OwnedFd::from(to));
    let recorder = Recorder::stream(to, "standard output", &header()).unwrap();
    (0..2500).for_each(|row| recorder.ring().push(row, 1, &values(row * 7919)));
    let error = recorder.finish().unwrap_err().to_string();
    assert!(error.contains("its reader reads nothing"), "{error}");
    drop(from);
}

#[test]
fn a_pipe_without_a_reader_ends_the_recording_with_an_error() {
    let (from, to) = std::io::pipe().unwrap();
    let to = File::from(std::os::fd::OwnedFd::from(to));
    let recorder = Recorder::stream(to, "standard output", &header()).unwrap();
    drop(from);
    push(recorder.ring(), 0..1000, 100);
    let error = recorder.finish().unwrap_err().to_string();
    assert!(error.starts_with("recording to standard output stopped: Broken pipe"), "{error}");
}
