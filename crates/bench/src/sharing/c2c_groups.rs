//! Groups of pairs of CPUs by the time that a line takes between them, and whether the topology has the same groups.

use crate::results::quantiles::Quantiles;
use crate::results::{BenchResult, NamedValue};
use numakit_model::numbers::counted;
use numakit_model::{CpuSet, Topology};

/// Times that differ by this ratio or more, with none between, are of two groups.
const GAP: f64 = 1.3;
/// Maximum number of pairs that are named because the topology puts them into a different group.
const NAMED: usize = 5;

/// Two CPUs, and the time between them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Pair {
    pub cpus: (u32, u32),
    pub ns: f64,
}

/// What the topology says of two CPUs, nearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Nearness {
    Core,
    /// The level of the nearest cache that they share.
    Cache(u32),
    Node,
    Package,
    Board,
    Machine,
}

impl Nearness {
    fn of(topology: &Topology, (one, two): (u32, u32)) -> Self {
        let both = |cpus: &CpuSet| cpus.contains(one) && cpus.contains(two);
        let caches = topology.caches.iter().filter(|cache| both(&cache.cpus));
        let board = |cpus: &CpuSet| {
            let nodes = [one, two].map(|cpu| topology.node_of_cpu(cpu).map(|node| node.os_index));
            nodes.iter().all(|node| node.is_some_and(|node| cpus.contains(node)))
        };
        if topology.cores.iter().any(|core| both(&core.cpus)) {
            Self::Core
        } else if let Some(level) = caches.map(|cache| cache.level).min() {
            Self::Cache(level)
        } else if topology.nodes.iter().any(|node| both(&node.cpus)) {
            Self::Node
        } else if topology.packages.iter().any(|package| both(&package.cpus)) {
            Self::Package
        } else if topology.boards.is_empty() || topology.boards.iter().any(board) {
            Self::Board
        } else {
            Self::Machine
        }
    }

    fn words(self) -> String {
        match self {
            Self::Core => "of one core".to_owned(),
            Self::Cache(level) => format!("with one L{level}"),
            Self::Node => "of one node".to_owned(),
            Self::Package => "of one package".to_owned(),
            Self::Board => "of two packages".to_owned(),
            Self::Machine => "of two boards".to_owned(),
        }
    }
}

/// Adds the values by nearness in the topology, the groups by time, and the pairs for which the two differ.
pub(crate) fn describe(topology: &Topology, pairs: &[Pair], result: &mut BenchResult) {
    let bounds = groups(pairs.iter().map(|pair| pair.ns).collect());
    let group = |ns: f64| bounds.iter().position(|(_, most)| ns <= *most).unwrap_or(0);
    let mut near: Vec<(Nearness, Pair)> =
        pairs.iter().map(|pair| (Nearness::of(topology, pair.cpus), *pair)).collect();
    near.sort_by_key(|(nearness, _)| *nearness);
    for (at, (least, most)) in bounds.iter().enumerate() {
        let count = pairs.iter().filter(|pair| group(pair.ns) == at).count();
        let pairs = counted(count, "pair");
        result.remarks.push(format!("group {}: {least:.0} to {most:.0} ns, {pairs}", at + 1));
    }
    let mut usual: Vec<(Nearness, usize)> = Vec::new();
    for alike in near.chunk_by(|a, b| a.0 == b.0) {
        let nearness = alike[0].0;
        let value = Quantiles::of(alike.iter().map(|(_, pair)| pair.ns).collect());
        let (name, unit) = (format!("CPUs {}", nearness.words()), "ns".to_owned());
        result.values.extend(value.map(|value| NamedValue { name, unit, value, best: None }));
        let votes = |at: usize| alike.iter().filter(|(_, pair)| group(pair.ns) == at).count();
        let most = (0..bounds.len()).max_by_key(|at| votes(*at)).unwrap_or(0);
        usual.push((nearness, most));
        let others: Vec<&Pair> =
            alike.iter().map(|(_, pair)| pair).filter(|pair| group(pair.ns) != most).collect();
        if !others.is_empty() {
            result.remarks.push(differing(nearness, &others, most, group));
        }
    }
    for two in usual.windows(2).filter(|two| two[0].1 == two[1].1) {
        let [one, other] = [two[0].0.words(), two[1].0.words()];
        result
            .remarks
            .push(format!("the data do not separate CPUs {one} from CPUs {other}, as the topology does"));
    }
}

