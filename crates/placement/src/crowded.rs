//! Warnings: threads share cores or units although others are free; nodes overlap.

use crate::amount::Amount;
use crate::assign::Assignment;
use crate::machine::{Machine, NONE};
use crate::request::{CorePolicy, Level, PlacementRequest};
use numakit_model::CpuSet;
use std::collections::BTreeMap;

/// `free` are the usable cores, including those of the plan.
pub(crate) fn warnings(
    machine: &Machine<'_>,
    request: &PlacementRequest,
    amount: Amount,
    assignment: &Assignment,
    free: &[u32],
) -> Vec<String> {
    let found = [
        siblings(request, amount, free),
        units(machine, request, amount, assignment, free),
        several_nodes(machine, assignment),
    ];
    found.into_iter().flatten().collect()
}

/// Several threads on a core while other cores are free.
fn siblings(request: &PlacementRequest, amount: Amount, free: &[u32]) -> Option<String> {
    let unused = (free.len() as u64).saturating_sub(amount.all_cores());
    if amount.threads <= amount.cores || unused == 0 {
        return None;
    }
    let threads = amount.threads * amount.processes;
    let fix = match (threads <= free.len() as u64, request.cores) {
        (true, Some(_)) => format!("-c {threads} --threads-per-core 1 gives each its own core"),
        (true, None) => "--threads-per-core 1 gives each its own core".to_owned(),
        (false, _) => format!("-c {} uses these too", free.len()),
    };
    let are = if unused == 1 { "other core is" } else { "other cores are" };
    Some(format!("threads share cores while {unused} {are} free: {fix}"))
}

/// Several cores of a unit while other units are free.
fn units(
    machine: &Machine<'_>,
    request: &PlacementRequest,
    amount: Amount,
    assignment: &Assignment,
    free: &[u32],
) -> Option<String> {
    if request.policy == CorePolicy::Spread(Level::Unit) {
        return None;
    }
    let unit_of = machine.parts(Level::Unit)?;
    let count = |spots: &[u32]| {
        let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
        for unit in spots.iter().map(|&at| unit_of[at as usize]).filter(|unit| *unit != NONE) {
            *counts.entry(unit).or_default() += 1;
        }
        counts
    };
    let (used, free) = (count(&assignment.spots), count(free));
    let shared = used.values().filter(|count| **count > 1).count();
    let unused = free.keys().filter(|unit| !used.contains_key(unit)).count();
    if shared == 0 || unused == 0 {
        return None;
    }
    let enough = amount.all_cores() <= free.len() as u64;
    let fix = match request.policy {
        CorePolicy::Compact if request.stride == 1 && enough => {
            format!("--stride {} gives each thread its own unit", size(machine))
        }
        _ => "--policy spread:unit uses these first".to_owned(),
    };
    let (units, have) = if shared == 1 { ("unit", "has") } else { ("units", "have") };
    let are = if unused == 1 { "other is" } else { "others are" };
    Some(format!("{shared} {units} of cores {have} several threads while {unused} {are} free: {fix}"))
}

/// Cores of a unit.
fn size(machine: &Machine<'_>) -> usize {
    let t = machine.topology;
    let cores = |unit: &CpuSet| t.cores.iter().filter(|core| core.cpus.intersects(unit)).count();
    t.units.first().map_or(1, cores)
}

/// CPUs of the plan that belong to several nodes.
fn several_nodes(machine: &Machine<'_>, assignment: &Assignment) -> Option<String> {
    let (mut once, mut twice) = (CpuSet::new(), CpuSet::new());
    for node in &machine.topology.nodes {
        twice.insert_all(&once.and(&node.cpus));
        once.insert_all(&node.cpus);
    }
    let used = assignment.spots.iter().flat_map(|&at| machine.spots[at as usize].pus.iter().copied());
    let odd = used.collect::<CpuSet>().and(&twice);
    if odd.is_empty() {
        return None;
    }
    let nodes = machine.topology.nodes.iter().filter(|node| node.cpus.intersects(&odd));
    let nodes: CpuSet = nodes.map(|node| node.os_index).collect();
    Some(format!(
        "nodes {nodes} all list CPUs {odd}: which memory is local to them is unknown, and they belong to the \
         first of these nodes"
    ))
}
