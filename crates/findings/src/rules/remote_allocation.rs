//! Memory was allocated by CPUs of other nodes, and the recording does not say who used it.

use super::full_node::OVERFLOW;
use super::{Judge, MACHINE, Rule, RuleKind};
use crate::case::{Case, Draft, percent};
use crate::finding::{Certainty, FindingCost};
use crate::limits::{FAR, FAR_ALLOCATIONS};
use numakit_model::Instance;

/// With fewer allocations the rule finds nothing.
const MIN_ALLOCATIONS: f64 = 1000.0;

pub(crate) const RULE: Rule = Rule {
    name: "remote-allocation",
    finds: "memory that CPUs of other nodes allocated, where nothing tells who used it",
    kind: RuleKind::Problem,
    judge: Judge::Rows(FAR_ALLOCATIONS.at(MACHINE), judge),
};

/// Judges remote allocations. Finds nothing if a node was full: that is then the cause, and has a finding of its own.
fn judge(case: &Case<'_>) -> Option<Draft> {
    let overflow = |node: &u32| case.facts.rate("overflow_share", Instance::Node(*node));
    if case.facts.nodes().iter().filter_map(overflow).any(|share| share >= OVERFLOW) {
        return None;
    }
    let share = case.rate("remote_allocation_share").filter(|&share| share >= FAR && !case.is_use_known())?;
    case.facts.sum("allocations", Instance::Machine).filter(|&n| n >= MIN_ALLOCATIONS)?;
    let says = format!("{} of the memory was allocated by CPUs of other nodes", percent(share));
    let remedy = case.remedy(
        "Run threads on the nodes of their memory; numa record with a command tells who uses it",
        &["numa run {command}", "numa record {command}"],
    );
    let cost = FindingCost::unknown("allocation is not use");
    let evidence = case.evidence("remote_allocation_share", format!("{} of the allocations", percent(share)));
    Some(Draft::measured(case.owner(), says, cost, remedy).with([evidence]).certainty(Certainty::Possible))
}
