//! A program that computes: its memory is not what it waits for.

use super::{Judge, MACHINE, RUNS, Rule, RuleKind};
use crate::case::{Case, Draft, percent};
use crate::course::Limit;
use crate::finding::{FindingCost, FindingSubject};

/// A program computes if at least this share of its time goes to its own arithmetic, in percent.
const MOST: f64 = 70.0;

pub(crate) const RULE: Rule = Rule {
    name: "computes",
    finds: "a program that computes most of its time",
    kind: RuleKind::Remark,
    judge: Judge::Rows(
        Limit { formula: "computing_share", threshold: MOST, scopes: MACHINE, minimum: RUNS },
        judge,
    ),
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let share = case.rate("computing_share").filter(|&share| share >= MOST && case.has_run())?;
    let says =
        format!("The program computes {} of its CPU time: it does not wait for memory", percent(share));
    let remedy = case.remedy(
        "Nothing about memory makes it faster; a profiler shows what it computes",
        &["perf record -g -- {command}"],
    );
    let evidence = case.evidence("computing_share", format!("{} of the samples", percent(share)));
    Some(
        Draft::measured(FindingSubject::Program, says, FindingCost::unknown("it is no loss"), remedy)
            .with([evidence]),
    )
}
