//! Remote write of Prometheus, version 1: a protobuf message, compressed with Snappy.

use numakit_export::openmetrics::Families;
use numakit_export::{ExportError, ExportedValues, Numbers};
use numakit_recording::{Batch, Header};
use prost::Message;
use std::io;
use std::sync::Arc;

pub const HEADERS: &[(&str, &str)] = &[
    ("content-type", "application/x-protobuf"),
    ("content-encoding", "snappy"),
    ("x-prometheus-remote-write-version", "0.1.0"),
];

#[derive(Clone, PartialEq, Message)]
pub struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    pub timeseries: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    pub labels: Vec<LabelPair>,
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<RemoteSample>,
}

#[derive(Clone, PartialEq, Message)]
pub struct LabelPair {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub value: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct RemoteSample {
    #[prost(double, tag = "1")]
    pub value: f64,
    /// ms since 1970 UTC.
    #[prost(int64, tag = "2")]
    pub timestamp: i64,
}

/// All samples of each series. Of several in one millisecond, the last is sent.
pub fn request(header: &Header, batch: &Batch) -> WriteRequest {
    let families = Families::new(&header.series, header.page_size, ExportedValues::Raw, &[]);
    let mut numbers = Numbers::new(&header.series, ExportedValues::Raw);
    let mut samples: Vec<Vec<RemoteSample>> = vec![Vec::new(); header.series.len()];
    let families = families.list();
    let mut rows: Vec<usize> = (0..batch.len()).filter(|row| batch.label[*row].is_none()).collect();
    // The protocol wants the samples of a series in order; the clock may have been set back.
    rows.sort_by_key(|row| batch.time[*row] / 1_000_000);
    for row in rows {
        let timestamp = i64::try_from(batch.time[row] / 1_000_000).unwrap_or(i64::MAX);
        let row = numbers.row(batch, row);
        for family in families {
            for index in family.members() {
                let Some(number) = row.get(*index).copied().flatten() else { continue };
                let sample = RemoteSample { value: family.scaled(number).float(), timestamp };
                match samples[*index].last_mut().filter(|last| last.timestamp == timestamp) {
                    Some(last) => *last = sample,
                    None => samples[*index].push(sample),
                }
            }
        }
    }
    let mut timeseries = Vec::new();
    for family in families {
        for (member, index) in family.members().iter().enumerate() {
            let samples = std::mem::take(&mut samples[*index]);
            if !samples.is_empty() {
                let name = family.sample_name();
                timeseries
                    .push(TimeSeries { labels: labels(name, &header.host, family.place(member)), samples });
            }
        }
    }
    WriteRequest { timeseries }
}

/// Sorted by name, as the protocol wants them.
fn labels(name: String, host: &str, place: Option<(&str, &str)>) -> Vec<LabelPair> {
    let pair = |name: &str, value: &str| LabelPair { name: name.to_owned(), value: value.to_owned() };
    let mut labels = vec![pair("__name__", &name)];
    labels.extend((!host.is_empty()).then(|| pair("host", host)));
    labels.extend(place.map(|(word, number)| pair(word, number)));
    labels.sort_by(|one, other| one.name.cmp(&other.name));
    labels
}

pub fn encode(header: &Arc<Header>, batch: Batch, _: &[Option<u64>]) -> Result<Vec<u8>, ExportError> {
    let request = request(header, &batch);
    if request.timeseries.is_empty() {
        return Ok(Vec::new());
    }
    let compressed = snap::raw::Encoder::new().compress_vec(&request.encode_to_vec());
    compressed.map_err(|error| ExportError::Output(io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::header;

    #[test]
    fn samples_are_in_order_although_the_clock_was_set_back() {
        let mut batch = Batch::empty(1);
        for (ms, value) in [(5, 1), (6, 2), (3, 3), (4, 4), (5, 5)] {
            batch.push_sample(ms * 1_000_000, 0, &[Some(value)]);
        }
        let request = request(&header(1), &batch);
        let samples: Vec<(i64, f64)> =
            request.timeseries[0].samples.iter().map(|sample| (sample.timestamp, sample.value)).collect();
        assert_eq!(samples, [(3, 3.0), (4, 4.0), (5, 5.0), (6, 2.0)]);
    }
}
