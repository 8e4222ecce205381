//! Why a formula cannot be computed at a place.

use numakit_model::Instance;
use std::fmt;

/// What a formula lacks; for a formula with alternatives one lack for each.
#[derive(Debug, Clone, PartialEq)]
pub struct Missing {
    /// At least one, in the order of the alternatives.
    pub lacks: Vec<Lack>,
}

/// A name that cannot be computed, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Lack {
    /// A metric, a fact of the machine, or a formula.
    pub name: String,
    /// Why.
    pub why: Why,
}

/// Why a name cannot be computed.
#[derive(Debug, Clone, PartialEq)]
pub enum Why {
    /// Nothing of that name is sampled here.
    NoSeries,
    /// It is sampled, but not of this place.
    NotAt(Instance),
    /// The machine's description does not say it.
    NotSaid,
    /// Pages count as memory, but nobody says how large one is.
    NoPageSize,
    /// The units do not fit together, in words.
    Mismatch(String),
}

impl Missing {
    pub(crate) fn one(name: &str, why: Why) -> Self {
        Self { lacks: vec![Lack { name: name.to_owned(), why }] }
    }

    /// The first lack: what the preferred alternative needs.
    pub fn first(&self) -> Option<&Lack> {
        self.lacks.first()
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSeries => f.write_str("not sampled"),
            Self::NotAt(Instance::Machine) => f.write_str("not sampled"),
            Self::NotAt(place) => write!(f, "not sampled of a {} alone", place.scope().name()),
            Self::NotSaid => f.write_str("the machine's firmware does not say it"),
            Self::NoPageSize => f.write_str("the page size is not known"),
            Self::Mismatch(words) => f.write_str(words),
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, lack) in self.lacks.iter().enumerate() {
            let or = if at == 0 { "needs" } else { ", or" };
            write!(f, "{or} {}: {}", lack.name, lack.why)?;
        }
        Ok(())
    }
}

impl std::error::Error for Missing {}
