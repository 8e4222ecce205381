//! Rows from InfluxDB 1: all fields of each measurement, by the description that was pushed with them.

use super::{Asker, FetchError, FetchGrid, FetchRequest, Source, no_such_host};
use crate::emitters::lines::{DESCRIPTION, LABELS, described};
use numakit_export::InfluxPlace;
use numakit_recording::{Batch, Header};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};

pub struct Influx<'a> {
    request: &'a FetchRequest<'a>,
    asker: Asker,
    /// Where the value of a measurement's tags and field is.
    columns: HashMap<InfluxPlace, usize>,
}

/// One table of an answer.
struct Table<'a> {
    tags: HashMap<&'a str, &'a str>,
    columns: Vec<&'a str>,
    rows: &'a [Value],
}

impl<'a> Influx<'a> {
    pub fn new(request: &'a FetchRequest<'a>, asker: Asker) -> Self {
        Self { request, asker, columns: HashMap::new() }
    }

    fn query(&mut self, query: &str) -> Result<Value, FetchError> {
        let database = self.request.target.value("db").unwrap_or_default().to_owned();
        // The database is written in the address as it is sent.
        let path = format!("/query?db={database}&epoch=ns");
        let answer = self.asker.ask("/write", &path, &[("q", query)])?;
        match answer["results"][0].get("error") {
            Some(_) => Err(FetchError::Answer("it has an error")),
            None => Ok(answer),
        }
    }
}

impl Source for Influx<'_> {
    fn hosts(&mut self) -> Result<Vec<String>, FetchError> {
        let answer = self.query(&format!("SHOW TAG VALUES FROM {DESCRIPTION} WITH KEY = host"))?;
        let tables = tables(&answer);
        let rows = tables.iter().flat_map(|table| table.rows);
        Ok(rows.filter_map(|row| row[1].as_str().map(str::to_owned)).collect())
    }

    fn header(&mut self) -> Result<Header, FetchError> {
        let (host, to) = (quoted(self.request.host, '\''), self.request.range.1);
        let query = format!(
            "SELECT * FROM {DESCRIPTION} WHERE host = {host} AND time < {to} ORDER BY time DESC LIMIT 1"
        );
        let answer = self.query(&query)?;
        let Some(table) = tables(&answer).into_iter().next() else {
            let hosts = self.hosts();
            return Err(no_such_host(self.request, hosts));
        };
        let row = table.rows.first().ok_or(FetchError::Answer("it has no rows"))?;
        let field = |name: &str| row.get(table.columns.iter().position(|column| *column == name)?)?.as_str();
        let header = described(field).map_err(FetchError::Description)?;
        let places = header.series.iter().enumerate().map(|(index, series)| (InfluxPlace::of(series), index));
        self.columns = places.collect();
        Ok(header)
    }

    fn rows(&mut self, header: &Header, (from, to): (u64, u64)) -> Result<Batch, FetchError> {
        let measurements: BTreeSet<&str> =
            self.columns.keys().map(|place| place.measurement.as_str()).collect();
        let names = measurements.iter().copied().chain([LABELS]).map(|name| quoted(name, '"'));
        let names = names.collect::<Vec<_>>().join(", ");
        let host = quoted(self.request.host, '\'');
        let query = format!(
            "SELECT * FROM {names} WHERE host = {host} AND time >= {from} AND time < {to} GROUP BY *"
        );
        let answer = self.query(&query)?;
        let mut grid = FetchGrid::new(header.series.len());
        let all = answer["results"][0]["series"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (table, series) in tables(&answer).iter().zip(all) {
            self.fill(&mut grid, series["name"].as_str().unwrap_or_default(), table);
        }
        Ok(grid.batch())
    }
}

impl Influx<'_> {
    fn fill(&self, grid: &mut FetchGrid, measurement: &str, table: &Table<'_>) {
        let column = |field: &str| {
            let kind = *table.tags.get("kind")?;
            let kind = ["counter", "gauge", "rate"].into_iter().find(|known| *known == kind)?;
            let other =
                table.tags.iter().find(|(key, value)| !matches!(**key, "kind" | "host") && !value.is_empty());
            let place = InfluxPlace {
                measurement: measurement.to_owned(),
                instance: other.map(|(word, number)| ((*word).to_owned(), (*number).to_owned())),
                kind,
                field: field.to_owned(),
            };
            self.columns.get(&place).copied()
        };
        let columns: Vec<Option<usize>> = table.columns.iter().map(|field| column(field)).collect();
        for row in table.rows.iter().filter_map(Value::as_array) {
            let Some(time) = row.first().and_then(Value::as_u64) else { continue };
            for ((cell, column), field) in row.iter().zip(&columns).zip(&table.columns).skip(1) {
                if let (Some(column), Some(value)) = (column, cell.as_i64()) {
                    grid.put(time, *column, value as u64);
                } else if measurement == LABELS
                    && *field == "text"
                    && let Some(text) = cell.as_str()
                {
                    grid.put_label(time, text);
                }
            }
        }
    }
}

/// The tables of an answer.
fn tables(answer: &Value) -> Vec<Table<'_>> {
    let series = answer["results"][0]["series"].as_array().map(Vec::as_slice).unwrap_or_default();
    let table = |series: &'_ Value| -> Option<()> { series.get("columns").map(|_| ()) };
    series
        .iter()
        .filter(|series| table(series).is_some())
        .map(|series| Table {
            tags: series["tags"]
                .as_object()
                .map(|tags| {
                    tags.iter().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect()
                })
                .unwrap_or_default(),
            columns: series["columns"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|c| c.as_str().unwrap_or_default())
                .collect(),
            rows: series["values"].as_array().map(Vec::as_slice).unwrap_or_default(),
        })
        .collect()
}

/// A name or a text in the language of queries.
fn quoted(text: &str, quote: char) -> String {
    let mut quoted = String::from(quote);
    for c in text.chars().filter(|c| !c.is_control()) {
        if c == quote || c == '\\' {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push(quote);
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_cannot_end_its_quotes() {
        assert_eq!(quoted("a' OR '1'='1", '\''), "'a\\' OR \\'1\\'=\\'1'");
        assert_eq!(quoted("\\\n", '\''), "'\\\\'");
    }
}
