//! Families of OpenMetrics: writes values from any source as text.

use crate::instance_label::instance_label;
use crate::{ExportOutput, ExportedValues, Number};
use numakit_model::{Metric, Series, Unit};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::io;

/// The families of some series, in their order.
#[derive(Debug)]
pub struct Families(Vec<Family>);

/// The series of one metric: one name, one unit, different labels.
#[derive(Debug)]
pub struct Family {
    name: String,
    counter: bool,
    unit: String,
    help: String,
    scale: UnitScale,
    members: Vec<usize>,
    /// The start of each member's lines: name of the sample and labels.
    begins: Vec<String>,
    /// Each member's place, such as the node.
    places: Vec<Option<(String, String)>>,
}

/// The two text formats that Prometheus reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// OpenMetrics: with units, and an end mark.
    OpenMetrics,
    /// The older Prometheus format: a counter is described under the name of its samples.
    Prometheus,
}

/// When a value was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamp {
    /// Since 1970 UTC.
    Nanoseconds(u64),
    /// Since 1970 UTC, for readers with this resolution.
    Milliseconds(u64),
}

/// From a metric's unit to the base unit of the format, without rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnitScale {
    /// Multiply by this.
    Times(u64),
    /// Move the point by this number of digits.
    Decimals(u8),
}

/// What describes a family before its samples.
#[derive(Debug, Clone, Copy)]
pub struct FamilyHead<'a> {
    /// The name, without the suffix of counters' samples.
    pub name: &'a str,
    /// Whether it counts.
    pub counter: bool,
    /// The base unit; empty if it has none.
    pub unit: &'a str,
    /// One sentence.
    pub help: &'a str,
}

impl FamilyHead<'_> {
    /// The end of the names of counters' samples.
    pub fn suffix(&self) -> &'static str {
        if self.counter { "_total" } else { "" }
    }

    /// Writes the metadata.
    pub fn write(&self, dialect: Dialect, to: ExportOutput<'_>) -> io::Result<()> {
        let (name, kind) = (self.name, if self.counter { "counter" } else { "gauge" });
        if dialect == Dialect::Prometheus {
            let total = self.suffix();
            // Quotes are not escaped in this format.
            let help = self.help.replace('\\', "\\\\").replace('\n', "\\n");
            writeln!(to, "# HELP {name}{total} {help}")?;
            return writeln!(to, "# TYPE {name}{total} {kind}");
        }
        writeln!(to, "# TYPE {name} {kind}")?;
        if !self.unit.is_empty() {
            writeln!(to, "# UNIT {name} {}", self.unit)?;
        }
        writeln!(to, "# HELP {name} {}", escaped(self.help))
    }
}

impl Families {
    /// Families of these series. Pages become bytes if the page size is not 0. The constant
    /// labels are added to every sample.
    pub fn new(series: &[Series], page_size: u64, values: ExportedValues, constant: &[(&str, &str)]) -> Self {
        let mut families: Vec<Family> = Vec::new();
        let mut names = HashSet::new();
        let mut known = HashMap::new();
        let mut members = HashSet::new();
        let constant: Vec<String> =
            constant.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        for (index, series) in series.iter().enumerate() {
            let metric = &series.metric;
            let at = *known.entry(metric.name.as_str()).or_insert(families.len());
            if at == families.len() {
                families.push(Family::new(metric, page_size, values, &mut names));
            }
            if members.insert((at, series.instance)) {
                families[at].add(index, series, &constant);
            }
        }
        Self(families)
    }

    /// All of them.
    pub fn list(&self) -> &[Family] {
        &self.0
    }

    /// Writes one value of each series that has one, with its time if given. The caller writes the
    /// end mark `# EOF`.
    pub fn write(
        &self,
        dialect: Dialect,
        value: impl Fn(usize) -> Option<(Number, Option<Stamp>)>,
        to: ExportOutput<'_>,
    ) -> io::Result<()> {
        for family in &self.0 {
            let mut has_head = false;
            for (member, series) in family.members.iter().enumerate() {
                let Some((number, stamp)) = value(*series) else { continue };
                if !std::mem::replace(&mut has_head, true) {
                    family.head(dialect, to)?;
                }
                family.sample(member, number, stamp, to)?;
            }
        }
        Ok(())
    }
}

