//! Selects cores for a program, under the allocation lock.

use crate::StartError;
use crate::limits::{CoreLimits, LimitExceeded};
use numakit_model::{CpuSet, Plan, Topology};
use numakit_placement::{Cores, PlacementRequest, PlanError, Taken, explained};
use numakit_registry::{CoreSelection, RegistryError, RegistryView, inspect};
use numakit_sys::SysRoot;

/// A machine and a request, for which it selects cores.
#[derive(Debug, Clone)]
pub struct CoreSelector<'a> {
    /// The machine.
    pub topology: &'a Topology,
    /// The request.
    pub request: &'a PlacementRequest,
    /// CPUs that the kernel keeps free (isolcpus).
    pub isolated: CpuSet,
    /// CPUs that are in use, with their load in percent.
    pub busy: Vec<(u32, u32)>,
    /// Limits of cores per user; none for a program that takes no cores.
    pub limits: Option<&'a CoreLimits>,
}

/// A plan and its reasons.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExplainedPlan {
    /// The plan.
    pub plan: Plan,
    /// The reasons for the whole plan.
    pub reasons: Vec<String>,
    /// Whether other programs use its CPUs without a reservation, as one of its warnings says.
    pub is_crowded: bool,
}

impl<'a> CoreSelector<'a> {
    /// A selector for all CPUs except isolated ones, without limits.
    pub fn new(root: &SysRoot, topology: &'a Topology, request: &'a PlacementRequest) -> Self {
        // Kernels without the file isolate nothing.
        let isolated = root.text("/sys/devices/system/cpu/isolated").unwrap_or_default();
        let isolated = CpuSet::parse_list(&isolated).unwrap_or_default();
        Self { topology, request, isolated, busy: Vec::new(), limits: None }
    }

    /// The cores that `numa run` would select now, without regard to load. On another machine than this one, no
    /// core is held.
    pub fn select_now(
        root: &SysRoot,
        topology: &Topology,
        request: &PlacementRequest,
    ) -> Result<ExplainedPlan, StartError> {
        let view =
            if root.is_host() { inspect().map_err(RegistryError::from)? } else { RegistryView::default() };
        Ok(CoreSelector::new(root, topology, request).select(&view)?.value)
    }

    /// Selects the best free cores. Cores that other programs use without a reservation are selected only if there are too
    /// few other cores; then there is a warning.
    pub fn select(&self, view: &RegistryView) -> Result<CoreSelection<ExplainedPlan>, PlanError> {
        let free = self.plan(self.request, view)?;
        let cores = self.cores(&free.plan);
        let allowed = self.limits.map(|limits| limits.check(&view.holdings, cores));
        let mut selected = match (self.request.cores, allowed) {
            // 'All free cores' means those within the user's limit.
            (None | Some(Cores::Auto), Some(Err(LimitExceeded { limit, held, user, .. })))
                if limit > held =>
            {
                let fewer =
                    PlacementRequest { cores: Some(Cores::Count(limit - held)), ..self.request.clone() };
                let mut selected = self.plan(&fewer, view)?;
                selected.reasons.push(format!("{user} may hold {limit} cores, and holds {held}"));
                selected
            }
            _ => free,
        };
        selected.plan.warnings.extend(view.warning.clone());
        selected.plan.warnings.extend(self.limits.and_then(CoreLimits::warning).map(str::to_owned));
        let (cpus, cores) = (selected.plan.held.clone(), self.cores(&selected.plan));
        Ok(CoreSelection { cpus, cores, value: selected })
    }

    /// Plans for a program that takes no cores. If there are too few free cores, it may run on cores that other programs
    /// hold.
    pub fn select_shared(&self, view: &RegistryView) -> Result<ExplainedPlan, PlanError> {
        let mut others = view.clone();
        others.holdings.retain(|holding| !holding.is_own);
        match self.plan(self.request, &others) {
            Err(error) if error.is_temporary() => {
                let without_holders = RegistryView { holdings: Vec::new(), ..others };
                let mut selected = self.plan(self.request, &without_holders)?;
                let held = view.held().and(&selected.plan.cpus());
                selected.plan.warnings.push(format!("CPUs {held} are shared with their holders"));
                Ok(selected)
            }
            selected => selected,
        }
    }

