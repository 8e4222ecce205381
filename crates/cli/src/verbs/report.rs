//! `numa report`.

use crate::GlobalArgs;
use crate::formulas::FormulaArgs;
use crate::global::OF_A_RECORDING;
use clap::Args;
use numakit_analysis::analyse;
use numakit_recording::{Batch, Reader, read_ahead};
use numakit_sys::stdio::print;
use numakit_terminal::report::{PageStyle, page};
use std::path::PathBuf;
use std::process::ExitCode;

/// Analyse a recording on one page
///
/// The first three lines say what is wrong, what it costs and what to do. The findings follow with
/// their numbers, then tables: where memory was used or allocated (by node and phase), page faults,
/// memory, CPUs, the largest changes, the overhead of the recording.
/// A phase lasts from one label to the next; the phase 'command' is that of the observed command.
/// The exit status is 1 if the recording is damaged; the page then covers its undamaged part.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// A recording of numa or NUMAscope
    #[arg(value_name = "FILE")]
    recording: PathBuf,
    /// Analyse only this phase
    #[arg(long, value_name = "LABEL")]
    phase: Option<String>,
    /// List also what is absent or cannot be told, and why
    #[arg(long)]
    all: bool,
    /// Write JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    formulas: FormulaArgs,
}

impl ReportArgs {
    /// Prints the report.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here(OF_A_RECORDING)?;
        let formulas = self.formulas.load()?;
        let mut reader = Reader::open(&self.recording)?;
        let header = reader.header().clone();
        let analyse = |batches: &mut dyn Iterator<Item = Batch>| {
            analyse(&header, batches, self.phase.as_deref(), &formulas)
        };
        let mut report = read_ahead(&mut reader, analyse)?;
        report.losses.damage = reader.damage().map(str::to_owned);
        if self.json {
            print(format_args!("{}\n", serde_json::to_string_pretty(&report)?))?;
        } else {
            let style =
                PageStyle { color: global.color(), terminal: numakit_sys::tty::columns(), all: self.all };
            print(page(&report, style))?;
        }
        Ok(ExitCode::from(u8::from(report.losses.damage.is_some())))
    }
}
