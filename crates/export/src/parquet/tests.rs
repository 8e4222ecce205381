use super::*;
use crate::testing::{batch, series};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use std::fs::File;

struct Read {
    rows: Vec<Vec<Field>>,
    groups: usize,
    metadata: String,
}

/// Exports to a file and reads that, since the reader needs a file.
fn read(name: &str, header: &Header, rows: &Batch, values: ExportedValues) -> Read {
    let path = std::env::temp_dir().join(format!("numakit-parquet-{name}-{}", std::process::id()));
    let mut file = File::create(&path).unwrap();
    let mut source = ExportSource::in_memory(header.clone(), vec![rows.clone()]);
    write(&mut source, ExportOptions { values, all: false }, &mut file).unwrap();
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    std::fs::remove_file(&path).unwrap();
    let row = |row: parquet::record::Row| row.get_column_iter().map(|(_, f)| f.clone()).collect();
    Read {
        rows: reader.get_row_iter(None).unwrap().map(|r| row(r.unwrap())).collect(),
        groups: reader.num_row_groups(),
        metadata: reader.metadata().file_metadata().key_value_metadata().unwrap()[0].value.clone().unwrap(),
    }
}

fn header() -> Header {
    let kinds = [("a.c", Kind::COUNTER), ("a.g", Kind::Gauge), ("a.r", Kind::Rate)];
    Header { series: series(&kinds), host: "h".into(), ..Header::default() }
}

#[test]
fn types_nulls_and_labels_are_kept() {
    let mut rows = batch(&[
        (1_000_000_000, &[Some(u64::MAX - 2), Some(u64::MAX), Some(-3i64 as u64)]),
        (1_500_000_000, &[Some(u64::MAX), None, None]),
    ]);
    rows.push_label(1_600_000_000, "phase é");
    let raw = read("raw", &header(), &rows, ExportedValues::Raw);
    assert_eq!(
        raw.rows[0][1..],
        [Field::Long(5), Field::Null, Field::Long(-3), Field::Long(-1), Field::Long(-3)]
    );
    assert_eq!(raw.rows[2][2..], [Field::Str("phase é".into()), Field::Null, Field::Null, Field::Null]);
    assert_eq!((raw.groups, raw.metadata), (1, header().metadata()));
    let rates = read("rates", &header(), &rows, ExportedValues::Rates);
    assert_eq!(rates.rows[0][3..], [Field::Null, Field::Long(-1), Field::Long(-3)]);
    assert_eq!(rates.rows[1][3..], [Field::Double(4.0), Field::Null, Field::Null]);
}

#[test]
fn a_recording_without_rows_has_its_columns() {
    let none = read("empty", &header(), &Batch::empty(3), ExportedValues::Raw);
    assert_eq!((none.rows.len(), none.groups), (0, 0));
}

#[test]
fn row_groups_are_bounded() {
    let header = header();
    let mut group = Group::new(&header, ExportedValues::Raw, 60);
    let mut out = Vec::new();
    let sink: ExportOutput<'_> = &mut out;
    let mut writer = SerializedFileWriter::new(sink, schema(&group).unwrap(), Arc::default()).unwrap();
    let mut numbers = Numbers::new(&header.series, ExportedValues::Raw);
    let rows: Vec<(u64, &[Option<u64>])> = vec![(1, &[Some(1), None, None]); 25];
    let rows = batch(&rows);
    for row in 0..rows.len() {
        group.push(&rows, row, &mut numbers);
        if group.is_full() {
            group.flush(&mut writer).unwrap();
        }
    }
    assert_eq!((writer.flushed_row_groups().len(), group.rows()), (2, 5));
}
