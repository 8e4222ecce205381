//! A program that waits for memory most of its time, near or far.

use super::{Judge, MACHINE, RUNS, Rule, RuleKind};
use crate::case::{Case, Draft, percent};
use crate::course::Limit;
use crate::finding::{CostBasis, FindingCost, FindingSubject};

/// The share of the program's time at memory from which on it is a finding, in percent.
const MOST: f64 = 50.0;

pub(crate) const RULE: Rule = Rule {
    name: "waits-for-memory",
    finds: "a program that waits for memory most of its time",
    kind: RuleKind::Problem,
    judge: Judge::Rows(
        Limit { formula: "memory_cost", threshold: MOST, scopes: MACHINE, minimum: RUNS },
        judge,
    ),
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let share = case.rate("memory_cost").filter(|&share| share >= MOST && case.has_run())?;
    let far = case.overall("remote_time_share").filter(|&far| far > 0.0);
    let says = format!("The program waits for memory {} of its CPU time", percent(share));
    let remedy = case.remedy(
        "numa explain names the data, how it is read, and what helps: huge pages, layout, placement",
        &["numa explain {command}"],
    );
    // Waiting overlaps with computing: the share is an upper bound of what can be gained.
    let cost = FindingCost::at_most(CostBasis::CpuTime, share);
    let mut evidence =
        vec![case.evidence("memory_cost", format!("{} outside of the caches", percent(share)))];
    evidence.extend(
        far.map(|far| case.evidence("remote_time_share", format!("{} of it for other nodes", percent(far)))),
    );
    Some(Draft::measured(FindingSubject::Program, says, cost, remedy).with(evidence))
}
