//! One entry per engine: what it is called, and how a batch becomes a request.

mod clickhouse;
mod databases;
pub(crate) mod lines;
mod otlp;
mod questdb;
mod remote_write;

use crate::driver::DriverEngine;
use crate::http::Answer;
use crate::sender::{Delivery, meaning};
use bytes::Bytes;
use numakit_export::ExportError;
use numakit_recording::{Batch, Header};
use std::sync::Arc;
use std::time::Duration;

/// An engine: its description for the command line and the guide, and how it is reached.
#[derive(Debug)]
pub struct Emitter {
    /// The first word of its addresses.
    pub scheme: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// An address.
    pub example: &'static str,
    /// Whether it keeps the labels of a recording.
    pub labels: bool,
    /// Whether `numa fetch` reads it.
    pub fetch: bool,
    pub(crate) transport: Transport,
}

#[derive(Debug)]
pub(crate) enum Transport {
    Http(Http),
    /// Files of Parquet.
    Folder,
    /// A database, by the driver of the second program.
    Driver(DriverEngine),
}

/// The body of a request with a batch. The times are those of the first values that were sent of each series, in ns.
type Encode = fn(&Arc<Header>, Batch, &[Option<u64>]) -> Result<Vec<u8>, ExportError>;

/// How an engine takes requests.
#[derive(Debug)]
pub(crate) struct Http {
    /// The path, unless the address has one.
    pub path: &'static str,
    /// Keys that the query of the address must have.
    pub needs: &'static [&'static str],
    /// Keys that are added to the query.
    pub query: &'static [(&'static str, &'static str)],
    /// Headers besides those of every request.
    pub headers: &'static [(&'static str, &'static str)],
    /// The word before a token.
    pub token: &'static str,
    /// What is sent before all rows.
    pub prepare: Option<&'static str>,
    /// A batch as the body of a request; an empty one if the engine takes nothing of it.
    pub encode: Encode,
    /// What is sent when the description of the rows changes, so that they can be fetched as a recording.
    pub describe: Option<fn(&Header) -> Vec<u8>>,
    /// Statements that make tables for these rows, each with its path in place of `path`. They are sent when the description of
    /// the rows changes; what the engine refuses of them is left out.
    pub tables: Option<fn(&Header) -> Vec<String>>,
    /// How many values an answer of success refuses, and why.
    pub refused: fn(&[u8]) -> Option<(u64, String)>,
}

impl Http {
    /// Whether the address names a database.
    pub fn has_database(&self) -> bool {
        !self.needs.is_empty() || self.tables.is_some() || self.prepare.is_some()
    }
}

const BEARER: &str = "Bearer";

pub(crate) const HTTP: Http = Http {
    path: "/",
    needs: &[],
    query: &[],
    headers: &[],
    token: BEARER,
    prepare: None,
    encode: lines::encode,
    describe: None,
    tables: None,
    refused: |_| None,
};

