//! Exports recordings to the formats of other programs: one file per format, one table of all.

mod csv;
mod findings;
mod influx;
mod instance_label;
mod numascope;
mod numbers;
pub mod openmetrics;
mod parquet;
mod perfetto;
mod prometheus;
mod source;
#[cfg(test)]
mod testing;

pub use influx::{InfluxPlace, tag as influx_tag};
pub use numbers::{ExportedValues, Number, Numbers};
pub use source::ExportSource;

use numakit_findings::UnknownPhase;
use numakit_recording::OpenError;
use std::io::{self, Write};
use std::path::Path;
use thiserror::Error;

/// The output of a format.
pub type ExportOutput<'a> = &'a mut (dyn Write + Send);

/// A format: its description for the command line and the guide, and its writer.
#[derive(Debug)]
pub struct ExportFormat {
    /// The name on the command line.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// The extension of its files.
    pub extension: &'static str,
    /// Whether it must not be written to a terminal.
    pub binary: bool,
    /// Whether it has judgements, which depend on formulas and on what the memory was measured to do.
    pub judges: bool,
    /// The values that it supports, the default first.
    pub values: &'static [ExportedValues],
    /// Writes the rest of a recording. Returns notes for the user.
    pub write: fn(&mut ExportSource, ExportOptions, ExportOutput<'_>) -> Result<Vec<String>, ExportError>,
}

/// What to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportOptions {
    /// Raw values or rates, as far as the format supports them.
    pub values: ExportedValues,
    /// Every sample, if the default of the format is only the last one.
    pub all: bool,
}

/// Every format, in the order in which they are listed.
pub static FORMATS: &[ExportFormat] = &[
    csv::FORMAT,
    parquet::FORMAT,
    perfetto::FORMAT,
    influx::FORMAT,
    prometheus::FORMAT,
    openmetrics::FORMAT,
    numascope::FORMAT,
    findings::FORMAT,
];

/// The format of that name.
pub fn format(name: &str) -> Option<&'static ExportFormat> {
    FORMATS.iter().find(|f| f.name == name)
}

/// The format of a file by its extension; of several, by the longest: `x.findings.json` is not NUMAscope's `json`, nor
/// is a file that is named only `findings.json`.
pub fn format_of(file: &Path) -> Option<&'static ExportFormat> {
    let name = file.file_name()?.to_str()?;
    let has = |extension: &str| match name.strip_suffix(extension) {
        Some("") => extension.contains('.'),
        Some(stem) => stem.len() > 1 && stem.ends_with('.'),
        None => false,
    };
    FORMATS.iter().filter(|format| has(format.extension)).max_by_key(|format| format.extension.len())
}

/// Why an export failed.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The output failed.
    #[error(transparent)]
    Output(#[from] io::Error),
    /// The recording could not be read a second time.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The recording could not be judged.
    #[error(transparent)]
    Phase(#[from] UnknownPhase),
    /// The Parquet writer failed.
    #[error("cannot be written as Parquet: {0}")]
    Parquet(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{batch, exported, one};
    use numakit_model::{Instance, Kind, Unit};
    use proptest::prelude::*;

    #[test]
    fn a_format_is_found_by_extension() {
        let found = |name| format_of(Path::new(name)).unwrap().name;
        assert_eq!(found("a.b/run.parquet"), "parquet");
        assert_eq!(["run.json", "a.findings/run.json"].map(found), ["numascope"; 2]);
        assert_eq!(["run.findings.json", "a/findings.json"].map(found), ["findings"; 2]);
        assert!(
            ["run", "run.", ".parquet", "run.parquet.x", "xparquet", "parquet", ".json"]
                .iter()
                .all(|name| format_of(Path::new(name)).is_none())
        );
    }

    #[test]
    fn the_table_is_valid() {
        for (index, one) in FORMATS.iter().enumerate() {
            assert!(
                !one.help.is_empty() && !one.help.ends_with('.') && !one.values.is_empty(),
                "{}",
                one.name
            );
            for other in &FORMATS[..index] {
                assert!(one.name != other.name && one.extension != other.extension, "{}", one.name);
            }
        }
        assert!(format("csv").is_some() && format("excel").is_none());
    }

    fn kind() -> impl Strategy<Value = Kind> {
        prop_oneof![Just(Kind::Gauge), Just(Kind::Rate), (0..=255u8).prop_map(|bits| Kind::Counter { bits })]
    }

    proptest! {
        #[test]
        fn every_format_accepts_every_recording(
            columns in proptest::collection::vec(("\\PC{0,6}", kind(), 0..Unit::ALL.len()), 0..5),
            rows in proptest::collection::vec((any::<u64>(), any::<[Option<u64>; 5]>(), any::<Option<String>>()), 0..6),
        ) {
            let series = |(name, kind, unit): &(String, Kind, usize)| {
                one(name, *kind, Unit::ALL[*unit], Instance::Node(u32::MAX))
            };
            let series: Vec<_> = columns.iter().map(series).collect();
            let mut batches = Vec::new();
            for (time, values, label) in &rows {
                let mut batch = batch(&[(*time, &values[..series.len()])]);
                label.iter().for_each(|text| batch.push_label(*time, text.clone()));
                batches.push(batch);
            }
            for format in FORMATS {
                for (values, all) in format.values.iter().flat_map(|v| [(*v, false), (*v, true)]) {
                    let out = exported(format.name, values, all, &series, &batches);
                    let words = ["openmetrics", "prometheus", "influx"].contains(&format.name);
                    for line in out.split(|&b| b == b'\n').filter(|l| words && !l.starts_with(b"#")) {
                        let word = |bad: &[u8]| line.split(|b| b" =,".contains(b)).any(|word| word == bad);
                        prop_assert!(!word(b"NaN") && !word(b"inf") && !word(b"-inf"), "{}", format.name);
                    }
                }
            }
        }
    }
}
