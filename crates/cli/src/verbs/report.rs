//! `numa report`.

use crate::formulas::FormulaArgs;
use crate::global::OF_A_RECORDING;
use crate::peaks;
use crate::to_file::{self, Existing};
use crate::{Examples, GlobalArgs};
use clap::Args;
use numakit_findings::comparison::compare;
use numakit_findings::{UnknownPhase, analyse, json, profile};
use numakit_recording::{Batch, Header, Reader, read_ahead};
use numakit_sys::stdio::{note, print};
use numakit_terminal::report::{PageStyle, comparison_page, page};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Analyse a recording, or compare two, on one page
///
/// The first three lines say what is wrong, what it costs and what to do. The findings follow with
/// their numbers, then tables: where memory was used or allocated (by node and phase), page faults,
/// memory, CPUs, the largest changes, the overhead of the recording.
/// A phase lasts from one label to the next; the phase 'command' is that of the observed command.
///
/// Of two recordings, A and B, the first three lines say whether B is better, by how much, and what to do.
/// Tables of what differs follow, each with its noise, then which findings are gone and which are new.
///
/// The exit status is 1 if a recording is damaged; the page then covers its undamaged part.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// A recording of numa or NUMAscope
    #[arg(value_name = "FILE")]
    recording: PathBuf,
    /// Compare the first recording, A, with this one, B
    #[arg(value_name = "B")]
    other: Option<PathBuf>,
    /// Analyse only this phase
    #[arg(long, value_name = "LABEL")]
    phase: Option<String>,
    /// List also what is absent or cannot be told, and why; of two recordings, all differences
    #[arg(long)]
    all: bool,
    /// Write JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    formulas: FormulaArgs,
}

impl ReportArgs {
    /// The first lines of its help.
    pub const EXAMPLES: Examples = [
        ("numa report numa-1.arrows", "what is wrong, what it costs, what to do"),
        ("numa report before.arrows after.arrows", "whether the second one is better"),
    ];

    /// Prints the report.
    pub fn run(self, global: &GlobalArgs) -> anyhow::Result<ExitCode> {
        global.only_here(OF_A_RECORDING)?;
        let formulas = self.formulas.load()?;
        let style = PageStyle { color: global.color(), terminal: numakit_sys::tty::columns(), all: self.all };
        let Some(other) = &self.other else {
            let (mut report, damage) = self
                .read(&self.recording, |header, batches, phase| analyse(header, batches, phase, &formulas))?;
            report.losses.damage = damage;
            self.show(&report, |report| page(report, style))?;
            return Ok(ExitCode::from(u8::from(report.losses.damage.is_some())));
        };
        let of = |file| self.read(file, |header, batches, phase| profile(header, batches, phase, &formulas));
        let (before, damage_before) = of(&self.recording)?;
        let (after, damage_after) = of(other)?;
        self.show(&compare(&before, &after), |comparison| comparison_page(comparison, style))?;
        let damaged = [(&self.recording, damage_before), (other, damage_after)];
        let damaged = damaged.iter().filter_map(|(file, damage)| Some((file, damage.as_ref()?)));
        let count =
            damaged.clone().map(|(file, why)| note(format_args!("{}: {why}", file.display()))).count();
        Ok(ExitCode::from(u8::from(count > 0)))
    }

    fn show<T: Serialize>(&self, value: &T, page: impl Fn(&T) -> String) -> anyhow::Result<()> {
        if self.json {
            let output = Path::new("-");
            return to_file::write(output, Existing::Keep, "", |to| Ok(json::write(value, to)?));
        }
        Ok(print(page(value))?)
    }

    /// What `with` makes of the rows of a recording, and what was damaged.
    fn read<T>(
        &self,
        file: &Path,
        with: impl Fn(&Header, &mut dyn Iterator<Item = Batch>, Option<&str>) -> Result<T, UnknownPhase>,
    ) -> anyhow::Result<(T, Option<String>)> {
        let mut reader = Reader::open(file)?;
        let mut header = reader.header().clone();
        peaks::add_to_recording(&mut header);
        let made = read_ahead(&mut reader, |batches| with(&header, batches, self.phase.as_deref()))?;
        Ok((made, reader.damage().map(str::to_owned)))
    }
}
