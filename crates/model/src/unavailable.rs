use crate::Fix;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why something cannot be read here: `numa list`, `numa doctor` and recordings show the same
/// text. An absent value is always one of these, never a zero.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unavailable {
    /// What is missing, as a noun phrase: `per-node page counters`.
    pub missing: String,
    /// What was read, and what was found: `/proc/sys/vm/numa_stat is 0`.
    pub seen: String,
    /// What makes it available.
    pub fix: Fix,
}

impl Unavailable {
    /// Builds it from its three parts.
    pub fn new(missing: impl Into<String>, seen: impl Into<String>, fix: Fix) -> Self {
        Self { missing: missing.into(), seen: seen.into(), fix }
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.missing, self.seen, self.fix)
    }
}
