//! Binds the threads of a running process, and moves its memory.

use crate::command::memory;
use crate::limits::CoreLimits;
use crate::prepare::StartError;
use crate::selector::{CoreSelector, ExplainedPlan};
use numakit_model::plan::{Mode, Plan};
use numakit_model::{CpuSet, Topology};
use numakit_registry::{HolderInfo, Registry, RegistryError, RegistryView, inspect};
use numakit_sys::SysRoot;
use numakit_sys::migrate::{move_process, move_range};
use numakit_sys::proc::{TaskDir, maps};
use numakit_sys::sched::set_affinity_of;
use std::collections::BTreeMap;
use std::io;
use thiserror::Error;

/// How much of a thread's stack is moved, from its stack pointer.
const STACK: u64 = 256 << 10;
/// Rounds for threads that are created meanwhile.
const MAX_ROUNDS: usize = 10;
/// The error for a process that does not exist.
const ESRCH: i32 = 3;

/// Why a process was not bound.
#[derive(Debug, Error)]
pub enum RebindError {
    /// There is no such process.
    #[error("there is no process {0}; 'numa top --once' lists processes")]
    NoProcess(u32),
    /// The process belongs to another user.
    #[error("process {pid} cannot be bound: {error}; run as its user or as root")]
    Refused {
        /// The PID.
        pid: u32,
        /// The kernel's error.
        error: io::Error,
    },
}

/// What was bound and moved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RebindReport {
    /// Its threads with their CPUs, in order.
    pub bound: Vec<(u32, u32)>,
    /// Threads beyond those of the plan, which may run on all its CPUs.
    pub unbound: Vec<u32>,
    /// The nodes for its memory.
    pub nodes: CpuSet,
    /// Pages that the kernel did not move.
    pub left: u64,
    /// Pages of stacks that were moved to the nodes of their threads.
    pub stacks: u64,
    /// What failed, as sentences.
    pub failures: Vec<String>,
}

/// Selects cores for a running process and binds it to them. The cores are reserved only until its threads are bound: from
/// then on, other programs see it as a bound process. A process that holds cores already stays on them.
pub fn select_and_bind(
    root: &SysRoot,
    pid: u32,
    selector: &CoreSelector<'_>,
    shared: bool,
) -> Result<(ExplainedPlan, RebindReport), StartError> {
    if !TaskDir::of(root, pid).exists() {
        return Err(RebindError::NoProcess(pid).into());
    }
    let view = inspect().map_err(RegistryError::from)?;
    let own = view.holdings.iter().find(|holding| holding.pid() == Some(pid));
    let without_process = |view: &RegistryView| {
        let mut view = view.clone();
        view.holdings.retain(|holding| holding.pid() != Some(pid));
        view.bound.retain(|bound| bound.pid != pid);
        view
    };
    let rebind = |plan: &ExplainedPlan| rebind(root, pid, &plan.plan, selector.topology);
    if own.is_some() || shared {
        let within = own.map_or(&selector.topology.allowed, |own| &own.cpus);
        let allowed = selector.topology.allowed.and(within);
        let topology = Topology { allowed, ..selector.topology.clone() };
        let selector = CoreSelector { topology: &topology, ..selector.clone() };
        let plan = selector.select_shared(&without_process(&view))?;
        let report = rebind(&plan)?;
        return Ok((plan, report));
    }
    let info = HolderInfo { application: format!("process {pid}, being bound") };
    let limits = CoreLimits::of_this_machine()?;
    let select = |view: &RegistryView| -> Result<_, StartError> {
        let selected = selector.select(&without_process(view))?;
        limits.check(&view.holdings, selected.cores)?;
        Ok(selected)
    };
    let (reservation, mut plan) = Registry::open()?.take(&info, select)?;
    plan.plan.warnings.extend(limits.warning().map(str::to_owned));
    let report = rebind(&plan);
    reservation.release();
    Ok((plan, report?))
}

/// Counts the memory of a process as free, in bytes by node: it moves with the process.
pub fn count_as_free(topology: &mut Topology, memory: &BTreeMap<u32, u64>) {
    for node in &mut topology.nodes {
        let own = memory.get(&node.os_index).map_or(0, |bytes| bytes / 1024);
        node.free_kb = node.free_kb.map(|free| free.saturating_add(own));
    }
}

