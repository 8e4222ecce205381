//! Nodes without memory to give: those that have none, those whose memory this process may not use, and full ones.

use crate::capacity::size;
use crate::machine::Machine;
use crate::request::{CorePolicy, PlacementRequest};
use numakit_model::plan::{Mode, Step};
use numakit_model::{CpuSet, thresholds};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum of nodes in an explanation, and of warnings.
const SHOWN: usize = 8;

/// What a node lacks, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lack {
    /// It has little free memory.
    Full,
    /// It gives no memory at all.
    NoMemory,
}

/// What a node lacks; `None` if it has free memory, or does not say.
fn lack(machine: &Machine<'_>, node: usize) -> Option<Lack> {
    let known = &machine.topology.nodes[node];
    if known.memory_kb == Some(0) || !machine.topology.allowed_nodes.contains(known.os_index) {
        return Some(Lack::NoMemory);
    }
    let (free, all) = known.free_kb.zip(known.memory_kb)?;
    thresholds::is_full(free, all).then_some(Lack::Full)
}

/// Leaves out cores on full nodes and on nodes without memory, as long as enough cores remain; if they are needed, cores on
/// nodes with free memory are all taken. A policy that selects nodes by a device or by their memory does it alone. Returns the
/// nodes that come last.
pub(crate) fn prefer(
    machine: &Machine<'_>,
    policy: &CorePolicy,
    spots: &mut Vec<u32>,
    cores: u64,
) -> BTreeSet<usize> {
    if matches!(policy, CorePolicy::Memory(_) | CorePolicy::Near(_)) {
        return BTreeSet::new();
    }
    let nodes = 0..machine.topology.nodes.len();
    let lacks: Vec<Option<Lack>> = nodes.map(|node| lack(machine, node)).collect();
    let of = |at: &u32| lacks[machine.spots[*at as usize].node];
    let within = |worst: &Option<Lack>| spots.iter().filter(|at| of(at) <= *worst).count() as u64 >= cores;
    // `None` lacks nothing and is the least.
    let worst = [None, Some(Lack::Full)].into_iter().find(within).unwrap_or(Some(Lack::NoMemory));
    let better = spots.iter().filter(|at| of(at) < worst).count();
    let last = spots.iter().filter(|at| of(at) > worst || better > 0 && of(at) == worst);
    let last: BTreeSet<usize> = last.map(|at| machine.spots[*at as usize].node).collect();
    if spots.len() as u64 == cores {
        return BTreeSet::new();
    }
    spots.retain(|at| of(at) <= worst);
    if better > 0 {
        let (mut taken, rest): (Vec<u32>, Vec<u32>) = spots.iter().partition(|at| of(at) < worst);
        taken.extend(beside(machine, policy, &taken, rest).into_iter().take(cores as usize - better));
        taken.sort_unstable();
        *spots = taken;
    }
    last
}

/// Cores in the order in which they are added to taken ones: those of the nearest node first, or one of each node in turn if the
/// policy spreads them.
fn beside(machine: &Machine<'_>, policy: &CorePolicy, taken: &[u32], rest: Vec<u32>) -> Vec<u32> {
    let node = |at: &u32| machine.spots[*at as usize].node;
    let homes: BTreeSet<usize> = taken.iter().map(node).collect();
    let far =
        |other: usize| homes.iter().map(|home| u64::from(machine.distances.both(*home, other))).sum::<u64>();
    let mut of_node: BTreeMap<usize, u64> = BTreeMap::new();
    let ranked = rest.into_iter().map(|at| {
        let before = of_node.entry(node(&at)).or_default();
        *before += 1;
        let turn = if *policy == CorePolicy::Compact { 0 } else { *before };
        ((turn, far(node(&at)), node(&at)), at)
    });
    let mut ranked: Vec<_> = ranked.collect();
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, at)| at).collect()
}

/// Which nodes come last, and why; `None` if none does.
pub(crate) fn explanation(machine: &Machine<'_>, last: &BTreeSet<usize>) -> Option<String> {
    let one = |node: &usize| format!("node {} ({})", machine.id(*node), words(machine, *node));
    let words: Vec<String> = last.iter().take(SHOWN).map(one).collect();
    let more = if last.len() > SHOWN { ", and others" } else { "" };
    (!words.is_empty()).then(|| format!("nodes with free memory are preferred to {}{more}", words.join(", ")))
}

fn words(machine: &Machine<'_>, node: usize) -> String {
    let known = &machine.topology.nodes[node];
    match (known.memory_kb, known.free_kb) {
        (Some(0), _) => "no memory".to_owned(),
        _ if !machine.topology.allowed_nodes.contains(known.os_index) => {
            "no memory for this cpuset".to_owned()
        }
        (Some(all), Some(free)) => format!("{} of {} free", size(free), size(all)),
        _ => "free memory unknown".to_owned(),
    }
}

