//! Rows that are read.

use super::Cassandra;
use super::errors::CassandraError;
use super::rows::{DAY, TOOK, number, parts, time_of};
use futures_util::{StreamExt, TryStreamExt, stream};
use numakit_model::Series;
use numakit_push::FetchGrid;
use numakit_push::driver::DriverNothing;
use numakit_recording::Header;
use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::{CqlTimestamp, CqlVarint};
use std::sync::Arc;

/// Values of an answer.
const MAX_VALUES: usize = 4_000_000;
/// Partitions that are read at once.
const AT_ONCE: usize = 32;

type ReadRow = (CqlTimestamp, i32, CqlVarint);

impl Cassandra {
    /// The latest description of a host that began before a time; its rows are fetched next.
    pub async fn latest(&mut self, host: &str, before: u64) -> Result<Header, DriverNothing> {
        let header = self.description(host, before).await.map_err(|error| self.failed(&error))?;
        match header {
            Some(header) => {
                self.header = Some(Arc::new(header.clone()));
                Ok(header)
            }
            None => {
                let hosts = self.hosts().await.map_err(|error| self.failed(&error))?;
                Err(DriverNothing::Host(hosts))
            }
        }
    }

    fn failed(&self, error: &CassandraError) -> DriverNothing {
        DriverNothing::Failed(format!("{}: {error}", self.open.address.place()))
    }

    async fn description(&mut self, host: &str, before: u64) -> Result<Option<Header>, CassandraError> {
        let connected = match self.connected.take() {
            Some(connected) => connected,
            None => self.connect().await?,
        };
        let session = &self.connected.insert(connected).session;
        let (_, before, _) = parts(before);
        let query = format!(
            "select description from {}.numa_recordings where host = ? and started <= ? limit 1",
            self.open.address.database
        );
        let rows = session.query_unpaged(query, (host, before)).await?.into_rows_result();
        let row = rows.map_err(|_| CassandraError::Answer)?.maybe_first_row::<(Vec<u8>,)>();
        let packed = row.map_err(|_| CassandraError::Answer)?;
        packed.map(|(packed,)| Header::unpacked(&packed).map_err(|_| CassandraError::Answer)).transpose()
    }

    async fn hosts(&self) -> Result<Vec<String>, CassandraError> {
        let Some(connected) = &self.connected else { return Ok(Vec::new()) };
        let query =
            format!("select distinct host from {}.numa_recordings limit 20", self.open.address.database);
        let rows = connected.session.query_unpaged(query, &[]).await?.into_rows_result();
        let rows = rows.map_err(|_| CassandraError::Answer)?;
        let rows = rows.rows::<(String,)>().map_err(|_| CassandraError::Answer)?;
        Ok(rows.filter_map(Result::ok).map(|(host,)| host).collect())
    }

    /// The rows of that host in a range of time.
    pub async fn range(&self, from: u64, to: u64) -> Result<FetchGrid, DriverNothing> {
        let (Some(header), Some(connected)) = (&self.header, &self.connected) else {
            return Err(DriverNothing::Failed("rows without a host".into()));
        };
        let (session, keyspace) = (&connected.session, &self.open.address.database);
        let grid = read(session, keyspace, header, (from, to)).await.map_err(|error| self.failed(&error))?;
        grid.ok_or(DriverNothing::Long)
    }
}

/// The rows of a range; nothing if they are too many.
async fn read(
    session: &Session,
    keyspace: &str,
    header: &Header,
    (from, to): (u64, u64),
) -> Result<Option<FetchGrid>, CassandraError> {
    let query = format!(
        "select time, ns, value from {keyspace}.numa_values \
         where host = ? and series = ? and day = ? and time >= ? and time <= ?"
    );
    let values = session.prepare(query).await?;
    let names: Vec<String> = header.series.iter().map(Series::name).chain([TOOK.to_owned()]).collect();
    let days = || from / DAY..=to / DAY;
    let wanted =
        names.iter().enumerate().flat_map(|(column, name)| days().map(move |day| (column, name, day)));
    let values = &values;
    let parts_of = wanted.map(|(column, name, day)| async move {
        let rows = partition(session, values, &header.host, name, day, (from, to)).await?;
        Ok::<_, CassandraError>((column, rows))
    });
    let mut parts_of = stream::iter(parts_of).buffer_unordered(AT_ONCE);
    let (mut grid, mut count) = (FetchGrid::new(header.series.len()), 0);
    while let Some((column, rows)) = parts_of.try_next().await? {
        count += rows.len();
        if count > MAX_VALUES {
            return Ok(None);
        }
        for (time, value) in rows {
            match column == header.series.len() {
                true => grid.put_took(time, value),
                false => grid.put(time, column, value),
            }
        }
    }
    for day in days() {
        labels(session, keyspace, &header.host, day, (from, to), &mut grid).await?;
    }
    Ok(Some(grid))
}

/// Times and values of a series on a day.
async fn partition(
    session: &Session,
    query: &PreparedStatement,
    host: &str,
    name: &str,
    day: u64,
    (from, to): (u64, u64),
) -> Result<Vec<(u64, u64)>, CassandraError> {
    let ((_, first, _), (_, last, _), (day, _, _)) = (parts(from), parts(to), parts(day * DAY));
    let rows = session.execute_iter(query.clone(), (host, name, day, first, last)).await?;
    let mut rows = rows.rows_stream::<ReadRow>().map_err(|_| CassandraError::Answer)?;
    let mut found = Vec::new();
    while let Some((time, ns, value)) = rows.try_next().await.map_err(|_| CassandraError::Answer)? {
        if let (Some(time), Some(value)) = (time_of(time, ns), number(&value))
            && (from..to).contains(&time)
            && found.len() <= MAX_VALUES
        {
            found.push((time, value));
        }
    }
    Ok(found)
}

async fn labels(
    session: &Session,
    keyspace: &str,
    host: &str,
    day: u64,
    (from, to): (u64, u64),
    grid: &mut FetchGrid,
) -> Result<(), CassandraError> {
    let ((_, first, _), (_, last, _), (day, _, _)) = (parts(from), parts(to), parts(day * DAY));
    let query = format!(
        "select time, ns, label from {keyspace}.numa_labels where host = ? and day = ? and time >= ? and time <= ?"
    );
    let rows = session.query_unpaged(query, (host, day, first, last)).await?.into_rows_result();
    let rows = rows.map_err(|_| CassandraError::Answer)?;
    for row in rows.rows::<(CqlTimestamp, i32, &str)>().map_err(|_| CassandraError::Answer)? {
        let (time, ns, label) = row.map_err(|_| CassandraError::Answer)?;
        if let Some(time) = time_of(time, ns).filter(|time| (from..to).contains(time)) {
            grid.put_label(time, label);
        }
    }
    Ok(())
}
