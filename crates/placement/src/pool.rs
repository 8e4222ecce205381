//! The usable cores, and why others are not.

use crate::error::{PlanError, Shortage};
use crate::lists::{KnownNumbers, NumberList};
use crate::machine::Machine;
use crate::request::{Cores, PlacementRequest};
use crate::room;
use crate::taken::Taken;
use numakit_model::CpuSet;
use std::collections::BTreeSet;

/// Why a core is not usable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// The inherited mask or cpuset leaves it out.
    Mask,
    /// The lists of the request leave it out.
    NotNamed,
    Excluded,
    Reserved,
    Isolated,
    /// Too few PUs for the threads per core.
    Narrow,
    Registered,
    Busy,
}

/// The cores of a machine, usable or not.
#[derive(Debug)]
pub(crate) struct Pool<'a> {
    machine: &'a Machine<'a>,
    request: &'a PlacementRequest,
    taken: &'a Taken,
    /// CPUs within mask and lists.
    pub may: CpuSet,
    registered: CpuSet,
    /// Why each core is not usable, in the order of the machine's spots; `None` for usable cores.
    why: Vec<Option<Why>>,
}

/// A selection of the free cores, before nodes are considered.
#[derive(Debug, Default)]
pub(crate) struct PoolSelection {
    /// Positions of spots, in logical order.
    pub spots: Vec<u32>,
    /// Nodes without free memory, whose cores come last.
    pub last: BTreeSet<usize>,
    pub warnings: Vec<String>,
}

/// The CPUs that a request may name.
pub(crate) fn known_cpus<'a>(machine: &Machine<'a>) -> KnownNumbers<'a> {
    let topology = machine.topology;
    KnownNumbers {
        what: "CPU",
        there: &topology.online,
        offline: &topology.offline,
        allowed: &topology.allowed,
        limit: "the inherited mask or cpuset leaves it out",
    }
}

/// The CPUs within mask and lists.
fn may(machine: &Machine<'_>, request: &PlacementRequest) -> Result<CpuSet, PlanError> {
    let topology = machine.topology;
    let mut may = topology.allowed.and(&topology.online);
    if let Some(words) = &request.cpus {
        may = words.within(&known_cpus(machine))?;
    }
    if let Some(words) = &request.nodes {
        let usable = topology.nodes.iter().filter(|node| node.cpus.intersects(&topology.allowed));
        let known = KnownNumbers {
            what: "node",
            there: &topology.node_ids(),
            offline: &CpuSet::new(),
            allowed: &usable.map(|node| node.os_index).collect(),
            limit: "it has no CPU that this process may run on",
        };
        let ids = words.within(&known)?;
        let named = topology.nodes.iter().filter(|node| ids.contains(node.os_index));
        may = may.and(&named.fold(CpuSet::new(), |all, node| all.or(&node.cpus)));
    }
    if may.is_empty() {
        return Err(match (&request.cpus, &request.nodes) {
            (Some(cpus), Some(nodes)) => PlanError::machine(
                format!("none of CPUs {cpus} is on nodes {nodes}"),
                "omit one of the two lists",
            ),
            _ => PlanError::machine("this process may run on no CPU", "start it with a wider mask"),
        });
    }
    Ok(may)
}

impl<'a> Pool<'a> {
    /// Checks every core.
    pub fn of(
        machine: &'a Machine<'a>,
        request: &'a PlacementRequest,
        taken: &'a Taken,
    ) -> Result<Self, PlanError> {
        let may = may(machine, request)?;
        let excluded = match &request.exclude {
            Some(words) => words.anywhere(&known_cpus(machine))?,
            None => CpuSet::new(),
        };
        // A list that names isolated CPUs one by one means them.
        let named = request.cpus.as_ref().is_some_and(NumberList::is_plain);
        let isolated = if named { CpuSet::new() } else { taken.isolated.clone() };
        let registered = taken.registered.iter().fold(CpuSet::new(), |all, (cpus, _)| all.or(cpus));
        let busy: CpuSet = taken.busy.iter().map(|(cpu, _)| *cpu).collect();
        let all = request.cores == Some(Cores::All);
        let width = request.threads_per_core as usize;
        let reason = |pus: &[u32]| {
            let any = |set: &CpuSet| pus.iter().any(|&cpu| set.contains(cpu));
            let left = pus.iter().filter(|&&cpu| may.contains(cpu)).count();
            match () {
                () if !any(&machine.topology.allowed) => Some(Why::Mask),
                () if left == 0 => Some(Why::NotNamed),
                () if any(&excluded) => Some(Why::Excluded),
                () if any(&taken.explicit) => Some(Why::Reserved),
                () if any(&isolated) => Some(Why::Isolated),
                () if left < width => Some(Why::Narrow),
                () if any(&registered) => Some(Why::Registered),
                () if any(&busy) && !all => Some(Why::Busy),
                () => None,
            }
        };
        let why = machine.spots.iter().map(|spot| reason(&spot.pus)).collect();
        let pool = Self { machine, request, taken, may, registered, why };
        pool.check_width()?;
        Ok(pool)
    }

