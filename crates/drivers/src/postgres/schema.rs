//! The tables: made by numbered migrations, and checked whenever a session starts.

use super::errors::PostgresError;
use std::collections::BTreeSet;
use tokio_postgres::{Client, Transaction};

/// Each makes of a version the next.
const MIGRATIONS: [&str; 1] = [include_str!("migrations/1.sql")];
/// Rows with the columns and keys of the tables.
const CONTENT: &str = include_str!("content.sql");
/// Of all programs that make the tables, one does it at a time. Any number that others do not use.
const LOCK: i64 = 0x6e75_6d61_6b69;
/// With the schema of the extension in the place of `SCHEMA`. Values of the last seven days are not compressed: rows that were waiting in a spool come late.
const TIMESCALE: [&str; 3] = [
    "select SCHEMA.create_hypertable('numa_values', 'time', chunk_time_interval => interval '1 day', \
     create_default_indexes => false)",
    "alter table numa_values set (timescaledb.compress, timescaledb.compress_segmentby = 'series', \
     timescaledb.compress_orderby = 'time')",
    "select SCHEMA.add_compression_policy('numa_values', interval '7 days')",
];

/// Why the tables cannot be used.
pub enum WrongSchema {
    /// The engine says it.
    Engine(tokio_postgres::Error),
    /// They are not as this program needs them.
    Tables(PostgresError),
}

impl From<tokio_postgres::Error> for WrongSchema {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Engine(error)
    }
}

/// Makes what is missing, and checks what is there.
pub async fn prepare(client: &mut Client) -> Result<(), WrongSchema> {
    let known = MIGRATIONS.len() as i32;
    let mut version = version(client).await?;
    if version < known {
        version = migrate(client).await?;
    }
    if version > known {
        return Err(WrongSchema::Tables(PostgresError::Newer { found: version, known }));
    }
    let row = client.query_one("select content from numa_schema where version = $1", &[&version]).await?;
    let (then, now): (Vec<String>, BTreeSet<String>) = (row.get(0), content(client).await?);
    let then: BTreeSet<String> = then.into_iter().collect();
    match change(&then, &now) {
        Some(change) => Err(WrongSchema::Tables(PostgresError::Changed(change))),
        None => Ok(()),
    }
}

/// The first difference that matters. What users add matters only if rows without it are refused.
fn change(then: &BTreeSet<String>, now: &BTreeSet<String>) -> Option<String> {
    let missing = then.difference(now).next().map(|line| format!("'{line}' is missing"));
    let added =
        || now.difference(then).find(|line| is_strict(line)).map(|line| format!("'{line}' was added"));
    missing.or_else(added)
}

/// Whether rows that have no value of it are refused.
fn is_strict(line: &str) -> bool {
    line.ends_with(" not null")
}

async fn version(client: &Client) -> Result<i32, WrongSchema> {
    let found = client.query_one("select to_regclass('numa_schema') is not null", &[]).await?;
    if !found.get::<_, bool>(0) {
        return Ok(0);
    }
    let row = client.query_one("select coalesce(max(version), 0) from numa_schema", &[]).await?;
    Ok(row.get(0))
}

async fn content(
    client: &impl tokio_postgres::GenericClient,
) -> Result<BTreeSet<String>, tokio_postgres::Error> {
    Ok(client.query(CONTENT, &[]).await?.iter().map(|row| row.get(0)).collect())
}

/// Runs the migrations that are missing, all or none. Returns the version.
async fn migrate(client: &mut Client) -> Result<i32, WrongSchema> {
    let mut work = client.transaction().await?;
    work.execute("select pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    work.batch_execute(
        "create table if not exists numa_schema (
             version integer primary key,
             made timestamptz not null default now(),
             content text[] not null
         )",
    )
    .await?;
    let row = work.query_one("select coalesce(max(version), 0) from numa_schema", &[]).await?;
    let done: i32 = row.get(0);
    let mut version = done;
    for migration in MIGRATIONS.iter().skip(usize::try_from(done).unwrap_or(usize::MAX)) {
        if version == 0 && !content(&work).await?.is_empty() {
            return Err(WrongSchema::Tables(PostgresError::Foreign));
        }
        work.batch_execute(migration).await?;
        version += 1;
        if version == 1 {
            timescale(&mut work).await?;
        }
        let content: Vec<String> = content(&work).await?.into_iter().collect();
        work.execute("insert into numa_schema (version, content) values ($1, $2)", &[&version, &content])
            .await?;
    }
    work.commit().await?;
    Ok(version)
}

/// Partitions and compresses the values, if the database has the extension. Its edition without compression does the first only.
async fn timescale(work: &mut Transaction<'_>) -> Result<(), WrongSchema> {
    let schema = "select quote_ident(n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace \
                  where e.extname = 'timescaledb'";
    let Some(row) = work.query_opt(schema, &[]).await? else { return Ok(()) };
    let schema: String = row.get(0);
    for statement in TIMESCALE {
        let statement = statement.replace("SCHEMA", &schema);
        let part = work.transaction().await?;
        match part.batch_execute(&statement).await {
            Ok(()) => part.commit().await?,
            Err(error) if error.as_db_error().is_some() => {
                part.rollback().await?;
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_that_matter_are_changes() {
        let lines =
            |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<BTreeSet<String>>();
        let then = lines(&["a.b bigint not null", "a PRIMARY KEY (b)"]);
        let of = |added: &[&str]| change(&then, &then.union(&lines(added)).cloned().collect());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["a.note text", "a UNIQUE (note)"]), None);
        assert!(of(&["a.note text not null"]).unwrap().contains("was added"));
        let other = lines(&["a.b integer not null", "a PRIMARY KEY (b)"]);
        assert_eq!(change(&then, &other).unwrap(), "'a.b bigint not null' is missing");
    }
}
