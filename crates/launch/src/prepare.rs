//! From a launch request to a running program: select and take cores, prepare the command, start it.

use crate::apply::AppliedCure;
use crate::busy;
use crate::isolate::{self, ControlGroup};
use crate::limits::{CoreLimits, LimitExceeded, LimitsError};
use crate::selector::{CoreSelector, ExplainedPlan};
use crate::supervise::{Ending, RunError, Supervisor, run};
use crate::{CommandRequest, Environment, ExplainedCommand, LaunchError, Program, RunOptions};
use numakit_model::{CpuSet, Topology};
use numakit_placement::{PlacementRequest, PlanError, Taken, explained};
use numakit_registry::location;
use numakit_registry::{
    CoreSelection, HolderInfo, Registry, RegistryError, RegistryView, Reservation, TakeError, inspect,
};
use numakit_sys::huge_pages::Setting;
use numakit_sys::permissions::{Permission, Permissions};
use numakit_sys::proc::LoadAverage;
use numakit_sys::{SysRoot, sched, start_notice};
use std::borrow::Cow;
use std::cell::Cell;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Within this time, the kernel returns a partition's CPUs to the processes that had them.
const PARTITION_DELAY: Duration = Duration::from_secs(2);

/// A placement request with the program and its options.
#[derive(Debug)]
pub struct LaunchRequest<'a> {
    /// Where /sys and /proc are.
    pub root: &'a SysRoot,
    /// The machine.
    pub topology: &'a Topology,
    /// The program and its arguments.
    pub words: &'a [OsString],
    /// The program's file and kind.
    pub program: &'a Program,
    /// Cores and memory.
    pub request: &'a PlacementRequest,
    /// Other options.
    pub options: &'a RunOptions,
    /// The path of the library.
    pub library: &'a Path,
    /// Avoid CPUs without reservation that are busy for this percentage or more; none does not measure.
    pub busy: Option<u32>,
    /// Whether to wait for free cores.
    pub wait: Wait,
    /// Whether the program gets its own control group.
    pub isolate: bool,
}

/// Whether to wait if there are too few free cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Fail at once.
    No,
    /// Wait at most this long.
    UpTo(Duration),
    /// Wait without a limit.
    Indefinitely,
}

/// Why the program does not run.
#[derive(Debug, Error)]
pub enum StartError {
    /// No plan fits the request.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Cores cannot be taken.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The file of limits.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// More cores than the user may hold.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// The command cannot be prepared.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A running process cannot be bound.
    #[error(transparent)]
    Rebind(#[from] crate::RebindError),
    /// The program cannot be executed.
    #[error("{0}")]
    Program(io::Error),
    /// A preparation for its start failed.
    #[error("{0}")]
    Prepare(String),
}

impl From<TakeError<Self>> for StartError {
    fn from(error: TakeError<Self>) -> Self {
        match error {
            TakeError::Registry(error) => Self::Registry(error),
            TakeError::Selection(error) => error,
        }
    }
}

/// The result of `--isolate`, in one line.
#[derive(Debug)]
pub enum Isolation {
    /// The kernel keeps other processes off the CPUs.
    Partition(String),
    /// Other processes may use the CPUs too, for this reason.
    Shared(String),
}

/// A program that is ready to start.
#[derive(Debug)]
pub struct PreparedLaunch {
    /// Its plan.
    pub plan: ExplainedPlan,
    /// Its command.
    pub command: ExplainedCommand,
    /// The result of `--isolate`, if requested.
    pub isolation: Option<Isolation>,
    reservation: Option<Reservation>,
    group: Option<ControlGroup>,
    is_awaited: bool,
}

impl LaunchRequest<'_> {
    /// Selects and takes cores, and prepares the command.
    pub fn prepare(&self) -> Result<PreparedLaunch, StartError> {
        if self.options.shared {
            let plan = self.selector(None).select_shared(&inspect().unwrap_or_default())?;
            return self.prepare_command(plan, None);
        }
        let limits = CoreLimits::of_this_machine()?;
        let selector = self.selector(Some(&limits));
        let mut registry = Registry::open()?;
        let info = HolderInfo { application: self.program.name().to_string_lossy().into_owned() };
        let timeout = match self.wait {
            Wait::No => Some(Duration::ZERO),
            Wait::UpTo(time) => Some(time),
            Wait::Indefinitely => None,
        };
        // CPUs of a partition are free in the registry first, and in this process's CPU mask a moment later.
        let last_partition = Cell::new(None);
        let select = |view: &RegistryView| -> Result<_, StartError> {
            if !self.cpus_in_partitions(view).is_empty() {
                last_partition.set(Some(Instant::now()));
            }
            let selected = self.select(&selector, view)?;
            limits.check(&view.holdings, selected.cores)?;
            Ok(selected)
        };
        let is_returning = || last_partition.get().is_some_and(|when| when.elapsed() < PARTITION_DELAY);
        let is_temporary = |error: &StartError| match error {
            StartError::Plan(error) => error.is_temporary() || is_returning(),
            StartError::Limit(error) => error.is_temporary(),
            _ => false,
        };
        let (reservation, plan) = registry.take_waiting(&info, timeout, is_temporary, select)?;
        self.prepare_command(plan, Some(reservation))
    }

    /// Prepares the program as [`prepare`](Self::prepare) does, but takes no cores.
    pub fn dry_run(&self) -> Result<PreparedLaunch, StartError> {
        let view = inspect().map_err(RegistryError::from)?;
        let plan = match self.options.shared {
            true => self.selector(None).select_shared(&view)?,
            false => self.select(&self.selector(Some(&CoreLimits::of_this_machine()?)), &view)?.value,
        };
        self.prepare_command(plan, None)
    }

