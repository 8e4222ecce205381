//! Converts headings to series, and series to headings.

use super::{NumascopeError, PROGRAM, wording};
use crate::header::Header;
use numakit_model::{Instance, Kind, Metric, Scope, Series, Unit};
use numakit_sensors::known::VMSTAT;
use numakit_sensors::numaconnect2::table as cards;
use numakit_sensors::{SENSORS, metric};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

/// The original's name for the sensor of the cards; its page groups their series.
const CARDS: &str = "NumaConnect2";
/// numakit's name for it.
const CARD_SENSOR: &str = "numaconnect2";
/// The sensor name of files with series of several sensors; their headings are full names.
const SEVERAL: &str = "numakit";

/// Every metric that a sensor knows by name.
static KNOWN: LazyLock<HashMap<String, Metric>> = LazyLock::new(|| {
    let known = SENSORS.iter().flat_map(|sensor| (sensor.known)());
    known.map(|metric| (metric.name.clone(), metric)).collect()
});

/// The first row of a file.
struct Head {
    /// The sensor's name in the file.
    sensor: String,
    /// numakit's name for it.
    local_name: String,
    maximum: Option<u64>,
    /// The row's text in the file.
    text: String,
}

/// The series of the first two rows of a file.
pub fn series_of(head: &[Value], headings: &[Value]) -> Result<Vec<Series>, NumascopeError> {
    let [Value::String(sensor), Value::Number(_), rest @ ..] = head else {
        return Err(NumascopeError::NoHead);
    };
    let maximum = rest.first().and_then(Value::as_u64).filter(|maximum| *maximum > 0);
    let head = Head {
        sensor: sensor.clone(),
        local_name: sensor_of(sensor),
        maximum,
        text: Value::from(head).to_string(),
    };
    let mut shared: HashMap<String, Arc<Metric>> = HashMap::new();
    let mut names = HashSet::new();
    let mut series = Vec::with_capacity(headings.len());
    for heading in headings {
        let heading = heading.as_str().ok_or(NumascopeError::Heading)?;
        let (mut metric, instance) = head.metric(heading);
        if !names.insert((metric.name.clone(), instance)) {
            // Of two headings for the same series, the second keeps its text as the name.
            metric.name = format!("{}.{heading}", head.local_name);
        }
        let known = shared.entry(metric.name.clone()).or_insert_with(|| Arc::new(metric.clone()));
        let metric = if **known == metric { Arc::clone(known) } else { Arc::new(metric) };
        series.push(Series { metric, instance });
    }
    Ok(series)
}

/// numakit's sensor for a name of the original, else the name as an identifier:
/// `Other Card (2)` is `other_card_2`.
fn sensor_of(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty());
    let words: Vec<String> = words.map(str::to_ascii_lowercase).collect();
    if words.iter().any(|word| word == CARD_SENSOR) {
        return CARD_SENSOR.into();
    }
    if words.iter().any(|word| word == "kernel" || word == "vmstat") {
        return "vmstat".into();
    }
    if words.is_empty() { "sensor".into() } else { words.join("_") }
}

fn is_sensor(name: &str) -> bool {
    SENSORS.iter().any(|sensor| sensor.name == name)
}

impl Head {
    /// The metric and instance of a heading.
    fn metric(&self, heading: &str) -> (Metric, Instance) {
        let (words, instance) = placed(heading);
        let whole = words.split_once('.').is_some_and(|(sensor, metric)| {
            (is_sensor(sensor) || self.sensor == SEVERAL) && !metric.is_empty() && !metric.contains(' ')
        });
        let (percent, bare) = match words.strip_prefix('%') {
            Some(rest) => (true, rest.trim_start()),
            None => (false, words),
        };
        let known = if whole { KNOWN.get(words).cloned() } else { self.known(bare) };
        let name = match &known {
            Some(known) => known.name.clone(),
            None if whole => words.to_owned(),
            None => format!("{}.{bare}", self.local_name),
        };
        // The original writes levels as rates of change; files of numakit have levels.
        let level = known.as_ref().is_some_and(|known| known.kind == Kind::Gauge);
        let own = whole || is_sensor(&self.sensor);
        let kind = if level && own { Kind::Gauge } else { Kind::Rate };
        let unit = match known.map_or(Unit::Count, |known| known.unit) {
            // The page size is unknown.
            Unit::Pages => Unit::Count,
            unit => unit,
        };
        let described = metric(&name, unit, kind, instance.scope(), words, &self.text);
        let maximum = self.maximum.filter(|_| percent || unit == Unit::Cycles);
        (Metric { maximum, ..described }, instance)
    }

