//! The text of a recording, and of two that are compared.

use super::ShowArgs;
use crate::GlobalArgs;
use crate::peaks;
use crate::to_file::{self, Existing};
use numakit_findings::comparison::compare;
use numakit_findings::{UnknownPhase, analyse, json, profile};
use numakit_formulas::Catalog;
use numakit_recording::{Batch, Header, Reader, read_ahead};
use numakit_sys::stdio::{note, print};
use numakit_terminal::report::{PageStyle, comparison_page, page};
use serde::Serialize;
use std::path::Path;
use std::process::ExitCode;

impl ShowArgs {
    pub(super) fn recording(
        &self,
        file: &Path,
        formulas: &Catalog,
        global: &GlobalArgs,
    ) -> anyhow::Result<ExitCode> {
        let (mut report, damage) =
            self.read(file, |header, batches, phase| analyse(header, batches, phase, formulas))?;
        report.losses.damage = damage;
        self.write(&report, |report| page(report, self.style(global)))?;
        Ok(ExitCode::from(u8::from(report.losses.damage.is_some())))
    }

    pub(super) fn compare_recordings(
        &self,
        before: &Path,
        after: &Path,
        formulas: &Catalog,
        global: &GlobalArgs,
    ) -> anyhow::Result<ExitCode> {
        let of = |file| self.read(file, |header, batches, phase| profile(header, batches, phase, formulas));
        let ((first, damage_before), (second, damage_after)) = (of(before)?, of(after)?);
        self.write(&compare(&first, &second), |comparison| comparison_page(comparison, self.style(global)))?;
        let damaged = [(before, damage_before), (after, damage_after)];
        let damaged = damaged.iter().filter_map(|(file, damage)| Some((file, damage.as_ref()?)));
        let count =
            damaged.clone().map(|(file, why)| note(format_args!("{}: {why}", file.display()))).count();
        Ok(ExitCode::from(u8::from(count > 0)))
    }

    fn style(&self, global: &GlobalArgs) -> PageStyle {
        PageStyle { color: global.color(), terminal: numakit_sys::tty::columns(), all: self.all }
    }

    fn write<T: Serialize>(&self, value: &T, page: impl Fn(&T) -> String) -> anyhow::Result<()> {
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
