//! The JSON of the original NUMAscope: an array of `["sensor", sources, rate]`, the array
//! of headings, then rows `[microseconds since 1970, rate per second, ...]` and labels
//! `["label", microseconds, "text"]`.

use crate::batch::Batch;
use crate::header::Header;
use crate::rates::Rates;
use numakit_model::{Instance, Kind, Metric, Scope, Series, Unit};
use serde::Deserializer;
use serde::de::{SeqAccess, Visitor};
use serde_json::{Value, json};
use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

/// The most columns that a file may have.
const MAX_COLUMNS: usize = 100_000;

/// Reads such a file. One that ends early, as a killed recorder leaves it, gives its whole
/// rows and a sentence about the rest; one that does not even begin so is an error.
pub fn read(text: &[u8]) -> Result<(Header, Batch, Option<String>), String> {
    let mut file = Rows::default();
    let mut json = serde_json::Deserializer::from_slice(text);
    let result = json.deserialize_seq(&mut file).and_then(|()| json.end());
    let Some(header) = file.header else {
        return Err(match (file.wrong, result) {
            (Some(why), _) => why,
            (None, Err(error)) => format!("it ends before its headings: {error}"),
            (None, Ok(())) => "it has no headings".into(),
        });
    };
    let damage = match (file.wrong, result) {
        (Some(why), _) => Some(why),
        (None, Err(error)) => Some(format!("it is damaged after {} rows: {error}", file.batch.len())),
        (None, Ok(())) => None,
    };
    Ok((header, file.batch, damage))
}

#[derive(Default)]
struct Rows {
    sensor: Option<(String, Option<u64>)>,
    header: Option<Header>,
    batch: Batch,
    wrong: Option<String>,
}

impl<'de> Visitor<'de> for &mut Rows {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of rows")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<(), A::Error> {
        while let Some(row) = rows.next_element::<Value>()? {
            if self.wrong.is_none()
                && let Err(why) = self.take(&row)
            {
                self.wrong = Some(why);
            }
        }
        Ok(())
    }
}

impl Rows {
    fn take(&mut self, row: &Value) -> Result<(), String> {
        let row = row.as_array().ok_or("it holds something that is no row")?;
        let Some((sensor, rate)) = &self.sensor else {
            let [Value::String(name), Value::Number(_), rest @ ..] = row.as_slice() else {
                return Err("it does not begin with [\"sensor name\", sources, rate]".into());
            };
            self.sensor = Some((name.clone(), rest.first().and_then(Value::as_u64).filter(|r| *r > 0)));
            return Ok(());
        };
        if self.header.is_none() {
            let header = header_of(sensor, *rate, row)?;
            self.batch = Batch::empty(header.series.len());
            self.header = Some(header);
            return Ok(());
        }
        self.take_row(row)
    }

    fn take_row(&mut self, row: &[Value]) -> Result<(), String> {
        let number = self.batch.len() + 1;
        let micros = |v: &Value| {
            v.as_u64().or_else(|| v.as_f64().map(|f| f as u64)).and_then(|us| us.checked_mul(1000))
        };
        match row {
            [Value::String(word), time, Value::String(text)] if word == "label" => {
                let time = micros(time).ok_or_else(|| format!("row {number} has no time"))?;
                self.batch.push_label(time, text.clone());
            }
            [time, values @ ..] if values.len() == self.batch.columns.len() => {
                let time = micros(time).ok_or_else(|| format!("row {number} has no time"))?;
                let word =
                    |v: &Value| v.as_i64().or_else(|| v.as_f64().map(|f| f.round() as i64)).map(|i| i as u64);
                let values: Vec<Option<u64>> = values.iter().map(word).collect();
                self.batch.push_sample(time, 0, &values);
            }
            _ => {
                return Err(format!(
                    "row {number} has {} values for {} headings; the rows before it were read",
                    row.len().saturating_sub(1),
                    self.batch.columns.len()
                ));
            }
        }
        if let Some(header) = self.header.as_mut().filter(|h| h.started == 0) {
            header.started = self.batch.time.first().copied().unwrap_or(0);
        }
        Ok(())
    }
}

fn header_of(sensor: &str, rate: Option<u64>, headings: &[Value]) -> Result<Header, String> {
    if headings.len() > MAX_COLUMNS {
        return Err(format!("it has {} headings, more than {MAX_COLUMNS}", headings.len()));
    }
    let slug = slug(sensor);
    let mut series: Vec<Series> = Vec::with_capacity(headings.len());
    for heading in headings {
        let heading = heading.as_str().ok_or("a heading is no text")?;
        let (name, instance) = match heading.rsplit_once(':').and_then(|(n, i)| Some((n, i.parse().ok()?))) {
            Some((name, index)) => (name, Instance::Device(index)),
            None => (heading, Instance::Machine),
        };
        let metric = Metric {
            name: format!("{slug}.{name}"),
            unit: Unit::Count,
            kind: Kind::Rate,
            scope: instance.scope(),
            help: match rate {
                Some(rate) => format!("{name}, at most {rate} a second"),
                None => name.to_owned(),
            },
            source: sensor.to_owned(),
            resolution: Duration::ZERO,
            confidence: None,
        };
        series.push(Series { metric: Arc::new(metric), instance });
    }
    Ok(Header { series, program: "numascope".into(), ..Header::default() })
}

