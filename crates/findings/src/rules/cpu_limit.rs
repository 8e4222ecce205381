//! The CPU limit of a control group stops the program.

use super::{COSTLY, Judge, MACHINE, Rule, RuleKind};
use crate::case::{Case, Draft, percent};
use crate::course::Limit;
use crate::finding::{CostBasis, FindingCost, FindingSubject};

pub(crate) const RULE: Rule = Rule {
    name: "cpu-limit",
    finds: "a program that the CPU limit of its control group stops",
    kind: RuleKind::Problem,
    judge: Judge::Rows(
        Limit { formula: "throttled", threshold: COSTLY, scopes: MACHINE, minimum: None },
        judge,
    ),
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let share = case.rate("throttled").filter(|&share| share >= COSTLY)?;
    let says = format!(
        "The CPU limit of its control group stops the program {} of the time",
        percent(share.min(100.0))
    );
    let remedy = case.remedy(
        "Raise the limit (docker run --cpus, CPUQuota=, resources.limits.cpu), or use fewer threads",
        &["numa run -c auto {command}", "numa topo"],
    );
    let cost = FindingCost::about(CostBasis::WallTime, share, 0.0);
    let evidence = case.evidence("throttled", format!("{} of the time", percent(share)));
    Some(Draft::measured(FindingSubject::Program, says, cost, remedy).with([evidence]))
}
