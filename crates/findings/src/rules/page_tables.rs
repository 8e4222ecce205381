//! Page tables grow on one node while the program's threads run on several: each miss of the TLB there waits for it.

use super::{Judge, NODES, Rule, RuleKind};
use crate::case::{Case, Draft, bytes};
use crate::course::Limit;
use crate::finding::{Certainty, FindingCost, FindingSubject};
use numakit_model::Instance;

/// Growth below this is not looked at: page tables of 128 GiB in small pages have 256 MiB.
const LARGE: f64 = 64.0 * 1048576.0;
/// The share of the growth on one node, and of the CPU time on other nodes, from which on page tables are a finding, in
/// percent.
const MOST: f64 = 90.0;
const ELSEWHERE: f64 = 25.0;

pub(crate) const RULE: Rule = Rule {
    name: "remote-page-tables",
    finds: "page tables that lie on one node while threads run on several",
    kind: RuleKind::Problem,
    judge: Judge::Rows(
        Limit { formula: "page_tables", threshold: LARGE, scopes: NODES, minimum: None },
        judge,
    ),
};

fn judge(case: &Case<'_>) -> Option<Draft> {
    let Instance::Node(node) = case.place() else { return None };
    let growth = |node: u32| {
        let level = case.memory("node.PageTables", Instance::Node(node))?;
        Some(level.most - level.begin)
    };
    let nodes = case.facts.nodes();
    let own = growth(node).filter(|&own| own >= LARGE)?;
    let all: f64 = nodes.iter().filter_map(|&node| growth(node)).sum();
    let time = |node: u32| case.facts.rate("task_cpu", Instance::Node(node)).unwrap_or(0.0);
    let cpu: f64 = nodes.iter().map(|&node| time(node)).sum();
    let elsewhere = 100.0 * (1.0 - time(node) / cpu.max(f64::MIN_POSITIVE));
    if nodes.len() < 2 || 100.0 * own < MOST * all || cpu <= 0.0 || elsewhere < ELSEWHERE {
        return None;
    }
    let says = format!("{} of page tables lie on node {node} while threads run on other nodes", bytes(own));
    let remedy = case.remedy(
        "Page tables lie where a page is first touched: touch memory in the threads that use it, or use huge pages, \
         which need 512 times fewer",
        &["numa run --thp on {command}", "numa run {command}"],
    );
    let cost = FindingCost::unknown("it depends on how often translations miss the TLB");
    let evidence = case.evidence("page_tables", format!("node {node} gained {}", bytes(own)));
    Some(
        Draft::measured(FindingSubject::Program, says, cost, remedy)
            .with([evidence])
            .certainty(Certainty::Possible),
    )
}
