//! What a program is started with, put together from its plan.

use crate::{Environment, EnvironmentChange, LaunchError, Obstacle, Program, RunOptions, ranks};
use numakit_model::plan::{Memory, Mode, Plan};
use numakit_model::{CpuSet, Topology};
use numakit_sys::huge_pages::{HugePages, Setting};
use numakit_sys::permissions::{Permission, Permissions};
use numakit_sys::policy::MemoryPolicy;
use numakit_sys::start::PreparedCommand;
use std::ffi::OsString;
use std::fmt::Write;
use std::io;
use std::os::fd::RawFd;
use std::path::Path;

/// Makes malloc of glibc ask for huge pages.
const TUNABLES: &str = "GLIBC_TUNABLES";
const MALLOC_ASKS: &str = "glibc.malloc.hugetlb=1";

/// Says to the library which process the launcher started.
const PROCESS: &str = "NUMA_PROCESS";

/// What a sanitizer is asked by: options that are parted by colons.
const SANITIZER: &str = "ASAN_OPTIONS";
/// It need not be the first library.
const NEED_NOT_BE_FIRST: (&str, &str) = ("verify_asan_link_order", "verify_asan_link_order=0");

/// A program and what it is to get.
#[derive(Debug, Clone, Copy)]
pub struct CommandRequest<'a> {
    /// The program and its arguments, as the caller wrote them.
    pub words: &'a [OsString],
    /// What the first word stands for.
    pub program: &'a Program,
    /// Its cores and memory.
    pub plan: &'a Plan,
    /// The machine that the plan is for.
    pub topology: &'a Topology,
    /// What else.
    pub options: &'a RunOptions,
    /// The machine's setting of huge pages.
    pub setting: Option<Setting>,
    /// What this process may do.
    pub permissions: &'a Permissions,
    /// The library that binds threads as they come.
    pub library: &'a Path,
    /// The descriptor that holds the cores; none where they are shared.
    pub hold: Option<RawFd>,
}

/// A program that is ready to be started.
#[derive(Debug)]
pub struct ExplainedCommand {
    /// Everything for the start.
    pub start: PreparedCommand,
    /// What is not as the caller has it in the environment.
    pub changes: Vec<EnvironmentChange>,
    /// What cannot be done for this program, for people; one line.
    pub note: Option<String>,
    /// What `-v` tells beside the changes.
    pub told: Vec<String>,
}

impl ExplainedCommand {
    /// Puts everything together. The kernel is asked whether it takes the memory policy;
    /// nothing else happens yet.
    pub fn new(job: &CommandRequest<'_>, mut environment: Environment) -> Result<Self, LaunchError> {
        let (wanted, policy) = job.memory()?;
        job.open_mp(&mut environment);
        job.huge_pages(&mut environment);
        let cpus = job.plan.cpus();
        if job.program.is_go() {
            environment.suggest("GOMAXPROCS", cpus.len().to_string());
        }
        let obstacle = job.program.obstacle.as_ref();
        if obstacle.is_none_or(Obstacle::passes_on) {
            job.library(&wanted, &mut environment);
        } else {
            environment.forget_preload();
        }
        let begin = policy.map(|policy| if obstacle.is_none() { job.first_node(&policy) } else { policy });
        let mut told = vec![format!(
            "{} of {} on CPUs {}, in this order; the program may use CPUs {cpus}",
            count(job.plan.steps.len(), "thread"),
            count(job.plan.processes().count(), "process"),
            order(job.plan),
        )];
        if obstacle.is_none() {
            told.push(format!("preloads {}", job.library.display()));
        }
        told.push(format!("memory: {}{}", describe(&wanted), job.road()));
        let start = PreparedCommand {
            file: job.program.file.clone(),
            words: job.words.to_vec(),
            first: job.plan.steps.first().map(|step| CpuSet::range(step.cpu, step.cpu)),
            cpus: Some(cpus),
            descriptor: job.hold,
            memory: begin,
            process_variable: obstacle.is_none().then_some(PROCESS),
            scheduler: job.options.scheduler,
            timer_slack: job.options.timer_slack,
            huge_pages: job.options.huge_pages,
            stack: job.options.stack,
            cgroup: None,
            tag: None,
            environment: Vec::new(),
        };
        let changes = environment.changes().to_vec();
        let note = obstacle.map(|obstacle| job.note(obstacle, &wanted));
        let start = PreparedCommand { environment: environment.into_variables(), ..start };
        Ok(Self { start, changes, note, told })
    }
}

