//! The columns of a recording as other programs see them: types, units, kinds and what they mean.

use crate::arrow;
use crate::header::Header;
use arrow_schema::{DataType, Field, TimeUnit};
use numakit_model::Series;
use std::collections::HashMap;

/// Columns before the series.
pub(crate) const FIXED: [&str; 3] = ["time", "took", "label"];

/// The fields of a recording.
///
/// All numbers are signed, so that the difference of two values that fell is negative in programs
/// that know nothing of counters. The words are the same 64 bits as the sensor gave: what is
/// 2^63 or more (no kernel counts so far) shows as negative elsewhere, and here as it was.
pub(crate) fn recorded(header: &Header) -> Vec<Field> {
    let series = header.series.iter();
    fields(series.map(|series| (series.name(), Some(series), DataType::Int64)))
}

/// The schema of a table that was made of a recording, as the message that an Arrow stream begins
/// with: the three columns before the series, then one each by its name and whether its values are
/// floats.
pub fn schema_message(header: &Header, columns: &[(String, bool)]) -> Vec<u8> {
    let series = header.series.iter().map(Some).chain(std::iter::repeat(None));
    let of = |((name, floats), series): (&(String, bool), _)| {
        (name.clone(), series, if *floats { DataType::Float64 } else { DataType::Int64 })
    };
    arrow::encoded(header, fields(columns.iter().zip(series).map(of)))
}

fn fields<'a>(series: impl Iterator<Item = (String, Option<&'a Series>, DataType)>) -> Vec<Field> {
    let described = |field: Field, unit: &str, kind: &str, help: &str| {
        let pairs = [("unit", unit), ("kind", kind), ("help", help)];
        let there = pairs.iter().filter(|(_, value)| !value.is_empty());
        field.with_metadata(
            there.map(|(key, value)| (key.to_string(), value.to_string())).collect::<HashMap<_, _>>(),
        )
    };
    let time = DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()));
    let mut fields = vec![
        described(Field::new(FIXED[0], time, false), "", "", "Start of the acquisition."),
        described(Field::new(FIXED[1], DataType::Int64, false), "ns", "gauge", "Length of the acquisition."),
        described(Field::new(FIXED[2], DataType::Utf8, true), "", "", "A label, in a row of its own."),
    ];
    fields.extend(series.map(|(name, series, kind)| {
        let rate = kind == DataType::Float64;
        let field = Field::new(name, kind, true);
        let Some(metric) = series.map(|series| &series.metric) else { return field };
        match rate {
            true => described(field, &format!("{}/s", metric.unit.name()), "rate", &metric.help),
            false => described(field, metric.unit.name(), metric.kind.name(), &metric.help),
        }
    }));
    fields
}
