//! OpenMetrics text. The format requires that all samples of a family are consecutive. So
//! the default is the last value of every series, as in a scrape, and writing every sample
//! takes several passes over the recording.

mod family;

pub use family::{Dialect, Families, Family, FamilyHead, Stamp, UnitScale, base, escaped};

use crate::{
    ExportError, ExportFormat, ExportOptions, ExportOutput, ExportSource, ExportedValues, Number, Numbers,
};
use numakit_recording::{Batch, Header};

/// Line of the table of formats.
pub const FORMAT: ExportFormat = ExportFormat {
    name: "openmetrics",
    help: "OpenMetrics text: the last sample, or with --all every sample, for promtool",
    extension: "om",
    binary: false,
    judges: false,
    values: &[ExportedValues::Raw, ExportedValues::Rates],
    write,
};

/// Memory for the values of one pass.
const MAX_MEMORY: usize = 64 << 20;

const MS: u64 = 1_000_000;

fn write(
    source: &mut ExportSource,
    options: ExportOptions,
    to: ExportOutput<'_>,
) -> Result<Vec<String>, ExportError> {
    let families = families(&source.header(), options.values);
    let notes = if options.all {
        write_all_samples(source, &families, options.values, MAX_MEMORY, to)?
    } else {
        let latest = latest(source, options.values)?;
        let value = |series: usize| latest.get(series).copied().flatten();
        let stamped = |series| value(series).map(|(number, ns)| (number, Some(Stamp::Nanoseconds(ns))));
        families.write(Dialect::OpenMetrics, stamped, to)?;
        Vec::new()
    };
    to.write_all(b"# EOF\n")?;
    to.flush()?;
    Ok(notes)
}

/// The families of a recording, with the host's name as a label.
pub(crate) fn families(header: &Header, values: ExportedValues) -> Families {
    let host = [("host", header.host.as_str())];
    let constant = if header.host.is_empty() { &[][..] } else { &host };
    Families::new(&header.series, header.page_size, values, constant)
}

/// The last value of every series that has one, with its time in ns.
pub(crate) fn latest(
    source: &mut ExportSource,
    values: ExportedValues,
) -> Result<Vec<Option<(Number, u64)>>, ExportError> {
    let series = &source.header().series;
    let mut numbers = Numbers::new(series, values);
    let mut latest: Vec<Option<(Number, u64)>> = vec![None; series.len()];
    source.each(|batch| {
        for row in samples(batch) {
            let time = batch.time[row];
            for (latest, number) in latest.iter_mut().zip(numbers.row(batch, row)) {
                *latest = number.map(|n| (n, time)).or(*latest);
            }
        }
        Ok::<_, ExportError>(())
    })?;
    Ok(latest)
}

/// Every sample: in each pass as many members of families as fit into `memory` bytes. Times are
/// in ms, as in Prometheus, and increase from sample to sample.
fn write_all_samples(
    source: &mut ExportSource,
    families: &Families,
    values: ExportedValues,
    memory: usize,
    to: ExportOutput<'_>,
) -> Result<Vec<String>, ExportError> {
    let mut times = Times::default();
    source.each(|batch| {
        for row in samples(batch) {
            times.add(batch.time[row]);
        }
        Ok::<_, ExportError>(())
    })?;
    let members: Vec<(&Family, usize)> =
        families.list().iter().flat_map(|f| (0..f.members().len()).map(move |m| (f, m))).collect();
    let width = (memory / size_of::<Option<Number>>() / times.written.len().max(1)).max(1);
    let mut head = None;
    for pass in members.chunks(width) {
        let series: Vec<usize> = pass.iter().map(|(family, member)| family.members()[*member]).collect();
        let columns = columns(source.reopen()?, &series, values, &times)?;
        for ((family, member), column) in pass.iter().zip(columns) {
            for (number, ms) in column.into_iter().zip(&times.written) {
                let Some(number) = number else { continue };
                if head.replace(family.name()) != Some(family.name()) {
                    family.head(Dialect::OpenMetrics, to)?;
                }
                family.sample(*member, number, Some(Stamp::Milliseconds(*ms)), to)?;
            }
        }
    }
    Ok(times.note().into_iter().collect())
}

/// The values of some series at the selected times. Rows that were recorded since then
/// are ignored.
fn columns(
    mut source: ExportSource,
    series: &[usize],
    values: ExportedValues,
    times: &Times,
) -> Result<Vec<Vec<Option<Number>>>, ExportError> {
    let mut numbers = Numbers::new(&source.header().series, values);
    let mut columns = vec![Vec::with_capacity(times.written.len()); series.len()];
    let mut again = Times::default();
    source.each(|batch| {
        for row in samples(batch) {
            let row_numbers = numbers.row(batch, row);
            if again.samples < times.samples && again.add(batch.time[row]) {
                for (column, series) in columns.iter_mut().zip(series) {
                    column.push(row_numbers[*series]);
                }
            }
        }
        Ok::<_, ExportError>(())
    })?;
    Ok(columns)
}

fn samples(batch: &Batch) -> impl Iterator<Item = usize> + '_ {
    (0..batch.len()).filter(|&row| batch.label[row].is_none())
}

/// The times of samples in whole milliseconds, each once.
#[derive(Default)]
struct Times {
    samples: usize,
    written: Vec<u64>,
}

impl Times {
    /// Adds a sample's time; returns whether the sample is written.
    fn add(&mut self, time: u64) -> bool {
        self.samples += 1;
        let ms = time / MS;
        let later = self.written.last().is_none_or(|last| ms > *last);
        if later {
            self.written.push(ms);
        }
        later
    }

    fn note(&self) -> Option<String> {
        let skipped = self.samples - self.written.len();
        (skipped > 0).then(|| {
            format!(
                "{skipped} of {} samples were left out: each is in the same millisecond as the one before, and Prometheus keeps one value per millisecond",
                self.samples
            )
        })
    }
}

#[cfg(test)]
mod tests;
