//! The memory bandwidth of a node, a package or the machine is nearly used up.

use super::{Rule, RuleKind};
use crate::case::{Case, Draft, percent, subject_of, subject_words};
use crate::course::Limit;
use crate::findings::{CostBasis, FindingCost};
use numakit_model::{Instance, Scope};

/// From this share of the peak on, in percent.
const SATURATED: f64 = 70.0;
const PARTS: &[Scope] = &[Scope::Node, Scope::Package, Scope::Machine];

pub(crate) const RULE: Rule = Rule {
    name: "memory-bandwidth",
    finds: "memory whose bandwidth is nearly used up",
    kind: RuleKind::Problem,
    limit: Limit { formula: "dram_util", threshold: SATURATED, scopes: PARTS, minimum: None },
    judge,
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let share = case.rate("dram_util").filter(|&share| share >= SATURATED)?;
    let subject = subject_of(case.place());
    let says = format!("{} uses {} of its memory bandwidth", subject_words(subject), percent(share));
    let others = case.facts.node_count().is_some_and(|n| n > 1) && case.place() != Instance::Machine;
    let remedy = match others {
        true => case.remedy(
            "Use the memory of more nodes",
            &["numa run --policy scatter -- {command}", "numa run --memory interleave -- {command}"],
        ),
        false => case.remedy(
            "Access less memory: reuse what is in the caches; numa explain names the data",
            &["numa explain -- {command}"],
        ),
    };
    let cost = FindingCost::about(CostBasis::WallTime, case.watched.onset.percent_above(), 0.0);
    let evidence = case.evidence("dram_util", format!("{} of the peak", percent(share)));
    Some(Draft::measured(subject, says, cost, remedy).with([evidence]))
}
