//! The tables: made if they are missing, and checked whenever a session starts.

use super::errors::CassandraError;
use scylla::client::session::Session;
use std::collections::BTreeSet;

/// Of the tables.
const VERSION: i32 = 1;
/// Longest name of a keyspace.
const MAX_NAME: usize = 48;
/// With the time to live in the place of `TTL`. Windows of a day: what has expired is dropped as whole files.
const TABLES: [&str; 5] = [
    "numa_schema (version int primary key, content list<text>)",
    "numa_series (host text, series text, unit text, kind text, help text, primary key (host, series))",
    "numa_recordings (host text, started timestamp, ns int, description blob, primary key (host, started, ns)) \
     with clustering order by (started desc, ns desc)",
    "numa_values (host text, series text, day date, time timestamp, ns int, value varint, \
     primary key ((host, series, day), time, ns)) with compaction = {'class': 'TimeWindowCompactionStrategy', \
     'compaction_window_unit': 'DAYS', 'compaction_window_size': 1} and default_time_to_live = TTL",
    "numa_labels (host text, day date, time timestamp, ns int, label text, primary key ((host, day), time, ns, label)) \
     with compaction = {'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'DAYS', \
     'compaction_window_size': 1} and default_time_to_live = TTL",
];
const COLUMNS: &str =
    "select table_name, column_name, type, kind from system_schema.columns where keyspace_name = ?";

/// Checks a name, which statements contain as it is.
pub fn check_name(name: &str) -> Result<(), CassandraError> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_valid = name.len() <= MAX_NAME
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(is_word);
    if is_valid { Ok(()) } else { Err(CassandraError::Name(name.chars().take(80).collect())) }
}

/// Makes what is missing, and checks what is there.
pub async fn prepare(
    session: &Session,
    keyspace: &str,
    replication: Option<&str>,
    ttl: i32,
) -> Result<(), CassandraError> {
    let name = keyspace.to_ascii_lowercase();
    if !has_keyspace(session, &name).await? {
        let replication = replication.ok_or_else(|| CassandraError::Keyspace(keyspace.to_owned()))?;
        let create = format!(
            "create keyspace if not exists {keyspace} with replication = \
             {{'class': 'NetworkTopologyStrategy', 'replication_factor': {replication}}}"
        );
        session.query_unpaged(create, &[]).await?;
    }
    let has_schema = content(session, &name).await?.iter().any(|line| line.starts_with("numa_schema "));
    let noted = if has_schema { noted(session, keyspace).await? } else { None };
    let Some((found, content_then)) = noted else { return make(session, keyspace, ttl).await };
    if found != VERSION {
        return Err(CassandraError::Version { found, known: VERSION });
    }
    let now = content(session, &name).await?;
    match content_then.iter().find(|line| !now.contains(*line)) {
        Some(line) => Err(CassandraError::Changed(format!("'{line}' is missing"))),
        None => Ok(()),
    }
}

/// Makes the tables, and notes their version last. A server that is killed soon after may have the tables and not the note.
async fn make(session: &Session, keyspace: &str, ttl: i32) -> Result<(), CassandraError> {
    for table in TABLES {
        let table = table.replace("TTL", &ttl.to_string());
        session.query_unpaged(format!("create table if not exists {keyspace}.{table}"), &[]).await?;
    }
    let content = content(session, &keyspace.to_ascii_lowercase()).await?;
    let insert = format!("insert into {keyspace}.numa_schema (version, content) values (?, ?)");
    session.query_unpaged(insert, (VERSION, content.into_iter().collect::<Vec<_>>())).await?;
    Ok(())
}

/// The latest version that was noted, and the columns that its tables had then.
async fn noted(session: &Session, keyspace: &str) -> Result<Option<(i32, Vec<String>)>, CassandraError> {
    let query = format!("select version, content from {keyspace}.numa_schema");
    let rows = session.query_unpaged(query, &[]).await?.into_rows_result();
    let rows = rows.map_err(|_| CassandraError::Answer)?;
    let rows = rows.rows::<(i32, Vec<String>)>().map_err(|_| CassandraError::Answer)?;
    Ok(rows.filter_map(Result::ok).max())
}

async fn has_keyspace(session: &Session, name: &str) -> Result<bool, CassandraError> {
    let query = "select keyspace_name from system_schema.keyspaces where keyspace_name = ?";
    let rows = session.query_unpaged(query, (name,)).await?.into_rows_result();
    Ok(rows.map_err(|_| CassandraError::Answer)?.rows_num() > 0)
}

/// The columns of the tables.
async fn content(session: &Session, name: &str) -> Result<BTreeSet<String>, CassandraError> {
    let rows = session.query_unpaged(COLUMNS, (name,)).await?.into_rows_result();
    let rows = rows.map_err(|_| CassandraError::Answer)?;
    let rows = rows.rows::<(String, String, String, String)>().map_err(|_| CassandraError::Answer)?;
    let ours = rows.filter_map(Result::ok).filter(|row| row.0.starts_with("numa_"));
    Ok(ours.map(|(table, column, kind, key)| format!("{table} {column} {kind} {key}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_can_be_in_statements() {
        for name in ["numa", "N_1"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", "1a", "a b", "a;drop", "a\"", "a-b", &"a".repeat(49)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }
}