/// Every engine, in the order in which they are listed.
pub static EMITTERS: &[Emitter] = &[
    Emitter {
        scheme: "influxdb1",
        help: "InfluxDB 1: line protocol, a measurement per sensor, a field per metric; VictoriaMetrics at /write, which keeps no labels",
        example: "influxdb1+http://HOST:8086?db=NAME",
        labels: true,
        fetch: true,
        transport: Transport::Http(Http {
            path: "/write",
            needs: &["db"],
            query: lines::QUERY,
            describe: Some(lines::describe),
            ..HTTP
        }),
    },
    Emitter {
        scheme: "influxdb2",
        help: "InfluxDB 2 and 3: line protocol by the write API of version 2",
        example: "influxdb2+http://HOST:8086?org=NAME&bucket=NAME",
        labels: true,
        fetch: false,
        transport: Transport::Http(Http {
            path: "/api/v2/write",
            needs: &["bucket"],
            query: lines::QUERY,
            token: "Token",
            describe: Some(lines::describe),
            ..HTTP
        }),
    },
    Emitter {
        scheme: "prometheus",
        help: "Prometheus remote write, as Prometheus, Mimir, Thanos and VictoriaMetrics take it: names and units as in 'numa export'",
        example: "prometheus+http://HOST:9090",
        labels: false,
        fetch: true,
        transport: Transport::Http(Http {
            path: "/api/v1/write",
            headers: remote_write::HEADERS,
            encode: remote_write::encode,
            ..HTTP
        }),
    },
    Emitter {
        scheme: "otlp",
        help: "OpenTelemetry protocol over HTTP (protobuf), as collectors take it",
        example: "otlp+http://HOST:4318",
        labels: false,
        fetch: false,
        transport: Transport::Http(Http {
            path: "/v1/metrics",
            headers: otlp::HEADERS,
            encode: otlp::encode,
            refused: otlp::refused,
            ..HTTP
        }),
    },
    Emitter {
        scheme: "questdb",
        help: "QuestDB: line protocol over HTTP, a table per sensor that keeps a row once",
        example: "questdb+http://HOST:9000",
        labels: true,
        fetch: false,
        transport: Transport::Http(Http {
            path: "/write",
            query: lines::QUERY,
            tables: Some(questdb::tables),
            ..HTTP
        }),
    },
    Emitter {
        scheme: "clickhouse",
        help: "ClickHouse over HTTP: a row per value in the table numa, which is created",
        example: "clickhouse+http://HOST:8123?database=NAME",
        labels: true,
        fetch: false,
        transport: Transport::Http(Http {
            prepare: Some(clickhouse::TABLE),
            encode: clickhouse::encode,
            ..HTTP
        }),
    },
    Emitter {
        scheme: "parquet",
        help: "a folder of Parquet files by host and day, for DuckDB, Spark, object stores",
        example: "parquet:FOLDER",
        labels: true,
        fetch: true,
        transport: Transport::Folder,
    },
    databases::POSTGRESQL,
    databases::CASSANDRA,
];

impl Emitter {
    /// What an answer of it to rows means; `None` if it is a folder.
    pub fn meaning(&self, status: u16, body: &[u8]) -> Option<Delivery> {
        let Transport::Http(http) = &self.transport else { return None };
        let answer = Answer { status, retry_after: None, body: Bytes::copy_from_slice(body), is_whole: true };
        Some(meaning(&answer, http))
    }

    /// The word before a token.
    pub(crate) fn token(&self) -> &'static str {
        match &self.transport {
            Transport::Http(http) => http.token,
            Transport::Folder | Transport::Driver(_) => BEARER,
        }
    }

    /// How long rows wait for others before they are sent together: files are better large.
    pub fn request_time(&self) -> Duration {
        match self.transport {
            Transport::Http(_) | Transport::Driver(_) => Duration::from_secs(1),
            Transport::Folder => Duration::from_secs(300),
        }
    }
}

/// An address of each engine.
pub fn examples() -> String {
    EMITTERS.iter().map(|emitter| emitter.example).collect::<Vec<_>>().join(", ")
}

/// The rows of the table in docs/guide/push.md.
pub fn engines_guide() -> String {
    let mut text =
        String::from("| URL | engine | keeps labels | `numa fetch` reads it |\n|---|---|---|---|\n");
    let word = |is_so: bool| if is_so { "yes" } else { "no" };
    for emitter in EMITTERS {
        let (labels, fetch) = (word(emitter.labels), word(emitter.fetch));
        text.push_str(&format!("| `{}` | {} | {labels} | {fetch} |\n", emitter.example, emitter.help));
    }
    text
}

/// The engines that can be read.
pub fn readable() -> String {
    let readable = EMITTERS.iter().filter(|emitter| emitter.fetch);
    readable.map(|emitter| emitter.scheme).collect::<Vec<_>>().join(", ")
}
