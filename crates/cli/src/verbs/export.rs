//! `numa export`.

use crate::formulas::FormulaArgs;
use crate::global::OF_A_RECORDING;
use crate::peaks;
use crate::to_file::{self, Existing, is_standard_output, no_terminal};
use crate::{Examples, GlobalArgs};
use anyhow::{Context, bail};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use numakit_export::{ExportFormat, ExportOptions, ExportSource, ExportedValues, FORMATS, format, format_of};
use numakit_sys::stdio::note;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Convert a recording to another format
///
/// The exit status is 1 if the recording is damaged; its undamaged part is written.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// A recording of numa or NUMAscope
    #[arg(value_name = "FILE")]
    recording: PathBuf,
    /// The format [default: by the file name extension of the output]
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    to: Option<&'static ExportFormat>,
    /// Write counters as rates per second and gauges as they are
    #[arg(long, conflicts_with = "raw")]
    rates: bool,
    /// Write values as they were read (the default, except for perfetto and numascope)
    #[arg(long)]
    raw: bool,
    /// Write all samples to openmetrics, instead of the last one only
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    formulas: FormulaArgs,
    /// Write to this file, which must not exist [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn formats() -> impl TypedValueParser<Value = &'static ExportFormat> {
    let names = FORMATS.iter().map(|f| PossibleValue::new(f.name).help(f.help));
    PossibleValuesParser::new(names).try_map(|name| format(&name).ok_or("no such format"))
}

impl ExportArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa export numa-1.arrows --to csv", "comma-separated values"),
        ("numa export numa-1.arrows --to perfetto -o trace.pftrace", "for ui.perfetto.dev"),
    ];

    /// Converts the recording.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here(OF_A_RECORDING)?;
        let format = self.format()?;
        let options = ExportOptions { values: self.values(format)?, all: self.all };
        let mut source = self.source(format)?;
        let notes = write(&mut source, format, options, self.output.as_deref())?;
        notes.iter().for_each(note);
        match source.damage() {
            None => Ok(ExitCode::SUCCESS),
            Some(damage) => {
                note(format_args!("{}: {damage}", self.recording.display()));
                Ok(ExitCode::from(1))
            }
        }
    }

    fn source(&self, format: &ExportFormat) -> anyhow::Result<ExportSource> {
        if !format.judges && self.formulas.is_given() {
            bail!("--formulas is not supported by the format {}; omit it", format.name);
        }
        let mut source = ExportSource::open(&self.recording)?;
        if format.judges {
            source.set_formulas(self.formulas.load()?);
            peaks::add_to_recording(source.header_mut());
        }
        Ok(source)
    }

    fn format(&self) -> anyhow::Result<&'static ExportFormat> {
        self.to.or_else(|| format_of(self.output.as_deref()?)).with_context(|| {
            let known: Vec<String> =
                FORMATS.iter().map(|f| format!("{} (.{})", f.name, f.extension)).collect();
            format!(
                "no format given; use --to, or an output with one of these extensions: {}",
                known.join(", ")
            )
        })
    }

    fn values(&self, format: &ExportFormat) -> anyhow::Result<ExportedValues> {
        let requested = match (self.rates, self.raw) {
            (true, _) => Some(ExportedValues::Rates),
            (_, true) => Some(ExportedValues::Raw),
            _ => None,
        };
        match requested {
            None => format.values.first().copied().context("a format without values"),
            Some(values) if format.values.contains(&values) => Ok(values),
            Some(values) => {
                bail!("--{} is not supported by the format {}; omit it", values.name(), format.name)
            }
        }
    }
}

/// Writes the rest of a recording. Returns messages for the user.
pub(crate) fn write(
    source: &mut ExportSource,
    format: &ExportFormat,
    options: ExportOptions,
    path: Option<&Path>,
) -> anyhow::Result<Vec<String>> {
    let path = path.unwrap_or(Path::new("-"));
    if format.binary && is_standard_output(path) {
        no_terminal(format.name)?;
    }
    let fix_if_exists = "give another name";
    to_file::write(path, Existing::Keep, fix_if_exists, |to| Ok((format.write)(source, options, to)?))
}
