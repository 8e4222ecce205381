//! One CPU takes the interrupts of the whole machine.

use super::{Judge, Rule, RuleKind};
use crate::case::{Case, Draft, percent, subject_of};
use crate::course::Limit;
use crate::finding::{CostBasis, FindingCost};
use numakit_model::{Instance, Scope};

/// The share of the CPU's time from which on its interrupts are a finding, in percent.
const MUCH: f64 = 20.0;
/// The machine's average share must be at most this part of that CPU's share.
const ALONE: f64 = 0.6;

pub(crate) const RULE: Rule = Rule {
    name: "interrupts-on-one-cpu",
    finds: "a CPU that takes the interrupts of all",
    kind: RuleKind::Problem,
    judge: Judge::Rows(
        Limit { formula: "interrupts", threshold: MUCH, scopes: &[Scope::Cpu], minimum: None },
        judge,
    ),
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let share = case.rate("interrupts").filter(|&share| share >= MUCH)?;
    let average = case.overall("interrupts")?;
    let Instance::Cpu(cpu) = case.place() else { return None };
    if case.cpus() < 2.0 || average > ALONE * share {
        return None;
    }
    let says = format!(
        "CPU {cpu} spends {} of its time on interrupts, the average CPU {}",
        percent(share),
        percent(average)
    );
    let remedy = case.remedy(
        "Spread the interrupts of the device over CPUs of its node, or keep the program away from this CPU",
        &["cat /proc/interrupts", &format!("numa run --exclude {cpu} {{command}}")],
    );
    let cost = FindingCost::about(CostBasis::CpuTime, average, 0.0);
    let evidence = case.evidence("interrupts", format!("{} of the time of CPU {cpu}", percent(share)));
    Some(Draft::measured(subject_of(case.place()), says, cost, remedy).with([evidence]))
}