/// Warnings about full nodes that processes take memory from, while other nodes have free memory: where all are full, none is
/// better than another.
pub(crate) fn warnings(machine: &Machine<'_>, request: &PlacementRequest, steps: &[Step]) -> Vec<String> {
    let nodes = || 0..machine.topology.nodes.len();
    let used = steps.iter().fold(CpuSet::new(), |all, step| all.or(&step.memory.nodes));
    let full =
        nodes().filter(|&node| used.contains(machine.id(node)) && lack(machine, node) == Some(Lack::Full));
    let mut warnings = Vec::new();
    for node in full.take(SHOWN) {
        let distance = |other: &usize| (machine.distances.between(node, *other), *other);
        let roomy = |other: &usize| {
            lack(machine, *other).is_none() && machine.topology.nodes[*other].free_kb.is_some()
        };
        let Some(other) = nodes().filter(roomy).min_by_key(distance) else { continue };
        let (id, instead) = (machine.id(node), machine.id(other));
        let then = match request.memory.mode {
            Mode::Bind => {
                "memory is bound to it, so what does not fit waits until files are dropped from memory or pages are \
                 swapped out, or ends the program"
                    .to_owned()
            }
            _ => format!("the kernel allocates what does not fit on other nodes, such as node {instead}"),
        };
        warnings.push(format!(
            "node {id} has {}: {then}; node {instead} has {}",
            words(machine, node),
            words(machine, other)
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use crate::{PlacementRequest, Taken, explained};
    use numakit_model::Topology;

    /// Four nodes of two cores with 96 GiB, these MiB of them free; 0 for a node without memory.
    fn machine(free_mib: [u64; 4]) -> Topology {
        let mut topology =
            numakit_topology::synthetic::parse("package:2 node:2(mem=96G) core:2 dist=10/12/32").unwrap();
        for (node, mib) in topology.nodes.iter_mut().zip(free_mib) {
            node.free_kb = Some(mib << 10);
            node.memory_kb = Some(if mib == 0 { 0 } else { 96 << 20 });
        }
        topology
    }

    const ROOMY: u64 = 90 << 10;

    /// The nodes of a plan, its warnings, and its explanation with the reasons of all threads.
    fn planned(topology: &Topology, words: &[(&str, &str)]) -> (String, Vec<String>, String) {
        let mut request = PlacementRequest::default();
        for (what, word) in words {
            match *what {
                "-c" => request.cores = Some(word.parse().unwrap()),
                "--policy" => request.policy = word.parse().unwrap(),
                "--memory" => request.memory = word.parse().unwrap(),
                _ => request.nodes = Some(word.parse().unwrap()),
            }
        }
        let (plan, reasons) = explained(topology, &request, &Taken::default()).unwrap();
        let because = plan.steps.iter().map(|step| step.because.clone());
        let all: Vec<String> = reasons.into_iter().chain(because).collect();
        (plan.nodes().to_string(), plan.warnings, all.join("\n"))
    }

    #[test]
    fn nodes_without_memory_are_the_last() {
        let topology = machine([ROOMY, 0, 0, ROOMY]);
        for policy in ["compact", "scatter", "balanced", "spread:node", "spread:package"] {
            for cores in ["1", "2", "3", "4"] {
                let (nodes, warnings, _) = planned(&topology, &[("-c", cores), ("--policy", policy)]);
                assert!(["0", "3", "0,3"].contains(&nodes.as_str()), "{policy} {cores}: {nodes}");
                assert_eq!(warnings, [""; 0], "{policy} {cores}");
            }
            // One more is beside one of them.
            let (nodes, warnings, _) = planned(&topology, &[("-c", "5"), ("--policy", policy)]);
            assert_eq!(nodes, "0-1,3", "{policy}");
            assert!(
                warnings
                    .iter()
                    .any(|text| text.contains("node 1 has no memory: its threads take from node 0")),
                "{warnings:?}"
            );
            let all = planned(&topology, &[("-c", "auto"), ("--policy", policy)]).0;
            assert_eq!(all, "0-3");
        }
        // Named nodes are used.
        assert_eq!(planned(&topology, &[("-c", "2"), ("--nodes", "1")]).0, "1");
    }

    #[test]
    fn the_reason_says_what_was_left_out() {
        let (nodes, _, why) = planned(&machine([ROOMY, 0, 400, ROOMY]), &[("-c", "4")]);
        assert_eq!(nodes, "0,3");
        for text in [
            "nodes with free memory are preferred to node 1 (no memory), node 2 (400 MiB of 96 GiB free)",
            "from node 0 on, 4 cores are nearest together, nodes with free memory preferred",
            "nearest free core to node 0 (distance 32), nodes with free memory preferred",
        ] {
            assert!(why.contains(text), "{why}");
        }
        let (nodes, _, why) = planned(&machine([ROOMY; 4]), &[("-c", "4")]);
        assert_eq!(nodes, "0-1");
        assert!(
            !why.contains("free memory") && why.contains("nearest free core to node 0 (distance 12)"),
            "{why}"
        );
    }

    #[test]
    fn full_nodes_are_avoided_or_warned_of() {
        let topology = machine([400, ROOMY, ROOMY, ROOMY]);
        for policy in ["compact", "scatter", "balanced", "spread:node"] {
            let (nodes, warnings, _) = planned(&topology, &[("-c", "2"), ("--policy", policy)]);
            assert!(!nodes.contains('0') && warnings.is_empty(), "{policy}: {nodes} {warnings:?}");
        }
        let (nodes, warnings, _) = planned(&topology, &[("-c", "2"), ("--nodes", "0")]);
        assert_eq!(nodes, "0");
        assert_eq!(
            warnings,
            [
                "node 0 has 400 MiB of 96 GiB free: the kernel allocates what does not fit on other nodes, such as node 1; \
              node 1 has 90 GiB of 96 GiB free"
            ]
        );
        let (_, bound, _) = planned(&topology, &[("-c", "2"), ("--nodes", "1"), ("--memory", "bind:0")]);
        assert!(bound.len() == 2 && bound[1].contains("memory is bound to it"), "{bound:?}");
        // Where all are full, none is better.
        let (nodes, warnings, _) = planned(&machine([400; 4]), &[("-c", "2")]);
        assert_eq!((nodes.as_str(), warnings), ("0", Vec::new()));
    }
}
