//! The header of a recording as the schema of an Arrow stream.

use super::message::{Messages, Next};
use super::seal::{self, Place};
use super::{Malformed, Message, fields};
use crate::columns::{self, Column};
use crate::header::{AbsentMetric, Header};
use arrow_ipc::{MessageHeader, TimeUnit, Type};
use flatbuffers::FlatBufferBuilder;
use numakit_model::{Instance, Kind, Metric, Scope, Series, Topology, Unit};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::Arc;

/// The key of the schema's metadata with [`Meta`] as JSON.
const KEY: &str = "numakit";
/// The version of [`Meta`]; readers refuse newer ones.
const FORMAT: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct Meta {
    format: u32,
    program: String,
    host: String,
    kernel: String,
    command: Option<String>,
    started: u64,
    #[serde(default)]
    utc_offset: Option<i32>,
    interval: u64,
    page_size: u64,
    metrics: Vec<Metric>,
    #[serde(default)]
    absent: Vec<AbsentMetric>,
    topology: Option<Topology>,
}

impl Header {
    /// Everything except the columns' names, as the JSON under the key `numakit` of a
    /// recording's metadata.
    pub fn metadata(&self) -> String {
        let mut names = HashSet::new();
        let metrics = self.series.iter().map(|s| &s.metric).filter(|m| names.insert(m.name.as_str()));
        let metrics: Vec<Metric> = metrics.map(|m| (**m).clone()).collect();
        let meta = Meta {
            format: FORMAT,
            program: self.program.clone(),
            host: self.host.clone(),
            kernel: self.kernel.clone(),
            command: self.command.clone(),
            started: self.started,
            utc_offset: self.utc_offset,
            interval: self.interval,
            page_size: self.page_size,
            metrics,
            absent: self.absent.clone(),
            topology: self.topology.clone(),
        };
        serde_json::to_string(&meta).unwrap_or_default()
    }
}

/// The first message of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Head {
    /// Its content.
    pub header: Header,
    /// The message, framed.
    pub message: Vec<u8>,
    /// The number of the stream, from which the seals of its batches start; `None` in recordings without seals.
    pub stream: Option<u32>,
}

impl Head {
    /// For a new recording.
    pub fn new(header: &Header) -> Result<Self, Malformed> {
        let bytes = encoded(&columns::recorded(header), header, true);
        let stream = only(&bytes)?.stream()?;
        Ok(Self { header: header.clone(), message: bytes, stream })
    }

    /// From a framed message.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        Self::of_message(&only(bytes)?)
    }

    /// From the first message of a stream.
    pub fn of_message(message: &Message) -> Result<Self, Malformed> {
        let stream = message.stream()?;
        let header = header_of(message)?;
        Ok(Self { header, message: super::message::framed(&message.meta, &message.body), stream })
    }
}

/// The message of these bytes.
fn only(bytes: &[u8]) -> Result<Message, Malformed> {
    match Messages::new(io::Cursor::new(bytes)).next() {
        Ok(Next::Message(message)) => Ok(message),
        Ok(Next::Damaged(why)) => Err(why),
        Ok(Next::End | Next::Open) => Err(Malformed::new("it is empty")),
        Err(error) => Err(Malformed::new(error.to_string())),
    }
}