/// Binds the threads of a process in the order in which they were created, and moves its memory
/// to the nodes of the plan.
pub fn rebind(
    root: &SysRoot,
    pid: u32,
    plan: &Plan,
    topology: &Topology,
) -> Result<RebindReport, RebindError> {
    let mut report = RebindReport::default();
    bind(root, pid, plan, &mut report)?;
    let wanted = memory(plan);
    report.nodes = match wanted.mode {
        Mode::Local => plan.nodes(),
        _ => wanted.nodes,
    };
    let elsewhere = topology.node_ids().minus(&report.nodes);
    if !elsewhere.is_empty() {
        match move_process(pid, &elsewhere, &report.nodes) {
            Ok(left) => report.left = left,
            Err(error) => report.failures.push(format!("its memory was not moved: {error}")),
        }
    }
    if wanted.mode == Mode::Local && report.nodes.len() > 1 {
        stacks(root, pid, plan, &mut report);
    }
    if wanted.mode != Mode::Local {
        let text = "new memory follows the process's own memory policy, which another process cannot change";
        report.failures.push(text.to_owned());
    }
    Ok(report)
}

fn bind(root: &SysRoot, pid: u32, plan: &Plan, report: &mut RebindReport) -> Result<(), RebindError> {
    let all = plan.cpus();
    let mut seen = CpuSet::new();
    for _ in 0..MAX_ROUNDS {
        let threads = TaskDir::of(root, pid).threads().ok().filter(|threads| !threads.is_empty());
        let threads = threads.ok_or(RebindError::NoProcess(pid))?;
        let fresh: Vec<u32> = threads.into_iter().filter(|&thread| !seen.contains(thread)).collect();
        if fresh.is_empty() {
            return Ok(());
        }
        for thread in fresh {
            seen.insert(thread);
            let step = plan.steps.get(report.bound.len());
            let one = step.map(|step| CpuSet::range(step.cpu, step.cpu));
            match (set_affinity_of(thread, one.as_ref().unwrap_or(&all)), step) {
                (Ok(()), Some(step)) => report.bound.push((thread, step.cpu)),
                (Ok(()), None) => report.unbound.push(thread),
                // The thread ended since it was listed.
                (Err(error), _) if error.raw_os_error() == Some(ESRCH) => {}
                (Err(error), _) => return Err(RebindError::Refused { pid, error }),
            }
        }
    }
    report.failures.push("it creates threads faster than they can be bound".to_owned());
    Ok(())
}

/// Moves the used parts of stacks to the nodes of their threads.
fn stacks(root: &SysRoot, pid: u32, plan: &Plan, report: &mut RebindReport) {
    let process = TaskDir::of(root, pid);
    let Ok(maps) = process.text("maps") else {
        report.failures.push("its stacks were not moved: /proc/PID/maps cannot be read".to_owned());
        return;
    };
    let mut unknown = 0;
    for (at, (thread, _)) in report.bound.iter().enumerate() {
        let pointer = maps::stack_pointer(&process.thread(*thread));
        let range = pointer.and_then(|pointer| Some((pointer, maps::mapping_of(&maps, pointer)?.end)));
        let (Some((pointer, end)), Some(step)) = (range, plan.steps.get(at)) else {
            unknown += 1;
            continue;
        };
        if let Ok(moved) = move_range(pid, pointer, end.min(pointer.saturating_add(STACK)), step.node) {
            report.stacks += moved.moved;
            report.left += moved.left;
        }
    }
    if unknown > 0 {
        report.failures.push(format!(
            "{unknown} of its threads were running, so their stack pointers are unknown; \
             these stacks were moved with the other memory"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_model::plan::{Memory, Step};
    use std::process::Command;

    fn plan(cpus: &[u32]) -> Plan {
        let steps = cpus.iter().zip(0..).map(|(&cpu, thread)| Step {
            process: 0,
            thread,
            cpu,
            node: 0,
            memory: Memory::default(),
            because: String::new(),
        });
        Plan { steps: steps.collect(), ..Plan::default() }
    }

    #[test]
    fn the_memory_of_a_process_does_not_make_its_node_full() {
        let mut topology = crate::test_topology::topology();
        let node = &mut topology.nodes[0];
        (node.memory_kb, node.free_kb) = (Some(96 << 20), Some(400 << 10));
        let first = topology.nodes[0].os_index;
        count_as_free(&mut topology, &BTreeMap::from([(first, 90 << 30), (77, 1 << 30)]));
        assert_eq!(topology.nodes[0].free_kb, Some((90 << 20) + (400 << 10)));
    }

    #[test]
    fn a_running_process_is_bound() {
        let cpu = numakit_sys::sched::affinity().unwrap().last().unwrap();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let host = SysRoot::host();
        let report = rebind(&host, child.id(), &plan(&[cpu]), &Topology::default());
        let status = TaskDir::of(&host, child.id()).status().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(report.unwrap().bound, [(child.id(), cpu)]);
        assert_eq!(status.allowed_cpus(), Some(CpuSet::range(cpu, cpu)), "{status:?}");
        let missing = rebind(&host, u32::MAX >> 2, &plan(&[cpu]), &Topology::default());
        assert!(matches!(missing, Err(RebindError::NoProcess(_))));
    }
}
