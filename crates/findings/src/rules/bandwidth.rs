//! The memory bandwidth of a node, a package or the machine is nearly used up.

use super::{Judge, Rule, RuleKind};
use crate::case::{Case, Draft, capitalised, percent, place_words, subject_of};
use crate::finding::{CostBasis, FindingCost};
use crate::limits::{MEMORY, SATURATED};
use crate::traffic::{load_time, measured_peak, seconds};
use numakit_model::Instance;
use numakit_model::numbers::duration;

pub(crate) const RULE: Rule = Rule {
    name: "memory-bandwidth",
    finds: "memory whose bandwidth is nearly used up",
    kind: RuleKind::Problem,
    judge: Judge::Rows(MEMORY, judge),
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let share = case.rate("dram_util").filter(|&share| share >= SATURATED)?;
    let subject = subject_of(case.place());
    let (topology, traffic) = (case.facts.topology(), case.rate("dram_bandwidth"));
    let is_measured = traffic.and(measured_peak(topology, case.place())).is_some();
    let of = if is_measured { "the measured peak" } else { "the peak" };
    let says = format!(
        "{} uses {} of its {}memory bandwidth",
        capitalised(&place_words(case.place())),
        percent(share),
        if is_measured { "measured " } else { "" }
    );
    let others = case.facts.node_count().is_some_and(|n| n > 1) && case.place() != Instance::Machine;
    let remedy = match others {
        true => case.remedy(
            "Use the memory of more nodes",
            &["numa run --policy scatter {command}", "numa run --memory interleave {command}"],
        ),
        false => case.remedy(
            "Access less memory: reuse what is in the caches; numa explain names the data",
            &["numa explain {command}"],
        ),
    };
    let cost = FindingCost::about(CostBasis::WallTime, case.watched.onset.percent_above(), 0.0);
    let load = traffic.and_then(|at| load_time(case.facts, case.place(), at)).map(seconds);
    let load = load.map_or_else(String::new, |load| format!("; loads take about {} there", duration(load)));
    let evidence = case.evidence("dram_util", format!("{} of {of}{load}", percent(share)));
    Some(Draft::measured(subject, says, cost, remedy).with([evidence]))
}