/// The schema of columns as a message; with a seal for recordings.
pub(crate) fn encoded(columns: &[Column<'_>], header: &Header, sealed: bool) -> Vec<u8> {
    let mut builder = FlatBufferBuilder::new();
    let schema = fields::schema(&mut builder, columns, (KEY, &header.metadata()));
    let seal = sealed.then(|| (Place::default(), 0));
    seal::finish(builder, (MessageHeader::Schema, schema), &[], seal)
}

/// The header from a schema.
fn header_of(message: &Message) -> Result<Header, Malformed> {
    let table = message.table()?;
    let schema = table.header_as_schema().ok_or_else(|| Malformed::new("it does not begin with a schema"))?;
    let json = schema
        .custom_metadata()
        .and_then(|pairs| pairs.iter().find(|p| p.key() == Some(KEY)))
        .and_then(|pair| pair.value())
        .ok_or_else(|| Malformed::new("it is an Arrow stream, but not one that numa recorded"))?;
    let meta: Meta =
        serde_json::from_str(json).map_err(|e| Malformed::new(format!("its metadata is damaged: {e}")))?;
    if meta.format > FORMAT {
        return Err(Malformed::new(format!(
            "it has format {} and this numa reads up to {FORMAT}; use a newer numa",
            meta.format
        )));
    }
    Ok(Header {
        series: series_of(&schema, meta.metrics)?,
        topology: meta.topology,
        host: meta.host,
        kernel: meta.kernel,
        command: meta.command,
        program: meta.program,
        started: meta.started,
        utc_offset: meta.utc_offset,
        interval: meta.interval,
        page_size: meta.page_size,
        absent: meta.absent,
    })
}

fn series_of(schema: &arrow_ipc::Schema<'_>, metrics: Vec<Metric>) -> Result<Vec<Series>, Malformed> {
    let known: HashMap<String, Arc<Metric>> =
        metrics.into_iter().map(|m| (m.name.clone(), Arc::new(m))).collect();
    let fields = schema.fields().ok_or_else(|| Malformed::new("its schema has no columns"))?;
    if fields.len() < columns::FIXED.len() {
        return Err(Malformed::new("its schema has no columns time, took and label"));
    }
    let mut series = Vec::with_capacity(fields.len() - columns::FIXED.len());
    for (index, field) in fields.iter().enumerate() {
        let name = field.name().unwrap_or_default();
        let fixed = columns::FIXED.get(index);
        if fixed.is_some_and(|fixed| name != *fixed) {
            return Err(Malformed::new(format!(
                "column {index} is '{name}', not '{}'",
                columns::FIXED[index]
            )));
        }
        check_type(&field, index)?;
        if fixed.is_some() {
            continue;
        }
        let (metric, instance) = match name.rsplit_once('@') {
            Some((metric, instance)) => (metric, Instance::parse(instance)),
            None => (name, Some(Instance::Machine)),
        };
        let instance =
            instance.ok_or_else(|| Malformed::new(format!("column '{name}' has an unknown instance")))?;
        let metric =
            known.get(metric).cloned().unwrap_or_else(|| Arc::new(undescribed(metric, instance.scope())));
        series.push(Series { metric, instance });
    }
    Ok(series)
}

/// Whether a column has the type that is recorded.
fn check_type(field: &arrow_ipc::Field<'_>, index: usize) -> Result<(), Malformed> {
    let (right, wanted) = match index {
        0 => {
            let is_ns = |time: arrow_ipc::Timestamp<'_>| time.unit() == TimeUnit::NANOSECOND;
            (field.type_as_timestamp().is_some_and(is_ns), "times in nanoseconds")
        }
        2 => (field.type_type() == Type::Utf8, "texts (utf8)"),
        _ => (field.type_as_int().is_some_and(|int| int.bitWidth() == 64), "64-bit integers"),
    };
    let name = field.name().unwrap_or_default();
    if field.dictionary().is_some() {
        return Err(Malformed::new(format!("column '{name}' is dictionary-encoded, not plain {wanted}")));
    }
    if right { Ok(()) } else { Err(Malformed::new(format!("column '{name}' does not have {wanted}"))) }
}

/// A column that the metadata does not describe, as a gauge.
fn undescribed(name: &str, scope: Scope) -> Metric {
    Metric {
        name: name.to_owned(),
        unit: Unit::Count,
        kind: Kind::Gauge,
        scope,
        help: String::new(),
        source: String::new(),
        resolution: std::time::Duration::ZERO,
        confidence: None,
        maximum: None,
    }
}
