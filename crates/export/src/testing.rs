//! Small recordings for tests.

use crate::{ExportOptions, ExportSource, ExportedValues, format};
use numakit_model::{Instance, Kind, Metric, Series, Unit};
use numakit_recording::{Batch, Header};
use std::sync::Arc;
use std::time::Duration;

/// One series.
pub fn one(name: &str, kind: Kind, unit: Unit, instance: Instance) -> Series {
    let metric = Metric {
        name: name.into(),
        unit,
        kind,
        scope: instance.scope(),
        help: "Something \"odd\"\nof two lines.".into(),
        source: String::new(),
        resolution: Duration::ZERO,
        confidence: None,
        maximum: None,
    };
    Series::new(&Arc::new(metric), instance)
}

/// Series of the machine.
pub fn series(names: &[(&str, Kind)]) -> Vec<Series> {
    names.iter().map(|(name, kind)| one(name, *kind, Unit::Count, Instance::Machine)).collect()
}

/// Samples.
pub fn batch(rows: &[(u64, &[Option<u64>])]) -> Batch {
    let mut batch = Batch::empty(rows.first().map_or(0, |(_, values)| values.len()));
    for (time, values) in rows {
        batch.push_sample(*time, 5, values);
    }
    batch
}

/// The export of a recording.
pub fn exported(
    name: &str,
    values: ExportedValues,
    all: bool,
    series: &[Series],
    batches: &[Batch],
) -> Vec<u8> {
    let header = Header { series: series.to_vec(), host: "h 1".into(), page_size: 4096, ..Header::default() };
    let mut out = Vec::new();
    let write = format(name).unwrap().write;
    write(&mut ExportSource::in_memory(header, batches.to_vec()), ExportOptions { values, all }, &mut out)
        .unwrap();
    out
}

/// The same as text.
pub fn text(name: &str, values: ExportedValues, all: bool, series: &[Series], batches: &[Batch]) -> String {
    String::from_utf8(exported(name, values, all, series, batches)).unwrap()
}
