use serde::{Deserialize, Serialize};
use std::fmt;

/// Why something cannot be read here, in the words that `numa list`, `numa doctor` and a
/// recording all show. An absent value is always one of these, never a zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unavailable {
    /// What is missing, as a noun phrase: `per-node page counters`.
    pub missing: String,
    /// What was looked at and what it said: `/proc/sys/vm/numa_stat is 0`.
    pub seen: String,
    /// The exact command or step that would make it available.
    pub fix: String,
}

impl Unavailable {
    /// Builds the three parts from anything that turns into text.
    pub fn new(missing: impl Into<String>, seen: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { missing: missing.into(), seen: seen.into(), fix: fix.into() }
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.missing, self.seen, self.fix)
    }
}
