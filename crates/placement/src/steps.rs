//! Plans a request: from the policy to the steps.

use crate::amount::{self, Amount};
use crate::assign::{Assigner, Assignment, Order};
use crate::error::PlanError;
use crate::machine::Machine;
use crate::memory::Memories;
use crate::pool::Pool;
use crate::request::{CorePolicy, PlacementRequest};
use crate::taken::Taken;
use crate::why::{self, Reasons};
use crate::{capacity, crowded, devices, quota, room, spread};
use numakit_model::plan::Step;
use numakit_model::{CpuSet, Plan, Topology};

/// What a policy means on a machine.
struct Strategy {
    order: Order,
    /// Positions of the only nodes that may be used; `None` if all may.
    only: Option<Vec<usize>>,
    /// Positions of the devices' nodes: one for all processes, or one for each process.
    devices: Vec<usize>,
}

/// The plan and its explanation.
pub(crate) fn plan(
    topology: &Topology,
    request: &PlacementRequest,
    taken: &Taken,
) -> Result<(Plan, Vec<String>), PlanError> {
    amount::check(request)?;
    let machine = Machine::of(topology);
    let pool = Pool::of(&machine, request, taken)?;
    pool.check_all()?;
    let amount = amount::of(request, quota::cores(topology, request, pool.count()))?;
    let mut selection = pool.select(amount.all_cores(), &amount.requested(request))?;
    let free = selection.spots.clone();
    if let CorePolicy::Spread(level) = request.policy {
        selection.spots = spread::spots(&machine, &selection.spots, level, amount)?;
    }
    let all = Assigner::of(&machine, &free, None);
    let strategy = strategy(&machine, request, &all, amount)?;
    let assigner = Assigner::of(&machine, &selection.spots, strategy.only.as_deref());
    let assignment = match strategy.devices.as_slice() {
        homes @ [_, _, ..] => assigner.assign_near(homes, amount.cores),
        _ => assigner.assign(amount, strategy.order),
    };
    if assignment.spots.len() as u64 != amount.all_cores() {
        return Err(PlanError::machine(
            format!("{} of {} cores were assigned", assignment.spots.len(), amount.all_cores()),
            "this is a defect of numa: report it with the output of 'numa topo --json'",
        ));
    }
    let wanted = strategy.only.as_ref().map(|nodes| nodes.iter().map(|&node| machine.id(node)).collect());
    let mut memories = Memories::of(&machine, request, wanted)?;
    let reasons =
        Reasons::of(&machine, request, amount, &assignment, &strategy.devices, !selection.last.is_empty());
    let steps = steps(&machine, &pool.may, request, amount, &assignment, &mut memories, &reasons);
    let held: CpuSet =
        assignment.spots.iter().flat_map(|&at| machine.spots[at as usize].pus.iter().copied()).collect();
    let far = match &request.policy {
        CorePolicy::Near(name) => {
            devices::far(&machine, name, amount, &assignment, &strategy.devices, &all.nodes())
        }
        _ => None,
    };
    let (unmet, reason) = far.unzip();
    let mut warnings: Vec<String> = reason.into_iter().chain(selection.warnings).collect();
    warnings.extend(why::warnings(&machine, amount, &assignment, &free));
    warnings.extend(crowded::warnings(&machine, request, amount, &assignment, &free));
    warnings.extend(memories.warnings());
    warnings.extend(room::warnings(&machine, request, &steps));
    warnings.extend(idle_nodes(&machine, request, &strategy, &steps));
    warnings.extend(pool.remarks(&held));
    warnings.extend(quota::warning(topology, request, amount, pool.count()));
    let mut explanation = why::explanation(&machine, request, amount, &assignment, &all.nodes());
    explanation.extend(room::explanation(&machine, &selection.last));
    Ok((Plan { machine: topology.origin.clone(), steps, held, unmet, warnings }, explanation))
}

fn strategy(
    machine: &Machine<'_>,
    request: &PlacementRequest,
    all: &Assigner<'_>,
    amount: Amount,
) -> Result<Strategy, PlanError> {
    let plain = |order| Strategy { order, only: None, devices: Vec::new() };
    let at = |name: &str| -> Result<usize, PlanError> {
        let (_, node) = devices::find(machine.topology, name)?;
        Ok(machine.topology.nodes.iter().position(|n| n.os_index == node).unwrap_or(0))
    };
    Ok(match &request.policy {
        // The cores are selected already; this keeps processes together.
        CorePolicy::Compact | CorePolicy::Spread(_) => plain(Order::Nearest),
        CorePolicy::Scatter => plain(Order::Turns),
        CorePolicy::Balanced => plain(Order::Even),
        CorePolicy::Memory(bytes) => {
            let nodes = capacity::nodes(machine, &all.nodes(), *bytes, amount.all_cores())?;
            Strategy { only: Some(nodes), ..plain(Order::Even) }
        }
        CorePolicy::Near(name) => {
            let names = devices::of_processes(name, amount.processes);
            let devices = names.iter().map(|name| at(name)).collect::<Result<Vec<_>, _>>()?;
            Strategy {
                order: devices.first().map_or(Order::Nearest, |home| Order::From(*home)),
                only: None,
                devices,
            }
        }
    })
}

fn steps(
    machine: &Machine<'_>,
    may: &CpuSet,
    request: &PlacementRequest,
    amount: Amount,
    assignment: &Assignment,
    memories: &mut Memories<'_>,
    reasons: &Reasons,
) -> Vec<Step> {
    let width = request.threads_per_core as usize;
    let mut steps = Vec::with_capacity((amount.processes * amount.threads) as usize);
    for (process, spots) in assignment.spots.chunks(amount.cores as usize).enumerate() {
        let mut nodes: Vec<usize> = spots.iter().map(|&at| machine.spots[at as usize].node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let memory = memories.of_process(&nodes);
        let pus = spots.iter().flat_map(|&at| {
            let spot = &machine.spots[at as usize];
            let usable = spot.pus.iter().copied().filter(|&cpu| may.contains(cpu));
            usable.take(width).enumerate().map(move |(pu, cpu)| (spot, pu, cpu))
        });
        for (thread, (spot, pu, cpu)) in pus.take(amount.threads as usize).enumerate() {
            // A core is on one node, unless the kernel says otherwise.
            let node = machine.node_of_cpu.get(cpu as usize).map_or(spot.node, |&node| node as usize);
            let node = if node < machine.topology.nodes.len() { node } else { spot.node };
            steps.push(Step {
                process: process as u32,
                thread: thread as u32,
                cpu,
                node: machine.id(node),
                memory: memory.clone(),
                because: reasons.because(process, spot.node, pu, spot.pus[0]),
            });
        }
    }
    steps
}

/// Nodes that were selected for their memory and run no thread.
fn idle_nodes(
    machine: &Machine<'_>,
    request: &PlacementRequest,
    strategy: &Strategy,
    steps: &[Step],
) -> Option<String> {
    let wanted: CpuSet = strategy.only.as_ref()?.iter().map(|&node| machine.id(node)).collect();
    let idle = wanted.minus(&steps.iter().map(|step| step.node).collect());
    if idle.is_empty() || request.memory.mode != numakit_model::plan::Mode::Local {
        return None;
    }
    Some(format!(
        "nodes {idle} are needed for their memory and run no thread: use --memory interleave:{wanted}, or more \
         threads"
    ))
}
