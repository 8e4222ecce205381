//! InfluxDB's line protocol: one line per sample, sensor, place and kind.
//!
//! The measurement is the sensor; tags are the host, the place (`node=0`) and the kind; fields
//! are the metrics; times are in ns. Labels are strings in the measurement `label`.

use crate::place::place;
use crate::{ExportError, Format, Number, Numbers, Options, Output, Source, Values};
use numakit_model::Series;
use numakit_recording::{Batch, Header};
use std::collections::HashMap;
use std::io::{self, Write};

/// Line of the table of formats.
pub const FORMAT: Format = Format {
    name: "influx",
    help: "line protocol of InfluxDB: a measurement per sensor, a field per metric",
    extension: "lp",
    binary: false,
    values: &[Values::Raw, Values::Rates],
    write,
};

fn write(source: &mut Source, options: Options, to: Output<'_>) -> Result<Vec<String>, ExportError> {
    let header = source.header();
    let mut writer = Lines::new(&header, options.values);
    source.each(|batch| writer.batch(batch, to))?;
    to.flush()?;
    Ok(Vec::new())
}

struct Lines {
    numbers: Numbers,
    lines: Vec<Line>,
    /// The beginning of the lines of labels.
    label: String,
    fields: Vec<u8>,
}

/// The series that share measurement and tags.
struct Line {
    begin: String,
    /// Index of the series and its key with the equals sign.
    fields: Vec<(usize, String)>,
}

impl Lines {
    fn new(header: &Header, values: Values) -> Self {
        let host =
            if header.host.is_empty() { String::new() } else { format!(",host={}", key(&header.host)) };
        let mut lines: Vec<Line> = Vec::new();
        let mut known = HashMap::new();
        for (index, series) in header.series.iter().enumerate() {
            let begin = begin_of(series, &host, values);
            let field = (index, format!("{}=", key(series.metric.bare())));
            let at = *known.entry(begin.clone()).or_insert(lines.len());
            match lines.get_mut(at) {
                Some(line) => line.fields.push(field),
                None => lines.push(Line { begin, fields: vec![field] }),
            }
        }
        let numbers = Numbers::new(&header.series, values);
        Self { numbers, lines, label: format!("label{host} text="), fields: Vec::new() }
    }

    fn batch(&mut self, batch: &Batch, to: Output<'_>) -> io::Result<()> {
        for row in 0..batch.len() {
            let time = batch.time[row];
            if let Some(text) = &batch.label[row] {
                writeln!(to, "{}\"{}\" {time}", self.label, string(text))?;
                continue;
            }
            let numbers = self.numbers.row(batch, row);
            for line in &self.lines {
                self.fields.clear();
                for (index, key) in &line.fields {
                    if let Some(number) = numbers[*index] {
                        field(key, number, &mut self.fields)?;
                    }
                }
                if let [b',', fields @ ..] = &self.fields[..] {
                    to.write_all(line.begin.as_bytes())?;
                    to.write_all(fields)?;
                    writeln!(to, " {time}")?;
                }
            }
        }
        Ok(())
    }
}

fn field(key: &str, number: Number, to: &mut Vec<u8>) -> io::Result<()> {
    to.push(b',');
    to.write_all(key.as_bytes())?;
    match number {
        Number::Unsigned(value) => write!(to, "{value}u"),
        Number::Signed(value) => write!(to, "{value}i"),
        Number::Float(value) => write!(to, "{value}"),
    }
}

fn begin_of(series: &Series, host: &str, values: Values) -> String {
    let place = place(series.instance).map(|(word, number)| format!(",{word}={number}"));
    let kind = if values.are_per_second(series.metric.kind) { "rate" } else { series.metric.kind.name() };
    format!("{}{host}{},kind={kind} ", measurement(series.metric.sensor()), place.unwrap_or_default())
}

/// A measurement. A line that begins with `#` would be a comment.
fn measurement(name: &str) -> String {
    let name = key(name.strip_prefix('#').unwrap_or(name)).replace("\\=", "=");
    if name.starts_with('#') { format!("_{name}") } else { name }
}

/// A key of a field or the value of a tag: never empty. What the protocol cannot hold there
/// (backslashes, control characters) is an underscore.
fn key(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            ',' | '=' | ' ' => escaped.extend(['\\', c]),
            '\\' => escaped.push('_'),
            c if c.is_control() => escaped.push('_'),
            c => escaped.push(c),
        }
    }
    if escaped.is_empty() { "_".into() } else { escaped }
}

/// A string between quotes, on one line.
fn string(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => escaped.extend(['\\', c]),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
