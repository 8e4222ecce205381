//! Remote accesses, and links or memory that are nearly saturated: by how much and since when.

use crate::case::place_words;
use crate::course::{Limit, Watched, Watching};
use crate::facts::Facts;
use crate::limits;
use crate::report::{Bottleneck, BottleneckKind, Bottlenecks};
use crate::tally::Tally;
use numakit_model::{Instance, Scope};

/// A line of the table.
pub(crate) struct BottleneckRule {
    /// The share that is followed, in percent.
    pub(crate) limit: Limit,
    pub(crate) kind: BottleneckKind,
    /// What the subject does, as in "node 2 accesses remote memory".
    pub(crate) does: &'static str,
    /// What the share is of, as in "63 % of its accesses".
    of: &'static str,
    /// The formula of the amount in bytes per second.
    amount: Option<&'static str>,
}

pub(crate) static RULES: &[BottleneckRule] = &[
    BottleneckRule {
        limit: limits::FAR_TIME,
        kind: BottleneckKind::Remote,
        does: "has threads that wait for memory of other nodes",
        of: "of their time at memory",
        amount: None,
    },
    BottleneckRule {
        limit: limits::FAR_PAGES,
        kind: BottleneckKind::Remote,
        does: "has threads that use memory of other nodes",
        of: "of the pages in use",
        amount: None,
    },
    BottleneckRule {
        limit: limits::FAR_READS,
        kind: BottleneckKind::Remote,
        does: "accesses remote memory",
        of: "of its accesses",
        amount: Some("remote_bandwidth"),
    },
    BottleneckRule {
        limit: limits::FAR_LOADS,
        kind: BottleneckKind::Remote,
        does: "loads from remote memory",
        of: "of its loads from memory",
        amount: None,
    },
    BottleneckRule {
        limit: limits::FAR_TRAFFIC,
        kind: BottleneckKind::Remote,
        does: "transfers data from and to remote memory",
        of: "of its traffic",
        amount: Some("remote_bandwidth"),
    },
    BottleneckRule {
        limit: limits::LINK,
        kind: BottleneckKind::Link,
        does: "is nearly saturated",
        of: "of its bandwidth",
        amount: Some("link_out"),
    },
    BottleneckRule {
        limit: limits::CARD,
        kind: BottleneckKind::Link,
        does: "delays requests for memory of other nodes",
        of: "of the time",
        amount: Some("link_in"),
    },
    BottleneckRule {
        limit: limits::MEMORY,
        kind: BottleneckKind::Memory,
        does: "nearly saturates its memory",
        of: "of its memory bandwidth",
        amount: Some("dram_bandwidth"),
    },
    BottleneckRule {
        limit: limits::FAR_HINTS.at(&[Scope::Machine]),
        kind: BottleneckKind::Remote,
        does: "has threads that use remote memory",
        of: "of the accesses that NUMA balancing sampled",
        amount: None,
    },
    BottleneckRule {
        limit: limits::FAR_ALLOCATIONS.at(&[Scope::Node]),
        kind: BottleneckKind::Remote,
        does: "has allocations by remote CPUs",
        of: "of the allocations on it",
        amount: None,
    },
];

/// The rules that can be evaluated on rows of a recording.
pub(crate) fn watched(watching: &Watching<'_>) -> Vec<Watched<BottleneckRule>> {
    // Where it is known who used the memory, it does not matter who allocated it.
    let is_use_known =
        ["remote_time_share", "remote_pages_share"].iter().any(|name| watching.can(name, Instance::Machine));
    let is_about_use =
        |rule: &&BottleneckRule| !is_use_known || rule.limit.formula != "remote_allocation_share";
    RULES.iter().filter(is_about_use).flat_map(|rule| watching.all(rule, &rule.limit)).collect()
}

/// The bottlenecks whose shares reached their thresholds. The worst one comes first.
pub(crate) fn bottlenecks(facts: &Facts<'_>, tally: &Tally) -> Bottlenecks {
    let watched = &tally.bottlenecks;
    let bottleneck = |w: &Watched<BottleneckRule>| {
        let spell = w.onset.longest()?;
        let percent = facts.rate(w.line.limit.formula, w.place)?;
        let (peak, peak_at) = w.onset.peak()?;
        Some(Bottleneck {
            who: place_words(w.place),
            kind: w.line.kind,
            does: w.line.does,
            percent,
            of: w.line.of,
            peak_percent: peak,
            peak_at_seconds: tally.seconds(peak_at),
            time_percent: w.onset.percent_above(),
            since_seconds: tally.seconds(spell.from),
            until_seconds: (!w.onset.lasts()).then(|| tally.seconds(spell.to)),
            per_second: w.line.amount.and_then(|name| facts.rate(name, w.place)),
        })
    };
    let mut found: Vec<Bottleneck> = watched.iter().filter_map(bottleneck).collect();
    let weight = |s: &Bottleneck| s.percent * s.time_percent;
    found.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    let highest = watched.iter().filter_map(|w| Some((w, w.onset.peak()?.0)));
    let highest = highest
        .max_by(|(a, x), (b, y)| (x / a.line.limit.threshold).total_cmp(&(y / b.line.limit.threshold)));
    let one = facts.node_count() == Some(1);
    let highest = highest
        .filter(|_| found.is_empty() && !one)
        .map(|(w, peak)| format!("{peak:.1} % {} ({})", w.line.of, place_words(w.place)));
    let unknown = match highest.is_some() || !found.is_empty() {
        true => None,
        false if one => Some("the machine has one node, so no memory is remote".to_owned()),
        false if watched.is_empty() => facts.missing("remote_share", Instance::Machine),
        false => Some("too short".to_owned()),
    };
    Bottlenecks { found, highest, unknown }
}
