//! Prepares the command of a program from its plan.

use crate::apply::AppliedCure;
use crate::file_kind::Sanitizer;
use crate::{Environment, EnvironmentChange, LaunchError, Obstacle, Program, RunOptions, ranks};
use numakit_cure::{CoreOrder, NoOrder};
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

/// Makes glibc's malloc call madvise for huge pages.
const TUNABLES: &str = "GLIBC_TUNABLES";
/// The profile that keeps memory on nodes.
const BY_NODE: &str = "numa";
const MALLOC_HUGE_PAGES: &str = "glibc.malloc.hugetlb=1";

/// Whether threads of OpenMP that wait keep their CPUs.
const WAIT_POLICY: &str = "OMP_WAIT_POLICY";

/// Names the process that the launcher started, for the library.
const PROCESS: &str = "NUMA_PROCESS";

/// The options of AddressSanitizer, separated by colons.
const SANITIZER: &str = "ASAN_OPTIONS";
/// The option of AddressSanitizer that turns off its check that it is the first library.
const NEED_NOT_BE_FIRST: &str = "verify_asan_link_order=0";

/// A program with its plan and options.
#[derive(Debug, Clone, Copy)]
pub struct CommandRequest<'a> {
    /// The program and its arguments, as the caller wrote them.
    pub words: &'a [OsString],
    /// The program's file and kind.
    pub program: &'a Program,
    /// Its cores and memory.
    pub plan: &'a Plan,
    /// Whether other programs use these cores without a reservation.
    pub is_crowded: bool,
    /// The machine that the plan is for.
    pub topology: &'a Topology,
    /// Other options.
    pub options: &'a RunOptions,
    /// The machine's setting of huge pages.
    pub setting: Option<Setting>,
    /// The permissions of this process.
    pub permissions: &'a Permissions,
    /// The library that binds threads when they are created.
    pub library: &'a Path,
    /// The descriptor of the locks; none if the cores are shared.
    pub lock_descriptor: Option<RawFd>,
    /// The cores of threads that share data by the cure, in whose order the plan is.
    pub order: Option<&'a Result<CoreOrder, NoOrder>>,
}

/// A prepared command with explanations for the user.
#[derive(Debug)]
pub struct ExplainedCommand {
    /// The command.
    pub prepared: PreparedCommand,
    /// Changes of the environment.
    pub changes: Vec<EnvironmentChange>,
    /// What placement or the allocator cannot do for this program; a line each.
    pub notes: Vec<String>,
    /// Messages of `-v`, in addition to the changes.
    pub messages: Vec<String>,
    /// The cure, if the program or those that it starts can load its library.
    pub cure: Option<AppliedCure>,
}

impl ExplainedCommand {
    /// Prepares the command. Nothing is started; only the kernel is asked whether it accepts the memory policy.
    pub fn new(request: &CommandRequest<'_>, mut environment: Environment) -> Result<Self, LaunchError> {
        let (wanted, policy) = request.memory()?;
        let waiting = request.open_mp(&mut environment);
        request.huge_pages(&mut environment);
        let cpus = request.plan.cpus();
        if request.program.is_go() {
            environment.set_default("GOMAXPROCS", cpus.len().to_string());
        }
        let obstacle = request.program.obstacle.as_ref();
        let allocator = request.allocator(obstacle, &mut environment);
        let (cure, refused_cure) = request.cure(obstacle, &mut environment)?;
        let loops = request.loops(&mut environment);
        let unobserved = request.mpi(obstacle, &mut environment);
        if obstacle.is_none_or(Obstacle::allows_children) {
            request.library(&wanted, &mut environment);
        } else {
            environment.remove_preload();
        }
        let begin =
            policy.map(|policy| if obstacle.is_none() { request.first_node(&policy) } else { policy });
        let mut messages = vec![format!(
            "{} of {} on CPUs {}, in this order; the program may use CPUs {cpus}",
            count(request.plan.steps.len(), "thread"),
            count(request.plan.processes().count(), "process"),
            order(request.plan),
        )];
        if obstacle.is_none() {
            messages.push(format!("preloads {}", request.library.display()));
        }
        messages.extend(waiting);
        messages.extend(allocator);
        messages.push(format!("memory: {}{}", describe(&wanted), request.substitute()));
        let prepared = PreparedCommand {
            file: request.program.file.clone(),
            words: request.words.to_vec(),
            first: request.plan.steps.first().map(|step| CpuSet::range(step.cpu, step.cpu)),
            cpus: Some(cpus),
            descriptor: request.lock_descriptor,
            memory: begin,
            process_variable: obstacle.is_none().then_some(PROCESS),
            scheduler: request.options.scheduler,
            timer_slack: request.options.timer_slack,
            huge_pages: request.options.huge_pages,
            stack: request.options.stack,
            cgroup: None,
            tag: None,
            environment: Vec::new(),
        };
        let changes = environment.changes().to_vec();
        let note = obstacle.map(|obstacle| request.note(obstacle, &wanted));
        let notes = note
            .into_iter()
            .chain(request.allocator_note(&wanted))
            .chain(refused_cure)
            .chain(loops)
            .chain(unobserved)
            .collect();
        let prepared = PreparedCommand { environment: environment.into_variables(), ..prepared };
        Ok(Self { prepared, changes, notes, messages, cure })
    }
}

