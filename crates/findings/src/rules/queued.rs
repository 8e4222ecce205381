//! More threads can run than there are CPUs.

use super::{Judge, MACHINE, Rule, RuleKind};
use crate::case::{Case, Draft, percent};
use crate::course::Limit;
use crate::finding::{Certainty, CostBasis, FindingCost, FindingSubject};
use numakit_model::numbers::NumberStyle;

/// The share of waiting threads from which on it is a finding, in percent.
const MANY: f64 = 20.0;

pub(crate) const RULE: Rule = Rule {
    name: "too-many-threads",
    finds: "more threads that could run than there are CPUs",
    kind: RuleKind::Problem,
    judge: Judge::Rows(
        Limit { formula: "queued_share", threshold: MANY, scopes: MACHINE, minimum: None },
        judge,
    ),
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let share = case.rate("queued_share").filter(|&share| share >= MANY)?;
    let ready = case.facts.mean("cpu.procs_running")? - 1.0;
    let cpus = case.cpus();
    let says = format!(
        "{} threads want to run on {cpus} CPUs: {} of them wait",
        NumberStyle::Ratio.words(ready),
        percent(share)
    );
    let owner = owner(case, cpus);
    let remedy = match owner {
        FindingSubject::Program => case.remedy(
            "Start as many threads as there are CPUs; numa run sets the number for OpenMP and takes free cores",
            &["numa run -c auto {command}"],
        ),
        // The threads of several programs, or of another one: their number is no choice of this program.
        _ => case.remedy(
            "See which programs use the CPUs; end those that are not needed now, or run them one after the other",
            &["numa top"],
        ),
    };
    let mut evidence =
        vec![case.evidence("queued_share", format!("{} of the threads that could run", percent(share)))];
    let waiting = case.overall("stall_cpu");
    evidence.extend(waiting.map(|share| {
        case.evidence("stall_cpu", format!("a thread waited for a CPU {} of the time", percent(share)))
    }));
    let cost = FindingCost::about(CostBasis::WallTime, share, 0.3);
    Some(Draft::measured(owner, says, cost, remedy).with(evidence).certainty(Certainty::Likely))
}

/// Who has too many threads. A program that has no more threads than there are CPUs is not the cause, even if its
/// threads wait.
fn owner(case: &Case<'_>, cpus: f64) -> FindingSubject {
    match case.facts.mean("task.threads") {
        Some(threads) if threads <= cpus + 1.0 => FindingSubject::Machine,
        _ => case.owner(),
    }
}
