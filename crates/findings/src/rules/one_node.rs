//! The program's memory lies on one node while its threads run on others too, or only there.

use super::{Judge, MACHINE, RUNS, Rule, RuleKind};
use crate::case::{Case, Draft, bytes, listed, percent};
use crate::course::Limit;
use crate::finding::{Certainty, FindingCost, FindingSubject};
use numakit_model::Instance;

/// The share of the program's memory on one node from which on it is a finding, in percent.
const MOST: f64 = 90.0;
/// A node with at least this share of the CPU time counts.
const USED: f64 = 10.0;
/// Less memory than this is not looked at.
const LARGE: f64 = 64.0 * 1048576.0;

pub(crate) const RULE: Rule = Rule {
    name: "memory-on-one-node",
    finds: "a program whose memory lies on one node while its threads run on others",
    kind: RuleKind::Problem,
    judge: Judge::Rows(
        Limit { formula: "task_resident", threshold: LARGE, scopes: MACHINE, minimum: RUNS },
        judge,
    ),
};

/// Finds nothing if samples tell which memory the program uses: they say more.
fn judge(case: &Case<'_>) -> Option<Draft> {
    if case.is_use_known() {
        return None;
    }
    let nodes = case.facts.nodes();
    let of_all = |formula: &str| -> Vec<(u32, f64)> {
        let value = |&node: &u32| Some((node, case.facts.rate(formula, Instance::Node(node))?));
        nodes.iter().filter_map(value).collect()
    };
    let (memory, time) = (of_all("task_resident"), of_all("task_cpu"));
    let total = |values: &[(u32, f64)]| values.iter().map(|value| value.1).sum::<f64>();
    let (all, cpu) = (total(&memory), total(&time));
    let home = memory.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))?;
    let share = 100.0 * home.1 / all;
    let used: Vec<u32> = time.iter().filter(|t| 100.0 * t.1 >= USED * cpu).map(|t| t.0).collect();
    if all < LARGE || share < MOST || used.iter().all(|&node| node == home.0) {
        return None;
    }
    let says = format!(
        "{} of the program's memory lies on node {} while its threads run on node{} {}",
        percent(share),
        home.0,
        if used.len() > 1 { "s" } else { "" },
        listed(&used)
    );
    let remedy = case.remedy(
        "Initialise memory in the threads that use it, or spread it; a memory policy that names one node has the \
         same effect",
        &["numa run {command}", "numa run --memory interleave {command}", "numa explain {command}"],
    );
    let cost = FindingCost::unknown(match used.contains(&home.0) {
        true => "it is not known which threads use that memory",
        false => "it is not known how long they wait for it",
    });
    let evidence =
        case.evidence("task_resident", format!("{} of {} are on node {}", bytes(home.1), bytes(all), home.0));
    let draft = Draft::measured(FindingSubject::Program, says, cost, remedy);
    Some(draft.with([evidence]).certainty(Certainty::Likely))
}
