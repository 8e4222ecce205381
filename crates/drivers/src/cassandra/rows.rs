//! Rows that are written.

use super::errors::CassandraError;
use futures_util::{StreamExt, TryStreamExt, stream};
use numakit_recording::{Batch as Rows, Header};
use scylla::client::session::Session;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;
use scylla::value::{CqlDate, CqlTimestamp, CqlVarint};

/// Rows of a batch, which all have one partition: the server warns of batches beyond 5 KiB.
const BATCH: usize = 32;
/// Batches that are under way.
const AT_ONCE: usize = 32;
const MS: u64 = 1_000_000;
pub const DAY: u64 = 86_400_000_000_000;
/// A CQL date is the number of days since 1970 and 2^31.
const DATE: u64 = 1 << 31;

/// The series with the duration of samples.
pub const TOOK: &str = "sample.took";

/// What is executed for each row.
pub struct Statements {
    value: PreparedStatement,
    label: PreparedStatement,
    series: PreparedStatement,
    recording: PreparedStatement,
}

/// A row of the table of values.
type ValueRow<'a> = (&'a str, &'a str, CqlDate, CqlTimestamp, i32, CqlVarint);

impl Statements {
    /// Prepares them.
    pub async fn prepare(session: &Session, keyspace: &str, ttl: i32) -> Result<Self, CassandraError> {
        let insert = async |rest: &str, ttl: i32| {
            let end = if ttl > 0 { format!(" using ttl {ttl}") } else { String::new() };
            let mut statement = session.prepare(format!("insert into {keyspace}.{rest}{end}")).await?;
            statement.set_is_idempotent(true);
            Ok::<_, CassandraError>(statement)
        };
        Ok(Self {
            value: insert("numa_values (host, series, day, time, ns, value) values (?, ?, ?, ?, ?, ?)", ttl)
                .await?,
            label: insert("numa_labels (host, day, time, ns, label) values (?, ?, ?, ?, ?)", ttl).await?,
            series: insert("numa_series (host, series, unit, kind, help) values (?, ?, ?, ?, ?)", 0).await?,
            recording: insert("numa_recordings (host, started, ns, description) values (?, ?, ?, ?)", ttl)
                .await?,
        })
    }

    /// Writes the description of rows.
    pub async fn describe(&self, session: &Session, header: &Header) -> Result<(), CassandraError> {
        let known = header.series.iter().map(|series| {
            let metric = &series.metric;
            (series.name(), metric.unit.name(), metric.kind.name(), metric.help.as_str())
        });
        let took = (TOOK.to_owned(), "ns", "gauge", "How long it took to read all sensors.");
        let rows = known.chain([took]).map(|(name, unit, kind, help)| async move {
            session.execute_unpaged(&self.series, (&header.host, name, unit, kind, help)).await.map(drop)
        });
        stream::iter(rows).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        let (_, started, ns) = parts(header.started);
        // A description that cannot be packed cannot be in a recording either.
        let packed = header.packed().unwrap_or_default();
        session.execute_unpaged(&self.recording, (&header.host, started, ns, packed)).await?;
        Ok(())
    }

    /// Writes rows.
    pub async fn write(&self, session: &Session, header: &Header, rows: &Rows) -> Result<(), CassandraError> {
        for (time, label) in rows.time.iter().zip(&rows.label) {
            if let Some(label) = label {
                let (day, time, ns) = parts(*time);
                session.execute_unpaged(&self.label, (&header.host, day, time, ns, label)).await?;
            }
        }
        let names: Vec<String> = header.series.iter().map(numakit_model::Series::name).collect();
        let mut batches = Vec::new();
        let samples: Vec<usize> = (0..rows.len()).filter(|row| rows.label[*row].is_none()).collect();
        let row_of = |series, row: usize, value| {
            let (day, time, ns) = parts(rows.time[row]);
            (header.host.as_str(), series, day, time, ns, varint(value))
        };
        for (name, column) in names.iter().zip(&rows.columns) {
            let values =
                samples.iter().filter_map(|row| Some(row_of(name.as_str(), *row, column.get(*row)?)));
            batches.extend(partitions(values));
        }
        batches.extend(partitions(samples.iter().map(|row| row_of(TOOK, *row, rows.took[*row]))));
        let written = batches.into_iter().map(|batch| self.write_batch(session, batch));
        stream::iter(written).buffer_unordered(AT_ONCE).try_collect::<()>().await
    }

