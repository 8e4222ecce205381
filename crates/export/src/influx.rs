//! InfluxDB's line protocol: one line per sample, sensor, instance and kind.
//!
//! The measurement is the sensor; tags are the host, the instance (`node=0`) and the kind; fields
//! are the metrics; times are in ns. Labels are strings in the measurement `label`.
//!
//! The first line fixes the type of a field, whatever its tags. So raw values are
//! signed integers of 64 bits, the only type that all servers accept, and values per second are
//! floats with their own name.

use crate::instance_label::instance_label;
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
    help: "InfluxDB line protocol: a measurement per sensor, a field per metric",
    extension: "lp",
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
    let mut writer = Lines::new(&header, options.values);
    source.each(|batch| writer.batch(batch, to))?;
    to.flush()?;
    Ok(writer.note().into_iter().collect())
}

/// Where the raw values of a series are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InfluxPlace {
    /// The measurement.
    pub measurement: String,
    /// The tag of the instance, with its name; `None` for the machine.
    pub instance: Option<(String, String)>,
    /// The tag `kind`.
    pub kind: &'static str,
    /// The field.
    pub field: String,
}

impl InfluxPlace {
    /// The place of a series that shares its field with no other.
    pub fn of(series: &Series) -> Self {
        let per_second = ExportedValues::Raw.are_per_second(series.metric.kind);
        Self {
            measurement: word(series.metric.sensor()),
            instance: instance_label(series.instance),
            kind: if per_second { "rate" } else { series.metric.kind.name() },
            field: field_key(series.metric.bare(), per_second),
        }
    }
}

struct Lines {
    numbers: Numbers,
    /// Which series are per second.
    per_second: Vec<bool>,
    lines: Vec<Line>,
    /// The beginning of the lines of labels.
    label: String,
    fields: Vec<u8>,
    /// Number of values that the format cannot represent.
    skipped: u64,
}

/// The series that share measurement and tags.
struct Line {
    begin: String,
    /// Index of the series and its key with the equals sign.
    fields: Vec<(usize, String)>,
}

impl Line {
    /// Adds a field; a duplicate key is numbered.
    fn add(&mut self, index: usize, key: &str) {
        let exists = |key: &str| self.fields.iter().any(|(_, other)| other == key);
        let numbered = (2..).map(|number| format!("{key}_{number}="));
        let key = std::iter::once(format!("{key}=")).chain(numbered).find(|key| !exists(key));
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
            skipped: 0,
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
                    self.skipped += u64::from(!field(key, number, per_second, &mut self.fields)?);
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
        (self.skipped > 0).then(|| {
            format!(
                "{} values were left out: they are above {}, the maximum integer of this format",
                self.skipped,
                i64::MAX
            )
        })
    }
}

/// Appends a field; false if the integer cannot be represented.
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

/// The key of a metric's field. Servers refuse a field named `time`.
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
    let place = instance_label(series.instance).map(|(word, number)| format!(",{word}={number}"));
    let kind = if values.are_per_second(series.metric.kind) { "rate" } else { series.metric.kind.name() };
    format!("{}{host}{},kind={kind} ", word(series.metric.sensor()), place.unwrap_or_default())
}

/// The name of a measurement or a field: letters, digits and underscores, since servers are stricter
/// than the protocol. `Active(anon)` is `Active_anon`.
fn word(name: &str) -> String {
    let parts = name.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|part| !part.is_empty());
    let word = parts.collect::<Vec<_>>().join("_");
    if word.is_empty() { "_".into() } else { word }
}

/// The value of a tag as it is written, never empty. Characters that are not allowed there (backslashes, control
/// characters) become underscores.
pub fn tag(value: &str) -> String {
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

/// The content of a quoted string, on one line.
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
