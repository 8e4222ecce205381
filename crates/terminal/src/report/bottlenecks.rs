//! Remote accesses, and links or memory that are nearly saturated: by how much and since when. One
//! table of rules, each a formula with a threshold, evaluated over time for each instance that has it.

use super::analysis::Facts;
use super::onset::Onset;
use super::value::{Bottleneck, BottleneckKind, Bottlenecks};
use numakit_derived::{BoundFormula, Catalog, Index};
use numakit_model::{Instance, Scope};
use numakit_recording::Header;

/// A line of the table.
pub(super) struct Rule {
    /// The formula that is evaluated, in percent.
    pub(super) formula: &'static str,
    /// From this value on, it is reported.
    pub(super) threshold: f64,
    /// Of these scopes, the first that can be computed is used.
    pub(super) scopes: &'static [Scope],
    pub(super) kind: BottleneckKind,
    /// The subject, if it is not the instance.
    who: Option<&'static str>,
    /// What the subject does, as in "node 2 accesses remote memory".
    pub(super) does: &'static str,
    /// What the share is of, as in "63 % of its accesses".
    of: &'static str,
    /// The share counts only while this formula gives at least this value.
    pub(super) minimum: Option<(&'static str, f64)>,
    /// The formula of the amount in bytes per second.
    amount: Option<&'static str>,
}

const PARTS: &[Scope] = &[Scope::Node, Scope::Package, Scope::Machine];

pub(super) static RULES: &[Rule] = &[
    Rule {
        formula: "far_share",
        threshold: 20.0,
        scopes: PARTS,
        kind: BottleneckKind::Remote,
        who: None,
        does: "has threads that wait for memory of other nodes",
        of: "of their time at memory",
        minimum: Some(("memory_time", 0.01)),
        amount: None,
    },
    Rule {
        formula: "far_pages_share",
        threshold: 20.0,
        scopes: PARTS,
        kind: BottleneckKind::Remote,
        who: None,
        does: "has threads that use memory of other nodes",
        of: "of the pages in use",
        minimum: Some(("used_pages", 50.0)),
        amount: None,
    },
    Rule {
        formula: "remote_share",
        threshold: 20.0,
        scopes: PARTS,
        kind: BottleneckKind::Remote,
        who: None,
        does: "accesses remote memory",
        of: "of its accesses",
        minimum: Some(("dram_bandwidth", 1e8)),
        amount: Some("remote_bandwidth"),
    },
    Rule {
        formula: "load_remote_share",
        threshold: 20.0,
        scopes: PARTS,
        kind: BottleneckKind::Remote,
        who: None,
        does: "loads from remote memory",
        of: "of its loads from memory",
        minimum: Some(("memory_loads", 1e5)),
        amount: None,
    },
    Rule {
        formula: "resctrl_remote_share",
        threshold: 20.0,
        scopes: PARTS,
        kind: BottleneckKind::Remote,
        who: None,
        does: "transfers data from and to remote memory",
        of: "of its traffic",
        minimum: Some(("resctrl_bandwidth", 1e8)),
        amount: Some("remote_bandwidth"),
    },
    Rule {
        formula: "link_util",
        threshold: 70.0,
        scopes: &[Scope::Link, Scope::Package],
        kind: BottleneckKind::Link,
        who: None,
        does: "is nearly saturated",
        of: "of its bandwidth",
        minimum: None,
        amount: Some("link_out"),
    },
    Rule {
        formula: "card_wait",
        threshold: 70.0,
        scopes: &[Scope::Device],
        kind: BottleneckKind::Link,
        who: None,
        does: "delays requests for memory of other nodes",
        of: "of the time",
        minimum: None,
        amount: Some("link_in"),
    },
    Rule {
        formula: "dram_util",
        threshold: 70.0,
        scopes: PARTS,
        kind: BottleneckKind::Memory,
        who: None,
        does: "nearly saturates its memory",
        of: "of its memory bandwidth",
        minimum: None,
        amount: Some("dram_bandwidth"),
    },
    Rule {
        formula: "hint_remote_share",
        threshold: 20.0,
        scopes: &[Scope::Machine],
        kind: BottleneckKind::Remote,
        who: None,
        does: "has threads that use remote memory",
        of: "of the accesses that NUMA balancing sampled",
        minimum: Some(("hint", 100.0)),
        amount: None,
    },
    Rule {
        formula: "remote_allocation_share",
        threshold: 20.0,
        scopes: &[Scope::Node],
        kind: BottleneckKind::Remote,
        who: None,
        does: "has allocations by remote CPUs",
        of: "of the allocations on it",
        minimum: Some(("allocations", 1e3)),
        amount: None,
    },
];

/// A rule for an instance, evaluated over time.
pub(super) struct WatchedRule {
    rule: &'static Rule,
    place: Instance,
    bound: BoundFormula,
    minimum: Option<(BoundFormula, f64)>,
    onset: Onset,
}

/// The rules that can be evaluated on rows of that header.
pub(super) fn watched(header: &Header, index: &Index<'_>, formulas: &Catalog) -> Vec<WatchedRule> {
    let bound = |name, place| index.bind(formulas, formulas.get(name)?, place).ok();
    let bind = |rule: &'static Rule, place| {
        let minimum = rule.minimum.and_then(|(name, minimum)| Some((bound(name, place)?, minimum)));
        let onset = Onset::new(rule.threshold);
        Some(WatchedRule { rule, place, bound: bound(rule.formula, place)?, minimum, onset })
    };
    // Who allocated memory says nothing where it is known who used it.
    let is_use_known =
        ["far_share", "far_pages_share"].iter().any(|name| bound(name, Instance::Machine).is_some());
    let is_about_use = |rule: &&Rule| !is_use_known || rule.formula != "remote_allocation_share";
    let mut all = Vec::new();
    for rule in RULES.iter().filter(is_about_use) {
        let of_scope = |scope: &Scope| -> Vec<WatchedRule> {
            places(header, *scope).into_iter().filter_map(|place| bind(rule, place)).collect()
        };
        all.extend(rule.scopes.iter().map(of_scope).find(|found| !found.is_empty()).into_iter().flatten());
    }
    all
}