    async fn write_batch(&self, session: &Session, rows: Vec<ValueRow<'_>>) -> Result<(), CassandraError> {
        let mut batch = Batch::new(BatchType::Unlogged);
        batch.set_is_idempotent(true);
        for _ in &rows {
            batch.append_statement(self.value.clone());
        }
        session.batch(&batch, rows).await?;
        Ok(())
    }
}

/// Rows of one series in parts that have one day each.
fn partitions<'a>(rows: impl Iterator<Item = ValueRow<'a>>) -> Vec<Vec<ValueRow<'a>>> {
    let mut parts: Vec<Vec<ValueRow<'a>>> = Vec::new();
    for row in rows {
        match parts
            .last_mut()
            .filter(|part| part.len() < BATCH && part.last().is_some_and(|last| last.2 == row.2))
        {
            Some(part) => part.push(row),
            None => parts.push(vec![row]),
        }
    }
    parts
}

/// The day of a time in ns since 1970, its millisecond, and the ns after it.
pub fn parts(time: u64) -> (CqlDate, CqlTimestamp, i32) {
    // Days, milliseconds and a remainder of a u64 fit.
    (CqlDate((DATE + time / DAY) as u32), CqlTimestamp((time / MS) as i64), (time % MS) as i32)
}

/// The time in ns since 1970 of a millisecond and the ns after it.
pub fn time_of(time: CqlTimestamp, ns: i32) -> Option<u64> {
    u64::try_from(time.0).ok()?.checked_mul(MS)?.checked_add(u64::try_from(ns).ok()?)
}

/// The value of a number that is one.
pub fn number(value: &CqlVarint) -> Option<u64> {
    let digits = value.as_signed_bytes_be_slice();
    let digits = match digits {
        [0, rest @ ..] => rest,
        [first, ..] if *first > 127 => return None,
        digits => digits,
    };
    (digits.len() <= 8).then(|| digits.iter().fold(0, |value, digit| value << 8 | u64::from(*digit)))
}

/// As a signed number with as few bytes as it needs.
fn varint(value: u64) -> CqlVarint {
    let bytes = value.to_be_bytes();
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let mut digits = bytes[zeros..].to_vec();
    if digits.first().is_none_or(|first| *first > 127) {
        digits.insert(0, 0);
    }
    CqlVarint::from_signed_bytes_be(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_few_bytes_as_they_need() {
        let digits = |value| varint(value).as_signed_bytes_be_slice().to_vec();
        assert_eq!(digits(0), [0]);
        assert_eq!(digits(127), [127]);
        assert_eq!(digits(128), [0, 128]);
        assert_eq!(digits(u64::MAX), [0, 255, 255, 255, 255, 255, 255, 255, 255]);
        for value in [0, 1, 127, 128, 255, 256, u64::MAX >> 1, (u64::MAX >> 1) + 1, u64::MAX] {
            assert_eq!(number(&varint(value)), Some(value));
        }
        for other in [&[255][..], &[1; 9], &[128]] {
            assert_eq!(number(&CqlVarint::from_signed_bytes_be(other.to_vec())), None);
        }
    }

    #[test]
    fn a_batch_has_one_day() {
        let row = |time| {
            let (day, at, ns) = parts(time);
            ("h", "s", day, at, ns, varint(0))
        };
        let times = (0..40).map(|row| row * 10).chain([DAY - 1, DAY]);
        let lengths: Vec<usize> = partitions(times.map(row)).iter().map(Vec::len).collect();
        assert_eq!(lengths, [32, 9, 1]);
        assert_eq!(time_of(parts(DAY + 1_000_001).1, 1), Some(DAY + 1_000_001));
        assert_eq!(parts(DAY + 1_000_001), (CqlDate((1 << 31) + 1), CqlTimestamp(86_400_001), 1));
    }
}