impl Family {
    fn new(metric: &Metric, page_size: u64, values: ExportedValues, names: &mut HashSet<String>) -> Self {
        let per_second = values.are_per_second(metric.kind);
        let counter = metric.kind.name() == "counter" && !per_second;
        let (mut unit, scale) = base(metric.unit, page_size);
        if per_second {
            unit = if unit.is_empty() { "per_second".into() } else { format!("{unit}_per_second") };
        }
        // Only samples of counters end in `_total`.
        let mut stem = word(&format!("numakit_{}", metric.name));
        stem.truncate(stem.trim_end_matches("_total").len());
        if let Some(bare) = stem.strip_suffix(&unit).and_then(|s| s.strip_suffix('_')) {
            stem.truncate(bare.len());
        }
        let mut name = joined(&stem, &unit);
        let mut copy = 1;
        while !reserve(&name, counter, names) {
            copy += 1;
            name = joined(&format!("{stem}_{copy}"), &unit);
        }
        let help = metric.help.clone();
        Self { name, counter, unit, help, scale, members: Vec::new(), begins: Vec::new(), places: Vec::new() }
    }

    fn add(&mut self, index: usize, series: &Series, constant: &[String]) {
        let mut labels = constant.to_vec();
        let place = instance_label(series.instance);
        labels.extend(place.as_ref().map(|(word, number)| format!("{word}=\"{number}\"")));
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let total = if self.counter { "_total" } else { "" };
        self.members.push(index);
        self.begins.push(format!("{}{total}{labels}", self.name));
        self.places.push(place);
    }

    /// The name, without the suffix of counters' samples.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of its samples.
    pub fn sample_name(&self) -> String {
        format!("{}{}", self.name, if self.counter { "_total" } else { "" })
    }

    /// Whether it only grows.
    pub fn is_counter(&self) -> bool {
        self.counter
    }

    /// The base unit; empty for counts.
    pub fn unit(&self) -> &str {
        &self.unit
    }

    /// One sentence.
    pub fn help(&self) -> &str {
        &self.help
    }

    /// The name and the number of a member's place, such as those of its node; `None` for the machine.
    pub fn place(&self, member: usize) -> Option<(&str, &str)> {
        let (word, number) = self.places.get(member)?.as_ref()?;
        Some((word, number))
    }

    /// A value in the base unit: an integer where the unit allows it and it fits.
    pub fn scaled(&self, number: Number) -> Number {
        match (self.scale, number) {
            (UnitScale::Times(factor), Number::Unsigned(value)) => value
                .checked_mul(factor)
                .map_or(Number::Float(value as f64 * factor as f64), Number::Unsigned),
            (UnitScale::Times(factor), Number::Signed(value)) => i64::try_from(factor)
                .ok()
                .and_then(|factor| value.checked_mul(factor))
                .map_or(Number::Float(value as f64 * factor as f64), Number::Signed),
            (UnitScale::Times(factor), Number::Float(value)) => Number::Float(value * factor as f64),
            (UnitScale::Decimals(digits), number) => {
                Number::Float(number.float() / 10f64.powi(digits.into()))
            }
        }
    }

    /// The raw word of a value in the base unit, as an integer of the metric's own unit; the inverse of [`Family::scaled`].
    pub fn unscaled(&self, value: f64) -> Option<u64> {
        let raw = match self.scale {
            UnitScale::Times(factor) => value / factor.max(1) as f64,
            UnitScale::Decimals(digits) => value * 10f64.powi(digits.into()),
        };
        let raw = raw.round();
        // Floats convert to the nearest integer that exists.
        raw.is_finite().then_some(if raw < 0.0 { raw as i64 as u64 } else { raw as u64 })
    }

    /// The indices of its series.
    pub fn members(&self) -> &[usize] {
        &self.members
    }

    /// Writes the metadata before the samples.
    pub fn head(&self, dialect: Dialect, to: ExportOutput<'_>) -> io::Result<()> {
        let Self { name, counter, unit, help, .. } = self;
        FamilyHead { name, counter: *counter, unit, help }.write(dialect, to)
    }

