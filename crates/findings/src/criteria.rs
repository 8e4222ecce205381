//! The table of inputs, thresholds and words from which verdicts are made.

use crate::facts::Facts;
use crate::report::{Grade, Verdict};
use numakit_model::Instance;
use numakit_model::numbers::{NumberStyle, grouped};
use std::ops::Range;

/// A verdict that the data does not support.
pub(crate) const CANNOT_TELL: &str = "cannot tell";

/// If at least this share of ticks is lost, in percent, the report has advice.
pub(crate) const LOST_PERCENT: f64 = 1.0;
/// A node was full if its free memory fell below this share of its memory, in percent.
pub(crate) const FULL_PERCENT: f64 = 5.0;

/// A line of the table.
pub(crate) struct Criterion {
    pub(crate) name: &'static str,
    /// What the share is of, and the predicate, as in "63 % of 12,000 allocations were local".
    pub(crate) of: &'static str,
    pub(crate) did: &'static str,
    /// The formula of the share that is judged, in percent.
    pub(crate) share: &'static str,
    /// The formula of the number of events that the share is of; `None`: the share is of time.
    pub(crate) events: Option<&'static str>,
    /// With fewer events there is no verdict.
    pub(crate) minimum: f64,
    /// The steps, from the highest threshold down to 0: the share from which on the word applies, the word, and its meaning.
    pub(crate) steps: &'static [(f64, &'static str, &'static str)],
    /// The steps that are notable.
    pub(crate) notable: Range<usize>,
}

pub(crate) static LOCALITY: Criterion = Criterion {
    name: "locality of allocation",
    of: "allocations",
    did: "were local",
    share: "locality",
    events: Some("allocations"),
    minimum: 1000.0,
    steps: &[
        (95.0, "local", "nearly all memory was allocated by CPUs of its own node"),
        (80.0, "mostly local", "some memory was allocated from other nodes"),
        (50.0, "mixed", "much memory was allocated from other nodes"),
        (0.0, "mostly remote", "most memory was allocated from other nodes"),
    ],
    notable: 2..4,
};

/// The criterion where samples of instructions tell the time at memory.
pub(crate) static USE: Criterion = Criterion {
    name: "locality of use",
    of: "observations at memory",
    did: "were local",
    share: "use_locality",
    events: Some("uses"),
    minimum: 20.0,
    steps: &[
        (95.0, "local", "threads waited for memory of their own node"),
        (80.0, "mostly local", "threads waited for some memory of other nodes"),
        (50.0, "mixed", "threads waited for much memory of other nodes"),
        (0.0, "mostly remote", "threads mostly waited for memory of other nodes"),
    ],
    notable: 2..4,
};

/// The criterion where samples only tell which pages are used, as on emulated processors.
pub(crate) static PAGES_IN_USE: Criterion = Criterion {
    name: "locality of pages in use",
    of: "pages in use",
    did: "were local",
    share: "page_locality",
    events: Some("used_pages"),
    minimum: 100.0,
    steps: &[
        (95.0, "local", "threads used pages of their own node"),
        (80.0, "mostly local", "threads used some pages of other nodes"),
        (50.0, "mixed", "threads used many pages of other nodes"),
        (0.0, "mostly remote", "threads mostly used pages of other nodes"),
    ],
    notable: 2..4,
};

pub(crate) static INTERLEAVING: Criterion = Criterion {
    name: "interleaving",
    of: "allocations",
    did: "were interleaved",
    share: "interleaved_share",
    events: Some("allocations"),
    minimum: 1000.0,
    steps: &[
        (50.0, "interleaved", "memory was interleaved on request, so remote allocations are expected"),
        (0.0, "", ""),
    ],
    notable: 0..1,
};

pub(crate) static OVERFLOW: Criterion = Criterion {
    name: "overflow",
    of: "allocations that preferred it",
    did: "got memory of another node",
    share: "overflow_share",
    events: Some("preferring"),
    minimum: 1000.0,
    steps: &[(5.0, "overflowed", "allocations that preferred this node got memory of others"), (0.0, "", "")],
    notable: 0..1,
};

