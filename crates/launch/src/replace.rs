//! Placing a process that runs already: its threads, and the memory that it has.

use crate::begin::BeginError;
use crate::choice::{CoreSelector, ExplainedPlan};
use crate::launch::memory;
use numakit_model::plan::{Mode, Plan};
use numakit_model::{CpuSet, Topology};
use numakit_registry::limits::CoreLimits;
use numakit_registry::{HolderInfo, Registry, RegistryError, RegistryView, look};
use numakit_sys::SysRoot;
use numakit_sys::migrate::{move_process, move_range};
use numakit_sys::proc::{TaskDir, maps};
use numakit_sys::sched::set_affinity_of;
use std::io;
use thiserror::Error;

/// So much of a thread's stack is moved at most, from where it stands.
const STACK: u64 = 256 << 10;
/// A process that makes threads while it is placed is looked at again so often.
const ROUNDS: usize = 10;
/// What the kernel says of a process that is not there.
const GONE: i32 = 3;

/// Why a process was not placed.
#[derive(Debug, Error)]
pub enum ReplaceError {
    /// It is not there.
    #[error("there is no process {0}; 'numa tasks' lists those that there are")]
    Gone(u32),
    /// It belongs to somebody else.
    #[error("process {pid} cannot be placed: {error}; run as its user or as root")]
    Refused {
        /// Its number.
        pid: u32,
        /// What the kernel said.
        error: io::Error,
    },
}

/// What became of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replaced {
    /// Its threads with their CPUs, in order.
    pub bound: Vec<(u32, u32)>,
    /// Threads for which the plan has no CPU of their own; they may use all.
    pub free: Vec<u32>,
    /// The nodes that its memory is to be on.
    pub nodes: CpuSet,
    /// Pages that the kernel did not move.
    pub left: u64,
    /// Pages of stacks that went to the nodes of their threads.
    pub stacks: u64,
    /// What could not be done, for people.
    pub failures: Vec<String>,
}

/// Chooses cores for a process that runs already, and places it there. They are taken only until
/// its threads are bound, which is what others see from then on. A process that holds cores stays
/// on them.
pub fn choose(
    root: &SysRoot,
    pid: u32,
    choice: &CoreSelector<'_>,
    shared: bool,
) -> Result<(ExplainedPlan, Replaced), BeginError> {
    if !TaskDir::of(root, pid).exists() {
        return Err(ReplaceError::Gone(pid).into());
    }
    let seen = look().map_err(RegistryError::from)?;
    let own = seen.holdings.iter().find(|holding| holding.pid() == Some(pid));
    let without = |seen: &RegistryView| {
        let mut seen = seen.clone();
        seen.holdings.retain(|holding| holding.pid() != Some(pid));
        seen.bound.retain(|bound| bound.pid != pid);
        seen
    };
    let place = |outcome: &ExplainedPlan| replace(root, pid, &outcome.plan, choice.topology);
    if let Some(own) = own {
        let allowed = choice.topology.allowed.and(&own.cpus);
        let topology = Topology { allowed, ..choice.topology.clone() };
        let outcome = CoreSelector { topology: &topology, ..choice.clone() }.share(&without(&seen))?;
        let replaced = place(&outcome)?;
        return Ok((outcome, replaced));
    }
    if shared {
        let outcome = choice.share(&without(&seen))?;
        let replaced = place(&outcome)?;
        return Ok((outcome, replaced));
    }
    let about = HolderInfo { application: format!("process {pid}, being placed") };
    let limits = CoreLimits::of_this_machine()?;
    let choose = |seen: &RegistryView| choice.choose(&without(seen));
    let (held, mut outcome) = Registry::open()?.take(&about, &limits, choose)?;
    outcome.plan.warnings.extend(limits.warning().map(str::to_owned));
    let replaced = place(&outcome);
    held.give_back();
    Ok((outcome, replaced?))
}

