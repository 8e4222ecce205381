//! The cache of an interconnect card holds lines of other nodes. A program exploits it, or evicts lines before they are used
//! again: then nearly each access travels between nodes.

use super::{Judge, Rule, RuleKind};
use crate::case::{Case, Draft, bytes, percent, subject_of};
use crate::course::Limit;
use crate::finding::{Certainty, FindingCost};
use numakit_model::{Instance, Scope};

/// Less data than this from other nodes is not worth a finding, in bytes per second.
const TRAFFIC: f64 = 50e6;
/// A program that thrashes the cache has fewer hits than this, in percent of its accesses; a program that exploits it has
/// more.
const FEW_HITS: f64 = 50.0;
const MANY_HITS: f64 = 80.0;
/// The program thrashes the cache if at least this share of the lines that arrive evict another line, in percent.
const MOST: f64 = 50.0;
const CARDS: &[Scope] = &[Scope::Device];

pub(crate) const THRASHES: Rule = Rule {
    name: "card-cache-thrashing",
    finds: "a card whose cache evicts lines of other nodes before they are used again",
    kind: RuleKind::Problem,
    judge: Judge::Rows(
        Limit {
            formula: "card_eviction_share",
            threshold: MOST,
            scopes: CARDS,
            minimum: Some(("link_in", TRAFFIC)),
        },
        thrashes,
    ),
};

pub(crate) const EXPLOITED: Rule = Rule {
    name: "card-cache-used",
    finds: "a card whose cache serves most accesses to memory of other nodes",
    kind: RuleKind::Remark,
    judge: Judge::Rows(
        Limit { formula: "card_hit_share", threshold: MANY_HITS, scopes: CARDS, minimum: None },
        exploited,
    ),
};

fn thrashes(case: &Case<'_>) -> Option<Draft> {
    let Instance::Device(card) = case.place() else { return None };
    let evicted = case.rate("card_eviction_share").filter(|&share| share >= MOST)?;
    let received = case.rate("link_in").filter(|&rate| rate >= TRAFFIC)?;
    let hits = case.rate("card_hit_share").filter(|&share| share < FEW_HITS)?;
    let says = format!(
        "The cache of card {card} thrashes: it serves {} of the accesses to other nodes, and {} a second arrive",
        percent(hits),
        bytes(received)
    );
    let remedy = case.remedy(
        "The memory of other nodes that is used is larger than the card's cache: keep threads on the nodes of their \
         memory, or work in blocks that fit; numa explain names the data",
        &["numa run {command}", "numa explain {command}"],
    );
    let cost = FindingCost::unknown("the card counts lines, not the time that threads wait for them");
    let evidence = [
        case.evidence(
            "card_eviction_share",
            format!("{} of the lines that arrive evict one", percent(evicted)),
        ),
        case.evidence("card_hit_share", format!("{} of the accesses hit", percent(hits))),
    ];
    let draft = Draft::measured(subject_of(case.place()), says, cost, remedy).with(evidence);
    Some(draft.certainty(Certainty::Likely))
}

fn exploited(case: &Case<'_>) -> Option<Draft> {
    let Instance::Device(card) = case.place() else { return None };
    let hits = case.rate("card_hit_share").filter(|&share| share >= MANY_HITS)?;
    let served = case.rate("card_hits").filter(|&rate| 64.0 * rate >= TRAFFIC)?;
    let says = format!(
        "The cache of card {card} is used well: it serves {} of the accesses to memory of other nodes",
        percent(hits)
    );
    let cost = FindingCost::unknown("it saves time");
    let evidence =
        case.evidence("card_hit_share", format!("{} a second from the cache", bytes(64.0 * served)));
    let remedy = case.remedy("Nothing need be done", &[]);
    Some(Draft::measured(subject_of(case.place()), says, cost, remedy).with([evidence]))
}
