//! The table of `numa stat`: turns rows of samples into lines of text.

mod follow;
mod formulas;
mod guide;
mod original;
mod series;

pub use follow::follow;
pub use formulas::{HiddenFormula, needed_by};
pub use guide::{guide, help};

use crate::columns::{Per, columns, index, number_style};
use crate::table::{ColumnHead, TableLayout};
use numakit_formulas::{BoundFormula, Catalog, Index};
use numakit_model::label::{RESERVED, RecorderEvent};
use numakit_model::numbers::{NumberStyle, clock, plain};
use numakit_model::{CpuSet, Instance, Kind, Series, Topology};
use numakit_recording::{Header, Rates};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use thiserror::Error;

/// How the table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFormat {
    /// For people.
    Text,
    /// Comma-separated values, one line per sample or label.
    Csv,
    /// One JSON object per line.
    Json,
    /// The format of the original NUMAscope: names, and integers below them, without times.
    Original,
}

/// What the columns are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatColumns<'a> {
    /// The default columns.
    Columns,
    /// The series of the header, which were selected one by one.
    Series,
    /// The formulas of these names.
    Formulas(&'a [String]),
}

/// What the table shows and how.
#[derive(Debug, Clone, Copy)]
pub struct StatOptions<'a> {
    /// What each line is about. `None`: the machine, or with selected series one column each.
    pub per: Option<Per>,
    /// What the columns are.
    pub show: StatColumns<'a>,
    /// How it is written.
    pub format: TableFormat,
    /// Whether text has colours.
    pub color: bool,
    /// Text has only the columns that fit this width; `None`: all.
    pub width: Option<usize>,
    /// Lines of text from one heading to the next: the height of the terminal, or 20.
    pub repeat: usize,
}

impl Default for StatOptions<'_> {
    fn default() -> Self {
        Self {
            per: None,
            show: StatColumns::Columns,
            format: TableFormat::Text,
            color: false,
            width: None,
            repeat: 20,
        }
    }
}

