//! What happened to the rows of a sender.

use numakit_model::numbers::{counted, duration};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// Reasons that are kept with the name of a series, and as many without; others are counted together.
const REASONS: usize = 8;
const OTHER: &str = "other reasons";
/// Characters of a reason that are kept.
const MAX_REASON: usize = 200;

/// Counts of a sender.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PushCounts {
    /// Rows that were sent, and taken but for what was refused.
    pub rows: u64,
    /// Requests.
    pub requests: u64,
    /// Requests that had no useful answer and were repeated.
    pub retries: u64,
    /// Times for which the engine was down.
    pub outages: u64,
    /// The longest of them.
    pub longest: Duration,
    /// How long all of them took but the one that lasts.
    pub ended: Duration,
    /// How long the one that lasts has taken; zero if there is none.
    pub lasts: Duration,
    /// Why it is down now.
    pub down: Option<String>,
    /// Values and labels that the engine refused, by its reason.
    pub refused: BTreeMap<String, u64>,
}

impl PushCounts {
    /// Counts values that were refused.
    pub(super) fn refuse(&mut self, reason: &str, values: u64) {
        let reason = clean(reason);
        let reason = if self.has_room(&reason, 2 * REASONS) { reason } else { OTHER.to_owned() };
        if values > 0 {
            *self.refused.entry(reason).or_default() += values;
        }
    }

    /// Counts a value of this name that was refused.
    pub(super) fn refuse_one(&mut self, name: &str, reason: &str) {
        let named = clean(&format!("{name}: {reason}"));
        if self.has_room(&named, REASONS) { self.refuse(&named, 1) } else { self.refuse(reason, 1) }
    }

    fn has_room(&self, reason: &str, limit: usize) -> bool {
        self.refused.len() < limit || self.refused.contains_key(reason)
    }

    pub(super) fn is_down(&mut self, why: &str, time: Duration) {
        self.retries += 1;
        self.outages += u64::from(self.down.is_none());
        self.longest = self.longest.max(time);
        self.lasts = time;
        self.down = Some(clean(why));
    }

    pub(super) fn is_up(&mut self) {
        self.down = None;
        self.ended += std::mem::take(&mut self.lasts);
    }

    /// All that was refused.
    pub fn all_refused(&self) -> u64 {
        self.refused.values().sum()
    }
}

/// A text of an engine on one line, without what a terminal would obey.
pub fn clean(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let line = words.collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_REASON) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

impl fmt::Display for PushCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |count: u64, noun| counted(usize::try_from(count).unwrap_or(usize::MAX), noun);
        write!(f, "{} sent in {}", of(self.rows, "row"), of(self.requests, "request"))?;
        if self.retries > 0 {
            let longest = duration(self.longest.as_secs_f64());
            write!(f, ", {} repeated, {}, the longest {longest}", self.retries, of(self.outages, "outage"))?;
        }
        for (reason, values) in &self.refused {
            write!(f, "\n  {values} values refused: {reason}")?;
        }
        Ok(())
    }
}
