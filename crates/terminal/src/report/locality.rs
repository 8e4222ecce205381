//! Where memory was allocated, by node. Allocation is not access: a page is counted once,
//! when it is allocated, and any CPU may use it afterwards.

use super::analysis::Facts;
use super::criteria::{ACCESS, CANNOT_TELL, INTERLEAVING, LOCALITY, OVERFLOW, SPILL};
use super::value::{Grade, Locality, NodeLocality, Verdict};
use crate::units::NumberStyle;
use numakit_model::Instance;

pub(super) fn locality(facts: &Facts<'_>) -> Locality {
    let nodes: Vec<NodeLocality> = facts.nodes().into_iter().map(|node| of_node(facts, node)).collect();
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
        verdict: unless_single(of_place(facts, Instance::Machine)),
        accesses: unless_single(ACCESS.judge(facts, Instance::Machine)),
        nodes: if one { Vec::new() } else { nodes },
    }
}

/// Interleaved memory is not called remote.
fn of_place(facts: &Facts<'_>, place: Instance) -> Verdict {
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

fn of_node(facts: &Facts<'_>, node: u32) -> NodeLocality {
    let place = Instance::Node(node);
    let count = |metric| facts.count(metric, place);
    let overflow = OVERFLOW.judge(facts, place);
    let signs = [&overflow, &SPILL.judge(facts, place)].map(Verdict::sign).into_iter().flatten().collect();
    NodeLocality {
        node,
        verdict: of_place(facts, place),
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
