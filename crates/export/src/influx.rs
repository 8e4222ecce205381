//! InfluxDB's line protocol: one line per sample, sensor, place and kind.
//!
//! The measurement is the sensor; tags are the host, the place (`node=0`) and the kind; fields
//! are the metrics; times are in ns. Labels are strings in the measurement `label`.
//!
//! A field has one type for ever, whatever its tags: the first line decides. So what was read is an
//! integer of 64 bits with a sign, the only kind that all servers take, and what is per second is a
//! float under a name of its own.

use crate::place::place;
use crate::{
    ExportError, ExportFormat, ExportOptions, ExportOutput, ExportSource, ExportedValues, Number, Numbers,
};
use numakit_model::Series;
use numakit_recording::{Batch, Header};
use std::collections::HashMap;
use std::io::{self, Write};

/// Line of the table of formats.
pub const FORMAT: ExportFormat = ExportFormat {
    name: "influx",
    help: "line protocol of InfluxDB: a measurement per sensor, a field per metric",
    extension: "lp",
    binary: false,
    values: &[ExportedValues::Raw, ExportedValues::Rates],
    write,
};

fn write(
    source: &mut ExportSource,
    options: ExportOptions,
    to: ExportOutput<'_>,
) -> Result<Vec<String>, ExportError> {
    let header = source.header();
    let mut writer = Lines::new(&header, options.values);
    source.each(|batch| writer.batch(batch, to))?;
    to.flush()?;
    Ok(writer.note().into_iter().collect())
}

struct Lines {
    numbers: Numbers,
    /// Which series are per second.
    per_second: Vec<bool>,
    lines: Vec<Line>,
    /// The beginning of the lines of labels.
    label: String,
    fields: Vec<u8>,
    /// Values that the format cannot hold.
    left_out: u64,
}

/// The series that share measurement and tags.
struct Line {
    begin: String,
    /// Index of the series and its key with the equals sign.
    fields: Vec<(usize, String)>,
}

impl Line {
    /// Adds a field; one whose key is taken is numbered.
    fn add(&mut self, index: usize, key: &str) {
        let taken = |key: &str| self.fields.iter().any(|(_, other)| other == key);
        let numbered = (2..).map(|number| format!("{key}_{number}="));
        let key = std::iter::once(format!("{key}=")).chain(numbered).find(|key| !taken(key));
        self.fields.extend(key.map(|key| (index, key)));
    }
}

impl Lines {
    fn new(header: &Header, values: ExportedValues) -> Self {
        let host =
            if header.host.is_empty() { String::new() } else { format!(",host={}", tag(&header.host)) };
        let mut lines: Vec<Line> = Vec::new();
        let mut known = HashMap::new();
        for (index, series) in header.series.iter().enumerate() {
            let begin = begin_of(series, &host, values);
            let per_second = values.are_per_second(series.metric.kind);
            let key = field_key(series.metric.bare(), per_second);
            let at = *known.entry(begin.clone()).or_insert(lines.len());
            if at == lines.len() {
                lines.push(Line { begin, fields: Vec::new() });
            }
            lines[at].add(index, &key);
        }
        let numbers = Numbers::new(&header.series, values);
        let per_second = header.series.iter().map(|s| values.are_per_second(s.metric.kind)).collect();
        Self {
            numbers,
            per_second,
            lines,
            label: format!("label{host} text="),
            fields: Vec::new(),
            left_out: 0,
        }
    }

    fn batch(&mut self, batch: &Batch, to: ExportOutput<'_>) -> io::Result<()> {
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
                    let Some(number) = numbers[*index] else { continue };
                    let per_second = self.per_second[*index];
                    self.left_out += u64::from(!field(key, number, per_second, &mut self.fields)?);
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

    fn note(&self) -> Option<String> {
        (self.left_out > 0).then(|| {
            format!("{} values were left out: the integers of this format end at {}", self.left_out, i64::MAX)
        })
    }
}

/// Adds a field; false where there is no such integer.
fn field(key: &str, number: Number, per_second: bool, to: &mut Vec<u8>) -> io::Result<bool> {
    let integer = match number {
        Number::Unsigned(value) => i64::try_from(value).ok(),
        Number::Signed(value) => Some(value),
        Number::Float(_) => None,
    };
    match (per_second, integer) {
        (true, _) => write!(to, ",{key}{}", number.float())?,
        (false, Some(value)) => write!(to, ",{key}{value}i")?,
        (false, None) => return Ok(false),
    }
    Ok(true)
}

/// The key of a metric's field. No server takes a field that is called `time`.
fn field_key(name: &str, per_second: bool) -> String {
    let key = word(name);
    match key.as_str() {
        _ if per_second => format!("{key}_per_second"),
        "time" => "time_".into(),
        name if name.ends_with("_per_second") => format!("{key}_"),
        _ => key,
    }
}

fn begin_of(series: &Series, host: &str, values: ExportedValues) -> String {
    let place = place(series.instance).map(|(word, number)| format!(",{word}={number}"));
    let kind = if values.are_per_second(series.metric.kind) { "rate" } else { series.metric.kind.name() };
    format!("{}{host}{},kind={kind} ", word(series.metric.sensor()), place.unwrap_or_default())
}

/// The name of a measurement or a field: letters, digits and underscores, since servers refuse more
/// than the protocol does. `Active(anon)` is `Active_anon`.
fn word(name: &str) -> String {
    let parts = name.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|part| !part.is_empty());
    let word = parts.collect::<Vec<_>>().join("_");
    if word.is_empty() { "_".into() } else { word }
}

/// The value of a tag: never empty. What the protocol cannot hold there (backslashes, control
/// characters) is an underscore.
fn tag(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
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
