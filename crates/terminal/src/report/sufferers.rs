//! Who waits for far or crowded memory, by how much and since when: one table of harms, each a
//! formula with a threshold, watched over time at every place where it can be computed.

use super::analysis::Facts;
use super::onset::Onset;
use super::value::{Bottleneck, Sufferer, Suffering};
use numakit_derived::{BoundFormula, Catalog, Index};
use numakit_model::{Instance, Scope};
use numakit_recording::Header;

/// A line of the table.
pub(super) struct Harm {
    /// The formula that is watched, in hundredths.
    pub(super) formula: &'static str,
    /// From this on it is worth telling.
    pub(super) threshold: f64,
    /// The kinds of places to look at; only the first that can be computed is.
    pub(super) scopes: &'static [Scope],
    /// What kind of bottleneck it is.
    pub(super) bottleneck: Bottleneck,
    /// What the place does, as in "node 2 uses remote memory".
    pub(super) does: &'static str,
    /// The share in words, as in "63 % of its accesses".
    of: &'static str,
    /// What must go on for the share to matter: a formula, and the least that it gives.
    pub(super) least: Option<(&'static str, f64)>,
    /// How much that is together, where a formula tells it.
    amount: Option<&'static str>,
}

const PARTS: &[Scope] = &[Scope::Node, Scope::Package, Scope::Machine];

pub(super) static HARMS: &[Harm] = &[
    Harm {
        formula: "task_remote_share",
        threshold: 20.0,
        scopes: &[Scope::Machine],
        bottleneck: Bottleneck::Remote,
        does: "have memory far from their threads",
        of: "of their memory, by CPU time",
        least: Some(("task_cpu", 0.01)),
        amount: None,
    },
    Harm {
        formula: "remote_share",
        threshold: 20.0,
        scopes: PARTS,
        bottleneck: Bottleneck::Remote,
        does: "has remote accesses to memory",
        of: "of its accesses",
        least: Some(("dram_bandwidth", 1e8)),
        amount: Some("remote_bandwidth"),
    },
    Harm {
        formula: "load_remote_share",
        threshold: 20.0,
        scopes: PARTS,
        bottleneck: Bottleneck::Remote,
        does: "waits for remote memory",
        of: "of what its CPUs loaded from memory",
        least: Some(("memory_loads", 1e5)),
        amount: None,
    },
    Harm {
        formula: "resctrl_remote_share",
        threshold: 20.0,
        scopes: PARTS,
        bottleneck: Bottleneck::Remote,
        does: "moves data from and to remote memory",
        of: "of its traffic",
        least: Some(("resctrl_bandwidth", 1e8)),
        amount: Some("remote_bandwidth"),
    },
    Harm {
        formula: "link_util",
        threshold: 70.0,
        scopes: &[Scope::Link, Scope::Package],
        bottleneck: Bottleneck::Link,
        does: "is nearly full",
        of: "of what it can carry",
        least: None,
        amount: Some("link_out"),
    },
    Harm {
        formula: "card_wait",
        threshold: 70.0,
        scopes: &[Scope::Device],
        bottleneck: Bottleneck::Link,
        does: "keeps requests for memory of other nodes waiting",
        of: "of the time",
        least: None,
        amount: Some("link_in"),
    },
    Harm {
        formula: "dram_util",
        threshold: 70.0,
        scopes: PARTS,
        bottleneck: Bottleneck::Memory,
        does: "has memory that is nearly as busy as it can be",
        of: "of what its memory can give",
        least: None,
        amount: Some("dram_bandwidth"),
    },
    Harm {
        formula: "hint_remote_share",
        threshold: 20.0,
        scopes: &[Scope::Machine],
        bottleneck: Bottleneck::Remote,
        does: "has threads that use memory of remote nodes",
        of: "of the accesses that NUMA balancing sampled",
        least: Some(("hint", 100.0)),
        amount: None,
    },
    Harm {
        formula: "remote_allocation_share",
        threshold: 20.0,
        scopes: &[Scope::Node],
        bottleneck: Bottleneck::Remote,
        does: "gives memory to remote CPUs",
        of: "of the allocations on it",
        least: Some(("allocations", 1e3)),
        amount: None,
    },
];

/// A harm at a place, watched over time.
pub(super) struct Watched {
    harm: &'static Harm,
    place: Instance,
    bound: BoundFormula,
    /// What must go on, and how much of it.
    least: Option<(BoundFormula, f64)>,
    onset: Onset,
}

/// What can be watched in rows of that header.
pub(super) fn watched(header: &Header, index: &Index<'_>, formulas: &Catalog) -> Vec<Watched> {
    let bound = |name, place| index.bind(formulas, formulas.get(name)?, place).ok();
    let bind = |harm: &'static Harm, place| {
        let least = harm.least.and_then(|(name, least)| Some((bound(name, place)?, least)));
        let onset = Onset::new(harm.threshold);
        Some(Watched { harm, place, bound: bound(harm.formula, place)?, least, onset })
    };
    let mut all = Vec::new();
    for harm in HARMS {
        let of_scope = |scope: &Scope| -> Vec<Watched> {
            places(header, *scope).into_iter().filter_map(|place| bind(harm, place)).collect()
        };
        all.extend(harm.scopes.iter().map(of_scope).find(|found| !found.is_empty()).into_iter().flatten());
    }
    all
}

