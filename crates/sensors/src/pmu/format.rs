//! Where the fields of an event go: the files `format/NAME` of a PMU, such as
//! `config:0-7,32-35` or `config1:12`.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use thiserror::Error;

/// The fields of a PMU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Formats {
    fields: BTreeMap<String, Field>,
}

/// The bits of a field, the lowest first, in one of the words `config` to `config3`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    word: usize,
    bits: Vec<RangeInclusive<u32>>,
}

/// A format file that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("format of the field '{field}' is '{text}', not like 'config:0-7,32-35'")]
pub struct FormatError {
    /// The name of the file.
    pub field: String,
    /// Its content.
    pub text: String,
}

/// An event that the fields have no room for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EncodeError {
    /// The PMU has no such field.
    #[error("the PMU has no field '{field}'; it has {}", .known.join(", "))]
    Unknown {
        /// As it was given.
        field: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// More bits than the field has.
    #[error("{value:#x} does not fit the field '{field}', which has {bits} bits")]
    TooWide {
        /// The field.
        field: String,
        /// Its value.
        value: u64,
        /// Its width.
        bits: u32,
    },
    /// Two fields of the event share bits.
    #[error("the fields '{first}' and '{second}' share bits")]
    Overlap {
        /// The one that came first.
        first: String,
        /// The other.
        second: String,
    },
}
