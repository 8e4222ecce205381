//! Rules about how instructions walk through an object, on one node too.

use super::remedy::{self, HugePagesRemedy};
use super::{Gain, ObjectCase, rule};
use crate::rules::Rule;
use numakit_explain::observation::LINE;
use numakit_explain::walk::MemoryWalk;
use numakit_explain::{ObjectFacts, SampledObject};

/// An object with less than this part of all CPU time is not worth a different layout.
const MIN_TIME: f64 = 0.05;
/// This part of the looks is a habit.
const MIN_HABIT: f64 = 0.5;
/// Twice what the second level of a large TLB (2,048 entries) reaches with small pages: half of the accesses miss it.
const MIN_RANDOM: u64 = 16 << 20;
/// Larger steps are no structures, but rows of a matrix.
const MIN_ROW: u64 = 512;
/// A smaller part of each line wastes the rest.
const WASTE: f64 = 0.5;

/// Threads spin.
pub(crate) const WAITING_FOR_THREADS: Rule = rule(
    "waiting-for-threads",
    "threads read the same address again and again",
    |e| {
        is_habit(e, MemoryWalk::waiting).then(|| {
            let says = "threads read the same address again and again: they wait for other threads";
            let change = "Let them sleep while they wait, or give all threads the same amount of work: this time is not use of \
                          memory";
            e.draft(says, change, Gain::Unknown)
        })
    },
);

/// Each access needs the one before.
pub(crate) const CHAIN: Rule = rule("chain", "an access needs the value that the one before loads", |e| {
    is_habit(e, MemoryWalk::chain).then(|| {
        let says = "each access waits for the one before: a chain such as a list, a tree or a hash table";
        let change = "Keep what is followed together in arrays, use an index in place of pointers, or follow several chains at \
                      once";
        if !is_on_small_pages(e.object, e.facts) {
            return e.draft(says, change, Gain::Waiting);
        }
        // The order of a chain in memory is the program's; without its source, its pages can be changed.
        let HugePagesRemedy { command, expect, .. } = remedy::huge_pages(e);
        let change = format!("{change}; it is on pages of 4 KiB, and huge pages make steps to other pages shorter");
        e.draft(says, change, Gain::Waiting).trying(command, expect)
    })
});

/// Another line and another page for each access, at a distance that the program knows.
pub(crate) const LARGE_STEPS: Rule = rule(
    "large-steps",
    "steps of more than a page, as through a column of a matrix that is stored by rows",
    |e| {
        let stride = e.facts.walk.as_ref()?.stride().filter(|_| is_costly(e))?;
        let says = format!(
            "it is walked in steps of {stride} bytes: each access needs another line and another page"
        );
        Some(e.draft(says, swapped_loops(e), Gain::Waiting))
    },
);

/// The remedy against large steps, with the line of most of them.
fn swapped_loops(e: &ObjectCase<'_>) -> String {
    let line = e.used.used_by.first().map(|code| &code.name).filter(|name| name.line.is_some());
    let place = line.map_or_else(String::new, |name| format!(" around {name}"));
    format!(
        "Swap the loops{place}, so that the innermost one goes from each element to the one beside it, or divide them into blocks that \
         fit the cache, or store the data in the order in which it is read"
    )
}

/// Addresses without order that are known early.
pub(crate) const RANDOM: Rule = rule("random", "accesses at random that miss the caches", |e| {
    is_habit(e, MemoryWalk::random).then(|| {
        let says =
            "it is read at random, and most accesses miss the caches; none needs the value of the one before";
        e.draft(says, remedy::order(e), Gain::Waiting)
    })
});

/// More pages than the TLB reaches.
pub(crate) const RANDOM_ON_SMALL_PAGES: Rule =
    rule("random-on-small-pages", "16 MiB or more, accessed at random, mostly on pages of 4 KiB", |e| {
        (is_on_small_pages(e.object, e.facts) && is_habit(e, MemoryWalk::scattered)).then(|| {
            let says = "it is read at random, on pages of 4 KiB: many accesses miss the TLB";
            let HugePagesRemedy { change, command, expect } = remedy::huge_pages(e);
            let gain = if command.is_some() { Gain::AllPageWalks } else { Gain::PageWalks };
            e.draft(says, change, gain).trying(command, expect)
        })
    });

/// Most of each line is not used.
pub(crate) const PART_OF_EACH_LINE: Rule = rule(
    "part-of-each-line",
    "at most half of the bytes of each line are used",
    |e| {
        let used = e.facts.walk.as_ref()?.line_use()?;
        let part = used.share(LINE);
        (is_costly(e) && part <= WASTE).then(|| {
            let says = format!("of each line {:.0} % is used, in steps of {} bytes", part * 100.0, used.step);
            if used.step >= MIN_ROW {
                return e.draft(says, swapped_loops(e), Gain::Lines);
            }
            let change = "Keep the fields that are used together in arrays of their own (a structure of arrays), or do all work on \
                          an element in one pass";
            e.draft(says, change, Gain::Lines)
        })
    },
);

/// Whether it has more small pages than the TLB reaches.
pub(crate) fn is_on_small_pages(object: &SampledObject, facts: &ObjectFacts) -> bool {
    object.size >= MIN_RANDOM && facts.huge_pages.is_some_and(|huge| huge < MIN_HABIT)
}

/// Whether most of the looks at instructions that use it saw this, and it costs much.
fn is_habit(e: &ObjectCase<'_>, part: fn(&MemoryWalk) -> Option<f64>) -> bool {
    is_costly(e) && e.facts.walk.as_ref().and_then(part).is_some_and(|part| part >= MIN_HABIT)
}

fn is_costly(e: &ObjectCase<'_>) -> bool {
    e.facts.of_cpu_time.is_some_and(|part| part >= MIN_TIME)
}
