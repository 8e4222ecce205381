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
    let is_free = |core: &&Core| core.cpus.intersects(&topology.allowed) && !core.cpus.intersects(&held);
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
        counts.filter(|count| *count > 0).max()
    });
    let threads = cores.iter().map(|core| core.cpus.and(&topology.allowed).len() as u32).max();
    TunedMachine {
        nodes: (topology.nodes.iter().filter(has_both).count() as u32).max(1),
        cores: cores.len() as u32,
        cores_per_cache: in_cache.unwrap_or(cores.len() as u32),
        threads_per_core: threads.unwrap_or(1),
        has_openmp: true,
        allocators: allocators(),
        settings: if with_settings { settings() } else { Vec::new() },
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
