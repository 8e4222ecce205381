//! A connection whose tables were checked, and rows that are written by it.

use super::errors::PostgresError;
use super::schema::{self, WrongSchema};
use super::types::Timestamp;
use numakit_model::Series;
use numakit_push::Delivery;
use numakit_recording::{Batch, Header};
use std::collections::HashMap;
use std::sync::Arc;
use tokio_postgres::Client;

/// The series with the duration of samples.
pub const TOOK: [&str; 5] = ["sample.took", "", "ns", "gauge", "How long it took to read all sensors."];

const HOST: &str = "insert into numa_hosts (name) select $1 where not exists (select from numa_hosts where name = $1) \
                    on conflict do nothing";
/// Without the join, each description would use up numbers of the sequence.
const NEW_SERIES: &str = "
insert into numa_series (host, metric, instance, unit, kind, help)
select $1, n.* from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[]) n (metric, instance, unit, kind, help)
where not exists (
    select from numa_series s where s.host = $1 and s.metric = n.metric and s.instance = n.instance
)
on conflict do nothing";
const KNOWN_SERIES: &str = "
update numa_series s set unit = n.unit, kind = n.kind, help = n.help
from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[]) n (metric, instance, unit, kind, help)
where s.host = $1 and s.metric = n.metric and s.instance = n.instance
and (s.unit, s.kind, s.help) is distinct from (n.unit, n.kind, n.help)";
const DESCRIPTION: &str = "insert into numa_recordings (host, digest, started, description) \
                           values ($1, md5($3::bytea), $2, $3::bytea) on conflict do nothing";
const LABELS: &str = "insert into numa_labels (host, time, ns, text) \
                      select $1, l.* from unnest($2::timestamptz[], $3::smallint[], $4::text[]) l on conflict do nothing";
const VALUES: &str = "insert into numa_values (time, bits, series, ns) \
                      select * from unnest($1::timestamptz[], $2::bigint[], $3::integer[], $4::smallint[]) \
                      on conflict do nothing";

/// A connection.
pub struct PostgresSession {
    pub(super) client: Client,
    pub(super) place: String,
    described: Option<Described>,
    /// What is fetched.
    pub(super) fetching: Option<Described>,
}

/// A description that is in the tables.
pub struct Described {
    pub header: Arc<Header>,
    pub host: i32,
    /// The number of each column's series, and that of the durations.
    pub series: Vec<Option<i32>>,
    pub took: Option<i32>,
}

/// Values of a batch, one array per column of the table.
#[derive(Default)]
struct Values {
    times: Vec<Timestamp>,
    bits: Vec<i64>,
    series: Vec<i32>,
    ns: Vec<i16>,
    /// Values of samples in the microsecond of the one before.
    too_close: u64,
}

impl PostgresSession {
    /// Checks the tables, and makes those that are missing.
    pub async fn start(mut client: Client, place: String) -> Result<Self, PostgresError> {
        match schema::prepare(&mut client).await {
            Ok(()) => Ok(Self { client, place, described: None, fetching: None }),
            Err(WrongSchema::Engine(error)) => Err(PostgresError::Engine { place, error }),
            Err(WrongSchema::Tables(error)) => Err(error),
        }
    }

    /// Whether it is of use.
    pub fn is_open(&self) -> bool {
        !self.client.is_closed()
    }

    pub(super) fn failed(&self, error: tokio_postgres::Error) -> PostgresError {
        PostgresError::Engine { place: self.place.clone(), error }
    }

    /// Writes rows.
    pub async fn write(&mut self, header: &Arc<Header>, batch: &Batch) -> Result<Delivery, PostgresError> {
        let described = match self.described.take().filter(|last| Arc::ptr_eq(&last.header, header)) {
            Some(described) => described,
            None => self.register(header).await.map_err(|error| self.failed(error))?,
        };
        let written = self.insert(&described, batch).await;
        self.described = Some(described);
        written.map_err(|error| self.failed(error))
    }

