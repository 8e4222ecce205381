//! Which L3 caches are monitored, and the package or node of each.

use super::FOLDER;
use crate::Scene;
use crate::layout::digits;
use numakit_model::{CpuSet, Instance, Scope, Topology};
use numakit_sys::SysRoot;
use std::collections::{BTreeMap, BTreeSet};

const CPU: &str = "/sys/devices/system/cpu";

/// A part of the machine with its own counts.
#[derive(Debug)]
pub struct Domain {
    /// Its folder below `mon_data`.
    folder: String,
    /// Its name in series.
    pub instance: Instance,
}

impl Domain {
    /// The path of one of its values for a group.
    pub fn file(&self, group: &str, name: &str) -> String {
        match group {
            "/" => format!("{FOLDER}/mon_data/{}/{name}", self.folder),
            group => format!("{FOLDER}/{group}/mon_data/{}/{name}", self.folder),
        }
    }
}

/// All domains; they have the same scope.
#[derive(Debug)]
pub struct Domains {
    /// Their scope.
    pub scope: Scope,
    /// Ordered by number.
    pub found: Vec<Domain>,
}

impl Domains {
    /// The domains of a folder `mon_data`.
    ///
    /// If every domain is a part of a cache (sub-NUMA clusters), the kernel numbers them by node, and
    /// the sums over the caches are left out. Otherwise domains are packages if each package has
    /// one, nodes if each node has one, and otherwise caches with the kernel's number.
    pub fn of(scene: &Scene<'_>, mon_data: &str) -> Self {
        let folders = numbered(scene.root, mon_data, "mon_L3_");
        let mut parts: Vec<Domain> = Vec::new();
        for (_, folder) in &folders {
            for (node, part) in numbered(scene.root, &format!("{mon_data}/{folder}"), "mon_sub_L3_") {
                let instance = Instance::Node(node);
                if !parts.iter().any(|part| part.instance == instance) {
                    parts.push(Domain { folder: format!("{folder}/{part}"), instance });
                }
            }
        }
        if !parts.is_empty() {
            return Self { scope: Scope::Node, found: parts };
        }
        let cpus = cpus_by_cache(scene);
        let place = |id: &u32| cpus.get(id);
        let names = one_each(&folders, |id| package_of(scene.topology, place(id)?))
            .map(|ids| (Scope::Package, ids))
            .or_else(|| {
                one_each(&folders, |id| node_of(scene.topology, place(id)?)).map(|ids| (Scope::Node, ids))
            });
        let (scope, ids) =
            names.unwrap_or_else(|| (Scope::Cache, folders.iter().map(|(id, _)| *id).collect()));
        let instance = |id| match scope {
            Scope::Package => Instance::Package(id),
            Scope::Node => Instance::Node(id),
            _ => Instance::Cache(id),
        };
        let found = folders.into_iter().zip(ids);
        Self {
            scope,
            found: found.map(|((_, folder), id)| Domain { folder, instance: instance(id) }).collect(),
        }
    }
}

/// Folders named `start` and a number; the first of each number.
fn numbered(root: &SysRoot, path: &str, start: &str) -> Vec<(u32, String)> {
    let mut seen = BTreeMap::new();
    for name in root.list(path).unwrap_or_default() {
        if let Some((id, b"")) = name.strip_prefix(start).and_then(|rest| digits(rest.as_bytes()))
            && let Ok(id) = u32::try_from(id)
        {
            seen.entry(id).or_insert(name);
        }
    }
    seen.into_iter().collect()
}

/// The name of each domain, if each has one and all differ.
fn one_each(folders: &[(u32, String)], name: impl Fn(&u32) -> Option<u32>) -> Option<Vec<u32>> {
    let names: Option<Vec<u32>> = folders.iter().map(|(id, _)| name(id)).collect();
    names.filter(|ids| ids.iter().collect::<BTreeSet<_>>().len() == folders.len())
}

/// The online CPUs of each L3 cache, by the kernel's number of the cache.
fn cpus_by_cache(scene: &Scene<'_>) -> BTreeMap<u32, CpuSet> {
    let mut found: BTreeMap<u32, CpuSet> = BTreeMap::new();
    for cache in scene.topology.caches_of_level(3) {
        let Some(cpu) = cache.cpus.first() else { continue };
        if let Some(id) = number_of_l3(scene.root, cpu) {
            found.insert(id, cache.cpus.clone());
        }
    }
    found
}

/// No CPU has more caches than this.
const MAX_CACHES: u32 = 16;

fn number_of_l3(root: &SysRoot, cpu: u32) -> Option<u32> {
    let number = |path: String| root.text(&path).ok()?.trim().parse::<u32>().ok();
    (0..MAX_CACHES).map(|index| format!("{CPU}/cpu{cpu}/cache/index{index}")).find_map(|folder| {
        (number(format!("{folder}/level"))? == 3).then(|| number(format!("{folder}/id"))).flatten()
    })
}

fn package_of(topology: &Topology, cpus: &CpuSet) -> Option<u32> {
    topology.packages.iter().find(|package| cpus.is_subset(&package.cpus))?.os_index
}

fn node_of(topology: &Topology, cpus: &CpuSet) -> Option<u32> {
    Some(topology.nodes.iter().find(|node| cpus.is_subset(&node.cpus))?.os_index)
}
