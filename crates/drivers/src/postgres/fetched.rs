//! Rows that are read.

use super::failed;
use super::session::{Described, PostgresSession, numbers};
use super::types::Timestamp;
use futures_util::{TryStreamExt, pin_mut};
use numakit_push::FetchGrid;
use numakit_push::driver::DriverNothing;
use numakit_recording::Header;
use std::collections::HashMap;
use std::sync::Arc;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

/// Values of an answer.
const MAX_VALUES: usize = 4_000_000;
/// Hosts that are named if the wanted one is not there.
const MAX_HOSTS: i64 = 10_000;

const LATEST: &str = "select h.id, r.description from numa_recordings r join numa_hosts h on h.id = r.host \
                      where h.name = $1 and r.started < $2 order by r.started desc limit 1";
const VALUES: &str = "select time, ns, series, bits from numa_values \
                      where series = any($1) and time >= $2 and time < $3";
const LABELS: &str = "select time, ns, text from numa_labels \
                      where host = $1 and time >= $2 and time < $3 order by time, ns";

impl PostgresSession {
    /// The latest description of a host that began before a time; its rows are fetched next.
    pub async fn latest(&mut self, host: &str, before: u64) -> Result<Header, DriverNothing> {
        let found = self.client.query_opt(LATEST, &[&host, &Timestamp::of(before).0.next()]).await;
        let Some(row) = found.map_err(|error| failed(self.failed(error)))? else {
            let rows =
                self.client.query("select name from numa_hosts order by name limit $1", &[&MAX_HOSTS]).await;
            let rows = rows.map_err(|error| failed(self.failed(error)))?;
            return Err(DriverNothing::Host(rows.iter().map(|row| row.get(0)).collect()));
        };
        let (id, description): (i32, Vec<u8>) = (row.get(0), row.get(1));
        let header = Header::unpacked(&description).map_err(|error| {
            DriverNothing::Failed(format!("the description of the rows is damaged: {error}"))
        })?;
        let header = Arc::new(header);
        let numbers = numbers(&self.client, id).await.map_err(|error| failed(self.failed(error)))?;
        self.fetching = Some(Described::of(&header, id, &numbers));
        Ok(Header::clone(&header))
    }

    /// The rows of that host in a range of time.
    pub async fn range(&self, from: u64, to: u64) -> Result<FetchGrid, DriverNothing> {
        let Some(described) = &self.fetching else {
            return Err(DriverNothing::Failed("rows without a host".into()));
        };
        let mut grid = FetchGrid::new(described.series.len());
        let columns: HashMap<i32, usize> = described
            .series
            .iter()
            .enumerate()
            .filter_map(|(column, series)| Some(((*series)?, column)))
            .collect();
        let series: Vec<i32> = columns.keys().copied().chain(described.took).collect();
        let (first, last) = (Timestamp::of(from).0, Timestamp::of(to).0.next());
        let time = |row: &Row| {
            let time = row.get::<_, Timestamp>(0).time(row.get(1));
            time.filter(|time| (from..to).contains(time))
        };
        self.each(VALUES, &[&series, &first, &last], |row| {
            let (Some(time), series) = (time(row), row.get::<_, i32>(2)) else { return };
            let value = row.get::<_, i64>(3) as u64;
            match columns.get(&series) {
                Some(column) => grid.put(time, *column, value),
                None => grid.put_took(time, value),
            }
        })
        .await?;
        self.each(LABELS, &[&described.host, &first, &last], |row| {
            if let Some(time) = time(row) {
                grid.put_label(time, row.get(2));
            }
        })
        .await?;
        Ok(grid)
    }

    /// Each row of an answer, as it arrives.
    async fn each(
        &self,
        query: &str,
        parameters: &[&(dyn ToSql + Sync)],
        mut take: impl FnMut(&Row),
    ) -> Result<(), DriverNothing> {
        let rows = self.client.query_raw(query, parameters.iter().copied()).await;
        let rows = rows.map_err(|error| failed(self.failed(error)))?;
        pin_mut!(rows);
        let mut count = 0;
        while let Some(row) = rows.try_next().await.map_err(|error| failed(self.failed(error)))? {
            count += 1;
            if count > MAX_VALUES {
                return Err(DriverNothing::Long);
            }
            take(&row);
        }
        Ok(())
    }
}
