//! Builds the machine of a description.

mod distances;

use super::DescriptionError;
use super::grammar::{
    DEFAULT_MEMORY_KB, SyntheticLevel, SyntheticMachine, SyntheticNumbering, SyntheticPart,
};
use crate::boards;
use crate::json::{MAX_CPUS, MAX_NODES};
use numakit_model::topology::{Cache, CacheKind, Core, Device, Node, Package};
use numakit_model::{CpuSet, Topology};

type Result<T> = std::result::Result<T, DescriptionError>;

const DEFAULT_L3: u64 = 32 << 20;
const DEFAULT_L2: u64 = 1 << 20;
/// The caches that cores of a unit share, as in AMD's family 15h.
const UNIT_L2: u64 = 2 << 20;
const UNIT_L1I: u64 = 64 << 10;
const LINE: u32 = 64;

/// Linux on x86 counts the second PUs after the first PUs of all cores, as the firmware lists them.
const DEFAULT_NUMBERING: SyntheticNumbering = SyntheticNumbering::Interleaved;

/// The machine as numbers of parts. All parts of a kind are alike, so the number of a core says where it is.
struct Shape<'a> {
    /// Each level, with the number of its parts in the whole machine.
    levels: Vec<(SyntheticPart, SyntheticLevel, usize)>,
    cores: usize,
    threads: usize,
    /// The CPU of each thread of each core, where the facts of a machine list them.
    listed: Vec<u32>,
    description: &'a SyntheticMachine,
}

pub fn build(description: &SyntheticMachine, text: &str) -> Result<Topology> {
    let shape = Shape::of(description)?;
    let nodes = shape.nodes();
    let distances = shape.distances(&nodes)?;
    let online = shape.cpus(0..shape.cores);
    let mut topology = Topology {
        origin: format!("synthetic {text}"),
        page_size: 4096,
        allowed: online.clone(),
        allowed_nodes: nodes.iter().map(|n| n.os_index).collect(),
        online,
        packages: shape.packages(),
        dies: if shape.total(SyntheticPart::Die).is_some() {
            shape.groups(SyntheticPart::Die)
        } else {
            Vec::new()
        },
        units: if shape.total(SyntheticPart::Unit).is_some() {
            shape.groups(SyntheticPart::Unit)
        } else {
            Vec::new()
        },
        cores: shape.core_list(),
        caches: shape.caches(),
        devices: shape.devices(&nodes)?,
        nodes,
        distances,
        ..Topology::default()
    };
    topology.notes.extend(shape.assumed_numbering());
    restrict(&mut topology, description)?;
    // A unit of one core is no unit: it is that core.
    let cores = &topology.cores;
    let core_of = |unit: &CpuSet| cores.binary_search_by_key(&unit.first(), |core| core.cpus.first());
    topology.units.retain(|unit| core_of(unit).is_ok_and(|at| cores[at].cpus != *unit));
    topology.boards = boards::find(&topology);
    let named = shape.total(SyntheticPart::Board).unwrap_or(1);
    if named > 1 && topology.distances.is_some() && topology.boards.len() != named {
        topology.notes.push(format!("the distances do not distinguish the {named} boards"));
    }
    Ok(topology)
}

impl<'a> Shape<'a> {
    fn of(description: &'a SyntheticMachine) -> Result<Self> {
        let mut levels = description.levels.clone();
        let has =
            |levels: &[(SyntheticPart, SyntheticLevel)], part| levels.iter().position(|(p, _)| *p == part);
        let one = |part| (part, SyntheticLevel { count: 1, ..SyntheticLevel::default() });
        // Without nodes, the machine or each board is one node; without packages, each node is one package.
        for (part, outside) in
            [(SyntheticPart::Node, SyntheticPart::Board), (SyntheticPart::Package, SyntheticPart::Node)]
        {
            if has(&levels, part).is_none() {
                levels.insert(has(&levels, outside).map_or(0, |at| at + 1), one(part));
            }
        }
        for part in [SyntheticPart::Core, SyntheticPart::Pu] {
            if has(&levels, part).is_none() {
                let last = if part == SyntheticPart::Core { has(&levels, SyntheticPart::Pu) } else { None };
                levels.insert(last.unwrap_or(levels.len()), one(part));
            }
        }
        let mut total = 1usize;
        let mut with_totals = Vec::new();
        for (part, level) in levels {
            total = total.saturating_mul(level.count as usize);
            let max = if part == SyntheticPart::Node { MAX_NODES } else { MAX_CPUS as usize };
            if total > max {
                let what = if part == SyntheticPart::Node { "nodes" } else { "CPUs" };
                let fix = format!("make it at most {max} {what}");
                return Err(DescriptionError::new(
                    level.at,
                    format!("{total} or more {what} are too many"),
                    fix,
                ));
            }
            with_totals.push((part, level, total));
        }
        let of = |part| with_totals.iter().find(|(p, ..)| *p == part).map_or(1, |(.., total)| *total);
        let (cores, pus) = (of(SyntheticPart::Core), of(SyntheticPart::Pu));
        let threads = pus / cores;
        let listed = match &description.facts {
            Some(facts) => facts.cpu_numbers(cores, threads, description.is_sequential())?,
            None => Vec::new(),
        };
        Ok(Self { cores, threads, listed, levels: with_totals, description })
    }

