//! Which cores a program gets, while nobody else chooses.

use crate::BeginError;
use numakit_model::{CpuSet, Plan, Topology};
use numakit_placement::{Cores, PlacementRequest, PlanError, Taken, explained};
use numakit_registry::limits::CoreLimits;
use numakit_registry::{CoreSelection, RegistryError, RegistryView, look};
use numakit_sys::SysRoot;

/// What is chosen from, and what for.
#[derive(Debug, Clone)]
pub struct CoreSelector<'a> {
    /// The machine.
    pub topology: &'a Topology,
    /// What is asked for.
    pub request: &'a PlacementRequest,
    /// CPUs that the kernel was told to keep free.
    pub isolated: CpuSet,
    /// CPUs that are in use, with their load in percent.
    pub busy: Vec<(u32, u32)>,
    /// How many cores users may hold; no limits for a program that takes none.
    pub limits: Option<&'a CoreLimits>,
}

/// A plan and how it came about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExplainedPlan {
    /// The plan.
    pub plan: Plan,
    /// The reasons for the whole of it.
    pub reasons: Vec<String>,
}

impl<'a> CoreSelector<'a> {
    /// From everything that the kernel does not keep free, without limits.
    pub fn new(root: &SysRoot, topology: &'a Topology, request: &'a PlacementRequest) -> Self {
        // Kernels without the file isolate nothing.
        let isolated = root.text("/sys/devices/system/cpu/isolated").unwrap_or_default();
        let isolated = CpuSet::parse_list(&isolated).unwrap_or_default();
        Self { topology, request, isolated, busy: Vec::new(), limits: None }
    }

    /// What `numa run` would choose now, apart from what is only busy; of another machine nobody
    /// holds anything.
    pub fn now(
        root: &SysRoot,
        topology: &Topology,
        request: &PlacementRequest,
    ) -> Result<ExplainedPlan, BeginError> {
        let seen =
            if root.is_host() { look().map_err(RegistryError::from)? } else { RegistryView::default() };
        Ok(CoreSelector::new(root, topology, request).choose(&seen)?.with)
    }

    /// The best cores that nobody holds. What others use without holding it is used only where
    /// there is too little else, with a warning.
    pub fn choose(&self, seen: &RegistryView) -> Result<CoreSelection<ExplainedPlan>, PlanError> {
        let free = self.plan(self.request, seen)?;
        let cores = self.cores(&free.plan);
        let allowed = self.limits.map(|limits| limits.check(&seen.holdings, cores));
        let mut chosen = match (self.request.cores, allowed) {
            // All that are free is as many as the user may have; the registry refuses what is more.
            (None | Some(Cores::Auto), Some(Err(RegistryError::Limit { limit, held, user, .. })))
                if limit > held =>
            {
                let fewer =
                    PlacementRequest { cores: Some(Cores::Count(limit - held)), ..self.request.clone() };
                let mut chosen = self.plan(&fewer, seen)?;
                chosen.reasons.push(format!("{user} may hold {limit} cores, and holds {held}"));
                chosen
            }
            _ => free,
        };
        chosen.plan.warnings.extend(seen.warning.clone());
        chosen.plan.warnings.extend(self.limits.and_then(CoreLimits::warning).map(str::to_owned));
        Ok(CoreSelection { cpus: chosen.plan.held.clone(), cores: self.cores(&chosen.plan), with: chosen })
    }

    /// The same for a program that takes nothing: cores of others too, if there are no other ones.
    pub fn share(&self, seen: &RegistryView) -> Result<ExplainedPlan, PlanError> {
        let mut others = seen.clone();
        others.holdings.retain(|holding| !holding.ours);
        match self.plan(self.request, &others) {
            Err(error) if error.may_pass() => {
                let nobody = RegistryView { holdings: Vec::new(), ..others };
                let mut chosen = self.plan(self.request, &nobody)?;
                let held = seen.held().and(&chosen.plan.cpus());
                chosen.plan.warnings.push(format!("CPUs {held} are shared with those who hold them"));
                Ok(chosen)
            }
            chosen => chosen,
        }
    }

