//! Why there is no plan.

use crate::lists::ListError;
use crate::request::RequestError;
use std::fmt;
use thiserror::Error;

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    /// The request is contradictory or impossible.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A list names CPUs or nodes that do not exist.
    #[error(transparent)]
    List(#[from] ListError),
    /// More cores than the machine has, or than are free.
    #[error("{0}")]
    TooFew(Box<Shortage>),
    /// The machine does not have what the request needs.
    #[error("{problem}; {fix}")]
    Machine {
        /// What is missing, and what was found.
        problem: String,
        /// The fix.
        fix: String,
    },
}

impl PlanError {
    /// Whether the same request may succeed after others have released cores.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::TooFew(shortage) if shortage.is_temporary)
    }

    /// Whether more cores are requested than the machine has.
    pub fn is_impossible(&self) -> bool {
        matches!(self, Self::TooFew(shortage) if shortage.is_impossible)
    }

    pub(crate) fn machine(problem: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Machine { problem: problem.into(), fix: fix.into() }
    }
}

/// How many cores are requested and free, and why others are not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shortage {
    /// What is requested: `6 cores`.
    pub requested: String,
    /// Cores that are usable.
    pub free: usize,
    /// Cores of the machine.
    pub exist: usize,
    /// Why the other cores are not usable, one line for each reason.
    pub others: Vec<String>,
    /// The fix.
    pub fix: String,
    /// Whether more cores are requested than the machine has.
    pub is_impossible: bool,
    /// Whether there will be enough cores once other programs have released theirs.
    pub is_temporary: bool,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_impossible {
            return write!(f, "{}, and this machine has {}; {}", self.requested, self.exist, self.fix);
        }
        write!(f, "{}, but {} of this machine's {} are free", self.requested, self.free, self.exist)?;
        for (at, line) in self.others.iter().enumerate() {
            write!(f, "{}{line}", if at == 0 { ": " } else { ", " })?;
        }
        write!(f, "; {}", self.fix)
    }
}
