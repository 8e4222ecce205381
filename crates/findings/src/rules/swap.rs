//! Memory is swapped out and in.

use super::{Judge, MACHINE, Rule, RuleKind};
use crate::case::{Case, Draft, per_second, percent};
use crate::course::Limit;
use crate::finding::FindingCost;

/// The rate of swapped pages from which on they are a finding.
const MANY: f64 = 50.0;

pub(crate) const RULE: Rule = Rule {
    name: "swapping",
    finds: "memory that is swapped",
    kind: RuleKind::Problem,
    judge: Judge::Rows(Limit { formula: "swapped", threshold: MANY, scopes: MACHINE, minimum: None }, judge),
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let rate = case.rate("swapped").filter(|&rate| rate >= MANY)?;
    let says = format!("The machine swaps: {} pages", per_second(rate));
    let remedy = case.remedy(
        "Use less memory, or run less at a time",
        &["numa top --once", "numa stat -e 'vmstat.pswp*,vmstat.nr_free_pages'"],
    );
    let waiting = case.overall("stall");
    let cost = FindingCost::of_waiting(waiting, "the kernel does not say how long threads waited for memory");
    let mut evidence = vec![case.evidence("swapped", format!("{} pages", per_second(rate)))];
    evidence.extend(waiting.map(|share| {
        case.evidence("stall", format!("threads waited for memory {} of the time", percent(share)))
    }));
    Some(Draft::measured(case.owner(), says, cost, remedy).with(evidence))
}
