//! Pages of files are read again soon after they were evicted: the page cache is too small for what is read.

use super::{Judge, MACHINE, Rule, RuleKind};
use crate::case::{Case, Draft, bytes, per_second, percent};
use crate::course::Limit;
use crate::finding::FindingCost;

/// The rate of pages per second from which on reading them again is a finding.
const MANY: f64 = 500.0;

/// Less waiting than this share of the time is not worth a finding, in percent.
const WAITING: f64 = 0.5;

pub(crate) const RULE: Rule = Rule {
    name: "file-thrashing",
    finds: "files whose pages are evicted and read again",
    kind: RuleKind::Problem,
    judge: Judge::Rows(Limit { formula: "refaults", threshold: MANY, scopes: MACHINE, minimum: None }, judge),
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let rate = case.rate("refaults").filter(|&rate| rate >= MANY)?;
    let volume = case.facts.page_size().map(|page| bytes(rate * page));
    let volume = volume.map_or_else(String::new, |volume| format!(", {volume} a second"));
    let says = format!("Files are read again after they were evicted: {} pages{volume}", per_second(rate));
    // Pages that were read only once before count as waiting for storage, others as waiting for memory.
    let waiting = ["stall", "stall_io"].into_iter().filter_map(|formula| case.overall(formula));
    let waiting = waiting.max_by(f64::total_cmp);
    if waiting.is_some_and(|share| share < WAITING) {
        return None;
    }
    let remedy = case.remedy(
        "The page cache is too small: raise the memory limit, read less at a time, or drop files after their last use \
         (posix_fadvise with POSIX_FADV_DONTNEED)",
        &["numa topo", "numa stat -e 'vmstat.workingset_refault_file,vmstat.nr_file_pages,pressure.memory*'"],
    );
    let cost = FindingCost::of_waiting(waiting, "the kernel does not say how long threads waited");
    let mut evidence = vec![case.evidence("refaults", format!("{} pages", per_second(rate)))];
    evidence.extend(waiting.map(|share| {
        case.number(
            "stall",
            share,
            format!("threads waited for memory or storage {} of the time", percent(share)),
        )
    }));
    Some(Draft::measured(case.owner(), says, cost, remedy).with(evidence))
}