    async fn insert(&self, described: &Described, batch: &Batch) -> Result<Delivery, tokio_postgres::Error> {
        let labels = batch.time.iter().zip(&batch.label).filter_map(|(time, label)| {
            let (time, ns) = Timestamp::of(*time);
            Some((time, ns, label.as_deref()?))
        });
        let (mut times, mut ns, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for (time, rest, text) in labels {
            times.push(time);
            ns.push(rest);
            texts.push(text);
        }
        if !texts.is_empty() {
            self.client.execute(LABELS, &[&described.host, &times, &ns, &texts]).await?;
        }
        let values = Values::of(described, batch);
        if !values.bits.is_empty() {
            let Values { times, bits, series, ns, .. } = &values;
            self.client.execute(VALUES, &[times, bits, series, ns]).await?;
        }
        Ok(match values.too_close {
            0 => Delivery::Accepted,
            refused => Delivery::Partly { refused, reason: "two samples in one microsecond".into() },
        })
    }

    /// Writes the description of rows. Returns the numbers of its series.
    async fn register(&mut self, header: &Arc<Header>) -> Result<Described, tokio_postgres::Error> {
        let mut rows: Vec<[String; 5]> = header.series.iter().map(described).collect();
        rows.push(TOOK.map(str::to_owned));
        let column = |index: usize| rows.iter().map(|row| row[index].as_str()).collect::<Vec<&str>>();
        let (metrics, instances, units, kinds, helps) =
            (column(0), column(1), column(2), column(3), column(4));
        let work = self.client.transaction().await?;
        work.execute(HOST, &[&header.host]).await?;
        let host = work.query_one("select id from numa_hosts where name = $1", &[&header.host]).await?.get(0);
        for statement in [NEW_SERIES, KNOWN_SERIES] {
            work.execute(statement, &[&host, &metrics, &instances, &units, &kinds, &helps]).await?;
        }
        // A description that cannot be packed cannot be in a recording either.
        let packed = header.packed().unwrap_or_default();
        let (started, _) = Timestamp::of(header.started);
        work.execute(DESCRIPTION, &[&host, &started, &packed]).await?;
        let numbers = numbers(&work, host).await?;
        work.commit().await?;
        Ok(Described::of(header, host, &numbers))
    }
}

/// Number of each series of a host by metric and instance.
pub type SeriesNumbers = HashMap<(String, String), i32>;

/// The numbers of the series of a host.
pub async fn numbers(
    client: &impl tokio_postgres::GenericClient,
    host: i32,
) -> Result<SeriesNumbers, tokio_postgres::Error> {
    let rows = client.query("select metric, instance, id from numa_series where host = $1", &[&host]).await?;
    Ok(rows.iter().map(|row| ((row.get(0), row.get(1)), row.get(2))).collect())
}

impl Described {
    /// With the numbers of the series of its host.
    pub fn of(header: &Arc<Header>, host: i32, numbers: &SeriesNumbers) -> Self {
        let number =
            |metric: &str, instance: &str| numbers.get(&(metric.to_owned(), instance.to_owned())).copied();
        let series = header.series.iter().map(|series| number(&series.metric.name, &instance(series)));
        let (series, took) = (series.collect(), number(TOOK[0], TOOK[1]));
        Self { header: Arc::clone(header), host, series, took }
    }
}

/// A row of the table of series.
fn described(series: &Series) -> [String; 5] {
    let metric = &series.metric;
    let (unit, kind) = (metric.unit.name().to_owned(), metric.kind.name().to_owned());
    [metric.name.clone(), instance(series), unit, kind, metric.help.clone()]
}

/// `node3`; nothing for the whole machine.
fn instance(series: &Series) -> String {
    series.instance.to_string().trim_start_matches('@').to_owned()
}

impl Values {
    fn of(described: &Described, batch: &Batch) -> Self {
        let mut values = Self::default();
        let mut last = None;
        for row in (0..batch.len()).filter(|row| batch.label[*row].is_none()) {
            let (time, ns) = Timestamp::of(batch.time[row]);
            let columns = described.series.iter().zip(&batch.columns);
            let columns = columns.filter_map(|(series, column)| Some(((*series)?, column.get(row)?)));
            if last.replace(time) == Some(time) {
                values.too_close += columns.count() as u64;
                continue;
            }
            for (series, value) in columns.chain(described.took.map(|took| (took, batch.took[row]))) {
                values.times.push(time);
                values.bits.push(value as i64);
                values.series.push(series);
                values.ns.push(ns);
            }
        }
        values
    }
}
