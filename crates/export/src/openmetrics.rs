//! OpenMetrics text. All samples of a family stand together, which is a rule of the format: so
//! the default is the last value of every series, as a scrape would give it, and every sample
//! takes several passes over the recording.

mod family;

pub use family::{Dialect, Families, Family, Stamp};

use crate::{
    ExportError, ExportFormat, ExportOptions, ExportOutput, ExportSource, ExportedValues, Number, Numbers,
};
use numakit_recording::{Batch, Header};

/// Line of the table of formats.
pub const FORMAT: ExportFormat = ExportFormat {
    name: "openmetrics",
    help: "OpenMetrics text: the last sample, or all of them for promtool with --all",
    extension: "om",
    binary: false,
    values: &[ExportedValues::Raw, ExportedValues::Rates],
    write,
};

/// Memory for the values of one pass.
const HELD: usize = 64 << 20;

const MS: u64 = 1_000_000;

fn write(
    source: &mut ExportSource,
    options: ExportOptions,
    to: ExportOutput<'_>,
) -> Result<Vec<String>, ExportError> {
    let families = families(&source.header(), options.values);
    let notes = if options.all {
        every(source, &families, options.values, HELD, to)?
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

/// The families of a recording, each sample with the host's name.
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

/// Every sample: as many members of families in a pass as fit into so much memory. Times are
/// in ms, as Prometheus keeps them, and rise from sample to sample.
fn every(
    source: &mut ExportSource,
    families: &Families,
    values: ExportedValues,
    held: usize,
    to: ExportOutput<'_>,
) -> Result<Vec<String>, ExportError> {
    let mut times = Times::default();
    source.each(|batch| {
        for row in samples(batch) {
            times.take(batch.time[row]);
        }
        Ok::<_, ExportError>(())
    })?;
    let members: Vec<(&Family, usize)> =
        families.list().iter().flat_map(|f| (0..f.members().len()).map(move |m| (f, m))).collect();
    let wide = (held / size_of::<Option<Number>>() / times.kept.len().max(1)).max(1);
    let mut head = None;
    for pass in members.chunks(wide) {
        let series: Vec<usize> = pass.iter().map(|(family, member)| family.members()[*member]).collect();
        let columns = columns(source.again()?, &series, values, &times)?;
        for ((family, member), column) in pass.iter().zip(columns) {
            for (number, ms) in column.into_iter().zip(&times.kept) {
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

/// The values of some series at the times that were kept. Rows that came to the recording since
/// are not looked at.
fn columns(
    mut source: ExportSource,
    series: &[usize],
    values: ExportedValues,
    times: &Times,
) -> Result<Vec<Vec<Option<Number>>>, ExportError> {
    let mut numbers = Numbers::new(&source.header().series, values);
    let mut columns = vec![Vec::with_capacity(times.kept.len()); series.len()];
    let mut again = Times::default();
    source.each(|batch| {
        for row in samples(batch) {
            let row_numbers = numbers.row(batch, row);
            if again.seen < times.seen && again.take(batch.time[row]) {
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
    seen: usize,
    kept: Vec<u64>,
}

impl Times {
    /// Whether the sample of that time is kept.
    fn take(&mut self, time: u64) -> bool {
        self.seen += 1;
        let ms = time / MS;
        let later = self.kept.last().is_none_or(|last| ms > *last);
        if later {
            self.kept.push(ms);
        }
        later
    }

    fn note(&self) -> Option<String> {
        let left_out = self.seen - self.kept.len();
        (left_out > 0).then(|| {
            format!(
                "{left_out} of {} samples were left out: each fell into the millisecond of the one before, and Prometheus keeps one value a millisecond",
                self.seen
            )
        })
    }
}

#[cfg(test)]
mod tests;
