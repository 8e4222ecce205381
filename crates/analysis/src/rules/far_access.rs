//! Hardware counters or hint faults show accesses to memory of other nodes. They count all that runs there.

use super::{MACHINE, Rule, RuleKind};
use crate::case::{Case, Draft, percent};
use crate::course::Limit;
use crate::findings::{Certainty, FindingCost};
use numakit_model::Scope;

const FAR: f64 = 20.0;
const PARTS: &[Scope] = MACHINE;

const fn rule(
    name: &'static str,
    formula: &'static str,
    minimum: (&'static str, f64),
    judge: fn(&Case<'_>) -> Option<Draft>,
) -> Rule {
    Rule {
        name,
        finds: "accesses to memory of other nodes, by counters of the whole machine",
        kind: RuleKind::Problem,
        limit: Limit { formula, threshold: FAR, scopes: PARTS, minimum: Some(minimum) },
        judge,
    }
}

pub(crate) const READS: Rule = rule("far-reads", "remote_share", ("dram_bandwidth", 1e8), |case| {
    judge(case, "remote_share", "accesses")
});
pub(crate) const LOADS: Rule = rule("far-loads", "load_remote_share", ("memory_loads", 1e5), |case| {
    judge(case, "load_remote_share", "loads from memory")
});
pub(crate) const TRAFFIC: Rule =
    rule("far-traffic", "resctrl_remote_share", ("resctrl_bandwidth", 1e8), |case| {
        judge(case, "resctrl_remote_share", "memory traffic")
    });
pub(crate) const HINTS: Rule = rule("far-hint-faults", "hint_remote_share", ("hint", 100.0), |case| {
    judge(case, "hint_remote_share", "accesses that NUMA balancing sampled")
});

/// Silent where samples tell whose use it is.
fn judge(case: &Case<'_>, formula: &str, of: &str) -> Option<Draft> {
    let is_use_known = case.overall("far_share").or_else(|| case.overall("far_pages_share")).is_some();
    let share = case.rate(formula).filter(|&share| share >= FAR && !is_use_known)?;
    let says = format!("{} of the {of} went to memory of other nodes", percent(share));
    let remedy = case.remedy(
        "Keep threads on the nodes of their memory; numa explain names the data",
        &["numa run -- {command}", "numa explain -- {command}", "numa tasks"],
    );
    let cost = FindingCost::unknown("these counters count accesses, not the time that threads wait for them");
    let draft = Draft::measured(case.owner(), says, cost, remedy);
    let evidence = case.evidence(formula, format!("{} of the {of}", percent(share)));
    Some(draft.with([evidence]).certainty(Certainty::Likely))
}
