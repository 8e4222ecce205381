//! Nodes with enough memory.

use crate::error::PlanError;
use crate::machine::Machine;
use crate::nodes::{Field, Item};
use crate::request;
use numakit_model::CpuSet;
use numakit_model::topology::Node;

/// The step in which memory is counted while nodes are selected.
const STEPS: u64 = 100_000;

/// The positions of the nodes nearest to each other that together have this much free memory and this number of cores.
/// `free` are the nodes with free cores, and how many.
pub(crate) fn nodes(
    machine: &Machine<'_>,
    free: &[(usize, u64)],
    bytes: u64,
    cores: u64,
) -> Result<Vec<usize>, PlanError> {
    let topology = machine.topology;
    if free.iter().all(|(node, _)| known_kib(&topology.nodes[*node]).is_none()) {
        return Err(PlanError::machine(
            "the machine does not say how much memory its nodes have",
            "name nodes with enough memory in --nodes",
        ));
    }
    let kb = |node: usize| usable(machine, node);
    let wanted = bytes.div_ceil(1024);
    let total: u64 = free.iter().map(|(node, _)| kb(*node)).sum();
    if total < wanted {
        let ids: CpuSet = free.iter().map(|(node, _)| machine.id(*node)).collect();
        return Err(PlanError::machine(
            format!(
                "{} are requested, and nodes {ids} with free cores have {} free",
                size(wanted),
                size(total)
            ),
            format!(
                "request at most {}, or give memory of all nodes with --memory interleave:all",
                request::size((total >> 10) << 20)
            ),
        ));
    }
    let step = wanted.div_ceil(STEPS).max(1);
    let steps = wanted.div_ceil(step);
    let with: Vec<(usize, u64)> = free.iter().copied().filter(|(node, _)| kb(*node) > 0).collect();
    let item = |&(node, room): &(usize, u64)| Item {
        cap: kb(node).div_ceil(step).min(steps),
        room,
        groups: [machine.board_of_node[node], machine.package_of_node[node]],
    };
    let pairs = with.iter().flat_map(|(a, _)| with.iter().map(move |(b, _)| (*a, *b)));
    let both = pairs.map(|(a, b)| machine.distances.both(a, b)).collect();
    let field = Field { items: with.iter().map(item).collect(), unit: 1, both, from: None };
    let mut selected: Vec<usize> = field.nearest(steps).iter().map(|(at, _)| with[*at].0).collect();
    // Steps are rounded up, so a little memory may still be missing.
    grow(machine, free, &mut selected, wanted, cores);
    selected.sort_unstable();
    Ok(selected)
}

/// Free KiB of a node; its total if free memory is unknown.
fn known_kib(node: &Node) -> Option<u64> {
    node.free_kb.or(node.memory_kb)
}

/// Usable KiB of a node; 0 if unknown.
fn usable(machine: &Machine<'_>, node: usize) -> u64 {
    let known = &machine.topology.nodes[node];
    let allowed = machine.topology.allowed_nodes.contains(known.os_index);
    known_kib(known).filter(|_| allowed).unwrap_or(0)
}

/// Adds the nearest nodes until there is enough memory and there are enough cores.
fn grow(machine: &Machine<'_>, free: &[(usize, u64)], selected: &mut Vec<usize>, wanted: u64, cores: u64) {
    let mut left: Vec<(usize, u64, u64)> = Vec::new();
    let (mut has, mut room) = (0, 0);
    for &(node, cores) in free {
        if selected.contains(&node) {
            (has, room) = (has + usable(machine, node), room + cores);
        } else {
            let sum = selected.iter().map(|&c| u64::from(machine.distances.both(c, node))).sum();
            left.push((node, cores, sum));
        }
    }
    while (has < wanted || room < cores) && !left.is_empty() {
        let nearest = left.iter().enumerate().min_by_key(|(_, (node, _, sum))| (*sum, *node));
        let Some((at, &(node, more, _))) = nearest else { break };
        left.remove(at);
        left.iter_mut().for_each(|(other, _, sum)| *sum += u64::from(machine.distances.both(node, *other)));
        (has, room) = (has + usable(machine, node), room + more);
        selected.push(node);
    }
}

/// KiB with a unit.
pub(crate) fn size(kb: u64) -> String {
    match kb {
        0..10_240 => format!("{kb} KiB"),
        10_240..10_485_760 => format!("{} MiB", kb >> 10),
        _ => format!("{} GiB", kb >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(machine: &str, free: &[u64], gib: u64, cores: u64) -> String {
        let topology = numakit_topology::synthetic::parse(machine).unwrap();
        let machine = Machine::of(&topology);
        let free: Vec<(usize, u64)> = free.iter().copied().enumerate().filter(|(_, f)| *f > 0).collect();
        match nodes(&machine, &free, gib << 30, cores) {
            Ok(nodes) => format!("{nodes:?}"),
            Err(error) => error.to_string(),
        }
    }

    const MACHINE: &str = "package:2 node:2(mem=16G) core:4 dist=10/12/32";

    #[test]
    fn as_many_nodes_as_the_memory_needs() {
        assert_eq!(selected(MACHINE, &[4; 4], 10, 2), "[0]");
        assert_eq!(selected(MACHINE, &[4; 4], 16, 2), "[0]");
        assert_eq!(selected(MACHINE, &[4; 4], 17, 2), "[0, 1]");
        assert_eq!(selected(MACHINE, &[4, 0, 4, 4], 32, 2), "[2, 3]");
        assert_eq!(selected(MACHINE, &[4; 4], 64, 2), "[0, 1, 2, 3]");
        assert_eq!(selected(MACHINE, &[4; 4], 10, 6), "[0, 1]");
        assert_eq!(selected(MACHINE, &[1, 1, 1, 1], 10, 4), "[0, 1, 2, 3]");
    }

    #[test]
    fn too_little_memory_is_an_error() {
        assert_eq!(
            selected(MACHINE, &[4, 0, 4, 0], 40, 1),
            "40 GiB are requested, and nodes 0,2 with free cores have 32 GiB free; request at most 32G, or give \
             memory of all nodes with --memory interleave:all"
        );
    }
}
