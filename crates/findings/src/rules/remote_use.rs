//! Threads of the observed program use memory of other nodes, as samples of their instructions tell.

use super::{Judge, MACHINE, Rule, RuleKind};
use crate::case::{Case, Draft, listed, percent};
use crate::facts::Facts;
use crate::finding::{Certainty, CostBasis, FindingCost, FindingEvidence, FindingRemedy, FindingSubject};
use crate::limits::{FAR, FAR_PAGES, FAR_TIME};
use numakit_model::Instance;
use numakit_model::share::ShareEstimate;

/// A node with at least this share of the far use is named, in percent.
const NAMED: f64 = 10.0;

/// Use of a node's memory of at least this part of the average is even.
const EVEN: f64 = 0.6;

pub(crate) const TIME: Rule = Rule {
    name: "remote-use",
    finds: "threads that wait for memory of other nodes",
    kind: RuleKind::Problem,
    judge: Judge::Rows(FAR_TIME.at(MACHINE), |case| judge(case, &WAITING)),
};

pub(crate) const PAGES: Rule = Rule {
    name: "remote-pages",
    finds: "threads that use pages of other nodes, where time cannot be told",
    kind: RuleKind::Problem,
    judge: Judge::Rows(FAR_PAGES.at(MACHINE), |case| judge(case, &USING)),
};

/// What is counted.
struct Unit {
    share: &'static str,
    events: &'static str,
    pairs: &'static str,
    minimum: f64,
    verb: &'static str,
    of: &'static str,
    is: &'static str,
}

const WAITING: Unit = Unit {
    share: "remote_time_share",
    events: "uses",
    pairs: "access.memory",
    minimum: 20.0,
    verb: "wait for",
    of: "time at memory",
    is: "is",
};
const USING: Unit = Unit {
    share: "remote_pages_share",
    events: "used_pages",
    pairs: "access.pages",
    minimum: 100.0,
    verb: "use",
    of: "pages in use",
    is: "are",
};

/// A program with less than this share of its time at memory, in percent, loses nothing by where its memory is.
const MATTERS: f64 = 5.0;

/// Why the samples of the observed program are too few to tell whether it uses far memory. `None` if there are enough, if
/// nothing was sampled, or if the program hardly uses memory.
pub(crate) fn too_few(facts: &Facts<'_>) -> Option<String> {
    let events = |unit: &Unit| facts.sum(unit.events, Instance::Machine).map(|found| (found, unit.minimum));
    let (waits, pages) = (events(&WAITING), events(&USING));
    let tells = |(found, minimum): (f64, f64)| found >= minimum;
    if waits.is_some_and(tells) || pages.is_some_and(tells) {
        return None;
    }
    let (found, minimum, what) = match (waits, pages) {
        (Some((found, minimum)), _) => {
            let at_memory = facts.rate("memory_share", Instance::Machine);
            at_memory.filter(|&share| share >= MATTERS)?;
            (found, minimum, "independent uses of memory were")
        }
        (None, Some((found, minimum))) => (found, minimum, "pages in use were"),
        (None, None) => return None,
    };
    Some(format!("{found:.0} {what} sampled, and it takes {minimum:.0}"))
}

fn judge(case: &Case<'_>, unit: &Unit) -> Option<Draft> {
    let events = case.facts.sum(unit.events, Instance::Machine).filter(|&n| n >= unit.minimum)?;
    let share = case.rate(unit.share).filter(|&share| share >= FAR)?;
    if case.overall("memory_cost").is_some_and(|at_memory| at_memory < MATTERS) {
        return None;
    }
    let ShareEstimate { low, high, .. } = ShareEstimate::of_samples(share / 100.0, events);
    let [low, high] = [100.0 * low, 100.0 * high];
    let cost = match unit.share {
        "remote_time_share" => FindingCost::Share { of: CostBasis::MemoryTime, percent: share, low, high },
        _ => FindingCost::unknown(
            "samples of this processor tell which pages are used, not how long threads wait",
        ),
    };
    let pairs = Pairs::of(case, unit.pairs);
    let says = pairs.says(unit, share);
    let mut evidence =
        vec![case.evidence(unit.share, format!("{} of the {} {} remote", percent(share), unit.of, unit.is))];
    evidence.extend(case.overall("memory_share").map(|share| {
        let says = format!("{} of the program's time is at memory outside of the caches", percent(share));
        case.number("memory_share", share, says)
    }));
    evidence.extend(pairs.evidence(case, unit));
    evidence.extend(card_waits(case));
    let certainty = if high - low < share { Certainty::Measured } else { Certainty::Likely };
    let draft = Draft::measured(FindingSubject::Program, says, cost, remedy(case, &pairs));
    Some(draft.with(evidence).certainty(certainty))
}

/// Use by node of the CPU and node of the memory.
struct Pairs {
    nodes: Vec<u32>,
    /// Node of the CPU, node of the memory, and use, for pairs of different nodes.
    far: Vec<(u32, u32, f64)>,
}

