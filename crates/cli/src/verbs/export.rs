//! `numa export`.

use crate::Global;
use crate::global::OF_A_RECORDING;
use crate::to_file::{self, Existing, is_standard_output, no_terminal};
use anyhow::{Context, bail};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use numakit_export::{FORMATS, Format, Options, Source, Values, format, format_of};
use numakit_sys::stdio::note;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write a recording in another format
///
/// The exit status is 1 when the recording was damaged and only its whole part was written.
#[derive(Debug, Args)]
pub struct Export {
    /// A recording of numa or of NUMAscope
    #[arg(value_name = "FILE")]
    recording: PathBuf,
    /// The format; without it, what the name of the output ends in
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    to: Option<&'static Format>,
    /// Counters as rates per second, gauges as levels
    #[arg(long, conflicts_with = "raw")]
    rates: bool,
    /// Values as they were read: the default of all but perfetto and numascope
    #[arg(long)]
    raw: bool,
    /// Every sample; without it openmetrics writes just the last, and prometheus always does
    #[arg(long)]
    all: bool,
    /// Write to this file, which must not exist, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn formats() -> impl TypedValueParser<Value = &'static Format> {
    let names = FORMATS.iter().map(|f| PossibleValue::new(f.name).help(f.help));
    PossibleValuesParser::new(names).try_map(|name| format(&name).ok_or("no such format"))
}

impl Export {
    /// Writes.
    pub fn run(self, global: &Global) -> anyhow::Result<ExitCode> {
        global.only_here(OF_A_RECORDING)?;
        let format = self.format()?;
        let options = Options { values: self.values(format)?, all: self.all };
        let mut source = Source::open(&self.recording)?;
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

    fn format(&self) -> anyhow::Result<&'static Format> {
        self.to.or_else(|| format_of(self.output.as_deref()?)).with_context(|| {
            let known: Vec<String> =
                FORMATS.iter().map(|f| format!("{} (.{})", f.name, f.extension)).collect();
            format!("no format given; use --to, or an output whose name ends so: {}", known.join(", "))
        })
    }

    fn values(&self, format: &Format) -> anyhow::Result<Values> {
        let wanted = match (self.rates, self.raw) {
            (true, _) => Some(Values::Rates),
            (_, true) => Some(Values::Raw),
            _ => None,
        };
        match wanted {
            None => format.values.first().copied().context("a format without values"),
            Some(values) if format.values.contains(&values) => Ok(values),
            Some(values) => bail!("{} never has --{}; leave it out", format.name, values.name()),
        }
    }
}

/// Writes what is left of a recording; the answer is what the user should know of it.
pub(crate) fn write(
    source: &mut Source,
    format: &Format,
    options: Options,
    path: Option<&Path>,
) -> anyhow::Result<Vec<String>> {
    let path = path.unwrap_or(Path::new("-"));
    if format.binary && is_standard_output(path) {
        no_terminal(format.name)?;
    }
    let taken = "give the name of a file that does not exist";
    to_file::write(path, Existing::Kept, taken, |to| Ok((format.write)(source, options, to)?))
}
