//! From a wish to a running program: choose, take, put together, start.

use crate::choice::{CoreSelector, ExplainedPlan};
use crate::{CommandRequest, Environment, ExplainedCommand, LaunchError, Program, RunOptions};
use numakit_model::{CpuSet, Topology};
use numakit_placement::{PlacementRequest, PlanError};
use numakit_registry::isolate::{self, ControlGroup};
use numakit_registry::limits::{CoreLimits, LimitsError};
use numakit_registry::place;
use numakit_registry::{
    CoreSelection, Ending, HolderInfo, Registry, RegistryError, RegistryView, Reservation, RunError,
    TakeError, busy, look, run,
};
use numakit_sys::huge_pages::Setting;
use numakit_sys::permissions::Permissions;
use numakit_sys::proc::LoadAverage;
use numakit_sys::{SysRoot, sched};
use std::borrow::Cow;
use std::cell::Cell;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};
use thiserror::Error;

/// The kernel gives a partition's CPUs back to the processes that had them within this time.
const GIVEN_BACK: Duration = Duration::from_secs(2);

/// Everything that a caller says, and what is known of machine and program.
#[derive(Debug)]
pub struct LaunchRequest<'a> {
    /// Where the machine is looked at.
    pub root: &'a SysRoot,
    /// The machine.
    pub topology: &'a Topology,
    /// The program and its arguments.
    pub words: &'a [OsString],
    /// What the first word stands for.
    pub program: &'a Program,
    /// Cores and memory.
    pub request: &'a PlacementRequest,
    /// What else.
    pub options: &'a RunOptions,
    /// Where the library is.
    pub library: &'a Path,
    /// Percent from which on a CPU that nobody registered counts as used; none looks.
    pub busy: Option<u32>,
    /// What to do where there are too few cores.
    pub wait: Wait,
    /// Whether the program gets a control group with its cores alone.
    pub isolate: bool,
}

/// What to do where there are too few cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Say so.
    No,
    /// Wait until there are enough, so long at most.
    Upto(Duration),
    /// Wait.
    Forever,
}

/// Why nothing runs.
#[derive(Debug, Error)]
pub enum BeginError {
    /// There is no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Cores cannot be taken.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The file of limits.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// What the program is to get cannot be had.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A process that runs already cannot be placed.
    #[error(transparent)]
    Replace(#[from] crate::ReplaceError),
    /// The program is not there, or none.
    #[error("{0}")]
    Program(io::Error),
    /// Something that had to be there before it starts.
    #[error("{0}")]
    Prepare(String),
}

impl From<TakeError<PlanError>> for BeginError {
    fn from(error: TakeError<PlanError>) -> Self {
        match error {
            TakeError::Registry(error) => Self::Registry(error),
            TakeError::Choice(error) => Self::Plan(error),
        }
    }
}

/// What became of the wish for a control group of its own, in one line.
#[derive(Debug)]
pub enum Isolated {
    /// Nobody else may use its CPUs.
    Alone(String),
    /// Others may, and why.
    Shared(String),
}

/// A program that can be started.
#[derive(Debug)]
pub struct PreparedLaunch {
    /// Its plan.
    pub outcome: ExplainedPlan,
    /// What it is started with.
    pub launch: ExplainedCommand,
    /// What became of the wish for a control group of its own.
    pub isolated: Option<Isolated>,
    held: Option<Reservation>,
    group: Option<ControlGroup>,
}

impl LaunchRequest<'_> {
    /// Chooses and takes cores, and puts everything together.
    pub fn take(&self) -> Result<PreparedLaunch, BeginError> {
        if self.options.shared {
            let outcome = self.choice(None).share(&look().unwrap_or_default())?;
            return self.ready(outcome, None);
        }
        let limits = CoreLimits::of_this_machine()?;
        let choice = self.choice(Some(&limits));
        let mut registry = Registry::open()?;
        let about = HolderInfo { application: self.program.name().to_string_lossy().into_owned() };
        let timeout = match self.wait {
            Wait::No => Some(Duration::ZERO),
            Wait::Upto(time) => Some(time),
            Wait::Forever => None,
        };
        // CPUs of a partition: free for others first, in this process's mask a moment later.
        let lent = Cell::new(None);
        let choose = |seen: &RegistryView| {
            if !self.lent(seen).is_empty() {
                lent.set(Some(Instant::now()));
            }
            self.choose(&choice, seen)
        };
        let come_back = || lent.get().is_some_and(|when| when.elapsed() < GIVEN_BACK);
        let worth = |error: &PlanError| error.may_pass() || come_back();
        let (held, outcome) = registry.take_waiting(&about, &limits, timeout, worth, choose)?;
        self.ready(outcome, Some(held))
    }

