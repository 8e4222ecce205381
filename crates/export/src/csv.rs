//! Comma-separated values: one line per row, a heading of series names.
//!
//! `time` is in ns since 1970 UTC, `took` in ns; a value that was not measured is an empty
//! field; a label has its own line.

use crate::{ExportError, ExportFormat, ExportOptions, ExportOutput, ExportSource, ExportedValues, Numbers};
use numakit_recording::Batch;
use std::borrow::Cow;
use std::io;

/// Line of the table of formats.
pub const FORMAT: ExportFormat = ExportFormat {
    name: "csv",
    help: "comma-separated values: time and took in ns, label, one column per series",
    extension: "csv",
    binary: false,
    judges: false,
    values: &[ExportedValues::Raw, ExportedValues::Rates],
    write,
};

fn write(
    source: &mut ExportSource,
    options: ExportOptions,
    to: ExportOutput<'_>,
) -> Result<Vec<String>, ExportError> {
    let header = source.header();
    write!(to, "time,took,label")?;
    for series in &header.series {
        write!(to, ",{}", quoted(&series.name()))?;
    }
    writeln!(to)?;
    let mut numbers = Numbers::new(&header.series, options.values);
    source.each(|batch| rows(batch, &mut numbers, to))?;
    to.flush()?;
    Ok(Vec::new())
}

fn rows(batch: &Batch, numbers: &mut Numbers, to: ExportOutput<'_>) -> io::Result<()> {
    for row in 0..batch.len() {
        write!(to, "{},{},", batch.time[row], batch.took[row])?;
        if let Some(text) = &batch.label[row] {
            writeln!(to, "{}{}", quoted(text), ",".repeat(batch.columns.len()))?;
            continue;
        }
        for number in numbers.row(batch, row) {
            match number {
                None => to.write_all(b",")?,
                Some(number) => write!(to, ",{number}")?,
            }
        }
        writeln!(to)?;
    }
    Ok(())
}

fn quoted(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\"")).into()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{batch, series, text};
    use numakit_model::Kind;

    #[test]
    fn rows_labels_and_gaps_are_written() {
        let series = series(&[("a.x,y", Kind::Rate), ("a.z", Kind::Gauge)]);
        let mut batch = batch(&[(1000, &[Some(-2i64 as u64), None])]);
        batch.push_label(2000, "say \"hi\"");
        for values in [ExportedValues::Raw, ExportedValues::Rates] {
            let text = text("csv", values, false, &series, &[batch.clone()]);
            assert_eq!(text, "time,took,label,\"a.x,y\",a.z\n1000,5,,-2,\n2000,0,\"say \"\"hi\"\"\",,\n");
        }
    }
}
