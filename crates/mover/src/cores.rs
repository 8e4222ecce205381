//! Taking cores in the registry for threads that run already.

use crate::error::MoveError;
use crate::threads::{FreeCore, ThreadDecision};
use numakit_launch::limits::CoreLimits;
use numakit_launch::{CoreSelector, ExplainedPlan, StartError};
use numakit_model::{CpuSet, Topology};
use numakit_placement::{Cores, PlacementRequest};
use numakit_registry::{
    CoreSelection, HolderInfo, Registry, RegistryError, RegistryView, Reservation, inspect,
};
use numakit_sys::SysRoot;

/// What is decided, with the reservation of the cores until threads are bound to them: from then on, other programs see the
/// process as a bound one.
#[derive(Debug, Default)]
pub struct Decided {
    /// The decisions.
    pub threads: Vec<ThreadDecision>,
    /// What the choice lacks.
    pub warnings: Vec<String>,
    /// The reservation; none where nothing is to be bound, or the process holds its cores already.
    pub reservation: Option<Reservation>,
}

/// Chooses cores.
#[derive(Debug)]
pub struct CoreChoice<'a> {
    /// Where the machine is read.
    pub root: &'a SysRoot,
    /// The machine.
    pub topology: &'a Topology,
    /// Only these nodes, CPUs and so on; the number of cores is that of all free ones.
    pub request: &'a PlacementRequest,
    /// The processes that are moved.
    pub processes: &'a [u32],
}

impl CoreChoice<'_> {
    /// Decides for threads which core each gets. Nothing is reserved if `dry_run`.
    pub fn decide(
        &self,
        dry_run: bool,
        decide: impl Fn(&[FreeCore]) -> Vec<ThreadDecision>,
    ) -> Result<Decided, MoveError> {
        let view = inspect().map_err(|error| StartError::from(RegistryError::from(error)))?;
        let is_own = |pid: Option<u32>| pid.is_some_and(|pid| self.processes.contains(&pid));
        let own: Vec<&CpuSet> = view
            .holdings
            .iter()
            .filter(|holding| is_own(holding.pid()))
            .map(|holding| &holding.cpus)
            .collect();
        let mut topology = self.topology.clone();
        if !own.is_empty() {
            let mut held = CpuSet::new();
            own.iter().for_each(|cpus| held.insert_all(cpus));
            topology.allowed = topology.allowed.and(&held);
        }
        let request = PlacementRequest { cores: Some(Cores::Auto), ..self.request.clone() };
        let selector = CoreSelector::new(self.root, &topology, &request);
        let others = self.others(&view);
        let selected = match own.is_empty() {
            true => selector.select(&others).map(|selected| selected.value),
            false => selector.select_shared(&others),
        };
        let selected = selected.map_err(StartError::from)?;
        let threads = decide(&self.cores(&selected));
        let warnings = selected.plan.warnings;
        if dry_run || !own.is_empty() || !threads.iter().any(|thread| thread.changes) {
            return Ok(Decided { threads, warnings, reservation: None });
        }
        let limits = CoreLimits::of_this_machine().map_err(StartError::from)?;
        let select = |view: &RegistryView| -> Result<_, StartError> {
            let selected = selector.select(&self.others(view))?;
            let threads = decide(&self.cores(&selected.value));
            let taken: CpuSet = threads.iter().filter_map(|thread| thread.cpu).collect();
            let (mut cpus, mut cores) = (CpuSet::new(), 0);
            for core in self.topology.cores.iter().filter(|core| core.cpus.intersects(&taken)) {
                cpus.insert_all(&core.cpus);
                cores += 1;
            }
            limits.check(&view.holdings, cores)?;
            Ok(CoreSelection { cpus, cores, value: threads })
        };
        let info = HolderInfo { application: format!("process {}, being moved", self.processes[0]) };
        let mut registry = Registry::open().map_err(StartError::from)?;
        let (reservation, threads) = registry.take(&info, select).map_err(StartError::from)?;
        Ok(Decided { threads, warnings, reservation: Some(reservation) })
    }

    /// What others hold and are bound to.
    fn others(&self, view: &RegistryView) -> RegistryView {
        let is_own = |pid: u32| self.processes.contains(&pid);
        let mut view = view.clone();
        view.holdings.retain(|holding| !holding.pid().is_some_and(is_own));
        view.bound.retain(|bound| !is_own(bound.pid));
        view
    }

    /// The cores of a plan.
    fn cores(&self, selected: &ExplainedPlan) -> Vec<FreeCore> {
        let core = |step: &numakit_model::plan::Step| {
            let one = CpuSet::range(step.cpu, step.cpu);
            let all = self.topology.cores.iter().find(|core| core.cpus.contains(step.cpu));
            FreeCore { cpu: step.cpu, cpus: all.map_or(one, |core| core.cpus.clone()), node: step.node }
        };
        selected.plan.steps.iter().map(core).collect()
    }
}