    /// Writes a sample of a member.
    pub fn sample(
        &self,
        member: usize,
        number: Number,
        stamp: Option<Stamp>,
        to: ExportOutput<'_>,
    ) -> io::Result<()> {
        let Some(begin) = self.begins.get(member) else { return Ok(()) };
        write!(to, "{begin} ")?;
        self.scale.write(number, to)?;
        match stamp {
            None => writeln!(to),
            Some(Stamp::Nanoseconds(ns)) => writeln!(to, " {}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000),
            Some(Stamp::Milliseconds(ms)) => writeln!(to, " {}.{:03}", ms / 1000, ms % 1000),
        }
    }
}

impl UnitScale {
    /// Writes a number in the base unit.
    pub fn write(self, number: Number, to: ExportOutput<'_>) -> io::Result<()> {
        let (minus, value) = match number {
            Number::Float(value) => {
                return match self {
                    Self::Times(factor) => write!(to, "{}", value * factor as f64),
                    Self::Decimals(digits) => write!(to, "{}", value / 10f64.powi(digits.into())),
                };
            }
            Number::Unsigned(value) => ("", value),
            Number::Signed(value) => (if value < 0 { "-" } else { "" }, value.unsigned_abs()),
        };
        match self {
            Self::Times(factor) => write!(to, "{minus}{}", u128::from(value) * u128::from(factor)),
            Self::Decimals(digits) => {
                let (one, digits) = (10u64.pow(digits.into()), usize::from(digits));
                let mut fraction = format!(".{:0digits$}", value % one);
                fraction.truncate(fraction.trim_end_matches('0').trim_end_matches('.').len());
                write!(to, "{minus}{}{fraction}", value / one)
            }
        }
    }
}

/// The base unit of the format and the scale; the name is empty for counts.
pub fn base(unit: Unit, page_size: u64) -> (String, UnitScale) {
    let (name, scale) = match unit {
        Unit::Ticks => ("seconds", UnitScale::Decimals(2)),
        Unit::Milliseconds => ("seconds", UnitScale::Decimals(3)),
        Unit::Microseconds => ("seconds", UnitScale::Decimals(6)),
        Unit::Nanoseconds => ("seconds", UnitScale::Decimals(9)),
        Unit::Count => ("", UnitScale::Times(1)),
        unit => match unit.bytes(page_size).filter(|&bytes| bytes > 0) {
            Some(bytes) => ("bytes", UnitScale::Times(bytes)),
            None => (unit.name(), UnitScale::Times(1)),
        },
    };
    (word(name), scale)
}

/// Reserves the names of all samples of a family; false if one is in use.
fn reserve(name: &str, counter: bool, names: &mut HashSet<String>) -> bool {
    let suffixes: &[&str] = if counter { &["", "_total", "_created"] } else { &[""] };
    let wanted: Vec<String> = suffixes.iter().map(|suffix| format!("{name}{suffix}")).collect();
    if wanted.iter().any(|name| names.contains(name)) {
        return false;
    }
    names.extend(wanted);
    true
}

fn joined(stem: &str, unit: &str) -> String {
    if unit.is_empty() { stem.to_owned() } else { format!("{stem}_{unit}") }
}

/// Words that checkers mistake for units, and what they mean here.
const SPELLED_OUT: [(&str, &str); 1] = [("sec", "secondary")];

/// Lower-case letters, digits and single underscores: `node.Active(anon)` is `node_active_anon`, and
/// `numaconnect2.n2CachelinesSent` is `numaconnect2_n2_cachelines_sent`.
fn word(name: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for c in name.chars() {
        let begins = c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit());
        if c.is_ascii_alphanumeric() {
            match words.last_mut() {
                Some(word) if before.is_ascii_alphanumeric() && !begins => word.push(c.to_ascii_lowercase()),
                _ => words.push(c.to_ascii_lowercase().to_string()),
            }
        }
        before = c;
    }
    let spelled = |word: &String| SPELLED_OUT.iter().find(|(short, _)| short == word).map(|(_, long)| *long);
    words.iter().map(|word| spelled(word).unwrap_or(word)).collect::<Vec<_>>().join("_")
}

/// The value of a label.
pub fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => escaped.push_str("\\n"),
            '"' | '\\' => drop(write!(escaped, "\\{c}")),
            c => escaped.push(c),
        }
    }
    escaped
}
