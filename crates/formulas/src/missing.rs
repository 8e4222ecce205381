//! Why a formula cannot be computed at a place.

use numakit_model::Instance;
use std::fmt;

/// What a formula lacks; with alternatives, one input for each.
#[derive(Debug, Clone, PartialEq)]
pub struct Missing {
    /// At least one, in the order of the alternatives.
    pub inputs: Vec<MissingInput>,
}

/// A name that cannot be computed, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct MissingInput {
    /// A metric, a fact of the machine, or a formula.
    pub name: String,
    /// Why.
    pub why: MissingReason,
}

/// Why a name cannot be computed.
#[derive(Debug, Clone, PartialEq)]
pub enum MissingReason {
    /// Nothing of that name is sampled here.
    NoSeries,
    /// It is sampled, but not for this place.
    NotAt(Instance),
    /// The machine's description does not have it.
    Unknown,
    /// Pages are memory, but their size is unknown.
    NoPageSize,
    /// The units do not fit together, in words.
    Mismatch(String),
}

impl Missing {
    pub(crate) fn one(name: &str, why: MissingReason) -> Self {
        Self { inputs: vec![MissingInput { name: name.to_owned(), why }] }
    }

    /// The first missing input: what the preferred alternative needs.
    pub fn first(&self) -> Option<&MissingInput> {
        self.inputs.first()
    }
}

impl fmt::Display for MissingReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSeries => f.write_str("not sampled"),
            Self::NotAt(Instance::Machine) => f.write_str("not sampled"),
            Self::NotAt(place) => write!(f, "not sampled per {}", place.scope().name()),
            Self::Unknown => f.write_str("the machine's firmware does not provide it"),
            Self::NoPageSize => f.write_str("the page size is unknown"),
            Self::Mismatch(words) => f.write_str(words),
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, input) in self.inputs.iter().enumerate() {
            let or = if at == 0 { "needs" } else { ", or" };
            write!(f, "{or} {}: {}", input.name, input.why)?;
        }
        Ok(())
    }
}

impl std::error::Error for Missing {}