    /// The same without taking anything.
    pub fn only_plan(&self) -> Result<PreparedLaunch, BeginError> {
        let seen = look().map_err(RegistryError::from)?;
        let outcome = match self.options.shared {
            true => self.choice(None).share(&seen)?,
            false => self.choose(&self.choice(Some(&CoreLimits::of_this_machine()?)), &seen)?.with,
        };
        self.ready(outcome, None)
    }

    fn choose(
        &self,
        choice: &CoreSelector<'_>,
        seen: &RegistryView,
    ) -> Result<CoreSelection<ExplainedPlan>, PlanError> {
        CoreSelector { topology: &self.machine(seen), ..choice.clone() }.choose(seen)
    }

    /// The machine at this moment: CPUs that others hold in partitions are theirs, but come back.
    fn machine(&self, seen: &RegistryView) -> Cow<'_, Topology> {
        let given = self.topology;
        if given.allowed == given.online {
            return Cow::Borrowed(given);
        }
        let mine = sched::affinity().map_or_else(|_| given.allowed.clone(), |mine| mine.and(&given.online));
        Cow::Owned(Topology { allowed: mine.or(&self.lent(seen)), ..given.clone() })
    }

    /// CPUs that others hold in partitions and that this process may use once they are free.
    fn lent(&self, seen: &RegistryView) -> CpuSet {
        let online = &self.topology.online;
        match self.topology.allowed == *online {
            true => CpuSet::new(),
            false => isolate::lent(online).and(&seen.held()),
        }
    }

    fn choice<'a>(&'a self, limits: Option<&'a CoreLimits>) -> CoreSelector<'a> {
        let busy = self.busy.map_or_else(Vec::new, |threshold| in_use(self.root, threshold));
        CoreSelector { busy, limits, ..CoreSelector::new(self.root, self.topology, self.request) }
    }

    fn ready(
        &self,
        mut outcome: ExplainedPlan,
        held: Option<Reservation>,
    ) -> Result<PreparedLaunch, BeginError> {
        let job = CommandRequest {
            words: self.words,
            program: self.program,
            plan: &outcome.plan,
            topology: self.topology,
            options: self.options,
            setting: Setting::read(self.root),
            permissions: Permissions::own(),
            library: self.library,
            hold: held.as_ref().map(Reservation::descriptor),
        };
        let mut environment = Environment::of(std::env::vars_os());
        if let Some(named) = place::named() {
            environment.set(place::VARIABLE, named);
        }
        let launch = match ExplainedCommand::new(&job, environment) {
            Ok(launch) => launch,
            Err(error) => {
                held.into_iter().for_each(Reservation::give_back);
                return Err(error.into());
            }
        };
        let group = held.as_ref().filter(|_| self.isolate).map(|held| isolate::isolate(held.cpus(), None));
        let (group, isolated) = match group {
            None => (None, None),
            Some(Ok(group)) => {
                outcome.plan.warnings.extend(group.warning());
                let words = group.to_string();
                let isolated =
                    if group.is_partition() { Isolated::Alone(words) } else { Isolated::Shared(words) };
                (Some(group), Some(isolated))
            }
            Some(Err(why)) => (None, Some(Isolated::Shared(format!("{why}; {}", why.fix())))),
        };
        Ok(PreparedLaunch { outcome, launch, isolated, held, group })
    }
}

impl PreparedLaunch {
    /// Runs it to its end. Where nothing is held, this process becomes the program and this does
    /// not return. Only a process with a single thread may.
    pub fn run(self) -> Result<Ending, BeginError> {
        let Some(held) = self.held else {
            let error = self.launch.start.exec();
            return Err(match error.get_ref() {
                Some(_) => BeginError::Prepare(error.to_string()),
                None => BeginError::Program(error),
            });
        };
        let job = numakit_registry::Supervisor { start: self.launch.start, held, group: self.group };
        run(job).map_err(|error| match error {
            RunError::NotStarted(error) => BeginError::Program(error),
            RunError::NotPrepared(text) => BeginError::Prepare(text),
        })
    }
}

/// CPUs that are in use. Where only this process wants a CPU, there is nothing to wait for.
fn in_use(root: &SysRoot, threshold: u32) -> Vec<(u32, u32)> {
    if LoadAverage::read(root).is_some_and(|load| load.running <= 1) {
        return Vec::new();
    }
    let busy = busy::look(root, &CpuSet::new(), threshold, busy::USUAL);
    busy.into_iter().map(|busy| (busy.cpu, busy.percent)).collect()
}
