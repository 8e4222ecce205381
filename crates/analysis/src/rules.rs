//! The rules of findings: one table, one file each.

mod balancing;
mod bandwidth;
mod card_cache;
mod compaction;
mod computing;
mod contended;
mod cpu_limit;
mod far_access;
mod far_allocation;
pub(crate) mod far_use;
mod faults;
mod files;
mod forks;
mod full_node;
mod growth;
mod huge_faults;
mod interrupts;
mod links;
mod lost;
mod memory_time;
mod one_node;
mod out_of_memory;
mod own_traffic;
mod page_tables;
mod pressure;
mod queued;
mod refused_huge_pages;
mod steal;
mod storage;
mod swap;
mod switches;
mod wander;

use crate::case::{Case, Draft};
use crate::course::{Limit, Watched, Watching};
use crate::facts::Facts;
use crate::findings::{Certainty, Finding, FindingCost, FindingSubject};
use crate::tally::Tally;
use numakit_formulas::Index;
use numakit_model::Scope;

/// A rule: what it follows over time, and how it judges that.
pub(crate) struct Rule {
    /// Its name in JSON and documents.
    pub(crate) name: &'static str,
    /// What it finds, for documents: continues "finds".
    pub(crate) finds: &'static str,
    pub(crate) kind: RuleKind,
    /// What is followed over time.
    pub(crate) limit: Limit,
    /// The finding, where the whole time supports one.
    pub(crate) judge: fn(&Case<'_>) -> Option<Draft>,
}

/// What the findings of a rule are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleKind {
    /// Something failed: it stands first.
    Failure,
    /// Something costs time or memory.
    Problem,
    /// Worth knowing.
    Remark,
}

pub(crate) const MACHINE: &[Scope] = &[Scope::Machine];
pub(crate) const NODES: &[Scope] = &[Scope::Node];
/// A program that hardly runs loses nothing, in CPUs.
pub(crate) const RUNS: Option<(&str, f64)> = Some(("task_cpu", 0.05));
/// From this share of CPU time or of the time on, in percent, a cost is a problem.
pub(crate) const COSTLY: f64 = 5.0;

/// The table.
pub(crate) static RULES: &[&Rule] = &[
    &out_of_memory::RULE,
    // The cause of far memory stands before it.
    &full_node::RULE,
    &far_use::TIME,
    &far_use::PAGES,
    &far_access::READS,
    &far_access::TRAFFIC,
    &far_access::HINTS,
    &far_allocation::RULE,
    &one_node::RULE,
    &wander::RULE,
    &page_tables::RULE,
    &balancing::RULE,
    &bandwidth::RULE,
    &links::LINKS,
    &links::CARDS,
    &card_cache::THRASHES,
    &contended::RULE,
    &memory_time::RULE,
    &faults::RULE,
    &huge_faults::RULE,
    &refused_huge_pages::RULE,
    &compaction::RULE,
    &storage::RULE,
    &files::RULE,
    &swap::RULE,
    &pressure::RULE,
    &growth::RULE,
    &queued::RULE,
    &cpu_limit::RULE,
    &steal::RULE,
    &switches::RULE,
    &forks::RULE,
    &interrupts::RULE,
    &card_cache::EXPLOITED,
    &lost::RULE,
    &own_traffic::RULE,
    &computing::RULE,
];

/// The rules that can be evaluated on rows of a recording.
pub(crate) fn watched(watching: &Watching<'_>) -> Vec<Watched<Rule>> {
    RULES.iter().flat_map(|&rule| watching.all(rule, &rule.limit)).collect()
}

/// All that the rules find, with their kinds, the most important first.
pub(crate) fn judge(facts: &Facts<'_>, index: &Index<'_>, tally: &Tally) -> Vec<(RuleKind, Finding)> {
    let case = |watched| Case { facts, watched, tally, index };
    let mut found: Vec<(RuleKind, Finding)> =
        tally.rules.iter().filter_map(|watched| finding(&case(watched))).collect();
    found.sort_by(|a, b| rank(b).partial_cmp(&rank(a)).unwrap_or(std::cmp::Ordering::Equal));
    found
}

/// A rule that never reached its threshold finds nothing. What failed is judged however short the time was.
fn finding(case: &Case<'_>) -> Option<(RuleKind, Finding)> {
    let Case { watched, tally, .. } = *case;
    let whole = || (watched.line.kind == RuleKind::Failure).then(|| tally.whole());
    let spell = watched.onset.longest().or_else(whole)?;
    let draft = (watched.line.judge)(case)?;
    let finding = Finding {
        rule: watched.line.name,
        subject: draft.subject,
        says: draft.says,
        since_seconds: tally.seconds(spell.from),
        until_seconds: (!watched.onset.lasts()).then(|| tally.seconds(spell.to)),
        cost: draft.cost,
        certainty: draft.certainty,
        evidence: draft.evidence,
        remedy: case.of_others(draft.subject, draft.remedy),
    };
    Some((watched.line.kind, finding))
}

/// What cannot be told is taken for this share of the time when findings are ordered.
const UNKNOWN_COST: f64 = 3.0;

/// Failures first; then what is the program's; then by cost, less if it is not sure.
fn rank((kind, finding): &(RuleKind, Finding)) -> (bool, bool, bool, f64) {
    let sure = match finding.certainty {
        Certainty::Measured => 1.0,
        Certainty::Likely => 0.8,
        Certainty::Possible => 0.4,
    };
    let cost = match &finding.cost {
        FindingCost::Share { percent, .. } => *percent,
        FindingCost::Unknown { .. } => UNKNOWN_COST,
    };
    let is_program = finding.subject == FindingSubject::Program;
    (*kind == RuleKind::Failure, *kind != RuleKind::Remark, is_program, sure * cost)
}
