//! A link between packages, or an interconnect card, is nearly saturated.

use super::{Judge, Rule, RuleKind};
use crate::case::{Case, Draft, percent, subject_of};
use crate::finding::{CostBasis, FindingCost};
use crate::limits::{CARD, LINK, SATURATED};
use numakit_model::Instance;

pub(crate) const LINKS: Rule = Rule {
    name: "saturated-link",
    finds: "a link between packages that is nearly saturated",
    kind: RuleKind::Problem,
    judge: Judge::Rows(LINK, |case| judge(case, "of its bandwidth is used")),
};

pub(crate) const CARDS: Rule = Rule {
    name: "saturated-card",
    finds: "an interconnect card on which requests for memory of other nodes wait",
    kind: RuleKind::Problem,
    judge: Judge::Rows(CARD, |case| judge(case, "of the time requests for memory of other nodes wait")),
};

fn judge(case: &Case<'_>, what: &str) -> Option<Draft> {
    let formula = case.formula();
    let share = case.rate(formula).filter(|&share| share >= SATURATED)?;
    let name = match case.place() {
        Instance::Link(package, link) => format!("Link {link} of package {package}"),
        Instance::Package(package) => format!("The links of package {package}"),
        Instance::Device(card) => format!("Card {card}"),
        _ => "A link".to_owned(),
    };
    let says = format!("{name} is nearly saturated: {} {what}", percent(share));
    let remedy = case.remedy(
        "Keep threads on the nodes of their memory; numa explain names the data that crosses the link",
        &["numa run {command}", "numa explain {command}"],
    );
    let cost = FindingCost::about(CostBasis::WallTime, case.watched.onset.percent_above(), 0.0);
    Some(
        Draft::measured(subject_of(case.place()), says, cost, remedy)
            .with([case.evidence(formula, percent(share))]),
    )
}
