//! Page faults wait for storage: the program reads files through mappings, or its memory was evicted.

use super::{Judge, MACHINE, Rule, RuleKind};
use crate::case::{Case, Draft, per_second, percent};
use crate::course::Limit;
use crate::finding::{Certainty, FindingCost, FindingSubject};
use numakit_model::Instance;

/// The rate from which on faults that read from storage are a finding. With fewer such faults in all the rule finds nothing:
/// every program start has some.
const MANY: f64 = 20.0;
const MIN_FAULTS: f64 = 100.0;

/// Less waiting than this share of the time is not worth a finding, in percent.
const WAITING: f64 = 1.0;

pub(crate) const RULE: Rule = Rule {
    name: "storage-faults",
    finds: "page faults that wait for storage",
    kind: RuleKind::Problem,
    judge: Judge::Rows(Limit { formula: "major", threshold: MANY, scopes: MACHINE, minimum: None }, judge),
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let (faults, subject) = match case.has_program() {
        true => (case.count("task.major_faults")?, FindingSubject::Program),
        false => (case.facts.sum("major", Instance::Machine)?, FindingSubject::Machine),
    };
    let rate = faults / case.facts.seconds.max(f64::MIN_POSITIVE);
    if faults < MIN_FAULTS || rate < MANY {
        return None;
    }
    let waiting = case.overall("stall_io");
    if waiting.is_some_and(|share| share < WAITING) {
        return None;
    }
    let says = format!("Page faults wait for storage: {}", per_second(rate));
    let remedy = case.remedy(
        "Read files in before they are used, or keep enough memory free for them",
        &["numa stat -e 'vmstat.pgmajfault,vmstat.pgpgin,vmstat.workingset_refault_file'"],
    );
    let cost =
        FindingCost::of_waiting(waiting, "the recording does not say how long threads waited for storage");
    let mut evidence = vec![case.evidence("major", format!("{} page faults that waited", per_second(rate)))];
    evidence.extend(waiting.map(|share| {
        case.evidence("stall_io", format!("threads waited for storage {} of the time", percent(share)))
    }));
    Some(Draft::measured(subject, says, cost, remedy).with(evidence).certainty(Certainty::Likely))
}
