//! The tracks of a trace, and the events on them.
//!
//! A track for the recording; below it one for labels and one for each instance (`node 0`,
//! `cpu 12`); below those the counters.

use super::protobuf::ProtobufMessage;
use crate::instance_label::instance_label;
use crate::{ExportedValues, Number};
use numakit_model::{Instance, Series, Unit};
use numakit_recording::Header;
use std::collections::BTreeMap;

const RECORDING: u64 = 1;
const LABELS: u64 = 2;
/// The first counter; instances come after the last.
const COUNTERS: u64 = 3;

const TYPE_INSTANT: u64 = 3;
const TYPE_COUNTER: u64 = 4;
const ORDER_EXPLICIT: u64 = 3;

/// A `TrackDescriptor` for every track, parents first.
pub fn descriptors(header: &Header, values: ExportedValues) -> Vec<ProtobufMessage> {
    let first_place = COUNTERS + header.series.len() as u64;
    let mut places: BTreeMap<Instance, u64> = header.series.iter().map(|s| (s.instance, 0)).collect();
    places.values_mut().zip(first_place..).for_each(|(slot, uuid)| *slot = uuid);

    let mut recording = ProtobufMessage::default();
    recording.number(1, RECORDING).text(2, format!("numa {}", header.host).trim_end());
    recording.number(11, ORDER_EXPLICIT);
    let mut all = vec![recording, child(LABELS, "labels", RECORDING, 0)];
    for ((instance, uuid), rank) in places.iter().zip(1..) {
        let name = match instance_label(*instance) {
            None => "machine".to_owned(),
            Some((word, number)) => format!("{word} {number}"),
        };
        all.push(child(*uuid, &name, RECORDING, rank));
    }
    for ((series, uuid), rank) in header.series.iter().zip(COUNTERS..).zip(0..) {
        let parent = places.get(&series.instance).copied().unwrap_or(RECORDING);
        let unit = unit(series, values);
        let mut counter = ProtobufMessage::default();
        counter.text(6, &unit);
        let name = format!("{} ({unit})", series.metric.name);
        let mut track = child(uuid, &name, parent, rank);
        track.text(14, &series.metric.help).message(8, &counter);
        all.push(track);
    }
    all
}

fn child(uuid: u64, name: &str, parent: u64, rank: i64) -> ProtobufMessage {
    let mut track = ProtobufMessage::default();
    track.number(1, uuid).text(2, name).number(5, parent);
    track.number(11, ORDER_EXPLICIT).signed(12, rank);
    track
}

fn unit(series: &Series, values: ExportedValues) -> String {
    let unit = series.metric.unit;
    match (values.are_per_second(series.metric.kind), unit) {
        (false, unit) => unit.name().to_owned(),
        (true, Unit::Count) => "1/s".to_owned(),
        (true, unit) => format!("{unit}/s"),
    }
}

/// A label, as a `TrackEvent`.
pub fn instant(event: &mut ProtobufMessage, text: &str) {
    event.clear().number(9, TYPE_INSTANT).number(11, LABELS).text(23, text);
}

/// A value of a series, as a `TrackEvent`. A value that does not fit into an `int64` is a double.
pub fn counter(event: &mut ProtobufMessage, series: usize, number: Number) {
    event.clear().number(9, TYPE_COUNTER).number(11, COUNTERS + series as u64);
    let integer = match number {
        Number::Unsigned(value) => i64::try_from(value).ok(),
        Number::Signed(value) => Some(value),
        Number::Float(_) => None,
    };
    match integer {
        Some(value) => event.signed(30, value),
        None => event.double(44, number.float()),
    };
}