impl Pairs {
    fn of(case: &Case<'_>, metric: &str) -> Self {
        let nodes: Vec<u32> =
            case.facts.topology().map(|t| t.nodes.iter().map(|n| n.os_index).collect()).unwrap_or_default();
        let count = |cpu: u32, memory: u32| case.facts.count(metric, Instance::Pair(cpu, memory));
        let all = nodes.iter().flat_map(|&cpu| nodes.iter().map(move |&memory| (cpu, memory)));
        let far = all.filter(|(cpu, memory)| cpu != memory);
        let far = far.filter_map(|(cpu, memory)| Some((cpu, memory, count(cpu, memory)?))).collect();
        Self { nodes, far }
    }

    fn total(&self) -> f64 {
        self.far.iter().map(|pair| pair.2).sum()
    }

    /// The nodes that have at least a tenth of the far use.
    fn named(&self, of: impl Fn(&(u32, u32, f64)) -> u32) -> Vec<u32> {
        let total = self.total();
        let share = |node: u32| {
            let own: f64 = self.far.iter().filter(|pair| of(pair) == node).map(|pair| pair.2).sum();
            100.0 * own / total.max(f64::MIN_POSITIVE)
        };
        self.nodes.iter().copied().filter(|&node| share(node) >= NAMED).collect()
    }

    /// Whether the threads of each node that uses memory use about as much memory of each other node.
    fn is_spread(&self) -> bool {
        let homes = self.named(|pair| pair.1);
        let even = self.total() / homes.len().max(1) as f64;
        let of = |node: u32| self.far.iter().filter(|pair| pair.1 == node).map(|pair| pair.2).sum::<f64>();
        let is_even = homes.iter().all(|&node| (EVEN * even..even / EVEN).contains(&of(node)));
        homes.len() > 2 && homes == self.named(|pair| pair.0) && is_even
    }

    fn says(&self, unit: &Unit, share: f64) -> String {
        let (users, homes) = (self.named(|pair| pair.0), self.named(|pair| pair.1));
        let share = percent(share);
        if users.is_empty() || (homes.len() > 1 && homes == users) {
            return format!("Threads {} memory of other nodes: {share} of the {}", unit.verb, unit.of);
        }
        let word = |nodes: &[u32]| if nodes.len() == 1 { "node" } else { "nodes" };
        format!(
            "Threads on {} {} {} memory of {} {}: {share} of the {} {} remote",
            word(&users),
            listed(&users),
            unit.verb,
            word(&homes),
            listed(&homes),
            unit.of,
            unit.is
        )
    }

    /// The share of far use of each node whose threads use far memory.
    fn evidence(&self, case: &Case<'_>, unit: &Unit) -> Vec<FindingEvidence> {
        let of_node = |node: u32| {
            let share = case.facts.rate(unit.share, Instance::Node(node)).filter(|&share| share >= FAR)?;
            let says = format!("node {node}: {} of its {} {} remote", percent(share), unit.of, unit.is);
            Some(case.number(&format!("{}@node{node}", unit.share), share, says))
        };
        self.nodes.iter().filter_map(|&node| of_node(node)).collect()
    }
}

/// What kind of memory it is decides what helps, and whether all nodes have a part of it.
fn remedy(case: &Case<'_>, pairs: &Pairs) -> FindingRemedy {
    if pairs.is_spread() {
        return case.remedy(
            "The memory is spread over all nodes, as by interleaving: if each thread uses a part of its own, let it touch \
             that part first, without a policy; if all share it, this is the best place for it",
            &["numa run --memory local {command}", "numa explain {command}"],
        );
    }
    let kinds = ["stack", "heap", "file", "shared"];
    let most = kinds
        .into_iter()
        .map(|kind| (kind, Pairs::of(case, &format!("access.{kind}")).total()))
        .filter(|kind| kind.1 > 0.0);
    match most.max_by(|a, b| a.1.total_cmp(&b.1)).map(|kind| kind.0) {
        Some("stack") => case.remedy(
            "Stacks and thread-local storage lie on the node of the thread that created them; numa run puts them on \
             the node of their own thread",
            &["numa run {command}", "numa explain {command}"],
        ),
        Some("file") => case.remedy(
            "Files lie on the node of the thread that read them first; read them with interleaved memory",
            &["numa run --memory interleave {command}", "numa explain {command}"],
        ),
        _ => case.remedy(
            "numa run keeps threads on their nodes, so that memory lies where it was first touched; numa explain \
             names the data that still lies elsewhere",
            &["numa run {command}", "numa explain {command}"],
        ),
    }
}

/// Requests that wait on interconnect cards: they are saturated.
fn card_waits(case: &Case<'_>) -> Vec<FindingEvidence> {
    let wait = |card: u32| {
        let share = case.facts.rate("n2WaitCycReqPiuRmpe", Instance::Device(card))?;
        let says = format!("card {card}: requests wait {} of the time", percent(share));
        Some(case.number(&format!("n2WaitCycReqPiuRmpe@card{card}"), share, says))
    };
    case.facts.devices().filter_map(wait).collect()
}
