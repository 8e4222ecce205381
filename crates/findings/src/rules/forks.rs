//! Starting processes costs much of the CPU time.

use super::{COSTLY, Judge, MACHINE, Rule, RuleKind};
use crate::case::{Case, Draft, per_second, percent};
use crate::course::Limit;

pub(crate) const RULE: Rule = Rule {
    name: "process-starts",
    finds: "processes and threads that are started all the time",
    kind: RuleKind::Problem,
    judge: Judge::Rows(
        Limit { formula: "fork_share", threshold: COSTLY, scopes: MACHINE, minimum: None },
        judge,
    ),
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let share =
        case.rate("fork_share").filter(|&share| share >= COSTLY && case.is_worth_of(share, case.busy()))?;
    let rate = case.facts.mean("cpu.forks")?;
    let says = format!("Processes and threads are started all the time: {}", per_second(rate));
    let remedy = case.remedy(
        "Keep workers, and give them work: a pool of threads, a server instead of a command",
        &["numa stat -e 'cpu.forks'"],
    );
    let evidence = case.evidence("fork_share", format!("about {} of the CPU time", percent(share)));
    Some(Draft::estimated(case.owner(), says, share, remedy).with([evidence]))
}
