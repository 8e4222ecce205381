//! Whose memory threads used, where samples of their instructions say so; else where memory was allocated, by node.
//! Allocation is not use: a page is counted once, when it is allocated, and any CPU may use it afterwards.

use crate::criteria::{
    ACCESS, CANNOT_TELL, Criterion, INTERLEAVING, LOCALITY, OVERFLOW, PAGES_IN_USE, SPILL, USE,
};
use crate::facts::Facts;
use crate::report::{Grade, Locality, LocalityBasis, NodeLocality, Verdict};
use numakit_model::Instance;
use numakit_model::numbers::NumberStyle;
use numakit_model::share::ShareEstimate;

pub(crate) fn locality(facts: &Facts<'_>) -> Locality {
    let basis = basis(facts);
    let nodes: Vec<NodeLocality> =
        facts.nodes().into_iter().map(|node| of_node(facts, node, basis)).collect();
    let one = facts.node_count() == Some(1);
    let unless_single = |verdict: Verdict| match one {
        true => Verdict {
            grade: Grade::CannotTell,
            word: CANNOT_TELL.into(),
            because: "the machine has one node, so all memory is local".into(),
            ..verdict
        },
        false => verdict,
    };
    Locality {
        basis,
        verdict: unless_single(of_place(facts, Instance::Machine, basis)),
        accesses: unless_single(ACCESS.judge(facts, Instance::Machine)),
        nodes: if one { Vec::new() } else { nodes },
    }
}

/// What the recording's locality is about: use of memory if the recording tells it, else allocation.
fn basis(facts: &Facts<'_>) -> LocalityBasis {
    let tells = |criterion: &Criterion| criterion.judge(facts, Instance::Machine).grade != Grade::CannotTell;
    match () {
        () if tells(&USE) => LocalityBasis::Use,
        () if tells(&PAGES_IN_USE) => LocalityBasis::PagesInUse,
        () => LocalityBasis::Allocation,
    }
}

/// Where memory is used says more than where it was allocated. Interleaved memory is not called remote there.
fn of_place(facts: &Facts<'_>, place: Instance, basis: LocalityBasis) -> Verdict {
    match basis {
        LocalityBasis::Use => return with_interval(USE.judge(facts, place)),
        LocalityBasis::PagesInUse => return PAGES_IN_USE.judge(facts, place),
        LocalityBasis::Allocation => {}
    }
    let local = LOCALITY.judge(facts, place);
    let spread = INTERLEAVING.judge(facts, place);
    if spread.grade == Grade::Notable && local.grade != Grade::CannotTell {
        let because = format!(
            "{}; {} were local",
            spread.because,
            NumberStyle::Percent.words(local.percent.unwrap_or(0.0))
        );
        return Verdict { grade: Grade::Fine, word: spread.word, because, ..local };
    }
    local
}

/// Adds the 95 % interval of a share of independent observations.
fn with_interval(verdict: Verdict) -> Verdict {
    let (Some(percent), Some(events)) = (verdict.percent, verdict.events.filter(|events| *events > 0.0))
    else {
        return verdict;
    };
    let ShareEstimate { low, high, .. } = ShareEstimate::of_samples(percent / 100.0, events);
    let [low, high] = [low, high].map(|share| NumberStyle::Percent.words(100.0 * share));
    let because = format!("{} (between {low} and {high})", verdict.because);
    Verdict { because, ..verdict }
}

fn of_node(facts: &Facts<'_>, node: u32, basis: LocalityBasis) -> NodeLocality {
    let place = Instance::Node(node);
    let count = |metric| facts.count(metric, place);
    let overflow = OVERFLOW.judge(facts, place);
    let signs = [&overflow, &SPILL.judge(facts, place)].map(Verdict::sign).into_iter().flatten().collect();
    NodeLocality {
        node,
        verdict: of_place(facts, place, basis),
        local: count("node.local_node"),
        remote: count("node.other_node"),
        miss: count("node.numa_miss"),
        foreign: count("node.numa_foreign"),
        overflow,
        signs,
    }
}

impl Verdict {
    /// In words, if it is notable.
    pub fn sign(&self) -> Option<String> {
        (self.grade == Grade::Notable).then(|| format!("{}: {}", self.word, self.because))
    }
}

impl Locality {
    /// The node with the lowest share of local allocations, if its verdict is notable.
    pub fn worst(&self) -> Option<&NodeLocality> {
        let bad = |n: &&NodeLocality| n.verdict.grade == Grade::Notable;
        let percent = |n: &NodeLocality| n.verdict.percent.unwrap_or(100.0);
        self.nodes.iter().filter(bad).min_by(|a, b| percent(a).total_cmp(&percent(b)))
    }
}
