//! Hardware counters or hint faults show accesses to memory of other nodes. They count all that runs there.

use super::{Judge, MACHINE, Rule, RuleKind};
use crate::case::{Case, Draft, percent};
use crate::course::Limit;
use crate::finding::{Certainty, FindingCost};
use crate::limits::{FAR, FAR_HINTS, FAR_READS, FAR_TRAFFIC};

const fn rule(name: &'static str, limit: Limit, judge: fn(&Case<'_>) -> Option<Draft>) -> Rule {
    Rule {
        name,
        finds: "accesses to memory of other nodes, by counters of the whole machine",
        kind: RuleKind::Problem,
        judge: Judge::Rows(limit.at(MACHINE), judge),
    }
}

pub(crate) const READS: Rule = rule("remote-reads", FAR_READS, |case| judge(case, "accesses"));
pub(crate) const TRAFFIC: Rule = rule("remote-traffic", FAR_TRAFFIC, |case| judge(case, "memory traffic"));
pub(crate) const HINTS: Rule =
    rule("remote-hint-faults", FAR_HINTS, |case| judge(case, "accesses that NUMA balancing sampled"));

/// Judges counted accesses. Finds nothing if samples tell who uses far memory, or if a better counter of the machine tells
/// the same.
fn judge(case: &Case<'_>, of: &str) -> Option<Draft> {
    let formula = case.formula();
    let share = case.rate(formula).filter(|&share| share >= FAR && !case.is_use_known())?;
    if formula != FAR_READS.formula && case.overall(FAR_READS.formula).is_some() {
        return None;
    }
    let says = format!("{} of the {of} went to memory of other nodes", percent(share));
    let remedy = case.remedy(
        "Keep threads on the nodes of their memory; numa explain names the data",
        &["numa run {command}", "numa explain {command}", "numa top --once"],
    );
    let cost = FindingCost::unknown("these counters count accesses, not the time that threads wait for them");
    let draft = Draft::measured(case.owner(), says, cost, remedy);
    let evidence = case.evidence(formula, format!("{} of the {of}", percent(share)));
    Some(draft.with([evidence]).certainty(Certainty::Likely))
}
