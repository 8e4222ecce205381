//! The recorder reads the registers of interconnect cards, those of other nodes through the fabric: its own part of what the
//! cards count.

use super::{Judge, Rule, RuleKind};
use crate::case::{Case, Draft, percent};
use crate::course::Limit;
use crate::finding::{FindingCost, FindingSubject};
use numakit_model::numbers::duration;
use numakit_model::{Instance, Scope};

/// A smaller part changes nothing, in percent.
const MUCH: f64 = 5.0;

pub(crate) const RULE: Rule = Rule {
    name: "recorder-traffic",
    finds: "reads of interconnect cards that are the recorder's own",
    kind: RuleKind::Remark,
    judge: Judge::Rows(
        Limit { formula: "card_small_reads", threshold: 0.0, scopes: &[Scope::Device], minimum: None },
        judge,
    ),
};

/// Judges the recorder's own traffic. The cost is an upper bound: the recorder reads the registers of the card next to it
/// without the fabric.
fn judge(case: &Case<'_>) -> Option<Draft> {
    let Instance::Device(card) = case.place() else { return None };
    let reads = case.rate("card_small_reads").filter(|&reads| reads > 0.0)?;
    let interval = case.facts.interval()?;
    let own = case.facts.series_at(case.place()) as f64 / interval;
    let share = (100.0 * own / reads).min(100.0);
    if share < MUCH {
        return None;
    }
    let says =
        format!("Up to {} of the small reads that card {card} receives are the recorder's", percent(share));
    let slower = duration(10.0 * interval).replace(' ', "");
    let remedy = case.remedy("Sample less often", &[&format!("numa record -i {slower} {{command}}")]);
    let cost = FindingCost::unknown("the recording has more traffic than the program");
    let evidence = case.evidence("card_small_reads", format!("{} of them a second", own.round()));
    Some(Draft::measured(FindingSubject::Recording, says, cost, remedy).with([evidence]))
}