pub(crate) static SPILL: Criterion = Criterion {
    name: "spill",
    of: "allocations on it",
    did: "preferred another node",
    share: "spill_share",
    events: Some("placed"),
    minimum: 1000.0,
    steps: &[
        (5.0, "took overflow", "allocations that preferred other nodes got memory of this one"),
        (0.0, "", ""),
    ],
    notable: 0..1,
};

pub(crate) static ACCESS: Criterion = Criterion {
    name: "locality of sampled accesses",
    of: "hint faults",
    did: "were local",
    share: "hint_locality",
    events: Some("hint"),
    minimum: 1000.0,
    steps: &[
        (95.0, "local", "threads used memory of their own node"),
        (80.0, "mostly local", "threads used some memory of other nodes"),
        (50.0, "mixed", "threads used much memory of other nodes"),
        (0.0, "mostly remote", "threads mostly used memory of other nodes"),
    ],
    notable: 2..4,
};

pub(crate) static HUGE_PAGES: Criterion = Criterion {
    name: "huge pages",
    of: "faults that asked for a huge page",
    did: "got one",
    share: "huge_page_share",
    events: Some("huge_asked"),
    minimum: 10.0,
    steps: &[
        (90.0, "available", "faults that asked for a huge page got one"),
        (50.0, "often refused", "many faults got small pages, because no huge page was free"),
        (0.0, "mostly refused", "most faults got small pages, because no huge page was free"),
    ],
    notable: 1..3,
};

pub(crate) static STALL: Criterion = Criterion {
    name: "memory pressure",
    of: "the time",
    did: "",
    share: "stall",
    events: None,
    minimum: 0.0,
    steps: &[
        (10.0, "high", "threads waited for memory much of the time"),
        (1.0, "moderate", "threads waited for memory at times"),
        (0.0, "low", "threads rarely waited for memory"),
    ],
    notable: 0..2,
};

/// The table.
pub(crate) static CRITERIA: [&Criterion; 9] =
    [&USE, &PAGES_IN_USE, &LOCALITY, &INTERLEAVING, &OVERFLOW, &SPILL, &ACCESS, &HUGE_PAGES, &STALL];

impl Criterion {
    /// The verdict for one instance.
    pub(crate) fn judge(&self, facts: &Facts<'_>, place: Instance) -> Verdict {
        let events = self.events.and_then(|events| facts.sum(events, place));
        let cannot = |because| Verdict {
            grade: Grade::CannotTell,
            word: CANNOT_TELL.into(),
            because,
            percent: None,
            events,
        };
        if let Some(missing) = facts.missing(self.share, place) {
            return cannot(missing);
        }
        if self.events.is_some() && events.is_none_or(|n| n < self.minimum) {
            let seen = events.map_or_else(|| "no".to_owned(), grouped);
            return cannot(format!("{seen} {}, fewer than {}", self.of, grouped(self.minimum)));
        }
        let Some(percent) = facts.rate(self.share, place) else {
            return cannot(format!("too short: {} of it", samples(facts.samples)));
        };
        let step = self.steps.iter().position(|step| percent >= step.0);
        let notable = step.is_some_and(|at| self.notable.contains(&at));
        let word = step.map_or("", |at| self.steps[at].1).to_owned();
        let because = match events {
            Some(n) => {
                format!("{} of {} {} {}", NumberStyle::Percent.words(percent), grouped(n), self.of, self.did)
            }
            None => format!("{} of {}", NumberStyle::Percent.words(percent), self.of),
        };
        let grade = if notable { Grade::Notable } else { Grade::Fine };
        Verdict { grade, word, because, percent: Some(percent), events }
    }
}

fn samples(n: u64) -> String {
    if n == 1 { "1 sample".to_owned() } else { format!("{} samples", grouped(n as f64)) }
}
