//! The /sys and /proc of a simulated machine: [`numakit_topology::read`] reads the topology from
//! which they were created.

use numakit_model::topology::{Cache, CacheKind, Node};
use numakit_model::{CpuSet, Topology};
use numakit_sys::SysRoot;
use numakit_sys::root::FileTree;
use numakit_topology::page_size::vector_of;
use std::fmt::Write;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

const CPU: &str = "/sys/devices/system/cpu";
const NODE: &str = "/sys/devices/system/node";
const WEIGHTS: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";

// Counter files; a topology has no counters.
const VMSTAT: &str = "nr_free_pages 1000\nnuma_hit 100\nnuma_miss 0\npgfault 100\npgmajfault 0\n";
const NODE_VMSTAT: &str = "nr_free_pages 1000\nnuma_hit 100\nnuma_miss 0\n";
const NUMASTAT: &str =
    "numa_hit 100\nnuma_miss 0\nnuma_foreign 0\ninterleave_hit 0\nlocal_node 100\nother_node 0\n";

/// Writes files, directories and links below a directory without `sys` and `proc`.
pub fn write(tree: &FileTree, directory: &Path) -> io::Result<()> {
    let place = |path: &str| directory.join(path.trim_start_matches('/'));
    tree.directories().try_for_each(|path| fs::create_dir_all(place(path)))?;
    tree.files().try_for_each(|(path, content)| fs::write(place(path), content))?;
    tree.links().try_for_each(|(path, target)| symlink(target, place(path)))
}

/// A root in memory with these files.
pub fn root(files: &[(&str, &str)]) -> SysRoot {
    let mut tree = FileTree::new();
    for (path, content) in files {
        tree.file(path, *content);
    }
    SysRoot::of_tree(tree)
}

/// A machine with these nodes.
pub fn nodes(ids: &[u32]) -> Topology {
    let nodes = ids.iter().map(|&os_index| Node { os_index, ..Node::default() }).collect();
    Topology { nodes, ..Topology::default() }
}

/// The files of a machine.
pub fn tree(t: &Topology) -> FileTree {
    let mut tree = FileTree::new();
    let known = t.online.or(&t.offline);
    let masks = Masks { words: known.last().unwrap_or(0) as usize / 32 + 1 };
    for (name, cpus) in
        [("online", &t.online), ("present", &known), ("possible", &known), ("offline", &t.offline)]
    {
        tree.file(&format!("{CPU}/{name}"), line(cpus));
    }
    write_kinds(t, &mut tree);
    let places = Places::of(t, &masks);
    for cpu in known.iter() {
        tree.file(&format!("{CPU}/cpu{cpu}/online"), if t.online.contains(cpu) { b"1\n" } else { b"0\n" });
        if t.online.contains(cpu) {
            places.write(cpu, &mut tree);
        }
    }
    if !t.nodes.iter().any(|node| node.implicit) {
        write_nodes(t, &masks, &mut tree);
    }
    for device in &t.devices {
        let directory = device.name.replace("pci ", "/sys/bus/pci/devices/");
        tree.file(&format!("{directory}/class"), class_code(&device.class));
        let node = device.node.map_or(-1, i64::from);
        tree.file(&format!("{directory}/numa_node"), format!("{node}\n"));
    }
    write_proc(t, &mut tree);
    tree
}

/// The class file of a PCI device of this class.
fn class_code(class: &str) -> String {
    let base = match class {
        "storage" => "01",
        "network" => "02",
        "display" => "03",
        "accelerator" => "12",
        _ => "ff",
    };
    format!("0x{base}0000\n")
}

/// Kinds of cores in the files that their names come from.
fn write_kinds(t: &Topology, tree: &mut FileTree) {
    for kind in &t.kinds {
        if kind.name.starts_with("cpu_") {
            tree.file(&format!("/sys/devices/{}/cpus", kind.name), line(&kind.cpus));
            continue;
        }
        let base =
            kind.name.strip_suffix(" MHz base").map(|mhz| ("cpufreq/base_frequency", format!("{mhz}000\n")));
        let capacity =
            kind.name.strip_prefix("capacity ").map(|value| ("cpu_capacity", format!("{value}\n")));
        let Some((file, content)) = base.or(capacity) else { continue };
        for cpu in kind.cpus.iter() {
            tree.file(&format!("{CPU}/cpu{cpu}/{file}"), content.as_str());
        }
    }
}

