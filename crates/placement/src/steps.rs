//! From a request to the steps of a plan.

use crate::amount::{self, Amount};
use crate::deal::{Deal, Dealt, Order};
use crate::error::PlanError;
use crate::machine::Machine;
use crate::memory::Memories;
use crate::pool::Pool;
use crate::request::{CorePolicy, PlacementRequest};
use crate::taken::Taken;
use crate::why::{self, Reasons};
use crate::{capacity, crowded, devices, quota, spread};
use numakit_model::plan::Step;
use numakit_model::{CpuSet, Plan, Topology};

/// What a policy means on a machine.
struct Way {
    order: Order,
    /// Only these nodes, by position.
    only: Option<Vec<usize>>,
    /// Positions of the nodes of devices: of one for all, or of one for each process.
    devices: Vec<usize>,
}

/// The plan, and what was looked at.
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
    let mut chosen = pool.choose(amount.all_cores(), &amount.asked(request))?;
    let free = chosen.spots.clone();
    if let CorePolicy::Spread(level) = request.policy {
        chosen.spots = spread::spots(&machine, &chosen.spots, level, amount)?;
    }
    let all = Deal::of(&machine, &free, None);
    let way = way(&machine, request, &all, amount)?;
    let deal = Deal::of(&machine, &chosen.spots, way.only.as_deref());
    let dealt = match way.devices.as_slice() {
        homes @ [_, _, ..] => deal.deal_near(homes, amount.cores),
        _ => deal.deal(amount, way.order),
    };
    if dealt.spots.len() as u64 != amount.all_cores() {
        return Err(PlanError::machine(
            format!("{} of {} cores found a place", dealt.spots.len(), amount.all_cores()),
            "this is a defect of numa: report it with the output of 'numa topo --json'",
        ));
    }
    let wanted = way.only.as_ref().map(|nodes| nodes.iter().map(|&node| machine.id(node)).collect());
    let mut memories = Memories::of(&machine, request, wanted)?;
    let reasons = Reasons::of(&machine, request, amount, &dealt, &way.devices);
    let steps = steps(&machine, &pool.may, request, amount, &dealt, &mut memories, &reasons);
    let held: CpuSet =
        dealt.spots.iter().flat_map(|&at| machine.spots[at as usize].pus.iter().copied()).collect();
    let mut warnings = chosen.warnings;
    warnings.extend(why::warnings(&machine, amount, &dealt, &free));
    warnings.extend(crowded::warnings(&machine, request, amount, &dealt, &free));
    warnings.extend(memories.warnings());
    warnings.extend(idle_nodes(&machine, request, &way, &steps));
    warnings.extend(pool.remarks(&held));
    warnings.extend(quota::warning(topology, request, amount, pool.count()));
    let explanation = why::explanation(&machine, request, amount, &dealt, &all.nodes());
    Ok((Plan { machine: topology.origin.clone(), steps, held, warnings }, explanation))
}

fn way(
    machine: &Machine<'_>,
    request: &PlacementRequest,
    all: &Deal<'_>,
    amount: Amount,
) -> Result<Way, PlanError> {
    let plain = |order| Way { order, only: None, devices: Vec::new() };
    let at = |name: &str| -> Result<usize, PlanError> {
        let (_, node) = devices::find(machine.topology, name)?;
        Ok(machine.topology.nodes.iter().position(|n| n.os_index == node).unwrap_or(0))
    };
    Ok(match &request.policy {
        // Which cores is decided already; what is left is to keep processes together.
        CorePolicy::Compact | CorePolicy::Spread(_) => plain(Order::Nearest),
        CorePolicy::Scatter => plain(Order::Turns),
        CorePolicy::Balanced => plain(Order::Even),
        CorePolicy::Memory(bytes) => {
            let nodes = capacity::nodes(machine, &all.nodes(), *bytes, amount.all_cores())?;
            Way { only: Some(nodes), ..plain(Order::Even) }
        }
        CorePolicy::Near(name) => {
            let names = devices::of_processes(name, amount.processes);
            let devices = names.iter().map(|name| at(name)).collect::<Result<Vec<_>, _>>()?;
            Way {
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
    dealt: &Dealt,
    memories: &mut Memories<'_>,
    reasons: &Reasons,
) -> Vec<Step> {
    let width = request.threads_per_core as usize;
    let mut steps = Vec::with_capacity((amount.processes * amount.threads) as usize);
    for (process, spots) in dealt.spots.chunks(amount.cores as usize).enumerate() {
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
            // A core lies in one node, except where the kernel says otherwise.
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

/// Nodes that were chosen for their memory and run no thread.
fn idle_nodes(
    machine: &Machine<'_>,
    request: &PlacementRequest,
    way: &Way,
    steps: &[Step],
) -> Option<String> {
    let wanted: CpuSet = way.only.as_ref()?.iter().map(|&node| machine.id(node)).collect();
    let idle = wanted.minus(&steps.iter().map(|step| step.node).collect());
    if idle.is_empty() || request.memory.mode != numakit_model::plan::Mode::Local {
        return None;
    }
    Some(format!(
        "nodes {idle} are needed for their memory and run no thread: take --memory interleave:{wanted}, or more \
         threads"
    ))
}
