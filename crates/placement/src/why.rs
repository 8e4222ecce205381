//! The reasons for a plan, as sentences.

use crate::amount::Amount;
use crate::assign::{Assignment, Level};
use crate::machine::{Machine, NONE};
use crate::request::{CorePolicy, PlacementRequest};
use crate::{devices, spread};
use numakit_model::measured::reduced;
use numakit_model::plan::Mode;
use numakit_model::{CpuSet, Plan, Topology};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum of items in a line of an explanation.
const SHOWN: usize = 8;

/// The reason for each node of threads, by position.
pub(crate) struct Reasons {
    texts: Vec<String>,
    /// If each process has its own device: the reasons, by process and node.
    own: BTreeMap<(usize, usize), String>,
}

impl Reasons {
    /// Builds the texts once for each node, for all its steps. `by_room` if nodes without free memory come last.
    pub fn of(
        machine: &Machine<'_>,
        request: &PlacementRequest,
        amount: Amount,
        assignment: &Assignment,
        devices: &[usize],
        by_room: bool,
    ) -> Self {
        let order = visited(machine, &assignment.spots);
        let counts = counts(machine, &assignment.spots);
        let mut texts = vec![String::new(); machine.topology.nodes.len()];
        let stride = match request.stride {
            1 => String::new(),
            2 => ", every 2nd core".to_owned(),
            3 => ", every 3rd core".to_owned(),
            stride => format!(", every {stride}th core"),
        };
        let first = if by_room { ", nodes with free memory preferred" } else { "" };
        for (at, &node) in order.iter().enumerate() {
            let id = machine.id(node);
            let before = at.checked_sub(1).map(|before| order[before]);
            let far = |from: usize| machine.distances.between(from, node);
            let all = amount.all_cores();
            let text = match (&request.policy, before) {
                (CorePolicy::Near(name), _) => {
                    near(machine, node, name, devices.first().copied().unwrap_or(node))
                }
                (CorePolicy::Compact | CorePolicy::Scatter, None) if order.len() == 1 => match all {
                    1 => format!("a free core of node {id}"),
                    _ => format!("node {id} holds all {all} cores"),
                },
                (CorePolicy::Scatter, None) => format!("first of {} nodes in turn", order.len()),
                (CorePolicy::Scatter, Some(before)) => {
                    let total = order.len();
                    format!(
                        "next of {total} nodes in turn, distance {} from node {}",
                        far(before),
                        machine.id(before)
                    )
                }
                (CorePolicy::Balanced | CorePolicy::Spread(_), _) => {
                    format!("node {id} has {} of {all} cores", counts[node])
                }
                (CorePolicy::Memory(_), _) => {
                    format!("node {id} has {} of {all} cores, and requested memory", counts[node])
                }
                (CorePolicy::Compact, None) => {
                    format!("from node {id} on, {all} cores are nearest together{first}")
                }
                (CorePolicy::Compact, Some(before)) => {
                    format!(
                        "nearest free core to node {} (distance {}){first}",
                        machine.id(before),
                        far(before)
                    )
                }
            };
            texts[node] = text + &stride;
        }
        let own = match (&request.policy, devices) {
            (CorePolicy::Near(name), [_, _, ..]) => own(machine, name, amount, assignment, devices, &stride),
            _ => BTreeMap::new(),
        };
        Self { texts, own }
    }

    /// The reason for a thread of a process on this node, on PU `pu` of its core.
    pub fn because(&self, process: usize, node: usize, pu: usize, first: u32) -> String {
        let text = self.own.get(&(process, node)).unwrap_or(&self.texts[node]);
        match pu {
            0 => text.clone(),
            1 => format!("second PU of the core of CPU {first}; {text}"),
            _ => format!("PU {} of the core of CPU {first}; {text}", pu + 1),
        }
    }
}

fn near(machine: &Machine<'_>, node: usize, name: &str, from: usize) -> String {
    format!(
        "node {} is at distance {} from {name} on node {}",
        machine.id(node),
        machine.distances.between(from, node),
        machine.id(from)
    )
}