fn write_proc(t: &Topology, tree: &mut FileTree) {
    let total = t.memory_kb().unwrap_or(0);
    let free = t.nodes.iter().filter_map(|n| n.free_kb).fold(0, u64::saturating_add);
    let meminfo = format!("MemTotal:       {total} kB\nMemFree:        {free} kB\n");
    tree.file("/proc/meminfo", meminfo);
    let mut stat = "cpu  1000 0 1000 100000 10 0 10 0 0 0\n".to_owned();
    for cpu in t.online.iter() {
        // Writing to a string cannot fail.
        let _ = writeln!(stat, "cpu{cpu} 10 0 10 1000 1 0 1 0 0 0");
    }
    stat.push_str(
        "intr 1000\nctxt 1000\nbtime 1700000000\nprocesses 100\nprocs_running 1\nprocs_blocked 0\n",
    );
    tree.file("/proc/stat", stat);
    tree.file("/proc/vmstat", VMSTAT);
    let status = format!("Cpus_allowed_list:\t{}\nMems_allowed_list:\t{}\n", t.allowed, t.allowed_nodes);
    tree.file("/proc/self/status", status);
    tree.file("/proc/self/auxv", vector_of(t.page_size));
}

fn write_nodes(t: &Topology, masks: &Masks, tree: &mut FileTree) {
    let ids = t.node_ids();
    let with = |has: &dyn Fn(&Node) -> bool| -> CpuSet {
        t.nodes.iter().filter(|node| has(node)).map(|node| node.os_index).collect()
    };
    tree.file(&format!("{NODE}/online"), line(&ids));
    tree.file(&format!("{NODE}/possible"), line(&ids));
    tree.file(&format!("{NODE}/has_cpu"), line(&with(&|n| !n.cpus.is_empty())));
    tree.file(&format!("{NODE}/has_memory"), line(&with(&|n| n.memory_kb != Some(0))));
    for (at, node) in t.nodes.iter().enumerate() {
        let directory = format!("{NODE}/node{}", node.os_index);
        tree.file(&format!("{directory}/cpulist"), line(&node.cpus));
        tree.file(&format!("{directory}/cpumap"), masks.text(&node.cpus));
        tree.file(&format!("{directory}/numastat"), NUMASTAT);
        tree.file(&format!("{directory}/vmstat"), NODE_VMSTAT);
        if let Some(row) = t.distances.as_ref().and_then(|d| d.rows.get(at)) {
            let row: Vec<String> = row.iter().map(u32::to_string).collect();
            tree.file(&format!("{directory}/distance"), format!("{}\n", row.join(" ")));
        }
        tree.file(&format!("{directory}/meminfo"), meminfo(node));
        write_memory(node, &directory, tree);
        if let Some(weight) = node.interleave_weight {
            tree.file(&format!("{WEIGHTS}/node{}", node.os_index), format!("{weight}\n"));
        }
    }
    if let Some(auto) = t.weights_auto {
        tree.file(&format!("{WEIGHTS}/auto"), format!("{auto}\n"));
    }
}

fn meminfo(node: &Node) -> String {
    let fields = [("MemTotal", node.memory_kb), ("MemFree", node.free_kb)];
    let known = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
    known.map(|(name, value)| format!("Node {} {name}: {value:>14} kB\n", node.os_index)).collect()
}

fn write_memory(node: &Node, directory: &str, tree: &mut FileTree) {
    for pool in &node.huge_pages {
        let file = format!("{directory}/hugepages/hugepages-{}kB/nr_hugepages", pool.size_kb);
        tree.file(&file, format!("{}\n", pool.count));
    }
    for access in &node.access {
        let place = format!("{directory}/access{}/initiators", access.class);
        let values = [
            ("read_bandwidth", access.read_bandwidth),
            ("write_bandwidth", access.write_bandwidth),
            ("read_latency", access.read_latency),
            ("write_latency", access.write_latency),
        ];
        for (name, value) in values {
            tree.file(&format!("{place}/{name}"), format!("{}\n", value.unwrap_or(0)));
        }
        for initiator in access.initiators.iter() {
            tree.directory(&format!("{place}/node{initiator}"));
        }
    }
    for cache in &node.memory_side_caches {
        let place = format!("{directory}/memory_side_cache/index{}", cache.level);
        tree.file(&format!("{place}/size"), format!("{}\n", cache.size));
        tree.file(&format!("{place}/line_size"), format!("{}\n", cache.line_size));
    }
}

