//! Why there is no plan.

use crate::lists::ListError;
use crate::request::RequestError;
use std::fmt;
use thiserror::Error;

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    /// The request contradicts itself or asks for what no machine has.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A list names what is not there.
    #[error(transparent)]
    List(#[from] ListError),
    /// More cores than there are, or than are free.
    #[error("{0}")]
    TooFew(Box<Shortage>),
    /// The machine does not have what the request needs.
    #[error("{problem}; {fix}")]
    Machine {
        /// What is missing, with what is there.
        problem: String,
        /// What to ask for instead.
        fix: String,
    },
}

impl PlanError {
    /// Whether the same request can succeed once others have given back what they hold.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::TooFew(shortage) if shortage.may_pass)
    }

    pub(crate) fn machine(problem: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Machine { problem: problem.into(), fix: fix.into() }
    }
}

/// How many cores are asked for and free, and why others are not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shortage {
    /// What is asked for: `6 cores`.
    pub asked: String,
    /// Cores that could be used.
    pub free: usize,
    /// Cores of the machine.
    pub exist: usize,
    /// What the others are, one line for each reason.
    pub others: Vec<String>,
    /// What to do.
    pub fix: String,
    /// Whether there are enough once others have given back what they hold.
    pub may_pass: bool,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, but {} of this machine's {} are free", self.asked, self.free, self.exist)?;
        for (at, line) in self.others.iter().enumerate() {
            write!(f, "{}{line}", if at == 0 { ": " } else { ", " })?;
        }
        write!(f, "; {}", self.fix)
    }
}