    fn plan(&self, request: &PlacementRequest, seen: &RegistryView) -> Result<ExplainedPlan, PlanError> {
        let held =
            Taken { isolated: self.isolated.clone(), registered: seen.registered(), ..Taken::default() };
        let mut careful = held.clone();
        careful.registered.extend(seen.bound());
        careful.busy.clone_from(&self.busy);
        let plan = |taken: &Taken| {
            let (plan, reasons) = explained(self.topology, request, taken)?;
            Ok(ExplainedPlan { plan, reasons })
        };
        match plan(&careful) {
            Err(PlanError::TooFew(_)) if careful != held => {
                let mut chosen = plan(&held)?;
                let used = self.used(seen, &chosen.plan.held);
                if !used.is_empty() {
                    chosen.plan.warnings.push(format!("too few other cores are free: {}", used.join(", ")));
                }
                Ok(chosen)
            }
            planned => planned,
        }
    }

    /// Who uses these CPUs without holding them.
    fn used(&self, seen: &RegistryView, cpus: &CpuSet) -> Vec<String> {
        let busy = self.busy.iter().filter(|(cpu, _)| cpus.contains(*cpu));
        let busy = busy.map(|(cpu, percent)| format!("CPU {cpu} is {percent} % busy"));
        let bound = seen.bound().into_iter().filter(|(bound, _)| bound.intersects(cpus));
        busy.chain(bound.map(|(bound, who)| format!("CPUs {bound} are used by {who}"))).collect()
    }

    fn cores(&self, plan: &Plan) -> u32 {
        self.topology.cores.iter().filter(|core| core.cpus.intersects(&plan.held)).count() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_model::topology::{Core, Node};
    use numakit_registry::{BoundProcess, HolderState, Holding};

    /// One node of four cores of one CPU.
    fn topology() -> Topology {
        let all = CpuSet::range(0, 3);
        let cores = all.iter().map(|cpu| Core { cpus: CpuSet::range(cpu, cpu), ..Core::default() });
        Topology {
            online: all.clone(),
            allowed: all.clone(),
            allowed_nodes: CpuSet::range(0, 0),
            cores: cores.collect(),
            nodes: vec![Node { cpus: all, memory_kb: Some(1 << 20), ..Node::default() }],
            ..Topology::default()
        }
    }

    fn held(cpus: &str, ours: bool) -> Holding {
        Holding { cpus: cpus.parse().unwrap(), state: HolderState::Unknown, who: None, same_pids: true, ours }
    }

    fn seen(holdings: Vec<Holding>, bound: &[&str]) -> RegistryView {
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
    fn what_others_use_is_the_last_resort_and_what_they_hold_is_none() {
        let topology = topology();
        let ask = |cores, busy: &[(u32, u32)], seen: &RegistryView| {
            let request = PlacementRequest { cores: Some(cores), ..PlacementRequest::default() };
            let busy = busy.to_vec();
            CoreSelector {
                topology: &topology,
                request: &request,
                isolated: CpuSet::new(),
                busy,
                limits: None,
            }
            .choose(seen)
        };
        let others = seen(vec![held("0", false)], &["1"]);
        let chosen = ask(Cores::Count(1), &[(2, 90)], &others).unwrap();
        assert_eq!((cpus(&chosen.with.plan).as_str(), chosen.cores), ("3", 1));
        assert!(chosen.with.plan.warnings.is_empty(), "{:?}", chosen.with.plan.warnings);
        assert_eq!(cpus(&ask(Cores::Auto, &[(2, 90)], &others).unwrap().with.plan), "3");
        let chosen = ask(Cores::Count(3), &[(2, 90)], &others).unwrap();
        assert_eq!(cpus(&chosen.with.plan), "1-3");
        let told = chosen.with.plan.warnings.join("; ");
        assert!(told.contains("CPU 2 is 90 % busy") && told.contains("CPUs 1 are used by stray"), "{told}");
        let refused = ask(Cores::Count(4), &[], &others).unwrap_err();
        assert!(refused.may_pass(), "{refused}");
    }

    #[test]
    fn who_shares_takes_what_others_hold_only_where_there_is_nothing_else() {
        let topology = topology();
        let share = |cores, seen: &RegistryView| {
            let request =
                PlacementRequest { cores: Some(Cores::Count(cores)), ..PlacementRequest::default() };
            let choice = CoreSelector {
                topology: &topology,
                request: &request,
                isolated: CpuSet::new(),
                busy: Vec::new(),
                limits: None,
            };
            choice.share(seen).unwrap().plan
        };
        let others = seen(vec![held("0-1", false)], &[]);
        assert_eq!(cpus(&share(2, &others)), "2-3");
        let plan = share(3, &others);
        assert!(plan.warnings.iter().any(|text| text.contains("are shared with those who hold them")));
        // Inside of another launch its cores are the ones to share.
        assert_eq!(cpus(&share(2, &seen(vec![held("0-1", true)], &[]))), "0-1");
    }
}