/// For each CPU the files of the groups that it belongs to; each text is formatted once per group.
struct Places {
    topology: Vec<Vec<(&'static str, String)>>,
    of_cpu: Vec<Vec<usize>>,
    caches: Vec<Vec<(&'static str, String)>>,
    caches_of_cpu: Vec<Vec<usize>>,
}

impl Places {
    fn of(t: &Topology, masks: &Masks) -> Self {
        let slots = t.online.last().map_or(0, |last| last as usize + 1);
        let mut places = Self {
            topology: Vec::new(),
            of_cpu: vec![Vec::new(); slots],
            caches: Vec::new(),
            caches_of_cpu: vec![Vec::new(); slots],
        };
        let id = |id: Option<u32>| format!("{}\n", id.map_or(-1, i64::from));
        let sets = |set: &CpuSet, mask, list| vec![(mask, masks.text(set)), (list, line(set))];
        let shared = t.units.iter().fold(CpuSet::new(), |all, unit| all.or(unit));
        let threads = |cpus: &CpuSet| {
            let mut files = sets(cpus, "thread_siblings", "thread_siblings_list");
            files.extend(sets(cpus, "core_cpus", "core_cpus_list"));
            files
        };
        for unit in &t.units {
            places.add(unit, threads(unit));
        }
        for core in &t.cores {
            // The kernel shows the cores of a compute unit as one.
            let mut files = if core.cpus.intersects(&shared) { Vec::new() } else { threads(&core.cpus) };
            files.push(("core_id", id(core.os_index)));
            places.add(&core.cpus, files);
        }
        for package in &t.packages {
            let mut files = sets(&package.cpus, "core_siblings", "core_siblings_list");
            files.extend(sets(&package.cpus, "package_cpus", "package_cpus_list"));
            files.push(("physical_package_id", id(package.os_index)));
            places.add(&package.cpus, files);
        }
        let others = [
            (&t.dies, "die_cpus", "die_cpus_list"),
            (&t.clusters, "cluster_cpus", "cluster_cpus_list"),
            (&t.books, "book_siblings", "book_siblings_list"),
            (&t.drawers, "drawer_siblings", "drawer_siblings_list"),
        ];
        for (groups, mask, list) in others {
            groups.iter().for_each(|set| places.add(set, sets(set, mask, list)));
        }
        for cache in &t.caches {
            for cpu in cache.cpus.iter() {
                if let Some(of_cpu) = places.caches_of_cpu.get_mut(cpu as usize) {
                    of_cpu.push(places.caches.len());
                }
            }
            places.caches.push(cache_files(cache, masks));
        }
        places
    }

    fn add(&mut self, cpus: &CpuSet, files: Vec<(&'static str, String)>) {
        for cpu in cpus.iter() {
            if let Some(of_cpu) = self.of_cpu.get_mut(cpu as usize) {
                of_cpu.push(self.topology.len());
            }
        }
        self.topology.push(files);
    }

    fn write(&self, cpu: u32, tree: &mut FileTree) {
        for &group in &self.of_cpu[cpu as usize] {
            for (name, content) in &self.topology[group] {
                tree.file(&format!("{CPU}/cpu{cpu}/topology/{name}"), content.as_str());
            }
        }
        for (index, &cache) in self.caches_of_cpu[cpu as usize].iter().enumerate() {
            for (name, content) in &self.caches[cache] {
                tree.file(&format!("{CPU}/cpu{cpu}/cache/index{index}/{name}"), content.as_str());
            }
        }
    }
}

fn cache_files(cache: &Cache, masks: &Masks) -> Vec<(&'static str, String)> {
    let kind = match cache.kind {
        CacheKind::Data => "Data\n",
        CacheKind::Instruction => "Instruction\n",
        CacheKind::Unified => "Unified\n",
    };
    let mut files = vec![
        ("level", format!("{}\n", cache.level)),
        ("type", kind.to_owned()),
        ("shared_cpu_map", masks.text(&cache.cpus)),
        ("shared_cpu_list", line(&cache.cpus)),
    ];
    files.extend(cache.size.map(|size| ("size", size_text(size))));
    files.extend(cache.line_size.map(|size| ("coherency_line_size", format!("{size}\n"))));
    files.extend(cache.ways.map(|ways| ("ways_of_associativity", format!("{ways}\n"))));
    files
}

fn size_text(bytes: u64) -> String {
    if bytes.is_multiple_of(1024) { format!("{}K\n", bytes / 1024) } else { format!("{bytes}\n") }
}

fn line(set: &CpuSet) -> String {
    format!("{set}\n")
}

/// Writes masks of the width that the kernel of this machine has.
struct Masks {
    words: usize,
}

impl Masks {
    fn text(&self, set: &CpuSet) -> String {
        let mut words = vec![0u32; self.words];
        for id in set.iter() {
            if let Some(word) = words.get_mut(id as usize / 32) {
                *word |= 1 << (id % 32);
            }
        }
        let words: Vec<String> = words.iter().rev().map(|word| format!("{word:08x}")).collect();
        words.join(",") + "\n"
    }
}
