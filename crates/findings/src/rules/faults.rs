//! Page faults for small pages cost much of the CPU time: memory is mapped and unmapped all the time, or grows page by page.

use super::{COSTLY, Judge, MACHINE, RUNS, Rule, RuleKind};
use crate::case::{Case, Draft, bytes, per_second, percent};
use crate::course::Limit;
use crate::fault_time::KEEPING;
use crate::finding::{FindingRemedy, FindingSubject};
use numakit_model::Instance;
use numakit_model::numbers::{NumberStyle, grouped};

/// If at least this share of the faulted memory stayed, the program grows; if less, it gets memory and gives it back again
/// and again.
const STAYS: f64 = 0.5;

pub(crate) const RULE: Rule = Rule {
    name: "page-faults",
    finds: "page faults for small pages that cost much of the CPU time",
    kind: RuleKind::Problem,
    judge: Judge::Rows(
        Limit { formula: "fault_share", threshold: COSTLY, scopes: MACHINE, minimum: RUNS },
        judge,
    ),
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let share = case.rate("fault_share").filter(|&share| share >= COSTLY && case.is_worth(share))?;
    let has_program = case.has_program();
    let faults = match has_program {
        true => case.count("task.minor_faults"),
        false => case.facts.sum("minor", Instance::Machine),
    }?;
    let subject = if has_program { FindingSubject::Program } else { FindingSubject::Machine };
    let who = if has_program { "The program" } else { "The machine" };
    let spent = format!("{} of its CPU time", percent(share));
    let kept = has_program.then(|| kept(case, faults)).flatten();
    let (says, remedy) = match kept {
        Some(kept) if kept >= STAYS => {
            (format!("{who} grows page by page: {spent} in page faults"), grows(case))
        }
        Some(_) => (
            format!("{who} maps and unmaps memory all the time: {spent} in page faults"),
            comes_and_goes(case),
        ),
        None => (format!("{who} spends {spent} in page faults"), comes_and_goes(case)),
    };
    let rate = faults / case.facts.seconds.max(f64::MIN_POSITIVE);
    let cost = case.rate("fault_cost").map(|cost| NumberStyle::Seconds.words(cost));
    let each = cost.map_or_else(String::new, |cost| format!(", about {cost} each"));
    let mut evidence = vec![
        case.evidence("fault_share", format!("{} page faults, {}{each}", grouped(faults), per_second(rate))),
    ];
    evidence.extend(kept.map(|kept| {
        let says = format!("{} of the memory stayed", percent(100.0 * kept.min(1.0)));
        case.number("task.resident", kept, says)
    }));
    Some(Draft::estimated(subject, says, share, remedy).with(evidence))
}

/// The share of the memory that faults brought which the program kept: what it had more at the end than at the start.
fn kept(case: &Case<'_>, faults: f64) -> Option<f64> {
    let grown: f64 = case
        .facts
        .nodes()
        .iter()
        .filter_map(|&node| case.memory("task.resident", Instance::Node(node)))
        .map(|level| level.most - level.begin)
        .sum();
    Some(grown / (faults * case.facts.page_size()?))
}

fn comes_and_goes(case: &Case<'_>) -> FindingRemedy {
    case.remedy(
        "Reuse memory instead of returning it; with the allocator of glibc these settings keep it",
        &[&format!("numa run env {KEEPING} {{command}}"), "numa run --thp on {command}"],
    )
}

fn grows(case: &Case<'_>) -> FindingRemedy {
    let free = case.memory("node.MemFree", Instance::Node(0)).map(|level| bytes(level.least));
    let free = free.map_or_else(String::new, |free| format!(" ({free} were free)"));
    case.remedy(
        &format!("Huge pages need 512 times fewer faults{free}"),
        &["numa run --thp on {command}", "echo always > /sys/kernel/mm/transparent_hugepage/enabled"],
    )
}
