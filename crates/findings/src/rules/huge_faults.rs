//! Page faults for huge pages cost much of the CPU time: each clears 2 MiB, of which little may be used.

use super::{COSTLY, Judge, MACHINE, Rule, RuleKind};
use crate::case::{Case, Draft, per_second, percent};
use crate::course::Limit;
use crate::fault_time::KEEPING;
use crate::finding::FindingSubject;
use numakit_model::Instance;
use numakit_model::numbers::grouped;

pub(crate) const RULE: Rule = Rule {
    name: "huge-page-faults",
    finds: "page faults for huge pages that cost much of the CPU time",
    kind: RuleKind::Problem,
    judge: Judge::Rows(
        Limit { formula: "huge_fault_share", threshold: COSTLY, scopes: MACHINE, minimum: None },
        judge,
    ),
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let own = case
        .overall("task_huge_share")
        .filter(|&share| share >= COSTLY && case.is_worth_of(share, case.overall("task_cpu")));
    let of_all = || {
        case.rate("huge_fault_share").filter(|&share| share >= COSTLY && case.is_worth_of(share, case.busy()))
    };
    let (subject, share, whose, count, formula) = match own {
        Some(share) => (FindingSubject::Program, share, "its", "task_huge", "task_huge_share"),
        None => (case.owner(), of_all()?, "the", "huge", "huge_fault_share"),
    };
    let faults = case.facts.sum(count, Instance::Machine)?;
    let rate = case.rate(count)?;
    let says = format!("Clearing huge pages takes {} of {whose} CPU time", percent(share));
    let remedy = case.remedy(
        "Reuse memory instead of returning it; without huge pages only what is touched is cleared",
        &["numa run --no-thp {command}", &format!("numa run env {KEEPING} {{command}}")],
    );
    let evidence = case.evidence(formula, format!("{} huge pages, {}", grouped(faults), per_second(rate)));
    Some(Draft::estimated(subject, says, share, remedy).with([evidence]))
}
