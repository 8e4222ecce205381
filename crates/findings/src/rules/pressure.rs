//! Threads wait until memory is reclaimed.

use super::{Judge, MACHINE, Rule, RuleKind};
use crate::case::{Case, Draft, percent};
use crate::course::Limit;
use crate::finding::{CostBasis, FindingCost};

/// The share of the time in which threads wait for memory from which on it is a finding, in percent.
const MUCH: f64 = 2.0;

pub(crate) const RULE: Rule = Rule {
    name: "memory-pressure",
    finds: "threads that wait until memory is reclaimed",
    kind: RuleKind::Problem,
    judge: Judge::Rows(Limit { formula: "stall", threshold: MUCH, scopes: MACHINE, minimum: None }, judge),
};

/// Judges memory pressure. Finds nothing if the rules for files, swap or compaction say what threads wait for.
fn judge(case: &Case<'_>) -> Option<Draft> {
    let share = case.rate("stall").filter(|&share| share >= MUCH)?;
    let is_known = [("refaults", 500.0), ("swapped", 50.0), ("compactions", 10.0)];
    if is_known.iter().any(|&(formula, from)| case.overall(formula).is_some_and(|rate| rate >= from)) {
        return None;
    }
    let says = format!("Threads wait until memory is reclaimed {} of the time", percent(share));
    let remedy = case.remedy(
        "Use less memory, or raise the limit",
        &["numa topo", "numa stat -e 'pressure.memory*,vmstat.pgscan_direct,vmstat.nr_free_pages'"],
    );
    let cost = FindingCost::about(CostBasis::WallTime, share, 0.0);
    let evidence = case.evidence("stall", format!("{} of the time", percent(share)));
    Some(Draft::measured(case.owner(), says, cost, remedy).with([evidence]))
}
