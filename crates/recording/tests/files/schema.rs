//! The columns as other programs see them.

use crate::fixture::{COLUMNS, Folder, header, push, read};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_ipc::reader::StreamReader;
use numakit_model::Kind;
use numakit_recording::{Recorder, Ring};
use numakit_testing::until;
use std::time::Duration;

/// All numbers are signed, so that a falling level has a negative difference.
#[test]
fn columns_are_signed_and_described() {
    let folder = Folder::new("signed");
    let path = folder.file("a.arrows");
    let recorder = Recorder::create(&path, &header(), false).unwrap();
    push(recorder.ring(), 0..10, 1 << 40);
    recorder.finish().unwrap();
    let reader = StreamReader::try_new(std::fs::File::open(&path).unwrap(), None).unwrap();
    let schema = reader.schema();
    for (field, series) in schema.fields().iter().skip(3).zip(&header().series) {
        assert_eq!(field.data_type().to_string(), "Int64");
        let metadata = ["unit", "kind", "help"].map(|key| field.metadata()[key].as_str());
        assert_eq!(metadata, ["pages", series.metric.kind.name(), "pages, \"quoted\""]);
    }
    assert_eq!(schema.field(1).data_type().to_string(), "Int64");
    assert_eq!(schema.field(1).metadata()["unit"], "ns");
    assert_eq!(schema.fields().len(), COLUMNS + 3);
}

/// A counter of 2^63 or more keeps its bits: it is negative elsewhere, unchanged here, and its differences are
/// right in both.
#[test]
fn a_counter_beyond_signed_numbers_keeps_its_bits() {
    let folder = Folder::new("beyond");
    let path = folder.file("a.arrows");
    let recorder = Recorder::create(&path, &header(), false).unwrap();
    assert_eq!(header().series[0].metric.kind, Kind::COUNTER);
    let counts = [i64::MAX as u64 - 1, i64::MAX as u64 + 2];
    for (time, count) in (0..).zip(counts) {
        let mut row = vec![None; COLUMNS];
        row[0] = Some(count);
        recorder.ring().push(time, 0, &row);
    }
    recorder.finish().unwrap();
    let (_, batch, _) = read(&path);
    assert_eq!(batch.columns[0].values, counts);
    let mut reader = StreamReader::try_new(std::fs::File::open(&path).unwrap(), None).unwrap();
    let table = reader.next().unwrap().unwrap();
    let column = table.column(3).as_primitive::<Int64Type>();
    assert_eq!(column.values()[1].wrapping_sub(column.values()[0]), 3);
}

/// Programs that do not read the tail file see rows before a batch is full.
#[test]
fn a_batch_is_written_after_its_time_however_few_rows_it_has() {
    let folder = Folder::new("time");
    let path = folder.file("a.arrows");
    let recorder = Recorder::create_with(&path, &header(), false, Duration::from_millis(20)).unwrap();
    let rows_in_file = || {
        let reader = StreamReader::try_new(std::fs::File::open(&path).unwrap(), None).unwrap();
        // A batch that is being written may be incomplete.
        reader.map_while(Result::ok).map(|batch| batch.num_rows()).sum::<usize>()
    };
    for rows in [3, 5] {
        push(recorder.ring(), rows - 3..rows - 1, 1 << 40);
        let expected = recorder.ring().total_rows() as usize + 1;
        until!(rows_in_file() >= expected);
        assert_eq!(rows_in_file(), expected);
    }
    let ring: &Ring = recorder.ring();
    assert_eq!(ring.pending_rows(), 0);
    recorder.finish().unwrap();
}