    fn total(&self, part: SyntheticPart) -> Option<usize> {
        self.levels.iter().find(|(p, ..)| *p == part).map(|(.., total)| *total)
    }

    /// The CPU number of a hardware thread.
    fn cpu(&self, core: usize, thread: usize) -> u32 {
        if let Some(number) = self.listed.get(core * self.threads + thread) {
            return *number;
        }
        let in_package = self.cores / self.total(SyntheticPart::Package).unwrap_or(1);
        let number = match self.description.numbering.unwrap_or(DEFAULT_NUMBERING) {
            SyntheticNumbering::Sequential => core * self.threads + thread,
            SyntheticNumbering::Interleaved => thread * self.cores + core,
            SyntheticNumbering::RoundRobin => {
                let packages = self.cores / in_package;
                thread * self.cores + core % in_package * packages + core / in_package
            }
        };
        number as u32
    }

    /// Says which numbers the PUs got, where another numbering would give a core other CPUs.
    fn assumed_numbering(&self) -> Option<String> {
        (self.threads > 1 && self.description.numbering.is_none()).then(|| {
            format!(
                "CPUs are numbered as on x86, core 0 is CPUs {}; if it is CPUs {}: numbering=sequential",
                self.cpus(0..1),
                CpuSet::range(0, self.threads as u32 - 1)
            )
        })
    }

    fn cpus(&self, cores: std::ops::Range<usize>) -> CpuSet {
        cores.flat_map(|core| (0..self.threads).map(move |thread| self.cpu(core, thread))).collect()
    }

    /// The CPUs of each part of a kind.
    fn groups(&self, part: SyntheticPart) -> Vec<CpuSet> {
        let total = self.total(part).unwrap_or(1);
        let each = self.cores / total;
        (0..total).map(|at| self.cpus(at * each..(at + 1) * each)).collect()
    }

    fn packages(&self) -> Vec<Package> {
        let groups = self.groups(SyntheticPart::Package).into_iter().zip(0..);
        groups.map(|(cpus, id)| Package { os_index: Some(id), cpus }).collect()
    }

    fn core_list(&self) -> Vec<Core> {
        let in_package = self.cores / self.total(SyntheticPart::Package).unwrap_or(1);
        let core = |at: usize| Core {
            os_index: self.description.facts.is_none().then_some((at % in_package) as u32),
            cpus: self.cpus(at..at + 1),
            kind: None,
        };
        let mut cores: Vec<Core> = (0..self.cores).map(core).collect();
        cores.sort_by_key(|core| core.cpus.first());
        cores
    }