fn own(
    machine: &Machine<'_>,
    name: &str,
    amount: Amount,
    assignment: &Assignment,
    homes: &[usize],
    stride: &str,
) -> BTreeMap<(usize, usize), String> {
    let names = devices::of_processes(name, amount.processes);
    let mut texts = BTreeMap::new();
    let processes = assignment.spots.chunks(amount.cores as usize).zip(names.iter().zip(homes));
    for (process, (spots, (name, home))) in processes.enumerate() {
        for node in visited(machine, spots) {
            texts.insert((process, node), near(machine, node, name, *home) + stride);
        }
    }
    texts
}

/// Nodes in the order in which threads reach them.
fn visited(machine: &Machine<'_>, spots: &[u32]) -> Vec<usize> {
    let mut seen = vec![false; machine.topology.nodes.len()];
    let nodes = spots.iter().map(|&at| machine.spots[at as usize].node);
    nodes.filter(|&node| !std::mem::replace(&mut seen[node], true)).collect()
}

fn counts(machine: &Machine<'_>, spots: &[u32]) -> Vec<u64> {
    let mut counts = vec![0; machine.topology.nodes.len()];
    spots.iter().for_each(|&at| counts[machine.spots[at as usize].node] += 1);
    counts
}

/// Warnings about the cores of a plan.
pub(crate) fn warnings(
    machine: &Machine<'_>,
    amount: Amount,
    assignment: &Assignment,
    available: &[u32],
) -> Vec<String> {
    let mut warnings = Vec::new();
    // Between two nodes there is nothing to choose.
    if !machine.distances.known && machine.topology.nodes.len() > 2 {
        warnings.push(
            "the machine does not report distances between nodes: the plan counts \
             nodes of one package as near to each other"
                .to_owned(),
        );
    }
    let kinds: BTreeSet<u32> = assignment.spots.iter().map(|&at| machine.spots[at as usize].kind).collect();
    if kinds.len() > 1 {
        let known = &machine.topology.kinds;
        let name = |kind: &u32| known.iter().rev().nth(*kind as usize).map_or("other", |kind| &kind.name);
        let names: Vec<&str> = kinds.iter().map(name).collect();
        warnings.push(format!("cores of different speed are mixed: {}", names.join(" and ")));
    }
    warnings.extend(split(machine, amount, assignment, available));
    warnings
}

/// Processes that are split over packages although they would fit into one.
fn split(
    machine: &Machine<'_>,
    amount: Amount,
    assignment: &Assignment,
    available: &[u32],
) -> Option<String> {
    let package = |at: &u32| machine.spots[*at as usize].package;
    let largest = available.chunk_by(|one, next| package(one) == package(next)).map(<[u32]>::len).max()?;
    if amount.processes < 2 || amount.cores > largest as u64 {
        return None;
    }
    let processes = assignment.spots.chunks(amount.cores as usize);
    let several = |spots: &[u32]| spots.iter().any(|at| package(at) != package(&spots[0]));
    let found: CpuSet = processes.zip(0..).filter(|(spots, _)| several(spots)).map(|(_, at)| at).collect();
    (!found.is_empty()).then(|| {
        let one = found.len() == 1;
        format!(
            "{} {found} {} split over packages: not every process of {} cores finds a package with room",
            if one { "process" } else { "processes" },
            if one { "is" } else { "are" },
            amount.cores
        )
    })
}

/// How the kernel's weights distribute pages, if weights are requested and known, and whether measured weights would differ.
pub fn weights(topology: &Topology, request: &PlacementRequest) -> Option<String> {
    let known = topology.nodes.iter().filter_map(|n| Some((n.os_index, n.interleave_weight?)));
    let (nodes, weights): (Vec<u32>, Vec<u32>) = known.unzip();
    let first = *weights.first().filter(|_| request.memory.mode == Mode::Weighted)?;
    let who = match topology.weights_auto {
        Some(true) => ", which it sets automatically from the bandwidth of the nodes",
        Some(false) => ", which were set manually",
        None => "",
    };
    let used = match weights.iter().all(|weight| *weight == first) {
        true => format!("the kernel's weights are {first} for all nodes{who}: that is plain interleaving"),
        false => format!("pages in a row by the kernel's weights{who}: {}", on_nodes(&nodes, &weights)),
    };
    let measured = topology.measured.as_ref().and_then(|memory| memory.weights(&nodes));
    Some(match measured {
        None => used,
        Some(measured) if measured == reduced(&weights) => {
            format!("{used}; the measured bandwidths lead to the same weights")
        }
        Some(measured) => format!(
            "{used}; by the measured bandwidths they would be {} ('numa bench weights' says how to set them)",
            on_nodes(&nodes, &measured)
        ),
    })
}