fn differing(nearness: Nearness, others: &[&Pair], usual: usize, group: impl Fn(f64) -> usize) -> String {
    let name = |pair: &&Pair| {
        format!("{} and {} (group {}, {:.0} ns)", pair.cpus.0, pair.cpus.1, group(pair.ns) + 1, pair.ns)
    };
    let named: Vec<String> = others.iter().take(NAMED).map(name).collect();
    let more = others.len().saturating_sub(NAMED);
    format!(
        "the topology and the data differ: CPUs {} are mostly in group {}, but not {}{}",
        nearness.words(),
        usual + 1,
        named.join(", "),
        if more > 0 { format!(" and {}", counted(more, "more pair")) } else { String::new() }
    )
}

/// The least and the largest time of each group, in ascending order.
fn groups(mut times: Vec<f64>) -> Vec<(f64, f64)> {
    times.sort_by(f64::total_cmp);
    times.chunk_by(|a, b| *b < GAP * *a).filter_map(|group| Some((*group.first()?, *group.last()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two packages with a node each, of two cores with two PUs.
    fn machine() -> Topology {
        numakit_topology::synthetic::parse("package:2 node:1 core:2 pu:2 numbering=sequential").unwrap()
    }

    fn all(time: impl Fn(Nearness) -> f64) -> Vec<Pair> {
        let machine = machine();
        let pairs = (0..8).flat_map(|one| (one + 1..8).map(move |two| (one, two)));
        pairs.map(|cpus| Pair { cpus, ns: time(Nearness::of(&machine, cpus)) }).collect()
    }

    fn described(pairs: &[Pair]) -> BenchResult {
        let mut result = BenchResult::default();
        describe(&machine(), pairs, &mut result);
        result
    }

    fn usual(nearness: Nearness) -> f64 {
        match nearness {
            Nearness::Core => 30.0,
            Nearness::Board => 300.0,
            _ => 90.0,
        }
    }

    #[test]
    fn a_gap_separates_groups() {
        assert_eq!(groups(vec![100.0, 30.0, 110.0, 33.0, 120.0]), [(30.0, 33.0), (100.0, 120.0)]);
        assert_eq!(groups(vec![]), []);
    }

    #[test]
    fn groups_of_the_data_that_the_topology_has_need_no_remark() {
        let result = described(&all(usual));
        assert_eq!(
            result.values.iter().map(|value| value.value.median).collect::<Vec<_>>(),
            [30.0, 90.0, 300.0]
        );
        assert_eq!(
            result.remarks,
            [
                "group 1: 30 to 30 ns, 4 pairs",
                "group 2: 90 to 90 ns, 8 pairs",
                "group 3: 300 to 300 ns, 16 pairs"
            ]
        );
        assert_eq!(result.values[2].name, "CPUs of two packages");
    }

    #[test]
    fn a_pair_elsewhere_than_the_topology_says_is_named() {
        let mut pairs = all(usual);
        let odd = pairs.iter_mut().find(|pair| pair.cpus == (0, 1) || pair.ns == 30.0).unwrap();
        odd.ns = 300.0;
        let (one, two) = odd.cpus;
        let remarks = described(&pairs).remarks;
        let expected =
            format!("CPUs of one core are mostly in group 1, but not {one} and {two} (group 3, 300 ns)");
        assert!(remarks.iter().any(|remark| remark.contains(&expected)), "{remarks:?}");
    }

    #[test]
    fn what_the_data_do_not_separate_is_said() {
        let remarks = described(&all(|_| 100.0)).remarks;
        assert_eq!(remarks[0], "group 1: 100 to 100 ns, 28 pairs");
        assert!(remarks[1].contains("do not separate CPUs of one core from CPUs"), "{remarks:?}");
    }
}