impl CommandRequest<'_> {
    /// The memory that the program gets, and the policy for it: none where policies are refused, which
    /// local memory does not need.
    fn memory(&self) -> Result<(Memory, Option<MemoryPolicy>), LaunchError> {
        let wanted = memory(self.plan);
        let policy = MemoryPolicy::of(&wanted);
        match self.permissions.check(Permission::Policies) {
            Ok(()) => match policy.attempt() {
                Ok(()) => Ok((wanted, Some(policy))),
                Err(error) => Err(refused(&wanted, error)),
            },
            Err(_) if wanted.mode == Mode::Local || self.options.memory_try => Ok((Memory::default(), None)),
            Err(refusal) => Err(LaunchError::PoliciesRefused {
                policy: describe(&wanted),
                refuser: refusal.refuser.clone(),
                runtime: self.permissions.surroundings.runtime.clone(),
                fix: refusal.fix.clone(),
            }),
        }
    }

    /// How memory gets to its nodes where that is not the policy.
    fn road(&self) -> String {
        match self.permissions.check(Permission::Policies) {
            Ok(()) => String::new(),
            Err(refusal) => format!(", by {} ({refusal})", Permission::Policies.substitute()),
        }
    }

    /// OpenMP binds its threads itself, so it is told the same order.
    fn open_mp(&self, environment: &mut Environment) {
        environment.unset_binding();
        let processes = self.plan.processes().count().max(1);
        if processes == 1 {
            let places: Vec<String> =
                self.plan.steps.iter().map(|step| format!("{{{}}}", step.cpu)).collect();
            environment.set("OMP_PLACES", places.join(","));
            // Without it, as many threads as the mask has CPUs.
            environment.keep("OMP_NUM_THREADS");
        } else {
            // Who starts the processes gives each its part of the mask, and this holds in it.
            let threads = self.plan.steps.len() / processes;
            let per_core = self.plan.cpus().len() > cores_of(self.topology, &self.plan.cpus());
            environment.suggest("OMP_NUM_THREADS", threads.to_string());
            environment.set("OMP_PLACES", if per_core { "threads" } else { "cores" });
        }
        environment.set("OMP_PROC_BIND", "close");
        if !self.options.shared {
            environment.suggest("OMP_WAIT_POLICY", "ACTIVE");
        }
        if let Some(stack) = self.options.stack {
            environment.suggest("OMP_STACKSIZE", format!("{}K", stack >> 10));
        }
    }

    /// Where the machine gives huge pages only to memory that asks, malloc is told to ask.
    fn huge_pages(&self, environment: &mut Environment) {
        if self.options.huge_pages != Some(HugePages::On) || self.setting != Some(Setting::Advised) {
            return;
        }
        environment.add(TUNABLES, "glibc.malloc.hugetlb", MALLOC_ASKS);
    }

    /// What the library reads.
    fn library(&self, wanted: &Memory, environment: &mut Environment) {
        let mask = self.plan.cpus();
        let mut nodes = String::new();
        for node in &self.topology.nodes {
            let cpus = node.cpus.and(&mask);
            if !cpus.is_empty() {
                // Writing to a string cannot fail.
                let _ = write!(nodes, "{}{}:{cpus}", if nodes.is_empty() { "" } else { ";" }, node.os_index);
            }
        }
        environment.set("NUMA_PLACE", order(self.plan));
        environment.set("NUMA_MASK", mask.to_string());
        environment.set("NUMA_NODES", nodes);
        environment.set(
            "NUMA_MEMORY",
            match wanted.mode {
                Mode::Local => "default".to_owned(),
                mode => format!("{mode}:{}", wanted.nodes),
            },
        );
        if let Some(hold) = self.hold {
            environment.set("NUMA_HOLD", hold.to_string());
        }
        if self.options.verbose {
            environment.set("NUMA_VERBOSE", "1");
        }
        if self.options.alone {
            environment.set("NUMA_INHERIT", "0");
        }
        if self.options.main_is_free {
            environment.set("NUMA_MAIN", "0");
        }
        // With one core there is nothing to divide; alone, the library is not in ranks.
        if mask.len() > 1 && !self.options.alone {
            ranks::divide(self.words, environment);
        }
        // The library asks it too, where the program does not answer for itself.
        if self.program.sanitized {
            let (option, value) = NEED_NOT_BE_FIRST;
            environment.add(SANITIZER, option, value);
        }
        environment.preload(self.library);
    }

    /// Until the library is there to restore the wanted policy, memory comes from the node of
    /// the main thread, wherever exec runs.
    fn first_node(&self, wanted: &MemoryPolicy) -> MemoryPolicy {
        let node = self.plan.steps.first().and_then(|step| self.topology.node(step.node));
        let has_memory = |node: &u32| {
            let policy = MemoryPolicy::preferred(*node);
            policy.attempt().is_ok()
        };
        let node = node.filter(|node| !node.implicit).map(|node| node.os_index).filter(has_memory);
        node.map_or_else(|| wanted.clone(), MemoryPolicy::preferred)
    }

    /// What cannot be done for this program.
    fn note(&self, obstacle: &Obstacle, wanted: &Memory) -> String {
        let go = if self.program.is_go() { ", with GOMAXPROCS for as many threads" } else { "" };
        format!(
            "{} {obstacle}: its threads are not bound one by one and their stacks are not placed; \
             it runs on CPUs {}{go}, memory {}",
            self.program.name().display(),
            self.plan.cpus(),
            describe(wanted),
        )
    }
}