    fn check_width(&self) -> Result<(), PlanError> {
        let width = self.request.threads_per_core as usize;
        let widest = self.machine.spots.iter().map(|spot| spot.pus.len()).max().unwrap_or(0);
        if width <= widest || widest == 0 {
            return Ok(());
        }
        let has = if widest == 1 { "1 PU".to_owned() } else { format!("{widest} PUs") };
        Err(PlanError::machine(
            format!("{width} threads per core are requested, and a core of this machine has {has}"),
            format!("request at most {widest}"),
        ))
    }

    /// How many cores are available.
    pub fn count(&self) -> u64 {
        self.strided(|why| why.is_none()).count() as u64
    }

    /// For each group of neighbours in a package, as long as the stride: the first free core, and whether others hold no
    /// core of the group.
    fn strided(&self, free: impl Fn(Option<Why>) -> bool) -> impl Iterator<Item = (u32, bool)> {
        let spots = &self.machine.spots;
        let stride = self.request.stride.max(1) as usize;
        let mut found = Vec::new();
        let mut begin = 0;
        for package in spots.chunk_by(|one, next| one.package == next.package) {
            let positions = begin..begin + package.len();
            begin = positions.end;
            for first in positions.clone().step_by(stride) {
                let group = first..(first + stride).min(positions.end);
                let held = |at: usize| matches!(self.why[at], Some(Why::Registered | Why::Busy));
                if let Some(at) = group.clone().find(|&at| free(self.why[at])) {
                    found.push((at as u32, !group.clone().any(held)));
                }
            }
        }
        found.into_iter()
    }

    /// This number of free cores, or more if the policy selects among them: those on nodes with free memory, of the
    /// fastest kind and, with a stride, groups that no other program uses, if these are enough.
    pub fn select(&self, cores: u64, requested: &str) -> Result<PoolSelection, PlanError> {
        let found: Vec<(u32, bool)> = self.strided(|why| why.is_none()).collect();
        if (found.len() as u64) < cores {
            return Err(self.too_few(cores, found.len(), requested));
        }
        let mut warnings = Vec::new();
        let alone: Vec<u32> = found.iter().filter(|(_, alone)| *alone).map(|(at, _)| *at).collect();
        let mut spots = if alone.len() as u64 >= cores {
            alone
        } else {
            warnings.push(format!(
                "{} of the cores have a neighbour within stride {} that others use",
                cores - alone.len() as u64,
                self.request.stride
            ));
            found.iter().map(|(at, _)| *at).collect()
        };
        let last = room::prefer(self.machine, &self.request.policy, &mut spots, cores);
        self.keep_fastest(&mut spots, cores);
        Ok(PoolSelection { spots, last, warnings })
    }

    fn keep_fastest(&self, spots: &mut Vec<u32>, cores: u64) {
        let kind = |at: &u32| self.machine.spots[*at as usize].kind;
        for slowest in 0..self.machine.topology.kinds.len() as u32 {
            let enough = spots.iter().filter(|at| kind(at) <= slowest).count() as u64 >= cores;
            if enough {
                spots.retain(|at| kind(at) <= slowest);
                return;
            }
        }
    }

    /// Refuses `all` if another program holds a core.
    pub fn check_all(&self) -> Result<(), PlanError> {
        if self.request.cores != Some(Cores::All) || !self.why.contains(&Some(Why::Registered)) {
            return Ok(());
        }
        let free = self.count();
        Err(PlanError::TooFew(Box::new(Shortage {
            requested: "all cores are requested".to_owned(),
            free: free as usize,
            exist: self.machine.spots.len(),
            others: self.others(),
            fix:
                "request those that are free (-c auto), wait for the others (--wait) or share them (--share)"
                    .to_owned(),
            is_impossible: false,
            is_temporary: true,
        })))
    }

    /// Warnings about the cores of a plan.
    pub fn remarks(&self, held: &CpuSet) -> Vec<String> {
        let mut remarks = Vec::new();
        let isolated = held.and(&self.taken.isolated);
        if !isolated.is_empty() {
            remarks.push(format!("CPUs {isolated} are isolated: the kernel balances no load among them"));
        }
        if self.request.cores == Some(Cores::All) {
            let busy = self.taken.busy.iter().filter(|(cpu, _)| held.contains(*cpu));
            let busy: Vec<String> = busy.map(|(cpu, load)| format!("CPU {cpu} at {load} %")).collect();
            if !busy.is_empty() {
                remarks.push(format!("programs run already on {}", some(&busy)));
            }
        }
        remarks
    }

