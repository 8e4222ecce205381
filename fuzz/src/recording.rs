//! Recordings, their tail files, and recordings of NUMAscope.

use crate::files;
use numakit_export::{ExportOptions, ExportSource, FORMATS};
use numakit_findings::analyse;
use numakit_formulas::Catalog;
use numakit_recording::{Batch, Header, Reader, Ring, numascope, recover, tail_of};
use numakit_terminal::report::{PageStyle, page};
use std::io;
use std::path::Path;
use std::sync::LazyLock;

/// A recording that was not closed: readers look for its tail.
const UNCLOSED: &[u8] = include_bytes!("../corpus/recording/unclosed");

/// The tail file of that recording, before its first row.
static EMPTY_TAIL: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let path = files::put("c.arrows", UNCLOSED);
    let header = Reader::open(&path).map_or_else(|error| panic!("{error}"), |r| r.header().clone());
    empty_tail(&header, &path)
});

fn empty_tail(header: &Header, path: &Path) -> Vec<u8> {
    let file = std::fs::File::options().read(true).write(true).truncate(true).open(path);
    let ring = file.and_then(|file| Ring::in_file(header, &file));
    assert!(ring.is_ok(), "{ring:?}");
    let content = std::fs::read(path).unwrap_or_default();
    files::remove(path);
    content
}

/// The number of rows that are read.
fn read(path: &Path) -> usize {
    let Ok(mut reader) = Reader::open(path) else { return 0 };
    let header = reader.header().clone();
    let batches: Vec<Batch> = std::iter::from_fn(|| reader.next_batch()).collect();
    let positions = Reader::open(path).ok().and_then(|mut again| again.batch_positions());
    if let (Some(last), None) = (positions.as_ref().and_then(|positions| positions.last()), reader.damage()) {
        let rows: u64 = batches.iter().map(|batch| batch.len() as u64).sum();
        assert_eq!(last.rows + last.labels, rows, "skipping and reading count the same rows");
    }
    show(&header, &batches);
    batches.iter().map(Batch::len).sum()
}

/// Every recording that was read can be reported and exported.
fn show(header: &Header, batches: &[Batch]) {
    for batch in batches {
        assert_eq!(batch.columns.len(), header.series.len());
        assert!(batch.columns.iter().all(|c| c.values.len() == batch.len() && c.valid.len() == batch.len()));
    }
    if let Ok(report) = analyse(header, batches.iter().cloned(), None, Catalog::built_in()) {
        page(&report, PageStyle::default());
    }
    export(header, batches);
}

/// Exports in every format to a sink, which accepts everything.
fn export(header: &Header, batches: &[Batch]) {
    let source = ExportSource::in_memory(header.clone(), batches.to_vec());
    for format in FORMATS {
        for values in format.values {
            let options = ExportOptions { values: *values, all: true };
            let again = source.reopen();
            assert!(again.is_ok(), "{again:?}");
            let Ok(mut rows) = again else { return };
            let written = (format.write)(&mut rows, options, &mut io::sink());
            assert!(written.is_ok(), "{}: {written:?}", format.name);
        }
    }
}

/// A file of any kind.
pub fn any(input: &[u8]) -> bool {
    let path = files::put("a.arrows", input);
    let rows = read(&path);
    recovered(&path);
    files::remove(&path);
    rows > 0
}

/// A recovered recording is complete and has all rows that could be read before.
fn recovered(path: &Path) {
    let samples = || {
        let mut reader = Reader::open(path).ok()?;
        let batches = std::iter::from_fn(|| reader.next_batch());
        let samples: Vec<u64> = batches
            .flat_map(|batch| batch.time.into_iter().zip(batch.label))
            .filter_map(|(time, label)| label.is_none().then_some(time))
            .collect();
        Some((samples, reader.damage().is_some()))
    };
    let before = samples();
    let Ok(done) = recover(path) else { return };
    let after = samples();
    assert_eq!(before.map(|(samples, _)| samples), after.as_ref().map(|(samples, _)| samples.clone()));
    assert!(after.is_some_and(|(_, damaged)| !damaged), "it is complete");
    done.damaged.iter().for_each(|(_, aside)| files::remove(aside));
}

/// The tail file of a recording. It is large and mostly empty, so the input lists the words that
/// are not: two bytes for the position, eight for the value.
pub fn tail(input: &[u8]) -> bool {
    let mut content = EMPTY_TAIL.clone();
    for patch in input.chunks_exact(10) {
        let at = usize::from(u16::from_le_bytes([patch[0], patch[1]])) * 8;
        if let Some(word) = content.get_mut(at..at + 8) {
            word.copy_from_slice(&patch[2..]);
        }
    }
    let path = files::put("b.arrows", UNCLOSED);
    let tail = tail_of(&path);
    let written = std::fs::write(&tail, content);
    assert!(written.is_ok(), "{written:?}");
    let rows = read(&path);
    files::remove(&path);
    files::remove(&tail);
    rows > 0
}

/// The JSON of NUMAscope.
pub fn json(input: &[u8]) -> bool {
    let Ok((header, batches, _)) = numascope::read(input) else { return false };
    show(&header, &batches);
    true
}