/// The instances of a scope in the header's series and topology.
fn places(header: &Header, scope: Scope) -> Vec<Instance> {
    if scope == Scope::Machine {
        return vec![Instance::Machine];
    }
    let mut places: Vec<Instance> =
        header.series.iter().map(|s| s.instance).filter(|i| i.scope() == scope).collect();
    if let (Scope::Node, Some(topology)) = (scope, &header.topology) {
        places.extend(topology.nodes.iter().map(|n| Instance::Node(n.os_index)));
    }
    places.sort_unstable();
    places.dedup();
    places
}

impl WatchedRule {
    /// The rates of the next slot of time.
    pub(super) fn push(&mut self, time: u64, rates: &[Option<f64>]) {
        let Some(value) = self.bound.value(rates) else { return self.onset.start(time) };
        let enough =
            |(bound, minimum): &(BoundFormula, f64)| bound.value(rates).is_some_and(|v| v >= *minimum);
        let counts = self.minimum.as_ref().is_none_or(enough);
        self.onset.push(time, if counts { value } else { 0.0 });
    }

    /// A gap in the samples.
    pub(super) fn gap(&mut self) {
        self.onset.gap();
    }
}

/// Those that reached their thresholds, the worst first; with times since `first`.
pub(super) fn bottlenecks(facts: &Facts<'_>, watched: &[WatchedRule], first: u64) -> Bottlenecks {
    let seconds = |time: u64| time.saturating_sub(first) as f64 / 1e9;
    let bottleneck = |w: &WatchedRule| {
        let spell = w.onset.longest()?;
        let percent = facts.rate(w.rule.formula, w.place)?;
        let (peak, peak_at) = w.onset.peak()?;
        Some(Bottleneck {
            who: who(w),
            kind: w.rule.kind,
            does: w.rule.does,
            percent,
            of: w.rule.of,
            peak_percent: peak,
            peak_at_seconds: seconds(peak_at),
            time_percent: w.onset.percent_above(),
            since_seconds: seconds(spell.from),
            until_seconds: (!w.onset.lasts()).then(|| seconds(spell.to)),
            per_second: w.rule.amount.and_then(|name| facts.rate(name, w.place)),
        })
    };
    let mut found: Vec<Bottleneck> = watched.iter().filter_map(bottleneck).collect();
    let weight = |s: &Bottleneck| s.percent * s.time_percent;
    found.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    let highest = watched.iter().filter_map(|w| Some((w, w.onset.peak()?.0)));
    let highest = highest.max_by(|(a, x), (b, y)| (x / a.rule.threshold).total_cmp(&(y / b.rule.threshold)));
    let one = facts.node_count() == Some(1);
    let highest = highest
        .filter(|_| found.is_empty() && !one)
        .map(|(w, peak)| format!("{peak:.1} % {} ({})", w.rule.of, who(w)));
    let unknown = match highest.is_some() || !found.is_empty() {
        true => None,
        false if one => Some("the machine has one node, so no memory is remote".to_owned()),
        false if watched.is_empty() => facts.missing("remote_share", Instance::Machine),
        false => Some("too short".to_owned()),
    };
    Bottlenecks { found, highest, unknown }
}

fn who(watched: &WatchedRule) -> String {
    if let Some(who) = watched.rule.who {
        return who.to_owned();
    }
    match watched.place {
        Instance::Machine => "the machine".to_owned(),
        Instance::Node(n) => format!("node {n}"),
        Instance::Package(p) => format!("package {p}"),
        Instance::Link(p, l) => format!("link {l} of package {p}"),
        place => place.to_string().trim_start_matches('@').to_owned(),
    }
}
