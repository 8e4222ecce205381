//! A source as clients see it.

use crate::client_request_error::ClientRequestError;
use crate::comparer::RecordedRows;
use crate::examiner::Examiner;
use crate::frame::Frame;
use crate::wire::{self, SourceInfo, VALUES};
use numakit_history::{Label, Source};
use std::sync::Arc;

/// A source and its description.
#[derive(Clone)]
pub struct ShownSource {
    /// Its description.
    pub info: Arc<SourceInfo>,
    /// Its samples.
    pub data: Arc<dyn Source>,
    /// Names of its series.
    pub names: Arc<[String]>,
    /// Finds what is wrong in a range.
    pub examiner: Arc<Examiner>,
    /// The rows of a recording; live samples have a history only.
    pub rows: Option<RecordedRows>,
}

/// A fetch of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// Number of the answer.
    pub id: u32,
    /// Series, by number.
    pub series: Vec<u32>,
    /// Start.
    pub from: u64,
    /// End.
    pub to: u64,
    /// Maximum number of buckets.
    pub buckets: usize,
}

impl ShownSource {
    /// A source that is not shown yet.
    pub fn new(info: SourceInfo, names: Vec<String>, data: Arc<dyn Source>, examiner: Examiner) -> Self {
        Self { info: Arc::new(info), data, names: names.into(), examiner: Arc::new(examiner), rows: None }
    }

    /// Checks that these series exist.
    pub fn check(&self, series: &[u32]) -> Result<(), ClientRequestError> {
        let count = self.names.len();
        if series.len() > wire::SERIES {
            return Err(ClientRequestError::TooManySeries(series.len()));
        }
        match series.iter().find(|s| **s as usize >= count) {
            Some(&series) => Err(ClientRequestError::NoSeries { series, count }),
            None => Ok(()),
        }
    }

    /// The rows of a range if there are at most `buckets`, otherwise buckets.
    pub fn answer(&self, range: &Range) -> Result<Frame, ClientRequestError> {
        self.check(&range.series)?;
        if range.series.len().saturating_mul(range.buckets) > VALUES {
            return Err(ClientRequestError::TooManyValues {
                series: range.series.len(),
                buckets: range.buckets,
            });
        }
        let series = numbers(&range.series);
        let (id, source) = (range.id, self.info.id);
        Ok(match self.data.raw(&series, range.from, range.to, range.buckets) {
            Some(raw) => Frame::of_rows(id, source, &range.series, range.from, &raw),
            None => {
                let buckets = self.data.buckets(&series, range.from, range.to, range.buckets);
                Frame::of_range(id, source, &range.series, &buckets)
            }
        })
    }

    /// Its labels.
    pub fn labels(&self) -> Vec<wire::WireLabel> {
        self.data.labels().into_iter().map(label).collect()
    }
}

/// A label as in messages.
pub fn label(label: Label) -> wire::WireLabel {
    wire::WireLabel { id: label.id, time_ns: wire::Ns(label.time_ns), text: label.text }
}

/// Series numbers as indices.
pub fn numbers(series: &[u32]) -> Vec<usize> {
    series.iter().map(|s| *s as usize).collect()
}