/// Binds the threads of a process in the order in which they were made, and moves its memory
/// to the nodes of the plan.
pub fn replace(root: &SysRoot, pid: u32, plan: &Plan, topology: &Topology) -> Result<Replaced, ReplaceError> {
    let mut replaced = Replaced::default();
    bind(root, pid, plan, &mut replaced)?;
    let wanted = memory(plan);
    replaced.nodes = match wanted.mode {
        Mode::Local => plan.nodes(),
        _ => wanted.nodes,
    };
    let elsewhere = topology.node_ids().minus(&replaced.nodes);
    if !elsewhere.is_empty() {
        match move_process(pid, &elsewhere, &replaced.nodes) {
            Ok(left) => replaced.left = left,
            Err(error) => replaced.failures.push(format!("its memory stays where it is: {error}")),
        }
    }
    if wanted.mode == Mode::Local && replaced.nodes.len() > 1 {
        stacks(root, pid, plan, &mut replaced);
    }
    if wanted.mode != Mode::Local {
        let text =
            "what it allocates from now on follows its own memory policy, which nobody else can change";
        replaced.failures.push(text.to_owned());
    }
    Ok(replaced)
}

fn bind(root: &SysRoot, pid: u32, plan: &Plan, replaced: &mut Replaced) -> Result<(), ReplaceError> {
    let all = plan.cpus();
    let mut seen = CpuSet::new();
    for _ in 0..ROUNDS {
        let threads = TaskDir::of(root, pid).threads().ok().filter(|threads| !threads.is_empty());
        let threads = threads.ok_or(ReplaceError::Gone(pid))?;
        let fresh: Vec<u32> = threads.into_iter().filter(|&thread| !seen.contains(thread)).collect();
        if fresh.is_empty() {
            return Ok(());
        }
        for thread in fresh {
            seen.insert(thread);
            let step = plan.steps.get(replaced.bound.len());
            let one = step.map(|step| CpuSet::range(step.cpu, step.cpu));
            match (set_affinity_of(thread, one.as_ref().unwrap_or(&all)), step) {
                (Ok(()), Some(step)) => replaced.bound.push((thread, step.cpu)),
                (Ok(()), None) => replaced.free.push(thread),
                // It ended meanwhile.
                (Err(error), _) if error.raw_os_error() == Some(GONE) => {}
                (Err(error), _) => return Err(ReplaceError::Refused { pid, error }),
            }
        }
    }
    replaced.failures.push("it makes threads faster than they can be placed".to_owned());
    Ok(())
}

/// Moves what threads use of their stacks to their nodes.
fn stacks(root: &SysRoot, pid: u32, plan: &Plan, replaced: &mut Replaced) {
    let process = TaskDir::of(root, pid);
    let Ok(maps) = process.text("maps") else {
        replaced.failures.push("its stacks stay where they are: its memory may not be looked at".to_owned());
        return;
    };
    let mut unknown = 0;
    for (at, (thread, _)) in replaced.bound.iter().enumerate() {
        let pointer = maps::stack_pointer(&process.thread(*thread));
        let place = pointer.and_then(|pointer| Some((pointer, maps::mapping_of(&maps, pointer)?.end)));
        let (Some((pointer, end)), Some(step)) = (place, plan.steps.get(at)) else {
            unknown += 1;
            continue;
        };
        if let Ok(moved) = move_range(pid, pointer, end.min(pointer.saturating_add(STACK)), step.node) {
            replaced.stacks += moved.moved;
            replaced.left += moved.left;
        }
    }
    if unknown > 0 {
        replaced.failures.push(format!(
            "{unknown} of its threads were running, so where they stand in their stacks is not known; \
             these stacks went with the other memory"
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
    fn a_running_process_is_bound() {
        let cpu = numakit_sys::sched::affinity().unwrap().last().unwrap();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let host = SysRoot::host();
        let replaced = replace(&host, child.id(), &plan(&[cpu]), &Topology::default());
        let status = TaskDir::of(&host, child.id()).status().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(replaced.unwrap().bound, [(child.id(), cpu)]);
        assert_eq!(status.allowed_cpus(), Some(CpuSet::range(cpu, cpu)), "{status:?}");
        let gone = replace(&host, u32::MAX >> 2, &plan(&[cpu]), &Topology::default());
        assert!(matches!(gone, Err(ReplaceError::Gone(_))));
    }
}
