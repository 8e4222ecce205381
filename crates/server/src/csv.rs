//! Samples as comma-separated values.

use crate::client_request_error::ClientRequestError;
use crate::source::{ShownSource, numbers};
use crate::wire::VALUES;
use std::fmt::Write;

/// A query of `GET /export.csv`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// The source.
    pub source: u32,
    /// Its series.
    pub series: Vec<u32>,
    /// Start, ns since 1970.
    pub from: u64,
    /// End.
    pub to: u64,
    /// Maximum number of lines.
    pub rows: usize,
}

/// Default of `rows`.
const ROWS: usize = 10_000;

impl Query {
    /// Parses the part after the `?`.
    pub fn parse(text: &str) -> Result<Self, ClientRequestError> {
        let mut query = Self { to: u64::MAX, rows: ROWS, ..Self::default() };
        for (key, value) in text.split('&').filter(|p| !p.is_empty()).filter_map(|p| p.split_once('=')) {
            let error = || ClientRequestError::Number {
                key: key.to_owned(),
                value: value.chars().take(40).collect(),
            };
            let number = || value.parse::<u64>().map_err(|_| error());
            match key {
                "source" => query.source = u32::try_from(number()?).map_err(|_| error())?,
                "series" => {
                    let all = value.replace("%2C", ",").replace("%2c", ",");
                    let list: Result<_, _> = all.split(',').map(str::parse).collect();
                    query.series = list.map_err(|_| ClientRequestError::List(all))?;
                }
                "from" => query.from = number()?,
                "to" => query.to = number()?,
                "rows" => query.rows = usize::try_from(number()?).map_err(|_| error())?,
                _ => return Err(ClientRequestError::Unknown(key.to_owned())),
            }
        }
        if query.series.is_empty() {
            return Err(ClientRequestError::NothingAsked);
        }
        if query.series.len().saturating_mul(query.rows) > VALUES {
            return Err(ClientRequestError::TooManyRows);
        }
        Ok(query)
    }
}

/// A line for every row if there are at most `rows`, otherwise minimum, maximum and mean of `rows`
/// buckets. Times are in seconds since 1970; values that were not measured are empty.
pub fn text(shown: &ShownSource, query: &Query) -> Result<String, ClientRequestError> {
    shown.check(&query.series)?;
    let (first, last) = shown.data.span().unwrap_or_default();
    let (from, to) = (query.from.max(first), query.to.min(last.saturating_add(1)));
    let series = numbers(&query.series);
    let names = query.series.iter().map(|s| shown.names[*s as usize].as_str());
    let mut out = String::from("time");
    if let Some(raw) = shown.data.raw(&series, from, to, query.rows) {
        names.for_each(|name| field(&mut out, name));
        for (row, time) in raw.times.iter().enumerate() {
            line(&mut out, *time, raw.columns.iter().map(|c| c[row]));
        }
    } else {
        for name in names {
            ["min", "max", "mean"].iter().for_each(|what| field(&mut out, &format!("{name} {what}")));
        }
        let buckets = shown.data.buckets(&series, from, to, query.rows);
        for row in 0..buckets.columns.first().map_or(0, |c| c.min.len()) {
            let time = buckets.from_ns.saturating_add(buckets.step_ns.saturating_mul(row as u64));
            line(&mut out, time, buckets.columns.iter().flat_map(|c| [c.min[row], c.max[row], c.mean[row]]));
        }
    }
    out.push('\n');
    Ok(out)
}

fn field(out: &mut String, name: &str) {
    let quoted = name.contains([',', '"', '\n', '\r']);
    let _ = if quoted { write!(out, ",\"{}\"", name.replace('"', "\"\"")) } else { write!(out, ",{name}") };
}

fn line(out: &mut String, time: u64, values: impl Iterator<Item = f32>) {
    let _ = write!(out, "\n{}.{:09}", time / 1_000_000_000, time % 1_000_000_000);
    for value in values {
        out.push(',');
        if !value.is_nan() {
            let _ = write!(out, "{value}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::shown;

    #[test]
    fn queries_are_parsed() {
        let query = Query::parse("source=1&series=2,3&from=4&to=5&rows=6").unwrap();
        assert_eq!(query, Query { source: 1, series: vec![2, 3], from: 4, to: 5, rows: 6 });
        assert_eq!(Query::parse("series=1%2C2").unwrap().series, [1, 2]);
        for bad in ["", "series=", "series=x", "series=1&rows=-1", "series=1&x=2", "series=1&rows=99999999"] {
            assert!(Query::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn rows_and_buckets_are_written() {
        let shown = shown(&["a", "b,c"], 4);
        let ask = |rows| Query { source: 0, series: vec![0, 1], from: 0, to: u64::MAX, rows };
        assert_eq!(
            text(&shown, &ask(100)).unwrap(),
            "time,a,\"b,c\"\n1.000000000,0,\n1.001000000,1,\n1.002000000,2,\n1.003000000,3,\n"
        );
        let buckets = text(&shown, &ask(2)).unwrap();
        assert!(buckets.starts_with("time,a min,a max,a mean,\"b,c min\""), "{buckets}");
        assert!(text(&shown, &Query { series: vec![9], ..ask(1) }).is_err());
    }
}