/// Why there is nothing to show.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum StatError {
    /// There are no series per this unit.
    #[error("no series is measured per {0}; use --per machine, or see 'numa doctor'")]
    NoPlaces(&'static str),
    /// None of the default columns is measured.
    #[error(
        "none of the columns of 'numa stat' can be measured here; select series with -e (see 'numa list'), or see 'numa doctor'"
    )]
    NoColumns,
    /// Selected series that no line can show.
    #[error("none of the selected series can be shown per {0}; omit --per")]
    NotPer(&'static str),
    /// A selected formula.
    #[error(transparent)]
    Formula(#[from] HiddenFormula),
}

/// A column of this table: a value for each line of a sample.
#[derive(Debug)]
struct ValueColumn {
    /// Name in CSV and JSON, before the instance.
    name: String,
    head: ColumnHead,
    quantity: NumberStyle,
    bound: Vec<Option<BoundFormula>>,
}

/// Turns samples and labels into lines.
#[derive(Debug)]
pub struct StatTable {
    format: TableFormat,
    color: bool,
    repeat: usize,
    places: Vec<Instance>,
    columns: Vec<ValueColumn>,
    layout: TableLayout,
    rates: Rates,
    /// Whether a line needs the difference of two samples.
    needs_two: bool,
    /// No line since the start or the last gap.
    fresh: bool,
    started: Option<u64>,
    /// Lines since the last headings; `None` before the first.
    lines: Option<usize>,
    keys: Vec<String>,
    /// Number of columns that do not fit the width.
    left_out: usize,
}

/// Width of the time, in seconds.
const TIME_WIDTH: usize = 8;

impl StatTable {
    /// A table of the series of this header.
    pub fn new(header: &Header, formulas: &Catalog, options: StatOptions<'_>) -> Result<Self, StatError> {
        let index = index(header);
        let places = places(&header.series, header.topology.as_ref(), options.per.unwrap_or(Per::Machine))?;
        let per = options.per.unwrap_or(Per::Machine);
        let mut columns = match options.show {
            StatColumns::Series => series::columns(&header.series, &index, &places, options),
            StatColumns::Columns => defaults(&index, formulas, &places, per),
            StatColumns::Formulas(names) => formulas::columns(header, &index, formulas, &places, names)?,
        };
        if matches!(options.format, TableFormat::Text | TableFormat::Original) {
            columns.retain(|f| f.bound.iter().any(Option::is_some));
        }
        if !columns.iter().any(|f| f.bound.iter().any(Option::is_some)) {
            return Err(match options.show {
                StatColumns::Columns => StatError::NoColumns,
                _ => StatError::NotPer(per.name()),
            });
        }
        let mut layout = layout_of(options.per, &columns);
        let mut left_out = 0;
        if let (Some(width), TableFormat::Text) = (options.width, options.format) {
            let leading = layout_of(options.per, &[]).widths().count();
            let fitting = layout.fitting(width).saturating_sub(leading).max(1);
            left_out = columns.len().saturating_sub(fitting);
            columns.truncate(fitting);
            layout = layout_of(options.per, &columns);
        }
        let counter = |at: usize| matches!(header.series[at].metric.kind, Kind::Counter { .. });
        let needs_two =
            columns.iter().flat_map(|f| &f.bound).flatten().flat_map(BoundFormula::columns).any(counter);
        let keys = keys(&columns, &places);
        let rates = Rates::new(&header.series);
        let table = Self {
            format: options.format,
            color: options.color,
            repeat: options.repeat,
            places,
            columns,
            layout,
            rates,
            needs_two,
            fresh: true,
            started: None,
            lines: None,
            keys,
            left_out,
        };
        Ok(table)
    }

    /// Number of columns that do not fit the width.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Appends the lines of a sample: its time (ns since 1970 UTC) and raw values, one per series
    /// of the header. False if it has none: a rate needs two samples.
    pub fn sample(&mut self, time: u64, values: &[Option<u64>], out: &mut String) -> bool {
        let started = *self.started.get_or_insert(time);
        let rates = self.rates.push(time, values);
        if std::mem::replace(&mut self.fresh, false) && self.needs_two {
            return false;
        }
        let column = |place: usize, f: &ValueColumn| f.bound[place].as_ref().and_then(|b| b.value(rates));
        let rows: Vec<Vec<Option<f64>>> = (0..self.places.len())
            .map(|place| self.columns.iter().map(|f| column(place, f)).collect())
            .collect();
        match self.format {
            TableFormat::Text => self.text(time.saturating_sub(started), &rows, out),
            TableFormat::Csv => self.csv(time, &rows, out),
            TableFormat::Json => self.json(time, &rows, out),
            TableFormat::Original => self.original(&rows, out),
        }
        true
    }

    /// Appends the line of a label. No rate spans a pause.
    pub fn label(&mut self, time: u64, text: &str, out: &mut String) {
        let event = RecorderEvent::parse(text);
        if self.rates.label(text) {
            self.fresh = true;
        }
        match self.format {
            TableFormat::Text => {
                let words = event.as_ref().map_or_else(|| visible(text), crate::events::words);
                let (on, off) = self.paint("36");
                out.push_str(&format!("{on}-- {words} --{off}\n"));
                self.lines = self.lines.map(|n| n + 1);
            }
            TableFormat::Original => {
                let words = event.as_ref().map_or_else(|| visible(text), crate::events::words);
                out.push_str(&format!("- {words} -\n"));
            }
            TableFormat::Csv => {
                self.csv_heading(out);
                let quoted = text.replace('"', "\"\"").replace(['\n', '\r'], " ");
                out.push_str(&format!("{},\"{quoted}\"{}\n", seconds(time), ",".repeat(self.keys.len())));
            }
            TableFormat::Json => {
                let key = if text.starts_with(RESERVED) { "event" } else { "label" };
                let text = text.strip_prefix(RESERVED).unwrap_or(text);
                out.push_str(&format!("{}\n", json!({"time": number(time as f64 / 1e9), key: text})));
            }
        }
    }

    fn paint(&self, code: &str) -> (String, &'static str) {
        if self.color { (format!("\x1b[{code}m"), "\x1b[0m") } else { (String::new(), "") }
    }

    fn text(&mut self, elapsed: u64, rows: &[Vec<Option<f64>>], out: &mut String) {
        // Headings never separate the lines of one sample.
        if self.lines.is_none_or(|n| n + rows.len() > self.repeat.max(4)) {
            let (on, off) = self.paint("1");
            let headings = self.layout.headings();
            self.lines = Some(headings.len());
            headings.iter().for_each(|line| out.push_str(&format!("{on}{line}{off}\n")));
        }
        for (place, row) in self.places.iter().zip(rows) {
            let mut fields = vec![clock(elapsed as f64 / 1e9, TIME_WIDTH)];
            if let Some(number) = number_of(*place) {
                fields.push(number.to_string());
            }
            let leading = fields.len();
            let widths = self.layout.widths().skip(leading);
            let columns = self.columns.iter().zip(row).zip(widths);
            fields.extend(columns.map(|((column, value), width)| column.quantity.field(*value, width)));
            out.push_str(&self.layout.line(fields));
            out.push('\n');
        }
        self.lines = self.lines.map(|n| n + rows.len());
    }

    fn csv_heading(&mut self, out: &mut String) {
        if self.lines.replace(0).is_none() {
            out.push_str("time,label");
            self.keys.iter().for_each(|key| out.push_str(&format!(",{key}")));
            out.push('\n');
        }
    }

    fn csv(&mut self, time: u64, rows: &[Vec<Option<f64>>], out: &mut String) {
        self.csv_heading(out);
        out.push_str(&format!("{},", seconds(time)));
        for value in rows.iter().flatten() {
            out.push(',');
            out.push_str(&value.map(plain).unwrap_or_default());
        }
        out.push('\n');
    }

    fn json(&self, time: u64, rows: &[Vec<Option<f64>>], out: &mut String) {
        // Without a map, so that the values stay in the order of the columns.
        out.push_str(&format!("{{\"time\":{}", number(time as f64 / 1e9)));
        for (key, value) in self.keys.iter().zip(rows.iter().flatten()) {
            let value = value.map_or(Value::Null, number);
            out.push_str(&format!(",{}:{value}", Value::from(key.as_str())));
        }
        out.push_str("}\n");
    }
}

/// Which of these series the default columns need: `numa stat` samples only those.
pub fn needed(header: &Header, formulas: &Catalog, per: Per) -> Vec<bool> {
    let index = index(header);
    let places = places(&header.series, header.topology.as_ref(), per).unwrap_or_default();
    let columns = defaults(&index, formulas, &places, per);
    used(header.series.len(), columns.iter().flat_map(|f| f.bound.iter().flatten()))
}

/// Which columns of a row these formulas read.
fn used<'a>(columns: usize, bound: impl Iterator<Item = &'a BoundFormula>) -> Vec<bool> {
    let mut used = vec![false; columns];
    bound.flat_map(BoundFormula::columns).for_each(|at| used[at] = true);
    used
}

