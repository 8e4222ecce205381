//! Context switches cost much of the CPU time.

use super::{COSTLY, Judge, MACHINE, RUNS, Rule, RuleKind};
use crate::case::{Case, Draft, per_second, percent};
use crate::course::Limit;
use crate::finding::FindingSubject;

pub(crate) const RULE: Rule = Rule {
    name: "context-switches",
    finds: "context switches that cost much of the CPU time",
    kind: RuleKind::Problem,
    judge: Judge::Rows(
        Limit { formula: "switch_share", threshold: COSTLY, scopes: MACHINE, minimum: RUNS },
        judge,
    ),
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let share = case.rate("switch_share").filter(|&share| share >= COSTLY && case.is_worth(share))?;
    let has_program = case.has_program();
    let own = || Some(case.count("task.voluntary_switches")? + case.count("task.involuntary_switches")?);
    let rate = match has_program {
        true => own().map(|n| n / case.facts.seconds),
        false => case.rate("switches"),
    }?;
    let (subject, who) = match has_program {
        true => (FindingSubject::Program, "Threads of the program take turns"),
        false => (FindingSubject::Machine, "Threads take turns"),
    };
    let says = format!("{who} all the time: {} context switches", per_second(rate));
    let remedy = case.remedy(
        "Hand over more work at a time; spin a moment before waiting; let threads that talk share a cache",
        &["numa run --policy compact {command}", "perf trace -s -- {command}"],
    );
    let evidence = case.evidence("switch_share", format!("about {} of the CPU time", percent(share)));
    Some(Draft::estimated(subject, says, share, remedy).with([evidence]))
}
