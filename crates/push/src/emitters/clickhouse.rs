//! ClickHouse: a row per value, as JSON.

use numakit_export::{ExportError, ExportedValues, Number, Numbers};
use numakit_recording::{Batch, Header};
use serde_json::json;
use std::io::Write;
use std::sync::Arc;

/// Rows that are sent twice are one: the engine merges rows of the same key.
pub const TABLE: &str = "CREATE TABLE IF NOT EXISTS numa (time DateTime64(9, 'UTC') CODEC(Delta, ZSTD(1)), \
    host LowCardinality(String), metric LowCardinality(String), instance LowCardinality(String), \
    value Int64 CODEC(Delta, ZSTD(1)), label String) ENGINE = ReplacingMergeTree \
    PARTITION BY toYYYYMM(time) ORDER BY (metric, instance, host, time)";

const INSERT: &str = "INSERT INTO numa FORMAT JSONEachRow\n";

pub fn encode(header: &Arc<Header>, batch: Batch, _: &[Option<u64>]) -> Result<Vec<u8>, ExportError> {
    let mut numbers = Numbers::new(&header.series, ExportedValues::Raw);
    let mut body = Vec::new();
    for row in 0..batch.len() {
        let time = format!("{}.{:09}", batch.time[row] / 1_000_000_000, batch.time[row] % 1_000_000_000);
        let mut put = |metric: &str, instance: &str, value: i64, label: &str| {
            let row = json!({
                "time": time, "host": header.host, "metric": metric, "instance": instance, "value": value, "label": label,
            });
            writeln!(body, "{row}")
        };
        if let Some(text) = &batch.label[row] {
            put("label", "", 0, text)?;
            continue;
        }
        for (series, number) in header.series.iter().zip(numbers.row(&batch, row)) {
            let value = match number {
                Some(Number::Unsigned(value)) => i64::try_from(*value).ok(),
                Some(Number::Signed(value)) => Some(*value),
                Some(Number::Float(_)) | None => None,
            };
            if let Some(value) = value {
                put(&series.metric.name, series.instance.to_string().trim_start_matches('@'), value, "")?;
            }
        }
    }
    Ok(if body.is_empty() { body } else { [INSERT.as_bytes(), &body].concat() })
}
