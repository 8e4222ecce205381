//! What clients ask for and do not get. They are shown these words.

use crate::wire::{LABEL_BYTES, MESSAGE_BYTES, SERIES, VALUES, WATCHES};
use numakit_model::label::RESERVED;
use numakit_session::ObeyError;
use thiserror::Error;

/// Why a client does not get what it asks for.
#[derive(Debug, Error)]
pub enum AskError {
    /// A message that is too long.
    #[error("the message has {0} bytes; the limit is {MESSAGE_BYTES}")]
    Length(usize),
    /// A message that is none.
    #[error("invalid message: {0}")]
    Message(#[from] serde_json::Error),
    /// A source that is not there.
    #[error("source {id} does not exist; there are {count}")]
    NoSource {
        /// Its number.
        id: u32,
        /// How many there are.
        count: usize,
    },
    /// One more source than there may be.
    #[error("the limit of {0} sources is reached; start another server for more")]
    Sources(u32),
    /// A client for whom there is no place.
    #[error("the limit of {limit} {who} is reached; close another page first")]
    Full {
        /// How many there may be.
        limit: usize,
        /// Of what kind.
        who: &'static str,
    },
    /// Too many series in one message.
    #[error("{0} series requested; the limit is {SERIES}")]
    TooManySeries(usize),
    /// A series that is not there.
    #[error("series {series} does not exist; there are {count}, numbered from 0")]
    NoSeries {
        /// Its number.
        series: u32,
        /// How many there are.
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
    /// A step between buckets that is not possible.
    #[error("step_ns is {0}; give a whole number of milliseconds, from 1000000 on")]
    Step(u64),
    /// One more watch than there may be.
    #[error("the limit of {WATCHES} watches is reached; end one first with 'unwatch'")]
    Watches,
    /// A change by somebody who may only look.
    #[error("a viewer cannot change anything; open the control address")]
    Viewer,
    /// A label without text, or with too much of it.
    #[error("the label has {0} bytes; give a text of 1 to {LABEL_BYTES} bytes")]
    LabelLength(usize),
    /// A label that looks like one of the recorder.
    #[error("labels that start with '{RESERVED}' are reserved for the recorder; use another text")]
    Reserved,
    /// A label that is not there.
    #[error("the label does not exist; it may have been removed")]
    NoLabel,
    /// An order that was not obeyed.
    #[error(transparent)]
    Order(#[from] ObeyError),
    /// A value of a query that is no number.
    #[error("{key}={value} is not a number")]
    Number {
        /// Its name.
        key: String,
        /// The value, or the start of a long one.
        value: String,
    },
    /// A list of a query that is none.
    #[error("series={0} is not a list of numbers")]
    List(String),
    /// A name that no query has.
    #[error("'{0}' is unknown; give source, series, from, to and rows")]
    Unknown(String),
    /// A query without series.
    #[error("no series given; add for example series=1,2")]
    NothingAsked,
    /// A query for too many values.
    #[error("the limit is {VALUES} values per file; request fewer series or rows")]
    TooManyRows,
    /// The thread that was to write the values ended.
    #[error("writing the CSV failed")]
    NotWritten,
}