    fn caches(&self) -> Vec<Cache> {
        let mut caches = Vec::new();
        let is_known = self.description.facts.is_some();
        let mut add = |level, kind, size: Option<u64>, usual, groups: Vec<CpuSet>| {
            let size = size.or_else(|| (!is_known).then_some(usual));
            let ways = (!is_known).then_some(if level == 1 { 8 } else { 16 });
            let line_size = (!is_known).then_some(LINE);
            let cache = |cpus| Cache { level, kind, size, line_size, ways, cpus };
            caches.extend(groups.into_iter().map(cache));
        };
        let has_unit = self.total(SyntheticPart::Unit).is_some();
        for (part, level, _) in &self.levels {
            let groups = || self.groups(*part);
            match part {
                SyntheticPart::L3 => add(3, CacheKind::Unified, level.size, DEFAULT_L3, groups()),
                SyntheticPart::L2 => add(2, CacheKind::Unified, level.size, DEFAULT_L2, groups()),
                SyntheticPart::Unit => {
                    add(1, CacheKind::Instruction, None, UNIT_L1I, groups());
                    if self.total(SyntheticPart::L2).is_none() {
                        add(2, CacheKind::Unified, level.size, UNIT_L2, groups());
                    }
                }
                SyntheticPart::Core => {
                    if let Some(size) = level.l1 {
                        add(1, CacheKind::Data, level.l1, size, groups());
                    }
                    // A unit has one instruction cache for all of its cores.
                    if let Some(size) = level.l1i.or(level.l1).filter(|_| !has_unit) {
                        add(1, CacheKind::Instruction, Some(size), size, groups());
                    }
                    if let Some(size) = level.l2 {
                        add(2, CacheKind::Unified, level.l2, size, groups());
                    }
                }
                _ => {}
            }
        }
        caches.sort_by_key(|c: &Cache| (c.level, c.kind as u8, c.cpus.first()));
        caches
    }

    fn nodes(&self) -> Vec<Node> {
        let facts = self.description.facts.as_ref();
        let usual = facts.is_none().then_some(DEFAULT_MEMORY_KB);
        let level = self.levels.iter().find(|(part, ..)| *part == SyntheticPart::Node);
        let memory = level.and_then(|(_, level, _)| level.memory_kb).or(usual);
        let near = self.groups(SyntheticPart::Node).into_iter().map(|cpus| (cpus, memory));
        let far = self.description.far.iter();
        let far = far.flat_map(|far| (0..far.count).map(move |_| (CpuSet::new(), far.memory_kb.or(usual))));
        let node = |((cpus, memory), at)| {
            let os_index = facts.map_or(at as u32, |facts| facts.node_number(at));
            let memory_kb = facts.and_then(|facts| facts.memory_of(os_index)).or(memory);
            // How much of the memory of a real machine is free is unknown.
            let free_kb = memory_kb.filter(|_| facts.is_none());
            Node { os_index, cpus, memory_kb, free_kb, ..Node::default() }
        };
        near.chain(far.take(MAX_NODES + 1)).zip(0..).map(node).collect()
    }

    fn devices(&self, nodes: &[Node]) -> Result<Vec<Device>> {
        let device = |((at, class, node), bus): (&(usize, String, u32), usize)| {
            if !nodes.iter().any(|known| known.os_index == *node) {
                let fix = format!("the nodes are 0 to {}", nodes.len() - 1);
                return Err(DescriptionError::new(*at, format!("there is no node {node}"), fix));
            }
            Ok(Device { name: format!("pci 0000:{bus:02x}:00.0"), class: class.clone(), node: Some(*node) })
        };
        self.description.devices.iter().zip(1..).map(device).collect()
    }
}

/// Takes CPUs offline and restricts the allowed ones.
fn restrict(t: &mut Topology, description: &SyntheticMachine) -> Result<()> {
    if let Some((at, offline)) = &description.offline {
        t.offline = offline.and(&t.online);
        t.online = t.online.minus(offline);
        t.allowed = t.online.clone();
        if t.online.is_empty() {
            return Err(DescriptionError::new(*at, "no CPU is left online", "take fewer CPUs offline"));
        }
        let online = t.online.clone();
        let cut = |cpus: &mut CpuSet| {
            *cpus = cpus.and(&online);
            !cpus.is_empty()
        };
        t.packages.retain_mut(|p| cut(&mut p.cpus));
        t.dies.retain_mut(cut);
        t.units.retain_mut(cut);
        t.cores.retain_mut(|c| cut(&mut c.cpus));
        t.caches.retain_mut(|c| cut(&mut c.cpus));
        t.nodes.iter_mut().for_each(|n| {
            cut(&mut n.cpus);
        });
    }
    if let Some((at, allowed)) = &description.allowed {
        t.allowed = allowed.and(&t.online);
        if t.allowed.is_empty() {
            let fix = format!("name some of CPUs {}", t.online);
            return Err(DescriptionError::new(*at, "none of these CPUs is online", fix));
        }
    }
    Ok(())
}
