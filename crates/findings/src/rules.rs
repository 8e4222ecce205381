//! The rules of findings, of rows and of objects: one table, one file for each cause that rows show.

mod balancing;
mod bandwidth;
mod card_cache;
mod compaction;
mod computing;
mod contended;
mod cpu_limit;
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
mod remote_access;
mod remote_allocation;
pub(crate) mod remote_use;
mod steal;
mod storage;
mod swap;
mod switches;
mod wander;

use crate::case::{Case, Draft};
use crate::course::{Limit, Watched, Watching};
use crate::facts::Facts;
use crate::fault_time::{self, FaultCase};
use crate::finding::{Certainty, Finding, FindingCost, FindingSubject};
use crate::objects::{ObjectCase, layout, remote};
use crate::ranks;
use crate::tally::Tally;
use crate::thread_waits::{self, ThreadCase};
use crate::waits::{self, WaitCase};
use numakit_formulas::Index;
use numakit_model::Scope;

/// A rule: a cause, and how it is recognised.
pub(crate) struct Rule {
    /// Its name in JSON and documents.
    pub(crate) name: &'static str,
    /// What it finds, for documents: continues "finds".
    pub(crate) finds: &'static str,
    pub(crate) kind: RuleKind,
    /// The rows or objects that the rule judges, and how.
    pub(crate) judge: Judge,
}

impl Rule {
    /// What it follows over time, if it judges rows.
    pub(crate) fn limit(&self) -> Option<&Limit> {
        match &self.judge {
            Judge::Rows(limit, _) => Some(limit),
            Judge::Object(_) | Judge::Waits(_) | Judge::Threads(_) | Judge::Faults(_) => None,
        }
    }

    /// Whether it follows this formula over time.
    pub(crate) fn follows(&self, formula: &str) -> bool {
        self.limit().is_some_and(|limit| limit.formula == formula)
    }
}

