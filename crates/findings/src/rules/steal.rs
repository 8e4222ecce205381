//! The hypervisor gives the CPUs of this machine to other guests.

use super::{COSTLY, Judge, MACHINE, Rule, RuleKind};
use crate::case::{Case, Draft, percent};
use crate::course::Limit;
use crate::finding::{CostBasis, FindingCost, FindingSubject};

pub(crate) const RULE: Rule = Rule {
    name: "stolen-time",
    finds: "CPU time that the hypervisor gave to other guests",
    kind: RuleKind::Problem,
    judge: Judge::Rows(Limit { formula: "steal", threshold: COSTLY, scopes: MACHINE, minimum: None }, judge),
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let share = case.rate("steal").filter(|&share| share >= COSTLY)?;
    let says = format!("The hypervisor gives {} of the CPU time to other guests", percent(share));
    let remedy = case
        .remedy("Ask for CPUs of its own, or measure when the host is quiet", &["numa stat -e 'cpu.steal'"]);
    let cost = FindingCost::about(CostBasis::CpuTime, share, 0.0);
    let evidence = case.evidence("steal", format!("{} of the CPU time", percent(share)));
    Some(Draft::measured(FindingSubject::Machine, says, cost, remedy).with([evidence]))
}
