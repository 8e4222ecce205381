//! NUMA balancing migrates pages, again and again.

use super::{Judge, MACHINE, Rule, RuleKind};
use crate::case::{Case, Draft, per_second, percent};
use crate::course::Limit;

/// The finding is a problem from this share of the CPU time on, in percent.
const COSTLY: f64 = 2.0;

pub(crate) const RULE: Rule = Rule {
    name: "pages-migrate",
    finds: "pages that NUMA balancing migrates all the time",
    kind: RuleKind::Problem,
    judge: Judge::Rows(
        Limit { formula: "move_share", threshold: COSTLY, scopes: MACHINE, minimum: Some(("hint", 1.0)) },
        judge,
    ),
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let share = case.rate("move_share").filter(|&share| share >= COSTLY)?;
    let moved = case.rate("moved")?;
    let hints = case.rate("hint").filter(|&hints| hints > 0.0)?;
    let says = format!("NUMA balancing migrates pages: {} on average", per_second(moved));
    let remedy = case.remedy(
        "Place threads and memory, so that nothing need be moved; balancing can then be switched off",
        &["numa run {command}", "sysctl kernel.numa_balancing=0"],
    );
    let evidence = [
        case.evidence("move_share", format!("about {} of the CPU time", percent(share))),
        case.evidence("hint", format!("{} hint faults", per_second(hints))),
    ];
    Some(Draft::estimated(case.owner(), says, share, remedy).with(evidence))
}
