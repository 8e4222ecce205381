//! Rows from a folder of Parquet files by host and day.

use super::{FetchError, FetchRequest, Source, no_such_host};
use crate::folder::name;
use data_encoding::BASE64;
use numakit_recording::{Batch, Column, Header};
use numakit_sys::file::open_to_read;
use parquet::column::reader::ColumnReader;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The key of a file's metadata with the description of its rows.
const SCHEMA: &str = "ARROW:schema";
/// Columns before those of series.
const FIXED: usize = 3;
/// Maximum number of rows of a group: our own have less.
const MAX_ROWS: usize = 1 << 24;

pub struct Files<'a> {
    folder: &'a Path,
    request: &'a FetchRequest<'a>,
    /// Files by their first and last time.
    files: BTreeMap<(u64, u64), PathBuf>,
}

impl<'a> Files<'a> {
    pub fn new(folder: &'a Path, request: &'a FetchRequest<'a>) -> Self {
        Self { folder, request, files: BTreeMap::new() }
    }

    fn find(&mut self) -> Result<(), FetchError> {
        let of_host = self.folder.join(format!("host={}", name(self.request.host)));
        let days = match fs::read_dir(&of_host) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            days => days.map_err(|error| cannot(&of_host, error))?,
        };
        for day in days {
            let day = day.map_err(|error| cannot(&of_host, error))?.path();
            for file in fs::read_dir(&day).map_err(|error| cannot(&day, error))? {
                let file = file.map_err(|error| cannot(&day, error))?.path();
                let times = times(&file)
                    .filter(|(first, last)| *first < self.request.range.1 && *last >= self.request.range.0);
                if let Some(times) = times {
                    self.files.insert(times, file);
                }
            }
        }
        Ok(())
    }
}

/// A row of any of the files.
#[derive(PartialEq)]
struct FoundRow {
    time: u64,
    took: u64,
    label: Option<String>,
    values: Vec<Option<u64>>,
}

/// The first and the last time of a file, by its name.
fn times(path: &Path) -> Option<(u64, u64)> {
    let mut parts = path.file_name()?.to_str()?.strip_suffix(".parquet")?.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn cannot(path: &Path, error: io::Error) -> FetchError {
    FetchError::File { path: path.to_owned(), error }
}

fn open(path: &Path) -> Result<SerializedFileReader<File>, FetchError> {
    let file = open_to_read(path).map_err(|error| cannot(path, error))?;
    SerializedFileReader::new(file).map_err(|error| cannot(path, io::Error::other(error)))
}

fn header_of(path: &Path, reader: &SerializedFileReader<File>) -> Result<Header, FetchError> {
    let pairs = reader.metadata().file_metadata().key_value_metadata().map(Vec::as_slice).unwrap_or_default();
    let text = pairs.iter().find(|pair| pair.key == SCHEMA).and_then(|pair| pair.value.as_deref());
    let foreign = || cannot(path, io::Error::other("it is not a file that numa wrote"));
    let bytes = BASE64.decode(text.ok_or_else(foreign)?.as_bytes()).map_err(|_| foreign())?;
    Header::unpacked(&bytes).map_err(FetchError::Description)
}

impl Source for Files<'_> {
    fn hosts(&mut self) -> Result<Vec<String>, FetchError> {
        let entries = fs::read_dir(self.folder).map_err(|error| cannot(self.folder, error))?;
        let host = |entry: fs::DirEntry| Some(entry.file_name().to_str()?.strip_prefix("host=")?.to_owned());
        Ok(entries.filter_map(Result::ok).filter_map(host).collect())
    }

    fn header(&mut self) -> Result<Header, FetchError> {
        self.find()?;
        let Some(path) = self.files.values().next_back() else {
            let hosts = self.hosts();
            return Err(no_such_host(self.request, hosts));
        };
        header_of(path, &open(path)?)
    }

    fn rows(&mut self, header: &Header, (from, to): (u64, u64)) -> Result<Batch, FetchError> {
        let places: std::collections::HashMap<String, usize> =
            header.series.iter().enumerate().map(|(index, series)| (series.name(), index)).collect();
        let mut rows: Vec<FoundRow> = Vec::new();
        let files = self.files.iter().filter(|((first, last), _)| *first < to && *last >= from);
        for (_, path) in files {
            let reader = open(path)?;
            let own = header_of(path, &reader)?;
            let columns: Vec<Option<usize>> =
                own.series.iter().map(|s| places.get(&s.name()).copied()).collect();
            for group in 0..reader.num_row_groups() {
                let group =
                    reader.get_row_group(group).map_err(|error| cannot(path, io::Error::other(error)))?;
                let batch = read_group(group.as_ref(), own.series.len())
                    .map_err(|error| cannot(path, io::Error::other(error)))?;
                for row in (0..batch.len()).filter(|row| (from..to).contains(&batch.time[*row])) {
                    let mut values = vec![None; header.series.len()];
                    for (own, place) in columns.iter().enumerate() {
                        if let Some(place) = place {
                            values[*place] = batch.columns[own].get(row);
                        }
                    }
                    let (time, took, label) = (batch.time[row], batch.took[row], batch.label[row].clone());
                    rows.push(FoundRow { time, took, label, values });
                }
            }
        }
        rows.sort_by_key(|row| row.time);
        // Rows that were sent twice may be in several files.
        rows.dedup();
        let mut batch = Batch::empty(header.series.len());
        for FoundRow { time, took, label, values } in rows {
            match label {
                Some(text) => batch.push_label(time, text),
                None => batch.push_sample(time, took, &values),
            }
        }
        Ok(batch)
    }
}

/// All rows of a group of a file with this number of series.
fn read_group(group: &dyn RowGroupReader, series: usize) -> Result<Batch, ParquetError> {
    let wrong = || ParquetError::General("it has other columns than its description".to_owned());
    let rows = usize::try_from(group.metadata().num_rows())
        .ok()
        .filter(|rows| *rows <= MAX_ROWS)
        .ok_or_else(wrong)?;
    if group.num_columns() != series + FIXED {
        return Err(wrong());
    }
    let mut columns: Vec<Column> = Vec::new();
    let mut label = vec![None; rows];
    for at in 0..group.num_columns() {
        match group.get_column_reader(at)? {
            ColumnReader::Int64ColumnReader(mut reader) => {
                let (mut values, mut valid) = (Vec::new(), Vec::new());
                reader.read_records(rows, Some(&mut valid), None, &mut values)?;
                let is_required = valid.is_empty() && values.len() == rows;
                let mut values = values.into_iter().map(|value| value as u64);
                let mut column = Column::default();
                for row in 0..rows {
                    let is_there = is_required || valid.get(row).is_some_and(|level| *level > 0);
                    column.push(if is_there { values.next() } else { None });
                }
                columns.push(column);
            }
            ColumnReader::ByteArrayColumnReader(mut reader) => {
                let (mut values, mut valid) = (Vec::new(), Vec::new());
                reader.read_records(rows, Some(&mut valid), None, &mut values)?;
                let mut values = values.into_iter();
                for (slot, _) in label.iter_mut().zip(&valid).filter(|(_, level)| **level > 0) {
                    *slot = values.next().map(|text| String::from_utf8_lossy(text.data()).into_owned());
                }
            }
            _ => return Err(wrong()),
        }
    }
    let mut columns = columns.into_iter();
    let (Some(time), Some(took)) = (columns.next(), columns.next()) else { return Err(wrong()) };
    Ok(Batch { time: time.values, took: took.values, label, columns: columns.collect() })
}
