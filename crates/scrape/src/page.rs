//! The text of a scrape.

use crate::changed::OnlineNow;
use crate::jobs::ExposedJobs;
use crate::places::ExposedPlaces;
use crate::sampled::{RowSums, Sampled};
use crate::setup::{ExposedLine, ScrapeSetup, labels};
use crate::table::{EXPOSED, ExposedKind, ExposedMetric, ExposedSource, OwnValue, PushValue};
use numakit_export::Number;
use numakit_export::openmetrics::{Dialect, Families, FamilyHead, UnitScale};
use numakit_jobs::JobsNow;
use numakit_model::{Kind, Unavailable};
use numakit_sys::SysRoot;
use numakit_sys::clock;
use numakit_sys::proc::printable;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Characters of a reason or of another label of text.
const MAX_TEXT: usize = 240;

/// A line that has no columns: labels and value.
pub type OwnLine = (String, Number);

/// What the sampler tells of itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct SamplerNumbers {
    /// Samples taken.
    pub samples: u64,
    /// Samples that were due and not taken.
    pub lost: u64,
    /// The interval in ns.
    pub interval: u64,
    /// CPU time of this process in ns.
    pub cpu: u64,
    /// Its resident memory in bytes.
    pub memory: Option<u64>,
    /// What the push did, if there is one.
    pub pushed: Option<PushNumbers>,
}

/// What a push tells of itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct PushNumbers {
    /// Rows that were taken.
    pub rows: u64,
    /// Requests.
    pub requests: u64,
    /// Values that were refused.
    pub refused: u64,
    /// Rows that were lost.
    pub lost: u64,
    /// Rows that wait.
    pub waiting: u64,
    /// Bytes of the spool.
    pub spool: u64,
    /// Outages of the engine.
    pub outages: u64,
    /// Their length together.
    pub down: Duration,
}

impl PushNumbers {
    fn of(&self, value: PushValue) -> Number {
        Number::Unsigned(match value {
            PushValue::Rows => self.rows,
            PushValue::Requests => self.requests,
            PushValue::Refused => self.refused,
            PushValue::Lost => self.lost,
            PushValue::Waiting => self.waiting,
            PushValue::Spool => self.spool,
            PushValue::Outages => self.outages,
            PushValue::Down => return Number::Float(self.down.as_secs_f64()),
        })
    }
}

/// Answers scrapes of one machine.
#[derive(Debug)]
pub struct ScrapePage {
    root: SysRoot,
    lines: Vec<ExposedLine>,
    places: ExposedPlaces,
    added: Families,
    /// Which of the added columns are counters, in the order of the columns.
    added_kinds: Vec<Kind>,
    left_out: usize,
    absent: Vec<(String, Unavailable)>,
    version: &'static str,
    /// The newest sample.
    pub sampled: Arc<Sampled>,
}

impl ScrapePage {
    /// A page of what this setup samples.
    pub fn new(setup: &mut ScrapeSetup, version: &'static str) -> Self {
        let kinds = setup.added_columns.iter().map(|&at| setup.header.series[at].metric.kind).collect();
        Self {
            root: setup.root.clone(),
            lines: setup.lines.clone(),
            places: setup.places.clone(),
            added: std::mem::replace(&mut setup.added, Families::new(&[], 0, RAW, &[])),
            added_kinds: kinds,
            left_out: setup.left_out,
            absent: std::mem::take(&mut setup.absent),
            version,
            sampled: Arc::default(),
        }
    }

    /// The number of series that the machine has by the table.
    pub fn series(&self) -> usize {
        self.lines.len() + self.places.list.len()
    }

    /// The text; `None` before the first sample.
    pub fn text(
        &self,
        dialect: Dialect,
        sampler: &SamplerNumbers,
        jobs: Option<&JobsNow>,
    ) -> Option<Vec<u8>> {
        let sums = self.sampled.newest()?;
        let mut text = Vec::with_capacity(32 << 10);
        // Writing to memory does not fail.
        self.write(dialect, sampler, &sums, jobs, &mut text).ok()?;
        Some(text)
    }

    fn write(
        &self,
        dialect: Dialect,
        sampler: &SamplerNumbers,
        sums: &RowSums,
        jobs: Option<&JobsNow>,
        text: &mut Vec<u8>,
    ) -> io::Result<()> {
        let scrapes = self.sampled.count();
        let online = OnlineNow::read(&self.root);
        let exposed = jobs.map(|jobs| ExposedJobs::of(jobs, &self.places));
        for (at, metric) in EXPOSED.iter().enumerate() {
            let own = match metric.source {
                ExposedSource::Own(OwnValue::Absent) => Some(self.absent(sums, &online, jobs)),
                ExposedSource::Own(value) => Some(self.own(value, sampler, sums, &online, scrapes)),
                ExposedSource::Jobs(value) => {
                    Some(exposed.as_ref().map(|j| j.lines(value)).unwrap_or_default())
                }
                ExposedSource::Places(..) | ExposedSource::Machine(..) => None,
            };
            if let Some(lines) = own {
                write_own(metric, dialect, &lines, text)?;
                continue;
            }
            let mut has_head = false;
            for (line, sum) in self.lines.iter().zip(&sums.lines).filter(|(line, _)| line.metric == at) {
                let Some(sum) = *sum else { continue };
                if !std::mem::replace(&mut has_head, true) {
                    head(metric).write(dialect, text)?;
                }
                write_line(metric, &line.labels, Number::Unsigned(sum), line.scale, text)?;
            }
        }
        let value = |at: usize| {
            let raw = sums.added.get(at).copied().flatten()?;
            Some((Number::Unsigned(raw), None)).filter(|_| self.added_kinds.get(at).is_some())
        };
        self.added.write(dialect, value, text)?;
        if dialect == Dialect::OpenMetrics {
            text.extend_from_slice(b"# EOF\n");
        }
        Ok(())
    }

