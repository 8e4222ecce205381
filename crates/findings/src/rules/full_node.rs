//! A node was full, so that allocations that preferred it got memory of other nodes.

use super::{Judge, NODES, Rule, RuleKind};
use crate::case::{Case, Draft, bytes, percent, subject_of};
use crate::course::Limit;
use crate::criteria::FULL_PERCENT;
use crate::finding::{Certainty, FindingCost, FindingSubject};
use numakit_model::Instance;

/// The share of overflowing allocations from which on a full node is a finding, in percent.
pub(super) const OVERFLOW: f64 = 5.0;
/// With fewer allocations the rule finds nothing.
const MIN_ALLOCATIONS: f64 = 1000.0;

pub(crate) const RULE: Rule = Rule {
    name: "full-node",
    finds: "a node without free memory while others have some",
    kind: RuleKind::Problem,
    judge: Judge::Rows(
        Limit {
            formula: "overflow_share",
            threshold: OVERFLOW,
            scopes: NODES,
            minimum: Some(("preferring", 100.0)),
        },
        judge,
    ),
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let Instance::Node(node) = case.place() else { return None };
    let share = case.rate("overflow_share").filter(|&share| share >= OVERFLOW)?;
    case.facts.sum("preferring", case.place()).filter(|&n| n >= MIN_ALLOCATIONS)?;
    let says = format!(
        "Node {node} was full: {} of the allocations that preferred it got memory of another node",
        percent(share)
    );
    let free = case.memory("node.MemFree", case.place()).map(|level| level.least);
    let total = case.facts.topology().and_then(|t| t.node(node)?.memory_kb).map(|kb| kb as f64 * 1024.0);
    let is_full = free.zip(total).is_some_and(|(free, total)| free * 100.0 < total * FULL_PERCENT);
    let least = free.map(|free| {
        case.number(
            &format!("node.MemFree@node{node}"),
            free,
            format!("it had {} free at least", bytes(free)),
        )
    });
    let remedy = case.remedy(
        "Free memory on the node, often page cache, or use the memory of more nodes",
        &[
            "numa run --memory interleave {command}",
            "numa stat --per node -e 'node.MemFree,node.numa_foreign,node.FilePages'",
        ],
    );
    let cost = FindingCost::unknown("allocation is not use");
    let evidence = case.evidence(
        "overflow_share",
        format!("{} of the allocations that preferred node {node}", percent(share)),
    );
    let subject = match case.owner() {
        FindingSubject::Program => FindingSubject::Program,
        _ => subject_of(case.place()),
    };
    let draft = Draft::measured(subject, says, cost, remedy).with([evidence]).with(least);
    Some(draft.certainty(if is_full { Certainty::Measured } else { Certainty::Likely }))
}
