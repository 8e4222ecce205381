//! Threads fight over cache lines.

use super::{COSTLY, Judge, MACHINE, RUNS, Rule, RuleKind};
use crate::case::{Case, Draft, percent};
use crate::course::Limit;
use crate::finding::{CostBasis, FindingCost, FindingSubject};

pub(crate) const RULE: Rule = Rule {
    name: "contended-lines",
    finds: "threads that wait for cache lines which other threads write",
    kind: RuleKind::Problem,
    judge: Judge::Rows(
        Limit { formula: "contended_cost", threshold: COSTLY, scopes: MACHINE, minimum: RUNS },
        judge,
    ),
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let share = case.rate("contended_cost").filter(|&share| share >= COSTLY && case.has_run())?;
    let says = format!("Threads of the program fight over cache lines: {} of its CPU time", percent(share));
    let remedy = case.remedy(
        "numa explain names the line, its fields and the threads: pad it, give each thread its own, or split the lock",
        &["numa explain {command}"],
    );
    let cost = FindingCost::about(CostBasis::CpuTime, share, 0.3);
    let evidence = case.evidence("contended_cost", format!("{} of the samples", percent(share)));
    Some(Draft::measured(FindingSubject::Program, says, cost, remedy).with([evidence]))
}
