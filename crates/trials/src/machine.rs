//! What of this machine decides which settings there are.

use numakit_model::topology::{Core, Node};
use numakit_model::{CpuSet, Topology};
use numakit_sys::guard;
use numakit_tune::candidates::TunedMachine;
use std::path::{Path, PathBuf};

/// Allocators that replace the C library's when they are preloaded, as Linux distributions name them, and where these are.
const ALLOCATORS: [&str; 3] = ["libjemalloc.so.2", "libmimalloc.so.2", "libtcmalloc_minimal.so.4"];
const FOLDERS: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/lib",
    "/lib64",
];
/// Settings of the machine that may make programs faster, with their values.
const SETTINGS: [(&str, &[&str]); 2] = [
    ("/sys/kernel/mm/transparent_hugepage/enabled", &["always", "madvise", "never"]),
    ("/proc/sys/kernel/numa_balancing", &["0", "1"]),
];

/// The machine, as far as settings depend on it. Cores that other programs have reserved are not there.
pub fn tuned(topology: &Topology, with_settings: bool) -> TunedMachine {
    let held = numakit_registry::inspect().map_or_else(|_| CpuSet::new(), |view| view.held());
    TunedMachine {
        allocators: allocators(),
        settings: if with_settings { settings() } else { Vec::new() },
        ..shaped(topology, &held)
    }
}

/// Its shape without these CPUs.
fn shaped(topology: &Topology, held: &CpuSet) -> TunedMachine {
    let is_free = |core: &&Core| core.cpus.intersects(&topology.allowed) && !core.cpus.intersects(held);
    let cores: Vec<&Core> = topology.cores.iter().filter(is_free).collect();
    let has_both = |node: &&Node| {
        node.cpus.intersects(&topology.allowed)
            && topology.allowed_nodes.contains(node.os_index)
            && node.memory_kb != Some(0)
    };
    let last_level = topology.caches.iter().map(|cache| cache.level).max();
    let in_cache = last_level.and_then(|level| {
        let counts = topology
            .caches_of_level(level)
            .map(|cache| cores.iter().filter(|core| core.cpus.intersects(&cache.cpus)).count() as u32);
        // A cache of one core is no reason to run on as many.
        counts.filter(|count| *count > 1).max()
    });
    let threads = cores.iter().map(|core| core.cpus.and(&topology.allowed).len() as u32).max();
    TunedMachine {
        nodes: (topology.nodes.iter().filter(has_both).count() as u32).max(1),
        cores: cores.len() as u32,
        cores_per_cache: in_cache.unwrap_or(cores.len() as u32),
        threads_per_core: threads.unwrap_or(1),
        has_openmp: true,
        allocators: Vec::new(),
        settings: Vec::new(),
    }
}

fn allocators() -> Vec<String> {
    let find =
        |name: &&str| FOLDERS.iter().map(|folder| Path::new(folder).join(name)).find(|file| file.exists());
    ALLOCATORS.iter().filter_map(find).map(|file| file.display().to_string()).collect()
}

/// The files of settings that this kernel has, with the values that they do not have now.
fn settings() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (file, values) in SETTINGS {
        if let Ok(now) = guard::value(Path::new(file)) {
            found.extend(
                values
                    .iter()
                    .filter(|value| **value != now)
                    .map(|value| (file.to_owned(), (*value).to_owned())),
            );
        }
    }
    found
}

/// The files of these settings.
pub fn files(machine: &TunedMachine) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = machine.settings.iter().map(|(file, _)| PathBuf::from(file)).collect();
    files.dedup();
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_topology::synthetic;

    /// Nodes, cores, cores of a cache, hardware threads of a core.
    fn shape(machine: &TunedMachine) -> [u32; 4] {
        [machine.nodes, machine.cores, machine.cores_per_cache, machine.threads_per_core]
    }

    #[test]
    fn machines_have_nodes_cores_and_caches() {
        let shapes = [
            ("haswell-ep", [2, 24, 12, 2]),
            ("zen4", [2, 64, 8, 2]),
            ("power10", [2, 20, 10, 8]),
            // Its last level belongs to one core, so no cores share one.
            ("altra", [2, 160, 160, 1]),
        ];
        for (name, wanted) in shapes {
            let machine = numakit_testing::machines::machine(name).unwrap();
            let found = shaped(&machine.topology, &CpuSet::new());
            assert_eq!(shape(&found), wanted, "{name}");
        }
    }

    #[test]
    fn what_is_reserved_or_not_allowed_is_not_there() {
        let mut topology = synthetic::parse("node:2 core:4 pu:2").unwrap();
        assert_eq!(shape(&shaped(&topology, &CpuSet::new()))[1], 8);
        let held: CpuSet = topology.cores[0].cpus.clone();
        assert_eq!(shape(&shaped(&topology, &held))[1], 7);
        topology.allowed = topology.nodes[1].cpus.clone();
        let half = shaped(&topology, &CpuSet::new());
        assert_eq!(shape(&half)[..2], [1, 4]);
        // Where all is reserved, there are no cores, and nothing is divided by that.
        let none = shaped(&topology, &topology.allowed);
        assert_eq!((none.nodes, none.cores), (1, 0));
        assert!(!numakit_tune::candidates::placements(&none).is_empty());
    }

    #[test]
    fn settings_of_the_machine_are_those_that_it_has_not() {
        let topology = synthetic::parse("node:1 core:2 pu:1").unwrap();
        assert_eq!(tuned(&topology, false).settings, []);
        let machine = tuned(&topology, true);
        for (file, other) in &machine.settings {
            assert_ne!(guard::value(Path::new(file)).ok().as_deref(), Some(other.as_str()));
        }
        let known: Vec<PathBuf> = SETTINGS.iter().map(|(file, _)| PathBuf::from(file)).collect();
        assert!(files(&machine).iter().all(|file| known.contains(file)), "{machine:?}");
    }
}
