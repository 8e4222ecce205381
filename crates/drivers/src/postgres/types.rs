//! Times as PostgreSQL has them: microseconds since 2000.

use bytes::BytesMut;
use std::error::Error;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};

/// ns from 1970 to 2000.
const EPOCH: i64 = 946_684_800_000_000_000;
const NS: i64 = 1000;

/// A `timestamptz`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The microsecond of a time in ns since 1970, and the ns after it.
    pub fn of(time: u64) -> (Self, i16) {
        let time = i64::try_from(time).unwrap_or(i64::MAX) - EPOCH;
        // A remainder is below 1000.
        (Self(time.div_euclid(NS)), time.rem_euclid(NS) as i16)
    }

    /// The time in ns since 1970.
    pub fn time(self, ns: i16) -> Option<u64> {
        let time = self.0.checked_mul(NS)?.checked_add(EPOCH)?.checked_add(ns.into())?;
        u64::try_from(time).ok()
    }

    /// The next microsecond.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl ToSql for Timestamp {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0.to_be_bytes());
        Ok(IsNull::No)
    }

    accepts!(TIMESTAMPTZ);
    to_sql_checked!();
}

impl FromSql<'_> for Timestamp {
    fn from_sql(_: &Type, raw: &[u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(i64::from_be_bytes(raw.try_into()?)))
    }

    accepts!(TIMESTAMPTZ);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_nanosecond_is_lost() {
        for time in
            [0, 1, 999, 1000, EPOCH as u64 - 1, EPOCH as u64, 1_795_000_000_123_456_789, i64::MAX as u64]
        {
            let (timestamp, ns) = Timestamp::of(time);
            assert!((0..1000).contains(&ns));
            assert_eq!(timestamp.time(ns), Some(time));
        }
        assert_eq!(Timestamp::of(EPOCH as u64 + 1_000_001), (Timestamp(1000), 1));
        assert_eq!(Timestamp(i64::MAX).time(0), None);
    }
}