/// How a rule judges: a function that returns the finding if there is one.
pub(crate) enum Judge {
    /// Rows of a recording: the formula that is followed over time, and the judgement on the whole time where it was high.
    Rows(Limit, fn(&Case<'_>) -> Option<Draft>),
    /// An object that samples saw. The first rule of the table that applies to an object is its finding.
    Object(fn(&ObjectCase<'_>) -> Option<Draft>),
    /// Threads that could run and wait for a CPU. The first rule of the table that applies is the finding.
    Waits(fn(&WaitCase<'_>) -> Option<Draft>),
    /// Threads that wait for other threads of their program. All rules of the table that apply are findings.
    Threads(fn(&ThreadCase<'_>) -> Option<Draft>),
    /// The time that page faults of the program take. The first rule of the table that applies is the finding.
    Faults(fn(&FaultCase<'_>) -> Option<Draft>),
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
    // This cause of far memory stands before far memory itself.
    &full_node::RULE,
    &remote_use::TIME,
    &remote_use::PAGES,
    &remote_access::READS,
    &remote_access::TRAFFIC,
    &remote_access::HINTS,
    &remote_allocation::RULE,
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
    &remote::CONTENDED_LINES,
    &remote::BOUND_MEMORY,
    &remote::THREAD_LOCAL,
    &remote::PAGE_CACHE,
    &remote::THREAD_MOVED,
    &remote::PAGES_MOVED,
    &remote::REUSED_ACROSS_NODES,
    &remote::OTHER_NODE,
    &remote::FIRST_TOUCH,
    &remote::SHARED_BY_ALL,
    &remote::SPREAD_AWAY,
    &remote::HUGE_PAGES_ACROSS_PARTS,
    &remote::SPREAD,
    &layout::WAITING_FOR_THREADS,
    &layout::CHAIN,
    &layout::LARGE_STEPS,
    &layout::RANDOM_ON_SMALL_PAGES,
    &layout::PART_OF_EACH_LINE,
    &layout::RANDOM,
    &waits::GROUP_LIMIT,
    &waits::NARROW_MASK,
    &waits::MORE_THREADS_THAN_CPUS,
    &waits::OTHERS_RUN,
    &thread_waits::CONTENDED_GIL,
    &thread_waits::CONTENDED_LOCK,
    &ranks::WAITING_RANKS,
    &thread_waits::SPINNING,
    &thread_waits::WAITING_TEAM,
    &fault_time::MEMORY_GIVEN_BACK,
    &fault_time::HUGE_PAGE_FAULTS,
    &fault_time::FIRST_USE,
];

/// The name of a rule in the table; `None` if no rule has this name.
pub(crate) fn name(name: &str) -> Option<&'static str> {
    RULES.iter().find(|rule| rule.name == name).map(|rule| rule.name)
}

/// The rules that can be evaluated on rows of a recording.
pub(crate) fn watched(watching: &Watching<'_>) -> Vec<Watched<Rule>> {
    let limits = RULES.iter().filter_map(|&rule| Some((rule, rule.limit()?)));
    limits.flat_map(|(rule, limit)| watching.all(rule, limit)).collect()
}

/// The finding about an object: that of the first rule that applies.
pub(crate) fn judge_object(case: &ObjectCase<'_>) -> Option<Finding> {
    first(|rule| match rule.judge {
        Judge::Object(judge) => judge(case),
        _ => None,
    })
}

/// The finding about waits for a CPU: that of the first rule that applies.
pub(crate) fn judge_waits(case: &WaitCase<'_>) -> Option<Finding> {
    first(|rule| match rule.judge {
        Judge::Waits(judge) => judge(case),
        _ => None,
    })
}

/// The findings about threads that wait for other threads.
pub(crate) fn judge_threads(case: &ThreadCase<'_>) -> Vec<Finding> {
    let finding = |rule: &&Rule| match rule.judge {
        Judge::Threads(judge) => Some(judge(case)?.of_all_time(rule.name)),
        _ => None,
    };
    RULES.iter().filter_map(finding).collect()
}

/// The finding about the time of page faults.
pub(crate) fn judge_faults(case: &FaultCase<'_>) -> Option<Finding> {
    first(|rule| match rule.judge {
        Judge::Faults(judge) => judge(case),
        _ => None,
    })
}

fn first(judge: impl Fn(&Rule) -> Option<Draft>) -> Option<Finding> {
    RULES.iter().find_map(|rule| Some(judge(rule)?.of_all_time(rule.name)))
}

/// All that the rules find, with their kinds, the most important first.
pub(crate) fn judge(facts: &Facts<'_>, index: &Index<'_>, tally: &Tally) -> Vec<(RuleKind, Finding)> {
    let case = |watched| Case { facts, watched, tally, index };
    let mut found: Vec<(RuleKind, Finding)> =
        tally.rules.iter().filter_map(|watched| finding(&case(watched))).collect();
    sort(&mut found);
    found
}

/// Sorts findings of rows and of objects, the most important first.
pub(crate) fn sort(found: &mut [(RuleKind, Finding)]) {
    found.sort_by(|a, b| rank(b).partial_cmp(&rank(a)).unwrap_or(std::cmp::Ordering::Equal));
}

/// The finding of a case; `None` if its rule never reached its threshold. A failure is judged however short the time was.
fn finding(case: &Case<'_>) -> Option<(RuleKind, Finding)> {
    let Case { watched, tally, .. } = *case;
    let whole = || (watched.line.kind == RuleKind::Failure).then(|| tally.whole());
    let spell = watched.onset.longest().or_else(whole)?;
    let Judge::Rows(_, judge) = watched.line.judge else { return None };
    let finding = judge(case)?.of_all_time(watched.line.name);
    let finding = Finding {
        since_seconds: tally.seconds(spell.from),
        until_seconds: (!watched.onset.lasts()).then(|| tally.seconds(spell.to)),
        remedy: case.of_others(finding.subject, finding.remedy),
        ..finding
    };
    Some((watched.line.kind, finding))
}

/// A finding whose cost cannot be told is ordered as if it cost this share of the time.
const UNKNOWN_COST: f64 = 3.0;
/// What other programs cost counts as this part: what the program itself can mend comes first, unless much more is lost.
const OF_OTHERS: f64 = 0.33;

/// The key by which findings are ordered: failures first, then those of the program, then by cost. A cost that is less
/// certain counts less.
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
    let cost = if finding.is_of_others() { OF_OTHERS * cost } else { cost };
    let is_program = matches!(finding.subject, FindingSubject::Program | FindingSubject::Object(_));
    (*kind == RuleKind::Failure, *kind != RuleKind::Remark, is_program, sure * cost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::{CostBasis, FindingRemedy};

    fn found(
        rule: &'static str,
        subject: FindingSubject,
        certainty: Certainty,
        percent: f64,
    ) -> (RuleKind, Finding) {
        let cost = FindingCost::at_most(CostBasis::WallTime, percent);
        let draft = Draft::measured(subject, String::new(), cost, FindingRemedy::default());
        (RuleKind::Problem, Finding { certainty, ..draft.of_all_time(rule) })
    }

    #[test]
    fn what_the_program_can_mend_comes_before_other_programs_unless_these_cost_much_more() {
        let order = |others: f64, own: f64| {
            let others = found(waits::OTHERS_RUN.name, FindingSubject::Program, Certainty::Measured, others);
            let own = found(remote::CONTENDED_LINES.name, FindingSubject::Object(0), Certainty::Likely, own);
            let mut all = [others, own];
            sort(&mut all);
            all[0].1.rule
        };
        assert_eq!(order(43.0, 24.0), remote::CONTENDED_LINES.name);
        assert_eq!(order(86.0, 15.0), waits::OTHERS_RUN.name);
    }
}
