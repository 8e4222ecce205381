//! The kernel killed a process, of a control group or of the machine, because memory ran out.

use super::{Judge, MACHINE, Rule, RuleKind};
use crate::case::{Case, Draft};
use crate::course::Limit;
use crate::finding::{FindingCost, FindingSubject};
use numakit_model::numbers::grouped;

/// 128 + SIGKILL.
const KILLED: i32 = 137;

pub(crate) const RULE: Rule = Rule {
    name: "out-of-memory",
    finds: "processes that the kernel killed because memory ran out",
    kind: RuleKind::Failure,
    judge: Judge::Rows(
        Limit { formula: "oom_kills", threshold: 1e-6, scopes: MACHINE, minimum: None },
        judge,
    ),
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let kills = case.count("vmstat.oom_kill").filter(|&kills| kills > 0.0)?;
    let was_killed = case.tally.notes.exit_status == Some(KILLED);
    let (subject, says) = match was_killed {
        true => (FindingSubject::Program, "The kernel killed the program because memory ran out".to_owned()),
        false if kills == 1.0 => {
            (FindingSubject::Machine, "The kernel killed a process because memory ran out".to_owned())
        }
        false => (
            FindingSubject::Machine,
            format!("The kernel killed {} processes because memory ran out", grouped(kills)),
        ),
    };
    let remedy = case.remedy(
        "The limit is that of the machine or of a control group: raise it, or use less memory",
        &["numa topo", "numa doctor"],
    );
    let evidence = case.evidence("oom_kills", format!("{} by the OOM killer", grouped(kills)));
    let cost = FindingCost::unknown("what the killed process had done is lost");
    Some(Draft::measured(subject, says, cost, remedy).with([evidence]))
}
