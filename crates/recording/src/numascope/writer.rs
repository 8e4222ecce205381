//! Writes recordings in the original's format.

use super::names;
use crate::batch::Batch;
use crate::header::Header;
use crate::rates::Rates;
use numakit_model::Kind;
use serde_json::json;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Writes a recording in that format: counters as rates per second, gauges as levels, both as
/// integers. A value that was not measured is `null`, which the original's page shows as
/// a gap. That page needs a sample as the first row and as the last, so labels at the ends
/// are after the first sample and before the last one.
pub struct Writer<W> {
    to: W,
    kinds: Vec<Kind>,
    rates: Rates,
    values: Vec<Option<u64>>,
    /// Whether there was a sample.
    seen: bool,
    /// Whether a sample was written.
    written: bool,
    /// The row of the latest sample, which may be the last.
    latest: Option<String>,
    /// Rows of labels that wait for the next sample.
    labels: Vec<String>,
}

impl<W: Write> Writer<W> {
    /// Writes the head of the file.
    pub fn new(mut to: W, header: &Header) -> io::Result<Self> {
        let (head, headings) = names::rows_for(header);
        write!(to, "[{head},\n{}", json!(headings))?;
        Ok(Self {
            to,
            kinds: header.series.iter().map(|s| s.metric.kind).collect(),
            rates: Rates::new(&header.series),
            values: vec![None; header.series.len()],
            seen: false,
            written: false,
            latest: None,
            labels: Vec::new(),
        })
    }

    /// Writes rows.
    pub fn batch(&mut self, batch: &Batch) -> io::Result<()> {
        for row in 0..batch.len() {
            let micros = batch.time[row] / 1000;
            if let Some(text) = &batch.label[row] {
                self.labels.push(json!(["label", micros, text]).to_string());
                continue;
            }
            batch.row(row, &mut self.values);
            let text = self.sample(batch.time[row], micros);
            // The first value of a counter has no rate.
            let first = !std::mem::replace(&mut self.seen, true);
            if first && self.kinds.iter().any(|kind| matches!(kind, Kind::Counter { .. })) {
                continue;
            }
            if let Some(before) = self.latest.replace(text) {
                write!(self.to, ",\n{before}")?;
                self.written = true;
                self.write_labels()?;
            }
        }
        Ok(())
    }

    /// The row of a sample.
    fn sample(&mut self, time: u64, micros: u64) -> String {
        let rates = self.rates.push(time, &self.values);
        let mut text = format!("[{micros}");
        for ((kind, value), rate) in self.kinds.iter().zip(&self.values).zip(rates) {
            // Writing to a string cannot fail.
            let _ = match (kind, value, rate) {
                (Kind::Counter { .. }, _, Some(rate)) => write!(text, ",{}", rate.round() as i64),
                (Kind::Gauge, Some(level), _) => write!(text, ",{level}"),
                (Kind::Rate, Some(rate), _) => write!(text, ",{}", *rate as i64),
                _ => write!(text, ",null"),
            };
        }
        text.push(']');
        text
    }

    fn write_labels(&mut self) -> io::Result<()> {
        self.labels.drain(..).try_for_each(|label| write!(self.to, ",\n{label}"))
    }

    /// Writes the end of the file.
    pub fn finish(mut self) -> io::Result<()> {
        let last = self.latest.take();
        if self.written {
            self.write_labels()?;
        }
        if let Some(last) = last {
            write!(self.to, ",\n{last}")?;
        }
        self.write_labels()?;
        writeln!(self.to, "\n]")?;
        self.to.flush()
    }
}