/// The places of a kind that the header has series or parts of.
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

impl Watched {
    /// The rates of the next slot of time.
    pub(super) fn push(&mut self, time: u64, rates: &[Option<f64>]) {
        let Some(value) = self.bound.value(rates) else { return };
        // A share of next to nothing harms nobody.
        let enough = |(bound, least): &(BoundFormula, f64)| bound.value(rates).is_some_and(|v| v >= *least);
        let matters = self.least.as_ref().is_none_or(enough);
        self.onset.push(time, if matters { value } else { 0.0 });
    }

    /// What follows does not belong to the time before it.
    pub(super) fn gap(&mut self) {
        self.onset.gap();
    }
}

/// Those that were beyond their thresholds, the worst first; with times since `first`.
pub(super) fn suffering(facts: &Facts<'_>, watched: &[Watched], first: u64) -> Suffering {
    let seconds = |time: u64| time.saturating_sub(first) as f64 / 1e9;
    let sufferer = |w: &Watched| {
        let spell = w.onset.longest()?;
        let percent = facts.rate(w.harm.formula, w.place)?;
        let (peak, peak_at) = w.onset.peak()?;
        Some(Sufferer {
            who: who(w),
            bottleneck: w.harm.bottleneck,
            does: w.harm.does,
            percent,
            of: w.harm.of,
            peak_percent: peak,
            peak_at_seconds: seconds(peak_at),
            time_percent: w.onset.percent_above(),
            since_seconds: seconds(spell.from),
            until_seconds: (!w.onset.lasts()).then(|| seconds(spell.to)),
            per_second: w.harm.amount.and_then(|name| facts.rate(name, w.place)),
        })
    };
    let mut sufferers: Vec<Sufferer> = watched.iter().filter_map(sufferer).collect();
    let weight = |s: &Sufferer| s.percent * s.time_percent;
    sufferers.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    let highest = watched.iter().filter_map(|w| Some((w, w.onset.peak()?.0)));
    let highest = highest.max_by(|(a, x), (b, y)| (x / a.harm.threshold).total_cmp(&(y / b.harm.threshold)));
    let one = facts.node_count() == Some(1);
    let calm = highest
        .filter(|_| sufferers.is_empty() && !one)
        .map(|(w, peak)| format!("at most {peak:.1} % {} ({})", w.harm.of, who(w)));
    let unknown = match calm.is_some() || !sufferers.is_empty() {
        true => None,
        false if one => Some("the machine has one node, so no memory is far".to_owned()),
        false if watched.is_empty() => facts.missing("remote_share", Instance::Machine),
        false => Some("too short".to_owned()),
    };
    Suffering { sufferers, calm, unknown }
}

fn who(watched: &Watched) -> String {
    match watched.place {
        Instance::Machine if watched.harm.formula.starts_with("task") => "the observed processes".to_owned(),
        Instance::Machine => "the machine".to_owned(),
        Instance::Node(n) => format!("node {n}"),
        Instance::Package(p) => format!("package {p}"),
        Instance::Link(p, l) => format!("link {l} of package {p}"),
        place => place.to_string().trim_start_matches('@').to_owned(),
    }
}
