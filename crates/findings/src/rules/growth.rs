//! The program's memory grows to the end without a pause, as that of a leak does.

use super::{Judge, MACHINE, Rule, RuleKind};
use crate::case::{Case, Draft, bytes};
use crate::course::Limit;
use crate::finding::{Certainty, FindingCost, FindingSubject};
use numakit_model::numbers::duration;

/// Growth below this is not looked at.
const LARGE: f64 = 16.0 * 1048576.0;
/// Recordings shorter than this, in seconds, tell nothing about growth: programs grow when they start.
const MIN_SECONDS: f64 = 4.0;
/// Each quarter of the time gains at least this share of the average.
const STEADY: f64 = 0.6;

pub(crate) const RULE: Rule = Rule {
    name: "growth",
    finds: "memory that grows to the end",
    kind: RuleKind::Problem,
    judge: Judge::Rows(
        Limit { formula: "task_resident", threshold: 1.0, scopes: MACHINE, minimum: None },
        judge,
    ),
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let quarters = case.watched.trend.quarters()?;
    let grown: f64 = quarters.iter().sum();
    let is_steady = quarters.iter().all(|&gain| gain >= STEADY * grown / 4.0);
    if !is_steady || grown < LARGE || case.facts.seconds < MIN_SECONDS {
        return None;
    }
    let rate = grown / case.facts.seconds;
    let says = format!("The program's memory grows all the time: {} a second", bytes(rate));
    let free = case.overall("free").map(|free| {
        case.number("free", free, format!("at this rate the free memory lasts {}", duration(free / rate)))
    });
    let remedy = case.remedy(
        "If it should not grow, it leaks: numa explain names who first touches the memory that stays",
        &["numa explain --flame memory {command}"],
    );
    let evidence = case.evidence("task_resident", format!("it gained {}", bytes(grown)));
    let draft = Draft::measured(
        FindingSubject::Program,
        says,
        FindingCost::unknown("it costs memory, not time"),
        remedy,
    );
    Some(draft.with([evidence]).with(free).certainty(Certainty::Possible))
}