impl CommandRequest<'_> {
    /// The program's memory and the policy for it; no policy if policies are refused, which local
    /// memory does not need.
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
                refusal: Box::new(refusal.clone()),
                runtime: self.permissions.surroundings.runtime.clone(),
            }),
        }
    }

    /// How memory gets to its nodes where memory policies are refused.
    fn substitute(&self) -> String {
        match self.permissions.check(Permission::Policies) {
            Ok(()) => String::new(),
            Err(refusal) => format!(", by {} ({refusal})", Permission::Policies.substitute()),
        }
    }

    /// Gives OpenMP the plan's order of CPUs, since OpenMP binds its threads without the library. Returns a text for `-v`.
    fn open_mp(&self, environment: &mut Environment) -> Option<String> {
        environment.unset_bindings();
        let processes = self.plan.processes().count().max(1);
        if processes == 1 {
            let places: Vec<String> =
                self.plan.steps.iter().map(|step| format!("{{{}}}", step.cpu)).collect();
            environment.set("OMP_PLACES", places.join(","));
            // If it is unset, OpenMP starts as many threads as the mask has CPUs.
            environment.report_kept("OMP_NUM_THREADS");
        } else {
            // The process that starts the others gives each a part of the mask, in which this applies.
            let threads = self.plan.steps.len() / processes;
            let per_core = self.plan.cpus().len() > cores_of(self.topology, &self.plan.cpus());
            environment.set_default("OMP_NUM_THREADS", threads.to_string());
            environment.set("OMP_PLACES", if per_core { "threads" } else { "cores" });
        }
        environment.set("OMP_PROC_BIND", "close");
        if let Some(stack) = self.options.stack {
            environment.set_default("OMP_STACKSIZE", format!("{}K", stack >> 10));
        }
        let needed = self.needs_cpus(processes, environment);
        let is_set = environment.get(WAIT_POLICY).is_some();
        if !self.options.shared {
            environment.set_default(WAIT_POLICY, if needed.is_some() { "PASSIVE" } else { "ACTIVE" });
        }
        needed.filter(|_| !is_set).map(|who| format!("threads of OpenMP that wait sleep: {who}"))
    }

    /// Who needs the CPUs on which threads of OpenMP would wait in loops; `None` if nobody does, or they are shared, as the user
    /// wants it. Unset, gcc's OpenMP waits in loops for longer than a turn on a CPU takes.
    fn needs_cpus(&self, processes: usize, environment: &Environment) -> Option<String> {
        if self.options.shared {
            return None;
        }
        if self.is_crowded {
            return Some("other programs use the CPUs".to_owned());
        }
        // The first number is that of threads outside of other regions.
        let threads = environment.get("OMP_NUM_THREADS")?.to_str()?.split(',').next()?;
        let (threads, cpus) = (threads.trim().parse::<usize>().ok()?, self.plan.cpus().len() / processes);
        (threads > cpus).then(|| format!("{} share {}", count(threads, "thread"), count(cpus, "CPU")))
    }

    /// Makes malloc call madvise, if the machine gives huge pages only to memory for which a program calls it.
    fn huge_pages(&self, environment: &mut Environment) {
        if self.options.huge_pages != Some(HugePages::On) || self.setting != Some(Setting::Advised) {
            return;
        }
        environment.add_option(TUNABLES, MALLOC_HUGE_PAGES);
    }

    /// Preloads the allocator if the program, or the programs that it starts, can load it. Returns a text for `-v`.
    fn allocator(&self, obstacle: Option<&Obstacle>, environment: &mut Environment) -> Option<String> {
        let allocator = self.options.allocator.as_ref()?;
        if !obstacle.is_none_or(Obstacle::allows_allocator) || self.program.sanitizer.is_some() {
            return None;
        }
        environment.preload_allocator(&allocator.library);
        environment.set("NUMALLOC_PROFILE", allocator.profile);
        Some(format!("allocates with {}, profile {}", allocator.library.display(), allocator.profile))
    }

    /// Preloads the library of the cure and sets what it reads, if the program, or the programs that it starts, can load it. Else
    /// returns why not.
    fn cure(
        &self,
        obstacle: Option<&Obstacle>,
        environment: &mut Environment,
    ) -> Result<(Option<AppliedCure>, Option<String>), LaunchError> {
        let Some(run) = &self.options.cure else { return Ok((None, None)) };
        let name = self.program.name().display();
        let note = |why: String| Ok((None, Some(format!("{name} {why}: it gets no cure"))));
        if let Some(sanitizer) = self.program.sanitizer {
            return note(format!("has the {}, which needs its own malloc", sanitizer.name()));
        }
        let is_obstacle = |obstacle: &&Obstacle| !obstacle.allows_allocator();
        if let Some(obstacle) = obstacle.filter(is_obstacle) {
            return note(obstacle.to_string());
        }
        let applied = AppliedCure::new(run, self, environment).map_err(LaunchError::Cure)?;
        for variable in &run.cure.environment {
            environment.add_option(&variable.name, &variable.value);
        }
        let (variable, table) = applied.environment();
        environment.set(variable, table);
        environment.preload_cure(&run.library);
        let alone = matches!(obstacle, Some(Obstacle::Static));
        let why =
            alone.then(|| format!("{name} is statically linked: only programs that it starts are cured"));
        Ok((Some(applied), why))
    }

    /// Preloads what writes down calls of MPI and has collectives, if the program, or those that it starts, can load it. Else
    /// returns why not.
    fn mpi(&self, obstacle: Option<&Obstacle>, environment: &mut Environment) -> Option<String> {
        let (observer, collectives) = (self.options.mpi.as_ref(), self.options.collectives.as_ref());
        let of_observer = observer.map(|observer| &observer.library);
        let library = of_observer.or(collectives.map(|collectives| &collectives.library))?;
        if let Some(obstacle) = obstacle.filter(|obstacle| !obstacle.allows_allocator()) {
            let name = self.program.name().display();
            let stays = if observer.is_some() {
                "its calls of MPI are not seen"
            } else {
                "its collectives are those of its MPI"
            };
            return Some(format!("{name} {obstacle}: {stays}"));
        }
        if let Some((name, value)) = observer.map(|observer| &observer.variable) {
            environment.set(name, value.as_str());
        }
        if let Some(collectives) = collectives {
            collectives.set(environment);
        }
        environment.preload_mpi(library);
        None
    }

    /// Sets the variables that the library reads.
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
        if let Some(lock_descriptor) = self.lock_descriptor {
            environment.set("NUMA_HOLD", lock_descriptor.to_string());
        }
        if self.options.verbose {
            environment.set("NUMA_VERBOSE", "1");
        }
        if self.options.no_inherit {
            environment.set("NUMA_INHERIT", "0");
        }
        if self.options.no_bind_main {
            environment.set("NUMA_MAIN", "0");
        }
        // A single core cannot be divided among ranks; with --no-inherit, ranks do not load the library.
        if mask.len() > 1 && !self.options.no_inherit {
            ranks::divide(self.words, environment);
        }
        // Sanitizers also read this variable; an option that the program itself sets is kept.
        if self.program.sanitizer == Some(Sanitizer::Lenient) {
            environment.add_option(SANITIZER, NEED_NOT_BE_FIRST);
        }
        environment.preload(self.library);
    }

    /// Until the library sets the plan's policy, memory comes from the main thread's node, wherever exec runs.
    fn first_node(&self, wanted: &MemoryPolicy) -> MemoryPolicy {
        let node = self.plan.steps.first().and_then(|step| self.topology.node(step.node));
        let has_memory = |node: &u32| {
            let policy = MemoryPolicy::preferred(*node);
            policy.attempt().is_ok()
        };
        let node = node.filter(|node| !node.implicit).map(|node| node.os_index).filter(has_memory);
        node.map_or_else(|| wanted.clone(), MemoryPolicy::preferred)
    }

    /// What placement by node cannot do for this program: a sanitizer needs its own malloc, and a memory policy decides
    /// before the allocator does.
    fn allocator_note(&self, wanted: &Memory) -> Option<String> {
        let profile = self.options.allocator.as_ref()?.profile;
        if let Some(sanitizer) = self.program.sanitizer {
            let (program, name) = (self.program.name().display(), sanitizer.name());
            return Some(format!(
                "{program} has the {name}, which needs its own malloc: --alloc {profile} is left out"
            ));
        }
        let by_node = profile == BY_NODE;
        (by_node && wanted.mode != Mode::Local).then(|| {
            format!(
                "the memory policy {} decides where blocks lie, and not --alloc {BY_NODE}",
                describe(wanted)
            )
        })
    }

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

/// How many cores have one of these CPUs.
fn cores_of(topology: &Topology, cpus: &CpuSet) -> usize {
    topology.cores.iter().filter(|core| core.cpus.intersects(cpus)).count()
}

fn refused(wanted: &Memory, error: io::Error) -> LaunchError {
    let fix = match wanted.mode {
        Mode::Weighted => "it needs Linux 6.9; use interleave",
        Mode::Prefer if wanted.nodes.len() > 1 => "several nodes need Linux 5.15; give one node",
        _ => "name nodes that have memory and that this process may use: 'numa topo' shows them",
    };
    LaunchError::Memory { policy: describe(wanted), error, fix }
}

#[cfg(test)]
mod tests;
