//! Rows from Prometheus, or what answers its queries: names become metrics by what this numa knows.

use super::{Asker, FetchError, FetchGrid, FetchRequest, Source, no_such_host};
use crate::sender::clean;
use numakit_export::ExportedValues;
use numakit_export::openmetrics::{Families, Family};
use numakit_model::{Instance, Series};
use numakit_recording::{Batch, Header};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Pages of another size have another factor, which the engine does not know.
const PAGE: u64 = 4096;
const MS: u64 = 1_000_000;
/// Unknown names that a sentence has.
const SHOWN_NAMES: usize = 10;

pub struct Prometheus<'a> {
    request: &'a FetchRequest<'a>,
    asker: Asker,
    /// Families by the names of their samples.
    known: Families,
    /// The column of a name and its instance.
    columns: HashMap<(String, Instance), (usize, usize)>,
    /// The names that no family has, with the number of series of each.
    unknown: BTreeMap<String, usize>,
}

impl<'a> Prometheus<'a> {
    pub fn new(request: &'a FetchRequest<'a>, asker: Asker) -> Self {
        let series: Vec<Series> = request
            .known
            .iter()
            .map(|metric| Series::new(&Arc::new(metric.clone()), Instance::Machine))
            .collect();
        let known = Families::new(&series, PAGE, ExportedValues::Raw, &[]);
        Self { request, asker, known, columns: HashMap::new(), unknown: BTreeMap::new() }
    }

    fn selector(&self) -> String {
        let host = self.request.host.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{{__name__=~\"numakit_.+\",host=\"{host}\"}}")
    }

    fn ask(&mut self, path: &str, form: &[(&str, &str)]) -> Result<Value, FetchError> {
        self.asker.ask("/api/v1/write", path, form)
    }
}

/// The instance that labels name.
fn instance(labels: &Value) -> Instance {
    let pairs = labels.as_object().into_iter().flatten();
    let mut found = pairs.filter(|(key, _)| !matches!(key.as_str(), "__name__" | "host"));
    let found = found.find_map(|(word, number)| Instance::parse(&format!("{word}{}", number.as_str()?)));
    found.unwrap_or(Instance::Machine)
}

/// Seconds with three decimals, as queries have times.
fn seconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000_000_000, ns / MS % 1000)
}

impl Source for Prometheus<'_> {
    fn hosts(&mut self) -> Result<Vec<String>, FetchError> {
        let answer = self.asker.get(
            "/api/v1/write",
            "/api/v1/label/host/values",
            &[("match[]", "{__name__=~\"numakit_.+\"}")],
        )?;
        let hosts = answer["data"].as_array().into_iter().flatten();
        Ok(hosts.filter_map(|host| host.as_str().map(str::to_owned)).collect())
    }

    fn header(&mut self) -> Result<Header, FetchError> {
        let (selector, (from, to)) = (self.selector(), self.request.range);
        let form = [("match[]", selector.as_str()), ("start", &seconds(from)), ("end", &seconds(to))];
        let answer = self.ask("/api/v1/series", &form)?;
        let by_name: HashMap<String, usize> =
            self.known.list().iter().enumerate().map(|(at, family)| (family.sample_name(), at)).collect();
        let mut header = Header {
            host: self.request.host.to_owned(),
            program: concat!("numa ", env!("CARGO_PKG_VERSION"), " (fetched)").to_owned(),
            page_size: PAGE,
            ..Header::default()
        };
        let mut found: Vec<(usize, Instance, &str)> = Vec::new();
        for labels in answer["data"].as_array().into_iter().flatten() {
            let name = labels["__name__"].as_str().unwrap_or_default();
            match by_name.get(name) {
                Some(at) => found.push((*at, instance(labels), name)),
                None => *self.unknown.entry(clean(name)).or_default() += 1,
            }
        }
        found.sort();
        found.dedup();
        for (at, instance, name) in found {
            let metric = self
                .known
                .list()
                .get(at)
                .and_then(|family| self.request.known.get(*family.members().first()?));
            let Some(metric) = metric else { continue };
            self.columns.insert((name.to_owned(), instance), (header.series.len(), at));
            header.series.push(Series { metric: Arc::new(metric.clone()), instance });
        }
        if header.series.is_empty() {
            let hosts = self.hosts();
            return Err(no_such_host(self.request, hosts));
        }
        Ok(header)
    }

    fn rows(&mut self, header: &Header, (from, to): (u64, u64)) -> Result<Batch, FetchError> {
        // Times in the engine are whole milliseconds, and both ends of its ranges are in them.
        let (first, last) = (from.div_ceil(MS), to.div_ceil(MS).saturating_sub(1));
        if last < first {
            return Ok(Batch::empty(header.series.len()));
        }
        let query = format!("{}[{}ms]", self.selector(), last - first + 1);
        let answer = self.ask("/api/v1/query", &[("query", &query), ("time", &seconds(last * MS))])?;
        let mut grid = FetchGrid::new(header.series.len());
        for series in answer["data"]["result"].as_array().into_iter().flatten() {
            let labels = &series["metric"];
            let name = labels["__name__"].as_str().unwrap_or_default().to_owned();
            let Some((column, at)) = self.columns.get(&(name, instance(labels))) else { continue };
            let Some(family) = self.known.list().get(*at) else { continue };
            for pair in series["values"].as_array().into_iter().flatten() {
                if let Some((ms, raw)) = sample(pair, family).filter(|(ms, _)| (first..=last).contains(ms)) {
                    grid.put(ms * MS, *column, raw);
                }
            }
        }
        Ok(grid.batch())
    }

    fn missing(&self) -> Vec<String> {
        let mut missing = vec!["the topology and the labels, which this engine does not keep".to_owned()];
        if !self.unknown.is_empty() {
            let names: Vec<&str> = self.unknown.keys().map(String::as_str).take(SHOWN_NAMES).collect();
            let more = if self.unknown.len() > SHOWN_NAMES { ", ..." } else { "" };
            let series: usize = self.unknown.values().sum();
            let names = names.join(", ");
            missing.push(format!("{series} series of metrics that this numa does not know ({names}{more})"));
        }
        missing
    }
}

/// The time in ms and the raw value of a pair.
fn sample(pair: &Value, family: &Family) -> Option<(u64, u64)> {
    let ms = (pair[0].as_f64()? * 1000.0).round();
    let value: f64 = pair[1].as_str()?.parse().ok()?;
    Some((ms as u64, family.unscaled(value)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::PushTarget;
    use crate::testing::header;

    #[test]
    fn series_that_nobody_knows_are_missing_and_said() {
        let target = PushTarget::parse("prometheus+http://db:9090").unwrap();
        let known: Vec<_> = header(1).series.iter().map(|series| (*series.metric).clone()).collect();
        let request = FetchRequest { target: &target, host: "a", range: (0, 1), known };
        let asker = Asker::Given(Vec::new().into());
        let mut source = Prometheus::new(&request, asker);
        let name = source.known.list()[0].sample_name();
        let series = |name: &str, cpu: u32| format!(r#"{{"__name__":"{name}","host":"a","cpu":"{cpu}"}}"#);
        let all = [series(&name, 0), series("numakit_later", 0), series("numakit_later", 1)].join(",");
        source.asker = Asker::Given(vec![format!(r#"{{"data":[{all}]}}"#).into()].into());
        assert_eq!(source.header().unwrap().series.len(), 1);
        let missing = source.missing();
        assert_eq!(missing[1..], ["2 series of metrics that this numa does not know (numakit_later)"]);
    }
}
