//! A folder of Parquet files by host and day: `host=NAME/date=2026-11-28/TIME-CHECKSUM.parquet`.
//!
//! The names of the folders are those that Hive, DuckDB and Spark read as columns. A file appears when it is complete, and rows that
//! are sent twice replace it.

use numakit_export::{ExportError, ExportOptions, ExportSource, ExportedValues, format};
use numakit_model::time;
use numakit_recording::{Batch, Header};
use numakit_sys::output::{Existing, OutputFile};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

const DAY: u64 = 86_400_000_000_000;

/// Writes the rows of a batch, each to the folder of its day.
pub fn write(folder: &Path, header: &Arc<Header>, batch: &Batch) -> Result<(), ExportError> {
    let mut from = 0;
    while from < batch.len() {
        let day = batch.time[from] / DAY;
        let other = batch.time[from..].iter().position(|time| time / DAY != day);
        let to = other.map_or(batch.len(), |rows| from + rows);
        write_day(folder, header, batch.slice(from..to))?;
        from = to;
    }
    Ok(())
}

fn write_day(folder: &Path, header: &Arc<Header>, batch: Batch) -> Result<(), ExportError> {
    // The clock may have been set back between two rows.
    let first = batch.time.iter().min().copied().unwrap_or(0);
    let date = time::utc(first);
    let date = date.split(' ').next().unwrap_or_default();
    let folder = folder.join(format!("host={}", name(&header.host))).join(format!("date={date}"));
    fs::create_dir_all(&folder)?;
    // The last time is in the name: rows that are sent twice may come in other parts, which both stay readable.
    let last = batch.time.iter().max().copied().unwrap_or(first);
    let checksum = crc32fast::hash(&header.packed()?);
    let path = folder.join(format!("{first}-{last}-{checksum:08x}.parquet"));
    let mut output = OutputFile::create(&path, Existing::Replace)?;
    let Some(format) = format("parquet") else { return Ok(()) };
    let mut bytes = Vec::new();
    let mut source = ExportSource::in_memory(Header::clone(header), vec![batch]);
    (format.write)(&mut source, ExportOptions { values: ExportedValues::Raw, all: true }, &mut bytes)?;
    output.write_all(&bytes)?;
    output.persist()?;
    Ok(())
}

/// A host as part of a path.
pub fn name(host: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = host.chars().take(200).map(|c| if safe(c) { c } else { '_' }).collect();
    if name.trim_start_matches('.').is_empty() { "_".to_owned() } else { name }
}

/// Whether trying again can help.
pub fn is_temporary(error: &ExportError) -> bool {
    match error {
        ExportError::Output(error) => !matches!(error.kind(), io::ErrorKind::InvalidInput),
        _ => false,
    }
}