    fn own(
        &self,
        value: OwnValue,
        sampler: &SamplerNumbers,
        sums: &RowSums,
        online: &OnlineNow,
        scrapes: u64,
    ) -> Vec<OwnLine> {
        let one = |number: u64| vec![(String::new(), Number::Unsigned(number))];
        let seconds = |ns: u64| vec![(String::new(), Number::Float(ns as f64 / 1e9))];
        match value {
            OwnValue::Build => vec![(labels(&[("version", self.version)]), Number::Unsigned(1))],
            OwnValue::Cpus => {
                let of = |place: &crate::places::ExposedPlace| {
                    let labels = labels(&[(self.places.label, &place.name)]);
                    (labels, Number::Unsigned(online.cpus_of(place).len() as u64))
                };
                self.places.list.iter().map(of).collect()
            }
            OwnValue::Samples => one(sampler.samples),
            OwnValue::LostSamples => one(sampler.lost),
            OwnValue::Interval => seconds(sampler.interval),
            OwnValue::Age => seconds(clock::utc().saturating_sub(sums.time)),
            OwnValue::Scrapes => one(scrapes),
            OwnValue::CpuTime => seconds(sampler.cpu),
            OwnValue::Memory => sampler.memory.map(one).unwrap_or_default(),
            OwnValue::LeftOut => one(self.left_out as u64),
            OwnValue::Pushed(value) => {
                sampler.pushed.map(|pushed| (String::new(), pushed.of(value))).into_iter().collect()
            }
            OwnValue::Absent => Vec::new(),
        }
    }

    /// What is absent, of the machine and of jobs.
    fn absent(&self, sums: &RowSums, online: &OnlineNow, jobs: Option<&JobsNow>) -> Vec<OwnLine> {
        let machine = self.absent.iter().map(|(what, why)| absent(what, why));
        let jobs = jobs.into_iter().flat_map(|jobs| &jobs.absent).map(|why| absent(&why.missing, why));
        let changed = online.changed(&self.places, &self.lines, &sums.lines);
        machine.chain(changed.iter().map(|(what, why)| absent(what, why))).chain(jobs).collect()
    }
}

const RAW: numakit_export::ExportedValues = numakit_export::ExportedValues::Raw;

/// A line of what is absent.
pub fn absent(what: &str, why: &Unavailable) -> OwnLine {
    let reason = cut(&format!("{}; {}", why.seen, why.fix));
    (labels(&[("what", &cut(what)), ("reason", &reason)]), Number::Unsigned(1))
}

/// Text of others, printable and not too long.
fn cut(text: &str) -> String {
    printable(text.as_bytes()).chars().take(MAX_TEXT).collect()
}

fn head(metric: &ExposedMetric) -> FamilyHead<'_> {
    let ExposedMetric { name, unit, help, kind, .. } = metric;
    FamilyHead { name, unit, help, counter: *kind == ExposedKind::Counter }
}

/// Writes a metric whose values have their base unit.
pub fn write_own(
    metric: &ExposedMetric,
    dialect: Dialect,
    lines: &[OwnLine],
    text: &mut Vec<u8>,
) -> io::Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    head(metric).write(dialect, text)?;
    lines.iter().try_for_each(|(labels, value)| write_line(metric, labels, *value, UnitScale::Times(1), text))
}

fn write_line(
    metric: &ExposedMetric,
    labels: &str,
    value: Number,
    scale: UnitScale,
    text: &mut Vec<u8>,
) -> io::Result<()> {
    use std::io::Write;
    write!(text, "{}{}{labels} ", metric.name, head(metric).suffix())?;
    scale.write(value, text)?;
    text.write_all(b"\n")
}

/// The format that a client accepts: OpenMetrics if it names it with a quality that is not below that of plain text.
pub fn dialect_of(accept: Option<&str>) -> Dialect {
    let quality = |kind: &str| {
        let mut best: Option<f64> = None;
        for item in accept.unwrap_or_default().split(',').take(32) {
            let mut words = item.split(';').map(str::trim);
            if words.next().is_some_and(|word| word.eq_ignore_ascii_case(kind)) {
                let q = words.find_map(|word| word.strip_prefix("q=")?.parse::<f64>().ok()).unwrap_or(1.0);
                best = Some(best.map_or(q, |best| best.max(q)));
            }
        }
        best.filter(|q| *q > 0.0)
    };
    let plain = quality("text/plain").unwrap_or(0.0);
    match quality("application/openmetrics-text") {
        Some(q) if q >= plain => Dialect::OpenMetrics,
        _ => Dialect::Prometheus,
    }
}

/// The content type of a format.
pub fn content_type(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        Dialect::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
    }
}

#[cfg(test)]
mod tests;
