//! Memory was allocated by CPUs of other nodes, and the recording does not say who used it.

use super::{MACHINE, Rule, RuleKind};
use crate::case::{Case, Draft, percent};
use crate::course::Limit;
use crate::findings::{Certainty, FindingCost};
use numakit_model::Instance;

const FAR: f64 = 20.0;
/// With fewer allocations nothing is said.
const MIN_ALLOCATIONS: f64 = 1000.0;

pub(crate) const RULE: Rule = Rule {
    name: "far-allocation",
    finds: "memory that CPUs of other nodes allocated, where nothing tells who used it",
    kind: RuleKind::Problem,
    limit: Limit {
        formula: "remote_allocation_share",
        threshold: FAR,
        scopes: MACHINE,
        minimum: Some(("allocations", 1e3)),
    },
    judge,
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let is_use_known = case.overall("far_share").or_else(|| case.overall("far_pages_share")).is_some();
    let share = case.rate("remote_allocation_share").filter(|&share| share >= FAR && !is_use_known)?;
    case.facts.sum("allocations", Instance::Machine).filter(|&n| n >= MIN_ALLOCATIONS)?;
    let says = format!("{} of the memory was allocated by CPUs of other nodes", percent(share));
    let remedy = case.remedy(
        "Run threads on the nodes of their memory; numa record with a command tells who uses it",
        &["numa run -- {command}", "numa record -- {command}"],
    );
    let cost = FindingCost::unknown("allocation is not use");
    let evidence = case.evidence("remote_allocation_share", format!("{} of the allocations", percent(share)));
    Some(Draft::measured(case.owner(), says, cost, remedy).with([evidence]).certainty(Certainty::Possible))
}
