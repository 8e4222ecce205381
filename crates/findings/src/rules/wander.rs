//! Threads of the program move between nodes, away from their memory.

use super::{Judge, MACHINE, Rule, RuleKind};
use crate::case::{Case, Draft, per_second, percent};
use crate::course::Limit;
use crate::finding::{Certainty, FindingCost, FindingSubject};

/// The share of threads away from their memory from which on it is a finding, in percent.
const MANY: f64 = 30.0;
/// Fewer migrations a second than this are usual: the scheduler has found a place for each thread.
const OFTEN: f64 = 5.0;

pub(crate) const RULE: Rule = Rule {
    name: "threads-wander",
    finds: "threads that move between nodes, away from their memory",
    kind: RuleKind::Problem,
    judge: Judge::Rows(
        Limit { formula: "away_share", threshold: MANY, scopes: MACHINE, minimum: None },
        judge,
    ),
};

/// Judges how threads move. Finds nothing if samples tell which memory the program uses: they say more.
fn judge(case: &Case<'_>) -> Option<Draft> {
    let away = case.rate("away_share").filter(|&share| share >= MANY && !case.is_use_known())?;
    let seconds = case.facts.seconds.max(f64::MIN_POSITIVE);
    let moves = case.count("task.migrations")? / seconds;
    if moves < OFTEN || case.facts.node_count().is_none_or(|nodes| nodes < 2) {
        return None;
    }
    let says = format!(
        "Threads move between CPUs, {}, and {} of them are away from their memory",
        per_second(moves),
        percent(away)
    );
    let remedy = case.remedy(
        "Give each thread a core of its own: then its memory stays local",
        &["numa run {command}", "numa explain {command}"],
    );
    let evidence = [
        case.evidence("away_share", format!("{} of the threads, on average", percent(away))),
        case.number("task.migrations", moves, format!("{} of threads to other CPUs", per_second(moves))),
    ];
    let cost = FindingCost::unknown("it is not known which memory the threads use");
    let draft = Draft::measured(FindingSubject::Program, says, cost, remedy).with(evidence);
    Some(draft.certainty(Certainty::Likely))
}