    /// Prepares the program for a machine that is described and idle: who uses this one does not matter.
    pub fn dry_run_elsewhere(&self) -> Result<PreparedLaunch, StartError> {
        let (plan, reasons) = explained(self.topology, self.request, &Taken::default())?;
        self.prepare_command(ExplainedPlan { plan, reasons, is_crowded: false }, None)
    }

    fn select(
        &self,
        selector: &CoreSelector<'_>,
        view: &RegistryView,
    ) -> Result<CoreSelection<ExplainedPlan>, PlanError> {
        CoreSelector { topology: &self.current_topology(view), ..selector.clone() }.select(view)
    }

    /// The machine with the present CPU mask. CPUs that other programs hold in partitions count as allowed, since they
    /// become usable when those programs end.
    fn current_topology(&self, view: &RegistryView) -> Cow<'_, Topology> {
        let given = self.topology;
        if given.allowed == given.online {
            return Cow::Borrowed(given);
        }
        let mask = sched::affinity().map_or_else(|_| given.allowed.clone(), |mask| mask.and(&given.online));
        Cow::Owned(Topology { allowed: mask.or(&self.cpus_in_partitions(view)), ..given.clone() })
    }

    /// CPUs that other programs hold in partitions, and that this process may use once they are free.
    fn cpus_in_partitions(&self, view: &RegistryView) -> CpuSet {
        let online = &self.topology.online;
        match self.topology.allowed == *online {
            true => CpuSet::new(),
            false => isolate::cpus_in_partitions(online).and(&view.held()),
        }
    }

    fn selector<'a>(&'a self, limits: Option<&'a CoreLimits>) -> CoreSelector<'a> {
        let busy = self.busy.map_or_else(Vec::new, |threshold| busy_cpus(self.root, threshold));
        CoreSelector { busy, limits, ..CoreSelector::new(self.root, self.topology, self.request) }
    }

    fn prepare_command(
        &self,
        mut plan: ExplainedPlan,
        reservation: Option<Reservation>,
    ) -> Result<PreparedLaunch, StartError> {
        let is_kept = |(name, _): &(OsString, OsString)| name != start_notice::VARIABLE;
        let mut environment = Environment::of(std::env::vars_os().filter(is_kept));
        let cure = self.options.cure.as_ref();
        let order = cure.and_then(|cure| cure.order(self.program, &mut plan.plan, &environment));
        let request = CommandRequest {
            words: self.words,
            program: self.program,
            plan: &plan.plan,
            is_crowded: plan.is_crowded,
            topology: self.topology,
            options: self.options,
            setting: Setting::read(self.root),
            permissions: &Permissions::own_of(&[Permission::Policies]),
            library: self.library,
            lock_descriptor: reservation.as_ref().map(Reservation::descriptor),
            order: order.as_ref(),
        };
        if let Some(named) = location::named() {
            environment.set(location::VARIABLE, named);
        }
        let command = match ExplainedCommand::new(&request, environment) {
            Ok(command) => command,
            Err(error) => {
                reservation.into_iter().for_each(Reservation::release);
                return Err(error.into());
            }
        };
        let isolated = reservation.as_ref().filter(|_| self.isolate);
        let (group, isolation) = match isolated.map(|taken| isolate::isolate(taken.cpus(), None)) {
            None => (None, None),
            Some(Ok(group)) => {
                plan.plan.warnings.extend(group.warning());
                let text = group.to_string();
                let isolation =
                    if group.is_partition() { Isolation::Partition(text) } else { Isolation::Shared(text) };
                (Some(group), Some(isolation))
            }
            Some(Err(error)) => (None, Some(Isolation::Shared(format!("{error}; {}", error.fix())))),
        };
        let is_awaited = self.options.is_awaited();
        Ok(PreparedLaunch { plan, command, isolation, reservation, group, is_awaited })
    }
}

impl PreparedLaunch {
    /// Runs the program until it ends, and returns its cure with what it did. With neither a reservation nor a cure or a
    /// report, whose memory is this process's, this process becomes the program and this does not return. The caller must have a single thread.
    pub fn run(self) -> Result<(Ending, Option<AppliedCure>), StartError> {
        let Self { command, reservation, group, is_awaited, .. } = self;
        let ExplainedCommand { prepared: command, cure, .. } = command;
        if let Some(pipe) = std::env::var_os(start_notice::VARIABLE) {
            start_notice::tell(&pipe);
        }
        if reservation.is_none() && cure.is_none() && !is_awaited {
            let error = command.exec();
            return Err(match error.get_ref() {
                Some(_) => StartError::Prepare(error.to_string()),
                None => StartError::Program(error),
            });
        }
        let ending = run(Supervisor { command, reservation, group }).map_err(|error| match error {
            RunError::NotStarted(error) => StartError::Program(error),
            RunError::NotPrepared(text) => StartError::Prepare(text),
        })?;
        Ok((ending, cure))
    }
}

/// CPUs that are in use, with their load. If only this process is runnable, it returns without measuring.
fn busy_cpus(root: &SysRoot, threshold: u32) -> Vec<(u32, u32)> {
    if LoadAverage::read(root).is_some_and(|load| load.running <= 1) {
        return Vec::new();
    }
    let busy = busy::measure(root, &CpuSet::new(), threshold, busy::INTERVAL);
    busy.into_iter().map(|busy| (busy.cpu, busy.percent)).collect()
}