    fn plan(&self, request: &PlacementRequest, view: &RegistryView) -> Result<ExplainedPlan, PlanError> {
        let held =
            Taken { isolated: self.isolated.clone(), registered: view.registered(), ..Taken::default() };
        let mut avoided = held.clone();
        avoided.registered.extend(view.bound());
        avoided.busy.clone_from(&self.busy);
        let plan = |taken: &Taken| {
            let (plan, reasons) = explained(self.topology, request, taken)?;
            Ok(ExplainedPlan { plan, reasons, is_crowded: false })
        };
        match plan(&avoided) {
            Err(PlanError::TooFew(_)) if avoided != held => {
                let mut selected = plan(&held)?;
                let uses = self.uses(view, &selected.plan.held);
                selected.is_crowded = !uses.is_empty();
                if selected.is_crowded {
                    selected.plan.warnings.push(format!("too few other cores are free: {}", uses.join(", ")));
                }
                Ok(selected)
            }
            planned => planned,
        }
    }

    /// How other programs use these CPUs without a reservation, in words.
    fn uses(&self, view: &RegistryView, cpus: &CpuSet) -> Vec<String> {
        let busy = self.busy.iter().filter(|(cpu, _)| cpus.contains(*cpu));
        let busy = busy.map(|(cpu, percent)| format!("CPU {cpu} is {percent} % busy"));
        let bound = view.bound().into_iter().filter(|(bound, _)| bound.intersects(cpus));
        let used = |(bound, who): (CpuSet, String)| match bound.len() {
            1 => format!("CPU {bound} is used by {who}"),
            _ => format!("CPUs {bound} are used by {who}"),
        };
        busy.chain(bound.map(used)).collect()
    }

    fn cores(&self, plan: &Plan) -> u32 {
        self.topology.cores.iter().filter(|core| core.cpus.intersects(&plan.held)).count() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_topology::topology;
    use numakit_registry::{BoundProcess, HolderState, Holding};

    fn held(cpus: &str, is_own: bool) -> Holding {
        Holding {
            cpus: cpus.parse().unwrap(),
            state: HolderState::Unknown,
            holder: None,
            same_pid_namespace: true,
            is_own,
        }
    }

    fn view(holdings: Vec<Holding>, bound: &[&str]) -> RegistryView {
        let bound = bound.iter().map(|cpus| BoundProcess {
            pid: 7,
            command: "stray".to_owned(),
            cpus: cpus.parse().unwrap(),
        });
        RegistryView { holdings, bound: bound.collect(), warning: None }
    }

    fn cpus(plan: &Plan) -> String {
        plan.cpus().to_string()
    }

    #[test]
    fn used_cores_are_the_last_resort_and_held_cores_are_excluded() {
        let topology = topology();
        let ask = |cores, busy: &[(u32, u32)], view: &RegistryView| {
            let request = PlacementRequest { cores: Some(cores), ..PlacementRequest::default() };
            let busy = busy.to_vec();
            CoreSelector {
                topology: &topology,
                request: &request,
                isolated: CpuSet::new(),
                busy,
                limits: None,
            }
            .select(view)
        };
        let others = view(vec![held("0", false)], &["1"]);
        let chosen = ask(Cores::Count(1), &[(2, 90)], &others).unwrap();
        assert_eq!((cpus(&chosen.value.plan).as_str(), chosen.cores), ("3", 1));
        assert!(chosen.value.plan.warnings.is_empty(), "{:?}", chosen.value.plan.warnings);
        assert!(!chosen.value.is_crowded);
        assert_eq!(cpus(&ask(Cores::Auto, &[(2, 90)], &others).unwrap().value.plan), "3");
        let chosen = ask(Cores::Count(3), &[(2, 90)], &others).unwrap();
        assert_eq!(cpus(&chosen.value.plan), "1-3");
        assert!(chosen.value.is_crowded);
        let messages = chosen.value.plan.warnings.join("; ");
        assert!(
            messages.contains("CPU 2 is 90 % busy") && messages.contains("CPU 1 is used by stray"),
            "{messages}"
        );
        let refused = ask(Cores::Count(4), &[], &others).unwrap_err();
        assert!(refused.is_temporary(), "{refused}");
    }

    #[test]
    fn held_cores_are_shared_only_if_too_few_are_free() {
        let topology = topology();
        let share = |cores, view: &RegistryView| {
            let request =
                PlacementRequest { cores: Some(Cores::Count(cores)), ..PlacementRequest::default() };
            let selector = CoreSelector {
                topology: &topology,
                request: &request,
                isolated: CpuSet::new(),
                busy: Vec::new(),
                limits: None,
            };
            selector.select_shared(view).unwrap().plan
        };
        let others = view(vec![held("0-1", false)], &[]);
        assert_eq!(cpus(&share(2, &others)), "2-3");
        let plan = share(3, &others);
        assert!(plan.warnings.iter().any(|text| text.contains("are shared with their holders")));
        // Within another launch, its cores are shared.
        assert_eq!(cpus(&share(2, &view(vec![held("0-1", true)], &[]))), "0-1");
    }
}
