//! Faults that asked for a huge page got small pages, because none was free.

use super::{Judge, MACHINE, Rule, RuleKind};
use crate::case::{Case, Draft, percent};
use crate::course::Limit;
use crate::finding::{Certainty, FindingCost};
use numakit_model::Instance;
use numakit_model::numbers::grouped;

/// The share of refused huge pages from which on it is a finding, in percent. If fewer huge pages than the second number
/// were asked for, the rule finds nothing.
const MANY: f64 = 10.0;
const MIN_ASKED: f64 = 100.0;

pub(crate) const RULE: Rule = Rule {
    name: "huge-pages-refused",
    finds: "faults that asked for a huge page and got small ones",
    kind: RuleKind::Problem,
    judge: Judge::Rows(Limit { formula: "small", threshold: 1.0, scopes: MACHINE, minimum: None }, judge),
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let asked = case.facts.sum("huge_asked", Instance::Machine).filter(|&asked| asked >= MIN_ASKED)?;
    let refused = 100.0 - case.rate("huge_page_share")?;
    if refused < MANY {
        return None;
    }
    let says = format!(
        "{} of {} faults that asked for a huge page got small pages",
        percent(refused),
        grouped(asked)
    );
    let remedy = case.remedy(
        "Memory is fragmented: compact it, or reserve huge pages",
        &["echo 1 > /proc/sys/vm/compact_memory", "cat /sys/kernel/mm/transparent_hugepage/defrag"],
    );
    let cost = FindingCost::unknown("it depends on how often translations miss the TLB");
    let evidence = case.evidence("huge_page_share", format!("{} got one", percent(100.0 - refused)));
    Some(Draft::measured(case.owner(), says, cost, remedy).with([evidence]).certainty(Certainty::Likely))
}