    fn too_few(&self, cores: u64, free: usize, requested: &str) -> PlanError {
        let after = |why: Option<Why>| matches!(why, None | Some(Why::Registered | Why::Busy));
        let later = self.strided(after).count();
        let is_temporary = later as u64 >= cores;
        let exist = self.machine.spots.len();
        let is_impossible = cores > exist as u64;
        let mut fixes = Vec::new();
        let most = if is_impossible { later } else { free };
        if most > 0 {
            fixes.push(format!("request at most {most}"));
        }
        if is_temporary {
            fixes.push("wait for the others (--wait)".to_owned());
            fixes.push("share them (--share)".to_owned());
        } else if !is_impossible {
            fixes.extend(self.limits().map(str::to_owned));
        }
        if fixes.is_empty() {
            fixes.push("plan for another machine".to_owned());
        }
        PlanError::TooFew(Box::new(Shortage {
            requested: requested.to_owned(),
            free,
            exist,
            others: self.others(),
            is_impossible,
            fix: fixes.join(" or "),
            is_temporary,
        }))
    }

    /// How the caller can get more cores.
    fn limits(&self) -> impl Iterator<Item = &'static str> {
        let found = [
            (Why::Mask, "start with a wider mask"),
            (Why::NotNamed, "name more in --cpus or --nodes"),
            (Why::Excluded, "exclude fewer"),
            (Why::Isolated, "name the isolated ones in --cpus"),
            (Why::Narrow, "use fewer threads per core"),
        ]
        .map(|(why, fix)| self.why.contains(&Some(why)).then_some(fix));
        let stride = (self.request.stride > 1).then_some("use a smaller stride");
        found.into_iter().chain([stride]).flatten()
    }

    /// Why cores are not free, a line for each reason.
    fn others(&self) -> Vec<String> {
        let cores = |wanted: Why| -> CpuSet {
            let found = self.machine.spots.iter().zip(&self.why).filter(|(_, why)| **why == Some(wanted));
            found.map(|(spot, _)| spot.pus[0]).collect()
        };
        let mut lines = Vec::new();
        for (why, text) in [
            (Why::Mask, "outside the inherited mask or cpuset"),
            (Why::NotNamed, "outside the request's lists"),
            (Why::Excluded, "excluded by the request"),
            (Why::Reserved, "excluded by the configuration"),
            (Why::Isolated, "isolated"),
            (Why::Narrow, "with too few PUs for the threads per core"),
        ] {
            let count = cores(why).len();
            if count > 0 {
                lines.push(format!("{count} {text}"));
            }
        }
        self.holders(&cores(Why::Registered), &mut lines);
        let busy = self.machine.spots.iter().zip(&self.why).filter(|(_, why)| **why == Some(Why::Busy));
        let busy: CpuSet = busy.flat_map(|(spot, _)| spot.pus.iter().copied()).collect();
        let loads = self.taken.busy.iter().filter(|(cpu, _)| busy.contains(*cpu));
        let loads: Vec<String> = loads.map(|(cpu, load)| format!("CPU {cpu} at {load} %")).collect();
        if !loads.is_empty() {
            lines.push(format!("{} busy ({})", cores(Why::Busy).len(), some(&loads)));
        }
        let strided = self.why.iter().filter(|why| why.is_none()).count() as u64 - self.count();
        if strided > 0 {
            lines.push(format!("{strided} skipped by stride {}", self.request.stride));
        }
        lines
    }

    fn holders(&self, cores: &CpuSet, lines: &mut Vec<String>) {
        let mut left = cores.clone();
        for (cpus, who) in &self.taken.registered {
            let whole =
                self.machine.spots.iter().filter(|spot| spot.pus.iter().any(|&cpu| cpus.contains(cpu)));
            let theirs = whole.map(|spot| spot.pus[0]).collect::<CpuSet>().and(&left);
            if !theirs.is_empty() {
                left = left.minus(&theirs);
                let shown = cpus.and(&self.registered).to_string();
                lines.push(format!("{} held by {who} (CPUs {})", theirs.len(), cut(&shown)));
            }
        }
    }
}

/// Maximum length of a list of CPUs in an error.
const SHOWN: usize = 60;

fn cut(list: &str) -> String {
    match list.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &list[..end]),
        None => list.to_owned(),
    }
}

/// The first few, and how many more.
fn some(items: &[String]) -> String {
    let shown = items.iter().take(4).cloned().collect::<Vec<_>>().join(", ");
    if items.len() > 4 { format!("{shown} and {} more", items.len() - 4) } else { shown }
}
