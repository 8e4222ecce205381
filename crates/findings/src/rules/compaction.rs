//! Allocations wait until memory is compacted.

use super::{Judge, MACHINE, Rule, RuleKind};
use crate::case::{Case, Draft, per_second, percent};
use crate::course::Limit;
use crate::finding::{Certainty, CostBasis, FindingCost};

/// The rate from which on compactions are a finding, if threads wait for memory for at least this share of the time.
const MANY: f64 = 10.0;
const WAITING: f64 = 1.0;

pub(crate) const RULE: Rule = Rule {
    name: "compaction",
    finds: "allocations that wait until memory is compacted",
    kind: RuleKind::Problem,
    judge: Judge::Rows(
        Limit { formula: "compactions", threshold: MANY, scopes: MACHINE, minimum: None },
        judge,
    ),
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let rate = case.rate("compactions").filter(|&rate| rate >= MANY)?;
    let waiting = case.rate("stall").filter(|&share| share >= WAITING)?;
    let says = format!("Allocations wait for compaction: {}", per_second(rate));
    let remedy = case.remedy(
        "Let allocations take small pages instead of waiting, or keep memory free",
        &["numa run --no-thp {command}", "echo defer+madvise > /sys/kernel/mm/transparent_hugepage/defrag"],
    );
    let evidence = [
        case.evidence("compactions", format!("{} direct compactions", per_second(rate))),
        case.evidence("stall", format!("threads waited for memory {} of the time", percent(waiting))),
    ];
    let cost = FindingCost::at_most(CostBasis::WallTime, waiting);
    Some(Draft::measured(case.owner(), says, cost, remedy).with(evidence).certainty(Certainty::Likely))
}
