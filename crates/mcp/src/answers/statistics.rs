//! Series and formulas over a range of time.

use super::range::RowRange;
use super::{bounded, value};
use crate::directory::SharedDirectory;
use crate::error::ToolError;
use numakit_findings::series;
use numakit_formulas::{Catalog, Index};
use numakit_model::{Instance, suggest};
use numakit_recording::{Batch, Header, Rates, Samples, read_ahead};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// As many series as one answer has.
const MAX_SERIES: usize = 100;

/// Of what statistics are asked for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Statistics {
    /// path of a recording, as list_recordings has it
    recording: String,
    /// names of series or formulas; 'node.MemFree' is all nodes, 'node.*' all of the sensor
    series: Vec<String>,
    /// begin here, in seconds since the recording began
    from_seconds: Option<f64>,
    /// end here, in seconds since the recording began
    to_seconds: Option<f64>,
}

/// Running values of one series.
#[derive(Debug, Clone, Default, Serialize)]
struct Course {
    count: u64,
    mean: f64,
    deviation: f64,
    least: f64,
    most: f64,
    first: f64,
    last: f64,
}

impl Course {
    /// By Welford, so that large levels lose nothing.
    fn add(&mut self, value: f64) {
        if self.count == 0 {
            (self.first, self.least, self.most) = (value, value, value);
        }
        self.count += 1;
        let away = value - self.mean;
        self.mean += away / self.count as f64;
        self.deviation += away * (value - self.mean);
        (self.least, self.most, self.last) = (self.least.min(value), self.most.max(value), value);
    }

    fn scaled(&self, factor: f64) -> Self {
        let deviation = (self.deviation / (self.count.max(2) - 1) as f64).sqrt();
        Self {
            count: self.count,
            mean: self.mean * factor,
            deviation: deviation * factor,
            least: self.least * factor,
            most: self.most * factor,
            first: self.first * factor,
            last: self.last * factor,
        }
    }
}

pub(crate) fn of_range(directory: &SharedDirectory, asked: &Statistics) -> Result<Value, ToolError> {
    let mut reader = directory.recording(&asked.recording)?;
    let header = reader.header().clone();
    let index = series::index(&header);
    let (mut wanted, mut formulas) = (BTreeSet::new(), Vec::new());
    for name in &asked.series {
        match chosen(&header, name) {
            found if !found.is_empty() => wanted.extend(found),
            _ if Catalog::built_in().get(name).is_some() => formulas.push(name),
            _ => return Err(unknown(&header, name)),
        }
    }
    let mut range = RowRange::new(asked.from_seconds, asked.to_seconds)?;
    let (mut rates, mut courses) = (Rates::new(&header.series), vec![Course::default(); header.series.len()]);
    // Formulas may read any series.
    let read: Vec<usize> = if formulas.is_empty() {
        wanted.iter().copied().collect()
    } else {
        (0..header.series.len()).collect()
    };
    read_ahead(&mut reader, |batches| {
        for batch in batches {
            add(&range.cut(batch), &read, &mut rates, &mut courses);
        }
    });
    range.check()?;
    let listed = wanted.iter().map(|&at| described(&header, &index, at, &courses[at])).collect();
    let computed: Result<Vec<Value>, ToolError> =
        formulas.iter().map(|name| formula(&header, &index, name, &courses)).collect();
    Ok(json!({"series": bounded(listed, MAX_SERIES), "formulas": computed?, "damage": reader.damage()}))
}

/// The series that a name means: one, all places of a metric, or all that begin like it.
fn chosen(header: &Header, name: &str) -> Vec<usize> {
    let is_meant = |series: &numakit_model::Series| match name.strip_suffix('*') {
        Some(begin) => series.name().starts_with(begin),
        None => series.name() == name || series.metric.name == name,
    };
    let all = header.series.iter().enumerate();
    all.filter(|(_, series)| is_meant(series)).map(|(at, _)| at).collect()
}

fn unknown(header: &Header, name: &str) -> ToolError {
    let metrics: BTreeSet<&str> = header.series.iter().map(|series| series.metric.name.as_str()).collect();
    let formulas = Catalog::built_in().all().iter().map(|formula| formula.name.as_str());
    let near = suggest::nearest(name, metrics.into_iter().chain(formulas), 3);
    let fix = match near.is_empty() {
        true => "list_series lists them".to_owned(),
        false => format!("did you mean {}?", near.join(", ")),
    };
    ToolError::UnknownSeries { name: name.to_owned(), fix }
}

/// Adds the rates and levels of a batch. No rate spans a pause.
fn add(batch: &Batch, read: &[usize], rates: &mut Rates, courses: &mut [Course]) {
    let mut from = 0;
    let labels = (0..batch.len()).filter(|&row| batch.label[row].is_some());
    for end in labels.chain([batch.len()]) {
        let samples = Samples::new(batch, from..end);
        for &at in read {
            rates.rated(at, &samples, |_, rate| courses[at].add(rate));
        }
        if let Some(Some(text)) = batch.label.get(end) {
            rates.label(text);
        }
        from = end + 1;
    }
}

fn described(header: &Header, index: &Index<'_>, at: usize, course: &Course) -> Value {
    let (unit, factor) = series::shown_unit(index, at);
    let mut described = match course.count {
        0 => json!({"count": 0, "why": "it has no value in this range"}),
        _ => value(&course.scaled(factor)),
    };
    (described["series"], described["unit"]) = (header.series[at].name().into(), unit.into());
    described
}

fn formula(header: &Header, index: &Index<'_>, name: &str, courses: &[Course]) -> Result<Value, ToolError> {
    let catalog = Catalog::built_in();
    let formula = catalog.get(name).ok_or_else(|| unknown(header, name))?;
    let bound = index.bind(catalog, formula, Instance::Machine).map_err(|missing| {
        let inputs: Vec<&str> = missing.inputs.iter().map(|input| input.name.as_str()).collect();
        ToolError::MissingInput { name: name.to_owned(), inputs: inputs.join(", ") }
    })?;
    let means: Vec<Option<f64>> = courses.iter().map(|c| (c.count > 0).then_some(c.mean)).collect();
    Ok(json!({
        "formula": name,
        "value": bound.value(&means),
        "unit": formula.quantity.name(),
        "help": formula.help,
    }))
}