/// `NumaConnect2 (card)` is `numaconnect2_card`.
fn slug(name: &str) -> String {
    let words: Vec<String> = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|w| !w.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    if words.is_empty() { "sensor".into() } else { words.join("_") }
}

/// Writes a recording in that form: counters as rates per second, gauges as their levels.
/// A value that was not measured, and the first of each counter, is 0: the form knows no absence.
pub struct Writer<'a, W> {
    to: W,
    rates: Rates,
    values: Vec<Option<u64>>,
    series: &'a [Series],
    begun: bool,
}

impl<'a, W: Write> Writer<'a, W> {
    /// Writes the head of the file.
    pub fn new(mut to: W, header: &'a Header) -> io::Result<Self> {
        let sources =
            header.series.iter().filter(|s| s.metric.scope == Scope::Device).map(|s| s.instance).max();
        let sources = if let Some(Instance::Device(last)) = sources { last + 1 } else { 1 };
        let sensors: Vec<&str> = header.series.iter().map(|s| s.metric.sensor()).collect();
        let one = sensors.windows(2).all(|w| w[0] == w[1]);
        let name = sensors.first().filter(|_| one).unwrap_or(&"numakit");
        let headings: Vec<String> = header.series.iter().map(|s| heading(s, one)).collect();
        writeln!(to, "[{},", json!([name, sources, 0]))?;
        write!(to, "{}", json!(headings))?;
        Ok(Self {
            to,
            rates: Rates::new(&header.series),
            values: vec![None; header.series.len()],
            series: &header.series,
            begun: false,
        })
    }

    /// Writes rows.
    pub fn batch(&mut self, batch: &Batch) -> io::Result<()> {
        for row in 0..batch.len() {
            let micros = batch.time[row] / 1000;
            if let Some(text) = &batch.label[row] {
                write!(self.to, ",\n{}", json!(["label", micros, text]))?;
                continue;
            }
            batch.row(row, &mut self.values);
            let rates = self.rates.push(batch.time[row], &self.values);
            let first = !std::mem::replace(&mut self.begun, true);
            if first && self.series.iter().any(|s| matches!(s.metric.kind, Kind::Counter { .. })) {
                continue;
            }
            write!(self.to, ",\n[{micros}")?;
            for rate in rates {
                write!(self.to, ",{}", rate.unwrap_or(0.0).round() as i64)?;
            }
            write!(self.to, "]")?;
        }
        Ok(())
    }

    /// Writes the end of the file.
    pub fn finish(mut self) -> io::Result<()> {
        writeln!(self.to, "]")?;
        self.to.flush()
    }
}

fn heading(series: &Series, one_sensor: bool) -> String {
    let name = if one_sensor { series.metric.bare() } else { &series.metric.name };
    match series.instance {
        Instance::Machine => name.to_owned(),
        Instance::Device(index) => format!("{name}:{index}"),
        other => format!("{name}{other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = r#"[["Linux Kernel", 1, 0],
["pgfault","nr_free_pages"],
[1000000,12,-5],
["label",1500000,"phase 2"],
[2000000,0,7]]
"#;

    #[test]
    fn the_original_form_is_read() {
        let (header, batch, damage) = read(SAMPLE.as_bytes()).unwrap();
        assert_eq!(damage, None);
        assert_eq!(header.series[0].name(), "linux_kernel.pgfault");
        assert_eq!(header.started, 1_000_000_000);
        assert_eq!(batch.time, [1_000_000_000, 1_500_000_000, 2_000_000_000]);
        assert_eq!(batch.label[1].as_deref(), Some("phase 2"));
        assert_eq!(batch.columns[1].get(0).map(|v| v as i64), Some(-5));
        assert_eq!(batch.columns[1].get(1), None);
    }

    #[test]
    fn sources_are_parted() {
        let text = r#"[["NumaConnect2",2,200000000],["cycles:0","cycles:1"],[1,2,3]]"#;
        let (header, ..) = read(text.as_bytes()).unwrap();
        assert_eq!(header.series[1].name(), "numaconnect2.cycles@card1");
    }

    #[test]
    fn a_killed_recorder_leaves_readable_rows() {
        for cut in 0..SAMPLE.len() - 2 {
            match read(&SAMPLE.as_bytes()[..cut]) {
                Ok((_, batch, damage)) => assert!(damage.is_some() && batch.len() <= 3, "cut at {cut}"),
                Err(_) => assert!(cut < SAMPLE.find("[1000000").unwrap(), "cut at {cut}"),
            }
        }
    }

    #[test]
    fn what_is_something_else_is_refused() {
        for text in ["", "[]", "{}", "[1]", "[[1]]", r#"[["a",1,0]]"#, r#"[["a",1,0],[7]]"#] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
        let (_, batch, damage) = read(br#"[["a",1,0],["x"],[1,2],[2,3,4],[3,5]]"#).unwrap();
        assert_eq!((batch.len(), damage.is_some()), (1, true));
    }

    #[test]
    fn reading_and_writing_agree() {
        let (header, batch, _) = read(SAMPLE.as_bytes()).unwrap();
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, &header).unwrap();
        writer.batch(&batch).unwrap();
        writer.finish().unwrap();
        let (again, rows, damage) = read(&out).unwrap();
        assert_eq!((rows, damage), (batch, None));
        assert_eq!(again.series[0].name(), "linux_kernel.pgfault");
    }
}
