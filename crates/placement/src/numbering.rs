//! Logical numbers, as hwloc and programs based on it use them: in the order of the tree of the machine's parts. On many
//! machines they differ from the kernel's numbers.

use numakit_model::{CpuSet, Topology};

/// The logical numbers of all CPUs that this process may run on.
#[derive(Debug, Clone, Default)]
pub struct LogicalNumbering {
    /// The position of each CPU.
    places: Vec<Option<LogicalPosition>>,
}

/// The position of a CPU in hwloc's order; each number counts from 0, over allowed parts only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogicalPosition {
    /// The number of the PU among all PUs.
    pub pu: u32,
    /// The number of its core in the machine.
    pub core: u32,
    /// The number of its package.
    pub package: u32,
    /// The number of its core in its package.
    pub core_of_package: u32,
}

impl LogicalNumbering {
    /// Numbers the parts of a machine, depth first. The children of a part are in the order of their first CPU, even if that
    /// CPU is not allowed; but only allowed CPUs are counted.
    pub fn of(t: &Topology) -> Self {
        let order = order(t);
        let core_of = membership(t, t.cores.iter().map(|core| &core.cpus));
        let package_of = membership(t, t.packages.iter().map(|package| &package.cpus));
        let mut places = vec![None; order.iter().max().map_or(0, |last| *last as usize + 1)];
        let mut cores = Counter::default();
        let mut packages = Counter::default();
        let mut inside: Vec<u32> = Vec::new();
        let mut core_numbers: Vec<u32> = Vec::new();
        for (pu, &cpu) in order.iter().filter(|&&cpu| t.allowed.contains(cpu)).enumerate() {
            let at = cpu as usize;
            // A CPU without a core counts as a core; CPUs without a package count as one package.
            let core_key = core_of[at].map_or((1, cpu), |core| (0, core));
            let package_key = package_of[at].map_or((1, 0), |package| (0, package));
            let (package, _) = packages.number(package_key);
            let (core, new) = cores.number(core_key);
            if new {
                inside.resize(inside.len().max(package as usize + 1), 0);
                core_numbers.push(inside[package as usize]);
                inside[package as usize] += 1;
            }
            let core_of_package = core_numbers.get(core as usize).copied().unwrap_or_default();
            places[at] = Some(LogicalPosition { pu: pu as u32, core, package, core_of_package });
        }
        Self { places }
    }

    /// The position of a CPU; `None` if it is not allowed.
    pub fn place(&self, cpu: u32) -> Option<LogicalPosition> {
        self.places.get(cpu as usize).copied().flatten()
    }
}

/// Numbers keys in the order of their first occurrence.
#[derive(Default)]
struct Counter {
    known: std::collections::HashMap<(u32, u32), u32>,
}

impl Counter {
    /// The number of a key, and whether the key is new.
    fn number(&mut self, key: (u32, u32)) -> (u32, bool) {
        let next = self.known.len() as u32;
        let number = *self.known.entry(key).or_insert(next);
        (number, number == next)
    }
}

/// The position of the set that each CPU is in.
fn membership<'a>(t: &Topology, sets: impl Iterator<Item = &'a CpuSet>) -> Vec<Option<u32>> {
    let mut table = vec![None; slots(t)];
    for (at, set) in sets.enumerate() {
        for cpu in set.iter() {
            if let Some(slot) = table.get_mut(cpu as usize) {
                *slot = Some(at as u32);
            }
        }
    }
    table
}

fn slots(t: &Topology) -> usize {
    t.online.last().map_or(0, |last| last as usize + 1)
}

/// All online CPUs in the order of the tree.
///
/// A CPU's key is the first CPU of each part around it, from the outside in. Parts that share
/// their parent have different first CPUs, so comparing keys walks the tree.
fn order(t: &Topology) -> Vec<u32> {
    let mut keys: Vec<Vec<u32>> = vec![Vec::new(); slots(t)];
    let mut innermost: Vec<u32> = vec![0; slots(t)];
    for (at, set) in (1u32..).zip(parts(t)) {
        let Some(first) = set.first() else { continue };
        let parent = innermost.get(first as usize).copied();
        // A part that overlaps another one partially is not in hwloc's tree.
        if !set.iter().all(|cpu| innermost.get(cpu as usize).copied() == parent) {
            continue;
        }
        for cpu in set.iter().map(|cpu| cpu as usize) {
            if let (Some(key), Some(inner)) = (keys.get_mut(cpu), innermost.get_mut(cpu)) {
                key.push(first);
                *inner = at;
            }
        }
    }
    let mut order: Vec<u32> = t.online.iter().collect();
    for &cpu in &order {
        keys[cpu as usize].push(cpu);
    }
    order.sort_by(|a, b| keys[*a as usize].cmp(&keys[*b as usize]));
    order
}

/// All parts, larger ones first.
fn parts(t: &Topology) -> Vec<&CpuSet> {
    let groups = [&t.drawers, &t.books, &t.dies, &t.clusters].into_iter().flatten();
    let mut parts: Vec<&CpuSet> = groups
        .chain(t.packages.iter().map(|package| &package.cpus))
        .chain(t.nodes.iter().map(|node| &node.cpus))
        .chain(t.caches.iter().map(|cache| &cache.cpus))
        .chain(t.cores.iter().map(|core| &core.cpus))
        .collect();
    parts.sort_by_cached_key(|set| std::cmp::Reverse(set.len()));
    parts
}