/// What a plan of near cores leaves unused: the memory bandwidth of nodes without a thread. Nothing if the request says where.
pub fn idle_nodes(topology: &Topology, request: &PlacementRequest, plan: &Plan) -> Option<String> {
    let is_open = request.policy == CorePolicy::Compact && request.nodes.is_none() && request.cpus.is_none();
    if !is_open || plan.steps.len() < 2 {
        return None;
    }
    let used = plan.nodes();
    let usable = topology.nodes.iter().filter(|node| !node.cpus.and(&topology.allowed).is_empty());
    let idle: CpuSet = usable.map(|node| node.os_index).filter(|node| !used.contains(*node)).collect();
    let who = match idle.len() {
        0 => return None,
        1 => format!("node {idle} has no thread"),
        _ => format!("nodes {idle} have no thread"),
    };
    Some(format!("{who}; '--policy balanced' uses the memory bandwidth of all nodes"))
}

/// `3 on node 0, 1 on node 1`.
fn on_nodes(nodes: &[u32], weights: &[u32]) -> String {
    let shown =
        nodes.iter().zip(weights).take(SHOWN).map(|(node, weight)| format!("{weight} on node {node}"));
    let more = if nodes.len() > SHOWN { ", and more" } else { "" };
    format!("{}{more}", shown.collect::<Vec<_>>().join(", "))
}

/// The nodes that were considered, and those that were selected.
pub(crate) fn explanation(
    machine: &Machine<'_>,
    request: &PlacementRequest,
    amount: Amount,
    assignment: &Assignment,
    free: &[(usize, u64)],
) -> Vec<String> {
    let total: u64 = free.iter().map(|(_, count)| count).sum();
    let mut by_count: BTreeMap<u64, CpuSet> = BTreeMap::new();
    free.iter().for_each(|(node, count)| by_count.entry(*count).or_default().insert(machine.id(*node)));
    let one = |(count, nodes): (&u64, &CpuSet)| match nodes.len() {
        1 => format!("{count} on node {nodes}"),
        _ => format!("{count} on each of nodes {nodes}"),
    };
    let shown: Vec<String> = by_count.iter().rev().take(SHOWN).map(one).collect();
    let more = if by_count.len() > SHOWN { ", fewer on others" } else { "" };
    let mut lines = vec![format!("free cores that suit: {total}, {}{more}", shown.join(", "))];
    let nodes = visited(machine, &assignment.spots);
    let counts = counts(machine, &assignment.spots);
    let ids: CpuSet = nodes.iter().map(|&node| machine.id(node)).collect();
    let word = if nodes.len() == 1 { "node" } else { "nodes" };
    lines.push(format!("taken: {} on {word} {ids}", amount.all_cores()));
    if nodes.len() > 1 {
        let weighted =
            |a: &usize, b: &usize| counts[*a] * counts[*b] * u64::from(machine.distances.both(*a, *b));
        let sum: u64 = nodes.iter().flat_map(|a| nodes.iter().map(move |b| weighted(a, b))).sum();
        let pairs = 2.0 * (amount.all_cores() as f64).powi(2);
        lines.push(format!("mean distance between two of them: {:.1}", sum as f64 / pairs));
    }
    if let CorePolicy::Spread(level) = request.policy
        && let Some((used, all, most)) = spread::reached(machine, &assignment.spots, level)
    {
        let (_, part) = level.names();
        lines.push(format!("spread over {used} of {all} {part}s, at most {most} of the cores on each"));
    }
    lines.extend(weights(machine.topology, request));
    if amount.processes > 1 && amount.cores > 1 {
        lines.push(match assignment.level {
            Level::Cache if machine.spots.iter().all(|spot| spot.l3 == NONE) => {
                "each process has its cores on one node".into()
            }
            Level::Cache => "each process has its cores at one last-level cache".into(),
            Level::Node => "each process has its cores on one node".into(),
            Level::Package => "each process has its cores in one package".into(),
            Level::Board => "each process has its cores on one board".into(),
            Level::Machine => "processes follow each other over the cores wherever these are".to_owned(),
        });
    }
    lines
}
