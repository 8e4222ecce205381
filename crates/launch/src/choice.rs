//! Which cores a program gets, while nobody else chooses.

use numakit_model::{CpuSet, Plan, Topology};
use numakit_placement::{Cores, PlanError, Request, Taken, explained};
use numakit_registry::limits::Limits;
use numakit_registry::{Chosen, RegistryError, Seen};
use numakit_sys::SysRoot;

/// What is chosen from, and what for.
#[derive(Debug, Clone)]
pub struct Choice<'a> {
    /// The machine.
    pub topology: &'a Topology,
    /// What is asked for.
    pub request: &'a Request,
    /// CPUs that the kernel was told to keep free.
    pub isolated: CpuSet,
    /// CPUs that are in use, with their load in percent.
    pub busy: Vec<(u32, u32)>,
    /// How many cores users may hold; no limits for a program that takes none.
    pub limits: Option<&'a Limits>,
}

/// A plan and how it came about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The plan.
    pub plan: Plan,
    /// The reasons for the whole of it.
    pub reasons: Vec<String>,
}

impl<'a> Choice<'a> {
    /// From everything that the kernel does not keep free, without limits.
    pub fn new(root: &SysRoot, topology: &'a Topology, request: &'a Request) -> Self {
        // Kernels without the file isolate nothing.
        let isolated = root.text("/sys/devices/system/cpu/isolated").unwrap_or_default();
        let isolated = CpuSet::parse_list(&isolated).unwrap_or_default();
        Self { topology, request, isolated, busy: Vec::new(), limits: None }
    }

    /// The best cores that nobody holds. What others use without holding it is used only where
    /// there is too little else, with a warning.
    pub fn choose(&self, seen: &Seen) -> Result<Chosen<Outcome>, PlanError> {
        let free = self.plan(self.request, seen)?;
        let cores = self.cores(&free.plan);
        let allowed = self.limits.map(|limits| limits.check(&seen.holdings, cores));
        let chosen = match (self.request.cores, allowed) {
            // All that are free is as many as the user may have; the registry refuses what is more.
            (None | Some(Cores::Auto), Some(Err(RegistryError::Limit { limit, held, user, .. })))
                if limit > held =>
            {
                let fewer = Request { cores: Some(Cores::Count(limit - held)), ..self.request.clone() };
                let mut chosen = self.plan(&fewer, seen)?;
                chosen.reasons.push(format!("{user} may hold {limit} cores, and holds {held}"));
                chosen
            }
            _ => free,
        };
        Ok(Chosen { cpus: chosen.plan.held.clone(), cores: self.cores(&chosen.plan), with: chosen })
    }

    /// The same for a program that takes nothing: cores of others too, if there are no other ones.
    pub fn share(&self, seen: &Seen) -> Result<Outcome, PlanError> {
        let mut others = seen.clone();
        others.holdings.retain(|holding| !holding.ours);
        match self.plan(self.request, &others) {
            Err(error) if error.may_pass() => {
                let nobody = Seen { holdings: Vec::new(), ..others };
                let mut chosen = self.plan(self.request, &nobody)?;
                let held = seen.held().and(&chosen.plan.cpus());
                chosen.plan.warnings.push(format!("CPUs {held} are shared with those who hold them"));
                Ok(chosen)
            }
            chosen => chosen,
        }
    }

    fn plan(&self, request: &Request, seen: &Seen) -> Result<Outcome, PlanError> {
        let held =
            Taken { isolated: self.isolated.clone(), registered: seen.registered(), ..Taken::default() };
        let mut careful = held.clone();
        careful.registered.extend(seen.bound());
        careful.busy.clone_from(&self.busy);
        let plan = |taken: &Taken| {
            let (plan, reasons) = explained(self.topology, request, taken)?;
            Ok(Outcome { plan, reasons })
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
    fn used(&self, seen: &Seen, cpus: &CpuSet) -> Vec<String> {
        let busy = self.busy.iter().filter(|(cpu, _)| cpus.contains(*cpu));
        let busy = busy.map(|(cpu, percent)| format!("CPU {cpu} is {percent} % busy"));
        let bound = seen.bound().into_iter().filter(|(bound, _)| bound.intersects(cpus));
        busy.chain(bound.map(|(bound, who)| format!("CPUs {bound} are used by {who}"))).collect()
    }

    fn cores(&self, plan: &Plan) -> u32 {
        self.topology.cores.iter().filter(|core| core.cpus.intersects(&plan.held)).count() as u32
    }
}