/// The memory that the whole program uses.
pub(crate) fn memory(plan: &Plan) -> Memory {
    let mode = plan.steps.first().map(|step| step.memory.mode).unwrap_or_default();
    let nodes = plan.steps.iter().fold(CpuSet::new(), |all, step| all.or(&step.memory.nodes));
    Memory { mode, nodes }
}

pub(crate) fn describe(memory: &Memory) -> String {
    match memory.mode {
        Mode::Local => "local to each thread".to_owned(),
        mode => format!("{mode}:{}", memory.nodes),
    }
}

/// CPUs in the order of threads, runs as ranges: `0-2,5`.
pub(crate) fn order(plan: &Plan) -> String {
    let mut text = String::new();
    let mut cpus = plan.steps.iter().map(|step| step.cpu).peekable();
    while let Some(first) = cpus.next() {
        let mut last = first;
        while cpus.next_if_eq(&(last + 1)).is_some() {
            last += 1;
        }
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = match last == first {
            true => write!(text, "{comma}{first}"),
            false => write!(text, "{comma}{first}-{last}"),
        };
    }
    text
}

fn count(number: usize, what: &str) -> String {
    let plural = match (number, what.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{number} {what}{plural}")
}

/// How many cores these CPUs are on.
fn cores_of(topology: &Topology, cpus: &CpuSet) -> usize {
    topology.cores.iter().filter(|core| core.cpus.intersects(cpus)).count()
}

fn refused(wanted: &Memory, error: io::Error) -> LaunchError {
    let fix = match wanted.mode {
        Mode::Weighted => "Linux has it since 6.9; use interleave",
        Mode::Prefer if wanted.nodes.len() > 1 => "Linux has it since 5.15; give one node",
        _ => "name nodes that have memory and that this process may use: 'numa topo' shows them",
    };
    LaunchError::Memory { policy: describe(wanted), error, fix }
}

#[cfg(test)]
mod tests;
