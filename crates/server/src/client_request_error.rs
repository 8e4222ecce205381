//! Errors of clients' requests, as the page shows them.

use crate::wire::{LABEL_BYTES, MESSAGE_BYTES, SERIES, VALUES, WATCHES};
use numakit_model::label::RESERVED;
use numakit_observation::ControlError;
use thiserror::Error;

/// Why a client's request fails.
#[derive(Debug, Error)]
pub enum ClientRequestError {
    /// A message that is too long.
    #[error("the message has {0} bytes; the limit is {MESSAGE_BYTES}")]
    Length(usize),
    /// A message that cannot be parsed.
    #[error("invalid message: {0}")]
    Message(#[from] serde_json::Error),
    /// A source that does not exist.
    #[error("source {id} does not exist; there are {count}")]
    NoSource {
        /// Its number.
        id: u32,
        /// The number of existing ones.
        count: usize,
    },
    /// A source that may be among the recordings that are being opened.
    #[error(
        "source {id} does not exist yet: {name} is being opened, {percent} % of it was read; try again later"
    )]
    StillOpening {
        /// Its number.
        id: u32,
        /// The recording that is read at present.
        name: String,
        /// How much of it was read.
        percent: u8,
    },
    /// A recording that is uploaded while others are being opened: it would take the number of one of them.
    #[error(
        "{name} is still being opened, {percent} % of it was read; open another recording when that has ended"
    )]
    Opening {
        /// The recording that is read at present.
        name: String,
        /// How much of it was read.
        percent: u8,
    },
    /// A part of a recording does not answer this.
    #[error("{percent} % of {name} was read so far; try again when all of it was read")]
    Partial {
        /// The recording.
        name: String,
        /// How much of it was read.
        percent: u8,
    },
    /// Too many sources.
    #[error("the limit of {0} sources is reached; start another server for more")]
    Sources(u32),
    /// Too many clients.
    #[error("the limit of {limit} {who} is reached; close another page first")]
    Full {
        /// The limit.
        limit: usize,
        /// `viewers` or `controllers`.
        who: &'static str,
    },
    /// Too many series in one message.
    #[error("{0} series requested; the limit is {SERIES}")]
    TooManySeries(usize),
    /// A series that does not exist.
    #[error("series {series} does not exist; there are {count}, numbered from 0")]
    NoSeries {
        /// Its number.
        series: u32,
        /// The number of existing ones.
        count: usize,
    },
    /// A range of too many values.
    #[error("{series} series in {buckets} buckets exceed the limit of {VALUES} values; request fewer")]
    TooManyValues {
        /// Series of the range.
        series: usize,
        /// Buckets of each.
        buckets: usize,
    },
    /// An invalid length of buckets.
    #[error("step_ns is {0}; give a whole number of milliseconds, from 1000000 on")]
    Step(u64),
    /// Too many watches.
    #[error("the limit of {WATCHES} watches is reached; end one first with 'unwatch'")]
    Watches,
    /// A change requested by a viewer.
    #[error("a viewer cannot change anything; open the control address")]
    Viewer,
    /// A label without text, or with too long a text.
    #[error("the label has {0} bytes; give a text of 1 to {LABEL_BYTES} bytes")]
    LabelLength(usize),
    /// A label with the prefix of the recorder's labels.
    #[error("labels that start with '{RESERVED}' are reserved for the recorder; use another text")]
    Reserved,
    /// A label that does not exist.
    #[error("the label does not exist; it may have been removed")]
    NoLabel,
    /// A command that failed.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// A value of a query that is not a number.
    #[error("{key}={value} is not a number")]
    Number {
        /// Its name.
        key: String,
        /// The value, or the start of a long one.
        value: String,
    },
    /// A list of a query that cannot be parsed.
    #[error("series={0} is not a list of numbers")]
    List(String),
    /// An unknown name in a query.
    #[error("'{0}' is unknown; give source, series, from, to and rows")]
    Unknown(String),
    /// A query without series.
    #[error("no series given; add for example series=1,2")]
    NothingAsked,
    /// A query for too many values.
    #[error("the limit is {VALUES} values per file; request fewer series or rows")]
    TooManyRows,
    /// A recording that cannot be read again to compare it.
    #[error("cannot compare: {0}")]
    NotCompared(String),
    /// The thread that writes the values failed.
    #[error("writing the CSV failed")]
    NotWritten,
}
