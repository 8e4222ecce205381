//! Metrics of OpenTelemetry: the messages of `opentelemetry/proto/metrics/v1`, as far as they are used.

use numakit_export::openmetrics::{Families, Family};
use numakit_export::{ExportError, ExportedValues, Number, Numbers};
use numakit_recording::{Batch, Header};
use prost::{Message, Oneof};
use std::sync::Arc;

pub const HEADERS: &[(&str, &str)] = &[("content-type", "application/x-protobuf")];

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: i32 = 2;

#[derive(Clone, PartialEq, Message)]
pub struct MetricsRequest {
    #[prost(message, repeated, tag = "1")]
    pub resources: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<MetricsResource>,
    #[prost(message, repeated, tag = "2")]
    pub scopes: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message)]
pub struct MetricsResource {
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    pub scope: Option<MetricsScope>,
    #[prost(message, repeated, tag = "2")]
    pub metrics: Vec<OtlpMetric>,
}

#[derive(Clone, PartialEq, Message)]
pub struct MetricsScope {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Attribute {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AttributeText>,
}

#[derive(Clone, PartialEq, Message)]
pub struct AttributeText {
    #[prost(string, optional, tag = "1")]
    pub text: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct OtlpMetric {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub description: String,
    #[prost(string, tag = "3")]
    pub unit: String,
    #[prost(oneof = "OtlpData", tags = "5, 7")]
    pub data: Option<OtlpData>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum OtlpData {
    #[prost(message, tag = "5")]
    Gauge(OtlpGauge),
    #[prost(message, tag = "7")]
    Sum(OtlpSum),
}

#[derive(Clone, PartialEq, Message)]
pub struct OtlpGauge {
    #[prost(message, repeated, tag = "1")]
    pub points: Vec<DataPoint>,
}

#[derive(Clone, PartialEq, Message)]
pub struct OtlpSum {
    #[prost(message, repeated, tag = "1")]
    pub points: Vec<DataPoint>,
    #[prost(int32, tag = "2")]
    pub temporality: i32,
    #[prost(bool, tag = "3")]
    pub monotonic: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct DataPoint {
    /// Of sums: when they began. 0 is absent.
    #[prost(fixed64, tag = "2")]
    pub since: u64,
    #[prost(fixed64, tag = "3")]
    pub time: u64,
    #[prost(oneof = "PointValue", tags = "4, 6")]
    pub value: Option<PointValue>,
    #[prost(message, repeated, tag = "7")]
    pub attributes: Vec<Attribute>,
}

#[derive(Clone, Copy, PartialEq, Oneof)]
pub enum PointValue {
    #[prost(double, tag = "4")]
    Float(f64),
    #[prost(sfixed64, tag = "6")]
    Integer(i64),
}

#[derive(Clone, PartialEq, Message)]
pub struct MetricsResponse {
    #[prost(message, optional, tag = "1")]
    pub partial: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
pub struct PartialSuccess {
    #[prost(int64, tag = "1")]
    pub rejected: i64,
    #[prost(string, tag = "2")]
    pub message: String,
}

fn attribute(key: &str, text: &str) -> Attribute {
    Attribute { key: key.to_owned(), value: Some(AttributeText { text: Some(text.to_owned()) }) }
}

/// All samples, grouped by metric. Nobody knows when the counters of a machine were 0, so a sum begins at the first value that is
/// sent, as the data model of OpenTelemetry has it for an unknown start: the first point has no duration.
pub fn request(header: &Header, batch: &Batch, since: &[Option<u64>]) -> MetricsRequest {
    let families = Families::new(&header.series, header.page_size, ExportedValues::Raw, &[]);
    let mut numbers = Numbers::new(&header.series, ExportedValues::Raw);
    let mut points: Vec<Vec<DataPoint>> = vec![Vec::new(); families.list().len()];
    for row in (0..batch.len()).filter(|row| batch.label[*row].is_none()) {
        let values = numbers.row(batch, row);
        for (family, points) in families.list().iter().zip(&mut points) {
            for (member, index) in family.members().iter().enumerate() {
                let Some(number) = values.get(*index).copied().flatten() else { continue };
                let attributes = family.place(member).map(|(word, number)| attribute(word, number));
                let value = Some(point_value(family.scaled(number)));
                let begun = since.get(*index).copied().flatten().filter(|_| family.is_counter());
                points.push(DataPoint {
                    since: begun.map_or(0, |begun| begun.min(batch.time[row])),
                    time: batch.time[row],
                    value,
                    attributes: attributes.into_iter().collect(),
                });
            }
        }
    }
    let filled = families.list().iter().zip(points).filter(|(_, points)| !points.is_empty());
    let metrics: Vec<OtlpMetric> = filled.map(|(family, points)| metric(family, points)).collect();
    if metrics.is_empty() {
        return MetricsRequest::default();
    }
    let attributes = vec![attribute("service.name", "numa"), attribute("host.name", &header.host)];
    let scope = MetricsScope { name: "numakit".into(), version: env!("CARGO_PKG_VERSION").into() };
    let scopes = vec![ScopeMetrics { scope: Some(scope), metrics }];
    MetricsRequest {
        resources: vec![ResourceMetrics { resource: Some(MetricsResource { attributes }), scopes }],
    }
}

fn point_value(number: Number) -> PointValue {
    let integer = match number {
        Number::Unsigned(value) => i64::try_from(value).ok(),
        Number::Signed(value) => Some(value),
        Number::Float(_) => None,
    };
    integer.map_or(PointValue::Float(number.float()), PointValue::Integer)
}

fn metric(family: &Family, points: Vec<DataPoint>) -> OtlpMetric {
    // The names of UCUM.
    let unit = match family.unit() {
        "" => "1".to_owned(),
        "bytes" => "By".to_owned(),
        "seconds" => "s".to_owned(),
        other => format!("{{{other}}}"),
    };
    let data = match family.is_counter() {
        true => OtlpData::Sum(OtlpSum { points, temporality: CUMULATIVE, monotonic: true }),
        false => OtlpData::Gauge(OtlpGauge { points }),
    };
    OtlpMetric {
        name: family.name().to_owned(),
        description: family.help().to_owned(),
        unit,
        data: Some(data),
    }
}

pub fn encode(header: &Arc<Header>, batch: Batch, since: &[Option<u64>]) -> Result<Vec<u8>, ExportError> {
    Ok(request(header, &batch, since).encode_to_vec())
}

/// The values that a collector refused although it took the request.
pub fn refused(answer: &[u8]) -> Option<(u64, String)> {
    let partial = MetricsResponse::decode(answer).ok()?.partial?;
    let rejected = u64::try_from(partial.rejected).ok().filter(|rejected| *rejected > 0)?;
    Some((rejected, partial.message))
}
