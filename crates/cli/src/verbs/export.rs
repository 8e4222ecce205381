//! `numa export`.

use crate::Global;
use anyhow::Context;
use clap::{Args, ValueEnum};
use numakit_recording::{Batch, Reader, csv, numascope};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Write a recording in another format
///
/// The exit status is 1 when the recording was damaged and only its whole part was written.
#[derive(Debug, Args)]
pub struct Export {
    /// A recording of numa or of NUMAscope
    #[arg(value_name = "FILE")]
    recording: PathBuf,
    /// The format
    #[arg(long, value_name = "FORMAT")]
    to: Format,
    /// Counters as rates per second instead of raw values (numascope always has rates)
    #[arg(long)]
    rates: bool,
    /// Write to this file, which must not exist, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Format {
    /// Comma-separated values: time and took in ns, label, one column per series
    Csv,
    /// The JSON of the original NUMAscope
    Numascope,
}

impl Export {
    /// Writes.
    pub fn run(self, _: &Global) -> anyhow::Result<ExitCode> {
        let mut reader = Reader::open(&self.recording)?;
        let to: Box<dyn Write> = match &self.output {
            None => Box::new(io::stdout().lock()),
            Some(path) => Box::new(File::create_new(path).with_context(|| {
                format!("cannot write {}; give the name of a file that does not exist", path.display())
            })?),
        };
        let to = BufWriter::new(to);
        match self.to {
            Format::Csv => {
                let header = reader.header().clone();
                let values = if self.rates { csv::Values::Rates } else { csv::Values::Raw };
                let mut writer = csv::Writer::new(to, &header, values)?;
                each(&mut reader, |batch| writer.batch(batch))?;
                writer.finish()?;
            }
            Format::Numascope => numascope_json(to, &mut reader)?,
        }
        match reader.damage() {
            None => Ok(ExitCode::SUCCESS),
            Some(damage) => {
                eprintln!("numa: {}: {damage}", self.recording.display());
                Ok(ExitCode::from(1))
            }
        }
    }
}

/// Writes what is left of a recording in the original's format.
pub(crate) fn numascope_json(to: impl Write, reader: &mut Reader) -> io::Result<()> {
    let header = reader.header().clone();
    let mut writer = numascope::Writer::new(to, &header)?;
    each(reader, |batch| writer.batch(batch))?;
    writer.finish()
}

fn each(reader: &mut Reader, mut write: impl FnMut(&Batch) -> io::Result<()>) -> io::Result<()> {
    while let Some(batch) = reader.next_batch() {
        write(&batch)?;
    }
    Ok(())
}