/// The instances that have a line.
fn places(series: &[Series], topology: Option<&Topology>, per: Per) -> Result<Vec<Instance>, StatError> {
    let of_package = || topology.into_iter().flat_map(|t| t.packages.iter().enumerate());
    let cpus =
        || series.iter().filter_map(|s| if let Instance::Cpu(cpu) = s.instance { Some(cpu) } else { None });
    let places: Vec<Instance> = match per {
        Per::Machine => vec![Instance::Machine],
        Per::Cpu => cpus().collect::<CpuSet>().iter().map(Instance::Cpu).collect(),
        Per::Device => {
            let card = |s: &Series| matches!(s.instance, Instance::Device(_)).then_some(s.instance);
            series.iter().filter_map(card).collect::<BTreeSet<_>>().into_iter().collect()
        }
        Per::Package => {
            let number = |(at, p): (usize, &numakit_model::topology::Package)| {
                p.os_index.or_else(|| u32::try_from(at).ok()).map(Instance::Package)
            };
            of_package().filter_map(number).collect()
        }
        Per::Node => {
            let own = series
                .iter()
                .filter_map(|s| if let Instance::Node(node) = s.instance { Some(node) } else { None });
            let of_cpus = cpus().filter_map(|cpu| Some(topology?.node_of_cpu(cpu)?.os_index));
            own.chain(of_cpus).collect::<CpuSet>().iter().map(Instance::Node).collect()
        }
    };
    if places.is_empty() { Err(StatError::NoPlaces(per.name())) } else { Ok(places) }
}

fn defaults(index: &Index<'_>, formulas: &Catalog, places: &[Instance], per: Per) -> Vec<ValueColumn> {
    let column = |column: &'static crate::columns::TableColumn| {
        let formula = column.formula(formulas)?;
        Some(ValueColumn {
            name: column.name.to_owned(),
            head: ColumnHead {
                group: column.group.into(),
                heading: column.heading.into(),
                width: column.width,
            },
            quantity: number_style(formula.quantity),
            bound: places.iter().map(|&p| index.bind(formulas, formula, p).ok()).collect(),
        })
    };
    columns(per).filter_map(column).collect()
}

fn layout_of(per: Option<Per>, columns: &[ValueColumn]) -> TableLayout {
    let mut heads = vec![ColumnHead { group: String::new(), heading: "seconds".into(), width: TIME_WIDTH }];
    if let Some(per @ (Per::Package | Per::Node | Per::Cpu | Per::Device)) = per {
        let width = per.name().len().max(4);
        heads.push(ColumnHead { group: String::new(), heading: per.name().into(), width });
    }
    heads.extend(columns.iter().map(|f| f.head.clone()));
    TableLayout::new(heads)
}

/// Names of the values of a sample, in the order of lines and columns.
fn keys(columns: &[ValueColumn], places: &[Instance]) -> Vec<String> {
    places.iter().flat_map(|place| columns.iter().map(move |f| format!("{}{place}", f.name))).collect()
}

fn number_of(place: Instance) -> Option<u32> {
    match place {
        Instance::Package(n) | Instance::Node(n) | Instance::Cpu(n) | Instance::Device(n) => Some(n),
        _ => None,
    }
}

/// To the microsecond.
fn seconds(time: u64) -> String {
    format!("{}.{:06}", time / 1_000_000_000, time / 1000 % 1_000_000)
}

/// To six decimals; integers without a decimal point.
fn number(value: f64) -> Value {
    let rounded = (value * 1e6).round() / 1e6;
    if rounded.fract() == 0.0 && rounded.abs() < 9e15 { json!(rounded as i64) } else { json!(rounded) }
}

/// Text of a label on one line.
fn visible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests;
