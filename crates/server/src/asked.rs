//! What clients ask for and do not get. They are shown these words.

use crate::wire::{LABEL_BYTES, MESSAGE_BYTES, SERIES, VALUES, WATCHES};
use numakit_model::label::RESERVED;
use numakit_session::ObeyError;
use thiserror::Error;

/// Why a client does not get what it asks for.
#[derive(Debug, Error)]
pub enum AskError {
    /// A message that is too long.
    #[error("a message of {0} bytes; at most {MESSAGE_BYTES} are taken")]
    Length(usize),
    /// A message that is none.
    #[error("the message is not understood: {0}")]
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
    #[error("{0} sources are open already; start another server for more")]
    Sources(u32),
    /// A client for whom there is no place.
    #[error("{limit} {who} are connected already; close another page first")]
    Full {
        /// How many there may be.
        limit: usize,
        /// Of what kind.
        who: &'static str,
    },
    /// Too many series in one message.
    #[error("{0} series at once; at most {SERIES} can be asked for")]
    TooManySeries(usize),
    /// A series that is not there.
    #[error("series {series} does not exist; there are {count}, from 0 on")]
    NoSeries {
        /// Its number.
        series: u32,
        /// How many there are.
        count: usize,
    },
    /// A range of too many values.
    #[error("{series} series in {buckets} buckets; at most {VALUES} values are sent at once")]
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
    #[error("{WATCHES} watches are open already; end one first")]
    Watches,
    /// A change by somebody who may only look.
    #[error("a viewer cannot change anything; open the address for control")]
    Viewer,
    /// A label without text, or with too much of it.
    #[error("a label of {0} bytes; give a text of 1 to {LABEL_BYTES}")]
    LabelLength(usize),
    /// A label that looks like one of the recorder.
    #[error("labels that start with '{RESERVED}' are the recorder's own; use another text")]
    Reserved,
    /// A label that is not there.
    #[error("there is no such label (any more)")]
    NoLabel,
    /// An order that was not obeyed.
    #[error(transparent)]
    Order(#[from] ObeyError),
    /// A value of a query that is no number.
    #[error("{key}={value} is no number")]
    Number {
        /// Its name.
        key: String,
        /// The value, or the start of a long one.
        value: String,
    },
    /// A list of a query that is none.
    #[error("series={0} is no list of numbers")]
    List(String),
    /// A name that no query has.
    #[error("'{0}' is unknown; give source, series, from, to and rows")]
    Unknown(String),
    /// A query without series.
    #[error("no series; give some, as in series=1,2")]
    NothingAsked,
    /// A query for too many values.
    #[error("more than {VALUES} values at once; ask for fewer series or rows")]
    TooManyRows,
    /// The thread that was to write the values ended.
    #[error("it could not be written")]
    NotWritten,
}
