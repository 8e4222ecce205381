//! The recording lost ticks.

use super::{Judge, MACHINE, Rule, RuleKind};
use crate::case::{Case, Draft, percent};
use crate::course::Limit;
use crate::criteria::LOST_PERCENT;
use crate::finding::{FindingCost, FindingSubject};
use numakit_model::numbers::duration;

pub(crate) const RULE: Rule = Rule {
    name: "lost-ticks",
    finds: "ticks that the recording lost",
    kind: RuleKind::Remark,
    judge: Judge::Rows(
        Limit { formula: "sampler_cpu", threshold: 0.0, scopes: MACHINE, minimum: None },
        judge,
    ),
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let share = case.tally.lost_percent();
    if share < LOST_PERCENT {
        return None;
    }
    let says = format!("{} of the ticks were lost", percent(share));
    let slower =
        case.facts.interval().map_or_else(|| "10ms".to_owned(), |s| duration(2.0 * s).replace(' ', ""));
    let remedy = case.remedy("Sample less often", &[&format!("numa record -i {slower} {{command}}")]);
    let evidence = case.number("self.lost", share, format!("{} of the ticks came too late", percent(share)));
    let cost = FindingCost::unknown("the recording is less complete");
    Some(Draft::measured(FindingSubject::Recording, says, cost, remedy).with([evidence]))
}