    /// The known metric that a heading names or describes.
    fn known(&self, words: &str) -> Option<Metric> {
        match self.local_name.as_str() {
            CARD_SENSOR => {
                cards::counter(words).or_else(|| wording::counter_of(words)).map(cards::Counter::metric)
            }
            "vmstat" => {
                let line = VMSTAT.get(words).or_else(|| VMSTAT.get(wording::kernel_name_of(words)?))?;
                Some(line.metric("vmstat", Scope::Machine, ""))
            }
            sensor => KNOWN.get(&format!("{sensor}.{words}")).cloned(),
        }
    }
}

/// A heading without the instance at its end: `:2` is a card; files of numakit also have `@node3`.
fn placed(heading: &str) -> (&str, Instance) {
    let card = |text: &str| text.parse().ok().map(Instance::Device);
    let of = |at: char, parse: &dyn Fn(&str) -> Option<Instance>| {
        let (words, place) = heading.rsplit_once(at)?;
        Some((words, parse(place)?))
    };
    of(':', &card).or_else(|| of('@', &Instance::parse)).unwrap_or((heading, Instance::Machine))
}

/// The first two rows of a file for these series.
pub fn rows_for(header: &Header) -> (Value, Vec<String>) {
    if let Some(head) = original(header) {
        let heading = |s: &Series| format!("{}{}", s.metric.help, place(s.instance));
        return (head, header.series.iter().map(heading).collect());
    }
    let mut sensors: Vec<&str> = header.series.iter().map(|s| s.metric.sensor()).collect();
    sensors.dedup();
    let several = sensors.len() > 1;
    let name = match sensors.first() {
        _ if sensors.contains(&CARD_SENSOR) => CARDS,
        Some(sensor) if !several => sensor,
        _ => SEVERAL,
    };
    let devices = header.series.iter().filter(|s| s.metric.scope == Scope::Device).map(|s| s.instance).max();
    let sources = if let Some(Instance::Device(last)) = devices { u64::from(last) + 1 } else { 1 };
    let maximum = header.series.iter().filter_map(|s| s.metric.maximum).max().unwrap_or(0);
    let heading = |s: &Series| heading(s, maximum, several);
    (json!([name, sources, maximum]), header.series.iter().map(heading).collect())
}

/// The first row of the file that such a recording was read from.
fn original(header: &Header) -> Option<Value> {
    let source = &header.series.first().filter(|_| header.program == PROGRAM)?.metric.source;
    let same = header.series.iter().all(|s| s.metric.source == *source);
    serde_json::from_str(source).ok().filter(|row: &Value| same && row.is_array())
}

fn heading(series: &Series, maximum: u64, several: bool) -> String {
    let metric = &series.metric;
    let place = place(series.instance);
    if metric.sensor() != CARD_SENSOR {
        let name = if several { metric.name.as_str() } else { metric.bare() };
        return format!("{name}{place}");
    }
    let words = cards::counter(metric.bare()).and_then(wording::words_for).unwrap_or(metric.bare());
    let percent = if maximum > 0 && metric.maximum == Some(maximum) { "% " } else { "" };
    format!("{percent}{words}{place}")
}

fn place(instance: Instance) -> String {
    match instance {
        Instance::Device(card) => format!(":{card}"),
        other => other.to_string(),
    }
}
