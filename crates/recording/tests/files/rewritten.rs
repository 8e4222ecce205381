//! Recordings that another program rewrote: what numa reads and what it refuses.

use crate::fixture::{Folder, header, push, read};
use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, TimestampNanosecondType};
use arrow_array::{
    Array, ArrayRef, LargeStringArray, RecordBatch, StringViewArray, TimestampMicrosecondArray,
};
use arrow_ipc::CompressionType;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::Schema;
use numakit_recording::{Reader, recover};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A recording of two batches, and what another program sees of it.
fn recorded(folder: &Folder) -> (PathBuf, Vec<RecordBatch>) {
    let path = folder.file("whole.arrows");
    let recorder = numakit_recording::Recorder::create(&path, &header(), true).unwrap();
    push(recorder.ring(), 0..1500, 400);
    recorder.finish().unwrap();
    let reader = StreamReader::try_new(File::open(&path).unwrap(), None).unwrap();
    (path, reader.map(Result::unwrap).collect())
}

fn as_stream(path: &Path, batches: &[RecordBatch], options: IpcWriteOptions) {
    let (file, schema) = (File::create(path).unwrap(), batches[0].schema());
    let mut writer = StreamWriter::try_new_with_options(file, &schema, options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
}

fn as_file(path: &Path, batches: &[RecordBatch], options: IpcWriteOptions) {
    let (file, schema) = (File::create(path).unwrap(), batches[0].schema());
    let mut writer = FileWriter::try_new_with_options(file, &schema, options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
}

#[test]
fn streams_and_files_are_read_however_they_are_compressed() {
    let folder = Folder::new("rewritten");
    let (original, batches) = recorded(&folder);
    let wanted = read(&original);
    for compression in [None, Some(CompressionType::ZSTD), Some(CompressionType::LZ4_FRAME)] {
        for (name, write) in
            [("stream", as_stream as fn(&Path, &[RecordBatch], IpcWriteOptions)), ("file", as_file)]
        {
            let path = folder.file("again.arrows");
            let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
            write(&path, &batches, options);
            let (header, batch, damage) = read(&path);
            assert_eq!((header, batch, damage), wanted, "{name} {compression:?}");
            let positions = Reader::open(&path).unwrap().batch_positions().unwrap();
            assert_eq!((positions.len(), positions[2].rows), (3, 1500), "{name} {compression:?}");
            let bytes = std::fs::read(&path).unwrap();
            assert_eq!(recover(&path).unwrap().added, 0);
            assert_eq!(std::fs::read(&path).unwrap(), bytes, "a complete recording is not changed");
        }
    }
}

#[test]
fn a_flipped_byte_in_lz4_is_detected() {
    let folder = Folder::new("lz4");
    let (_, batches) = recorded(&folder);
    let path = folder.file("again.arrows");
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME)).unwrap();
    as_stream(&path, &batches, options);
    let positions = Reader::open(&path).unwrap().batch_positions().unwrap();
    let (begin, end) = (positions[0].position as usize, positions[1].position as usize);
    let bytes = std::fs::read(&path).unwrap();
    let mut unread = 0;
    // The buffers are after the table.
    for at in (begin + (end - begin) / 2..end).step_by(1009) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x20;
        std::fs::write(&path, &damaged).unwrap();
        // Whatever the byte is, reading ends, and the next batch is found.
        let (_, batch, damage) = read(&path);
        assert!(batch.len() >= 501, "byte {at}: {} rows", batch.len());
        unread += u32::from(damage.is_some());
    }
    assert!(unread > 0);
}

/// The same batches with another column in one place.
fn with_column(
    batches: &[RecordBatch],
    index: usize,
    of: impl Fn(&ArrayRef) -> ArrayRef,
) -> Vec<RecordBatch> {
    let change = |batch: &RecordBatch| {
        let mut columns = batch.columns().to_vec();
        columns[index] = of(&columns[index]);
        let schema = batch.schema();
        let mut fields: Vec<_> = schema.fields().iter().map(|field| field.as_ref().clone()).collect();
        fields[index] = fields[index].clone().with_data_type(columns[index].data_type().clone());
        let schema = Schema::new_with_metadata(fields, schema.metadata().clone());
        RecordBatch::try_new(Arc::new(schema), columns).unwrap()
    };
    batches.iter().map(change).collect()
}

/// Such columns would be misread.
#[test]
fn other_types_are_refused_by_name() {
    let folder = Folder::new("types");
    let (_, batches) = recorded(&folder);
    let large =
        |a: &ArrayRef| Arc::new(a.as_string::<i32>().iter().collect::<LargeStringArray>()) as ArrayRef;
    let view = |a: &ArrayRef| Arc::new(a.as_string::<i32>().iter().collect::<StringViewArray>()) as ArrayRef;
    let dictionary = |a: &ArrayRef| {
        let mut builder = StringDictionaryBuilder::<Int32Type>::new();
        a.as_string::<i32>().iter().for_each(|text| builder.append_option(text));
        Arc::new(builder.finish()) as ArrayRef
    };
    let micro = |a: &ArrayRef| {
        let times = a.as_primitive::<TimestampNanosecondType>().values().iter().map(|ns| ns / 1000);
        let times = TimestampMicrosecondArray::from_iter_values(times).with_timezone("UTC");
        Arc::new(times) as ArrayRef
    };
    type Change<'a> = &'a dyn Fn(&ArrayRef) -> ArrayRef;
    let cases: [(usize, Change<'_>, &str); 4] = [
        (2, &large, "column 'label' does not have texts (utf8)"),
        (2, &view, "column 'label' does not have texts (utf8)"),
        (2, &dictionary, "column 'label' is dictionary-encoded, not plain texts (utf8)"),
        (0, &micro, "column 'time' does not have times in nanoseconds"),
    ];
    for (column, change, why) in cases {
        let path = folder.file("other.arrows");
        as_stream(&path, &with_column(&batches, column, change), IpcWriteOptions::default());
        let error = Reader::open(&path).unwrap_err().to_string();
        assert!(error.contains(why), "{why}: {error}");
    }
}
