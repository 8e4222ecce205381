//! QuestDB: line protocol, into tables that keep a row once.

use super::lines::LABELS;
use crate::fetch::escaped;
use numakit_export::InfluxPlace;
use numakit_recording::Header;
use std::collections::BTreeMap;

/// A table per measurement, whose rows differ by their time and tags. Line protocol adds the columns of values.
pub fn tables(header: &Header) -> Vec<String> {
    let symbol = |tag: &str| (tag.to_owned(), "SYMBOL");
    let labels = BTreeMap::from([("text".to_owned(), "VARCHAR")]);
    let mut tables = BTreeMap::from([(LABELS.to_owned(), labels)]);
    for place in header.series.iter().map(InfluxPlace::of) {
        let keys = tables.entry(place.measurement).or_insert_with(|| BTreeMap::from([symbol("kind")]));
        keys.extend(place.instance.map(|(word, _)| symbol(&word)));
    }
    tables.into_iter().flat_map(|(table, keys)| statements(&table, &keys)).collect()
}

/// A table that is there from before gets the keys too.
fn statements(table: &str, keys: &BTreeMap<String, &str>) -> [String; 2] {
    let columns: String = keys.iter().map(|(key, kind)| format!(", \"{key}\" {kind}")).collect();
    let keys: String = keys.keys().map(|key| format!(", \"{key}\"")).collect();
    let keys = format!("UPSERT KEYS(timestamp, host{keys})");
    let create = format!(
        "CREATE TABLE IF NOT EXISTS \"{table}\" (timestamp TIMESTAMP, host SYMBOL{columns}) TIMESTAMP(timestamp) \
         PARTITION BY DAY WAL DEDUP {keys}"
    );
    let alter = format!("ALTER TABLE \"{table}\" DEDUP ENABLE {keys}");
    [create, alter].map(|statement| format!("/exec?query={}", escaped(&statement)))
}
