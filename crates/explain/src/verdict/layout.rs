//! Rules about how instructions walk through an object, on one node too.

use super::{Gain, ObjectEvidence, Rule};
use crate::observation::LINE;

/// Less of all CPU time at an object is not worth another layout.
const MIN_TIME: f64 = 0.05;
/// This part of the looks is a habit.
const MOST: f64 = 0.5;
/// The second level of a TLB reaches less far with small pages.
const MIN_RANDOM: u64 = 64 << 20;
/// A smaller part of each line wastes the rest.
const WASTE: f64 = 0.5;

/// The rules.
pub(super) const RULES: [Rule; 4] = [
    Rule {
        word: "waiting-for-threads",
        seen: "threads read the same address again and again",
        applies: |e| is_costly(e) && e.walk.and_then(|walk| walk.waiting()).is_some_and(|part| part >= MOST),
        says: |_| "threads read the same address again and again: they wait for other threads".to_owned(),
        change: |_| {
            "Let them sleep while they wait, or give all threads the same amount of work: this time is not use of memory".to_owned()
        },
        command: |_| None,
        expect: |_| None,
        gain: Gain::Unknown,
    },
    Rule {
        word: "chain",
        seen: "an access needs the value that the one before loads",
        applies: |e| is_costly(e) && e.walk.and_then(|walk| walk.chain()).is_some_and(|part| part >= MOST),
        says: |_| {
            "each access waits for the one before: a chain such as a list, a tree or a hash table".to_owned()
        },
        change: |_| {
            "Keep what is followed together in arrays, use an index in place of pointers, or follow several chains at once".to_owned()
        },
        command: |_| None,
        expect: |_| None,
        gain: Gain::Waiting,
    },
    Rule {
        word: "random-on-small-pages",
        seen: "64 MiB or more, accessed at random, mostly on pages of 4 KiB",
        applies: |e| {
            let is_random = e.walk.and_then(|walk| walk.random()).is_some_and(|part| part >= MOST);
            let is_small = e.huge_pages.is_some_and(|huge| huge < MOST);
            is_costly(e) && is_random && is_small && e.object.size >= MIN_RANDOM
        },
        says: |_| "it is read at random, on pages of 4 KiB: most accesses miss the TLB".to_owned(),
        change: |_| "Ask for huge pages for it (madvise with MADV_HUGEPAGE before it is touched)".to_owned(),
        command: |e| Some(format!("numa run --thp on -- {}", e.command)),
        expect: |_| Some("gives huge pages to what malloc allocates"),
        gain: Gain::PageWalks,
    },
    Rule {
        word: "part-of-each-line",
        seen: "at most half of the bytes of each line are used",
        applies: |e| is_costly(e) && part_of_line(e).is_some_and(|part| part <= WASTE),
        says: |e| {
            let (part, step) = (part_of_line(e).unwrap_or(1.0), step(e).unwrap_or(0));
            format!("of each line {:.0} % is used, in steps of {step} bytes", part * 100.0)
        },
        change: |_| {
            "Keep the fields that are used together in arrays of their own (a structure of arrays), or do all work on an element \
             in one pass"
                .to_owned()
        },
        command: |_| None,
        expect: |_| None,
        gain: Gain::Waiting,
    },
];

fn is_costly(e: &ObjectEvidence<'_>) -> bool {
    e.of_cpu_time.is_some_and(|part| part >= MIN_TIME)
}

fn part_of_line(e: &ObjectEvidence<'_>) -> Option<f64> {
    Some(e.walk?.line_use()?.share(LINE))
}

fn step(e: &ObjectEvidence<'_>) -> Option<u64> {
    Some(e.walk?.line_use()?.step)
}
