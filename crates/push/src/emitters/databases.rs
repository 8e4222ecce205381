//! Databases whose drivers are in `numa-drivers`.

use super::{Emitter, Transport};
use crate::driver::{DriverEngine, DriverOption};

/// How PostgreSQL is connected to.
const SSLMODE: DriverOption = DriverOption {
    key: "sslmode",
    values: "disable or verify-full",
    is_valid: |text| matches!(text, "disable" | "verify-full"),
};
const TTL: DriverOption = DriverOption { key: "ttl", values: "DAYSd", is_valid: is_ttl };
const REPLICATION: DriverOption = DriverOption {
    key: "replication",
    values: "1 to 9",
    is_valid: |text| matches!(text.as_bytes(), [b'1'..=b'9']),
};
/// Days that Cassandra can keep rows for: 20 years are its maximum.
fn is_ttl(text: &str) -> bool {
    text.strip_suffix('d')
        .and_then(|days| days.parse().ok())
        .is_some_and(|days: u16| (1..=7300).contains(&days))
}

pub const POSTGRESQL: Emitter = Emitter {
    scheme: "postgresql",
    help: "PostgreSQL, with TimescaleDB if the database has its extension: tables of values and series, and the view numa",
    example: "postgresql://USER@HOST:5432/DATABASE",
    labels: true,
    fetch: true,
    transport: Transport::Driver(DriverEngine { port: 5432, path: "DATABASE", options: &[SSLMODE] }),
};

pub const CASSANDRA: Emitter = Emitter {
    scheme: "cassandra",
    help: "Cassandra and ScyllaDB: a partition per host, series and day",
    example: "cassandra://HOST:9042/KEYSPACE?ttl=30d&replication=3",
    labels: true,
    fetch: true,
    transport: Transport::Driver(DriverEngine { port: 9042, path: "KEYSPACE", options: &[TTL, REPLICATION] }),
};

#[cfg(test)]
mod tests {
    use crate::target::PushTarget;

    #[test]
    fn addresses_are_checked_before_anything_is_sent() {
        for text in [
            "postgresql://h/d",
            "postgresql://u@h:1/d?sslmode=verify-full",
            "cassandra://h/k?replication=3&ttl=7300d",
        ] {
            assert!(PushTarget::parse(text).is_ok(), "{text}");
        }
        for (text, says) in [
            ("postgresql+http://h/d", "it has a +"),
            ("postgresql://h", "add '/DATABASE'"),
            ("postgresql:d", "not followed by //"),
            ("postgresql://u:p@h/d", "--password-file"),
            ("postgresql://h/d?sslmode=prefer", "disable or verify-full"),
            ("cassandra://h", "add '/KEYSPACE'"),
            ("cassandra://h/k?ttl=0d", "ttl=DAYSd"),
            ("cassandra://h/k?ttl=7301d", "ttl=DAYSd"),
            ("cassandra://h/k?replication=0", "replication=1 to 9"),
        ] {
            let error = PushTarget::parse(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
