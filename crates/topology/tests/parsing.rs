//! Oddities of real /sys trees, point by point. Each test adds one to a regular machine.
#![allow(clippy::unwrap_used)]

use numakit_model::topology::CacheKind;
use numakit_model::{CpuSet, Topology};
use numakit_sys::SysRoot;
use numakit_sys::root::FileTree;
use numakit_testing::sysfs;
use numakit_topology::{read, synthetic};
use std::io::ErrorKind;

const CPU: &str = "/sys/devices/system/cpu";
const NODE: &str = "/sys/devices/system/node";

/// The files of a regular machine.
fn machine(description: &str) -> FileTree {
    sysfs::tree(&synthetic::parse(description).unwrap())
}

/// Two packages with two cores of two threads: CPUs 0-3 and 4-7, nodes 0 and 1.
fn two_sockets() -> FileTree {
    machine("package:2 node:1(mem=1G) l3:1 core:2(l1=32K,l2=1M) pu:2 dist=10/21 numbering=sequential")
}

fn topology(tree: &FileTree) -> Topology {
    read(&SysRoot::of_tree(tree.clone())).unwrap()
}

fn set(list: &str) -> CpuSet {
    CpuSet::parse_list(list).unwrap()
}

fn cores(t: &Topology) -> Vec<String> {
    t.cores.iter().map(|c| c.cpus.to_string()).collect()
}

fn packages(t: &Topology) -> Vec<(Option<u32>, String)> {
    t.packages.iter().map(|p| (p.os_index, p.cpus.to_string())).collect()
}

fn nodes(t: &Topology) -> Vec<(u32, String)> {
    t.nodes.iter().map(|n| (n.os_index, n.cpus.to_string())).collect()
}

fn caches(t: &Topology, level: u32) -> Vec<String> {
    t.caches_of_level(level).map(|c| c.cpus.to_string()).collect()
}

fn noted(t: &Topology, words: &str) -> bool {
    t.notes.iter().any(|note| note.contains(words))
}

#[test]
fn point_01_no_node_directory() {
    let mut tree = two_sockets();
    tree.remove(NODE).file("/proc/meminfo", "MemTotal:  2097152 kB\nMemFree: 5 kB\n");
    let t = topology(&tree);
    assert_eq!(nodes(&t), [(0, "0-7".into())]);
    assert!(t.nodes[0].implicit && noted(&t, "the whole machine is shown as one"));
    assert_eq!((t.nodes[0].memory_kb, t.nodes[0].free_kb), (Some(2_097_152), Some(5)));
    assert_eq!((t.distances, t.allowed_nodes), (None, set("0")));
}

#[test]
fn point_02_no_lists_of_cpus() {
    let mut tree = two_sockets();
    for file in ["online", "possible", "present", "offline"] {
        tree.remove(&format!("{CPU}/{file}"));
    }
    tree.file(&format!("{CPU}/cpu3/online"), "0\n").file(&format!("{CPU}/cpufreq/x"), "");
    let t = topology(&tree);
    assert_eq!((t.online, t.offline), (set("0-2,4-7"), set("3")));
}

#[test]
fn point_02_only_proc_stat_names_cpus() {
    let mut tree = FileTree::new();
    tree.file("/proc/stat", "cpu  1 2\ncpu0 1 2\ncpu3 1 2\nintr 5\n");
    let t = topology(&tree);
    assert_eq!(t.online, set("0,3"));
    assert!(noted(&t, "taken from /proc/stat"));
}

#[test]
fn point_03_online_files_absent_empty_or_zero() {
    let mut tree = two_sockets();
    tree.remove(&format!("{CPU}/online")).remove(&format!("{CPU}/present"));
    tree.remove(&format!("{CPU}/cpu0/online")).file(&format!("{CPU}/cpu1/online"), "");
    // One keeps its topology directory, the other does not.
    tree.file(&format!("{CPU}/cpu4/online"), "0\n").file(&format!("{CPU}/cpu5/online"), "0\n");
    tree.remove(&format!("{CPU}/cpu5/topology"));
    let t = topology(&tree);
    assert_eq!((t.online.clone(), t.offline.clone()), (set("0-3,6-7"), set("4-5")));
    assert_eq!(cores(&t), ["0-1", "2-3", "6-7"]);
    assert_eq!(nodes(&t)[1].1, "6-7");
}

#[test]
fn point_04_masks_without_lists() {
    let mut tree = two_sockets();
    for cpu in 0..8 {
        for list in ["thread_siblings_list", "core_cpus_list", "core_siblings_list", "package_cpus_list"] {
            tree.remove(&format!("{CPU}/cpu{cpu}/topology/{list}"));
        }
    }
    for node in 0..2 {
        tree.remove(&format!("{NODE}/node{node}/cpulist"));
    }
    let t = topology(&tree);
    assert_eq!(cores(&t), ["0-1", "2-3", "4-5", "6-7"]);
    assert_eq!(packages(&t), [(Some(0), "0-3".into()), (Some(1), "4-7".into())]);
    assert_eq!(nodes(&t), [(0, "0-3".into()), (1, "4-7".into())]);
}

#[test]
fn point_04_lists_without_masks() {
    let mut tree = two_sockets();
    for cpu in 0..8 {
        for mask in ["thread_siblings", "core_cpus", "core_siblings", "package_cpus"] {
            tree.remove(&format!("{CPU}/cpu{cpu}/topology/{mask}"));
        }
    }
    tree.remove(&format!("{NODE}/node1/cpumap"));
    let t = topology(&tree);
    assert_eq!(cores(&t), ["0-1", "2-3", "4-5", "6-7"]);
    assert_eq!(nodes(&t)[1].1, "4-7");
}

#[test]
fn point_04_the_mask_is_right() {
    let mut tree = two_sockets();
    tree.file(&format!("{NODE}/node0/cpulist"), "0-7\n");
    tree.file(&format!("{CPU}/cpu0/topology/core_cpus_list"), "0-3\n");
    let t = topology(&tree);
    assert_eq!(nodes(&t)[0].1, "0-3");
    assert_eq!(cores(&t)[0], "0-1");
}

#[test]
fn point_05_masks_of_every_width() {
    let long = format!("{}00000000,0000000f\n", "00000000,".repeat(62));
    for mask in ["f\n", "0f\n", "0000,0000000f\n", "0000000f", "0x0f\n", long.as_str()] {
        let mut tree = two_sockets();
        tree.file(&format!("{NODE}/node0/cpumap"), mask).file(&format!("{NODE}/node1/cpumap"), "00\n");
        assert_eq!(nodes(&topology(&tree)), [(0, "0-3".into()), (1, "".into())], "{mask}");
    }
}

#[test]
fn point_06_trailing_nul() {
    let mut tree = two_sockets();
    tree.file(&format!("{CPU}/online"), "0-5\n\0")
        .file(&format!("{NODE}/node0/cpumap"), "0000000f\n\0")
        .file(&format!("{NODE}/node0/distance"), "10 21\n\0")
        .file(&format!("{CPU}/cpu0/topology/physical_package_id"), "7\n\0");
    let t = topology(&tree);
    assert_eq!(t.online, set("0-5"));
    assert_eq!(packages(&t)[0], (Some(7), "0-3".into()));
    assert_eq!(t.distances.unwrap().rows, [[10, 21], [21, 10]]);
}

#[test]
fn point_07_has_cpu_and_has_memory_are_not_trusted() {
    let mut tree = two_sockets();
    tree.file(&format!("{NODE}/has_cpu"), "\n").file(&format!("{NODE}/has_memory"), "0,5-9\n");
    assert_eq!(nodes(&topology(&tree)), [(0, "0-3".into()), (1, "4-7".into())]);
    tree.remove(&format!("{NODE}/has_memory"));
    assert_eq!(topology(&tree).nodes.len(), 2);
}

#[test]
fn point_08_possible_is_more_than_online() {
    let mut tree = two_sockets();
    tree.file(&format!("{NODE}/possible"), "0-63\n").file(&format!("{CPU}/possible"), "0-111\n");
    tree.file(&format!("{CPU}/offline"), "8-111\n");
    let t = topology(&tree);
    assert_eq!((t.nodes.len(), t.online.len(), t.offline.len()), (2, 8, 0));
}

#[test]
fn point_09_sparse_numbers() {
    let mut tree = FileTree::new();
    tree.file(&format!("{CPU}/online"), "2-3,100\n").file(&format!("{NODE}/online"), "1,8,255\n");
    for (node, list) in [(1, "2-3"), (8, "100"), (255, "")] {
        tree.file(&format!("{NODE}/node{node}/cpulist"), list);
        tree.file(&format!("{NODE}/node{node}/distance"), "10 20 40\n");
    }
    let t = topology(&tree);
    assert_eq!(nodes(&t), [(1, "2-3".into()), (8, "100".into()), (255, "".into())]);
    assert_eq!(t.distances.unwrap().between(1, 255), Some(40));
    assert_eq!(t.allowed_nodes, set("1,8,255"));
}

#[test]
fn point_10_distance_columns_follow_online_nodes() {
    let mut tree = machine("node:4 core:1 dist=10/20");
    // Nodes 1 and 3 are online in the kernel's order; rows are in that order too.
    tree.file(&format!("{NODE}/online"), "1,3\n")
        .remove(&format!("{NODE}/node0"))
        .remove(&format!("{NODE}/node2"));
    tree.file(&format!("{NODE}/node1/distance"), "10 40\n")
        .file(&format!("{NODE}/node3/distance"), "41 10\n");
    let distances = topology(&tree).distances.unwrap();
    assert_eq!(distances.nodes, [1, 3]);
    assert_eq!(distances.rows, [[10, 40], [41, 10]]);
    assert_eq!(distances.between(3, 1), Some(41));
}

#[test]
fn point_10_rows_of_another_length() {
    let mut tree = machine("node:3 core:1");
    let rows = |tree: &mut FileTree, row: &str| {
        for node in [0, 2] {
            tree.file(&format!("{NODE}/node{node}/distance"), row);
        }
    };
    // One more node is online than this capture has: the columns are those of the online nodes.
    tree.remove(&format!("{NODE}/node1"));
    rows(&mut tree, "10 20 30\n");
    assert_eq!(topology(&tree).distances.unwrap().rows, [[10, 30], [10, 30]]);
    // A column for each possible node.
    tree.file(&format!("{NODE}/online"), "0,2\n");
    rows(&mut tree, "10 20 30 40\n");
    assert_eq!(topology(&tree).distances.unwrap().rows, [[10, 30], [10, 30]]);
    // Too short for any interpretation.
    rows(&mut tree, "10\n");
    let t = topology(&tree);
    assert!(t.distances.is_none() && noted(&t, "distances do not fit"), "{:?}", t.notes);
}

#[test]
fn point_10_absent_zero_or_flat_distances() {
    for content in ["0\n", "", "ten twenty\n"] {
        let mut tree = two_sockets();
        for node in 0..2 {
            tree.file(&format!("{NODE}/node{node}/distance"), content);
        }
        assert_eq!(topology(&tree).distances, None, "{content}");
    }
    let mut tree = two_sockets();
    tree.remove(&format!("{NODE}/node0/distance"));
    assert_eq!(topology(&tree).distances, None);
    for node in 0..2 {
        tree.file(&format!("{NODE}/node{node}/distance"), "10 10\n");
    }
    let t = topology(&tree);
    assert_eq!(t.distances.unwrap().rows, [[10, 10], [10, 10]]);
    assert!(t.boards.is_empty());
}

#[test]
fn point_11_nodes_without_cpus_or_memory() {
    let mut tree = machine("node:3(mem=1G) core:1");
    for (node, total) in [(1, 0), (2, 0)] {
        tree.file(&format!("{NODE}/node{node}/meminfo"), format!("Node {node} MemTotal: {total} kB\n"));
    }
    tree.file(&format!("{NODE}/node2/cpulist"), "\n").file(&format!("{NODE}/node2/cpumap"), "0\n");
    let t = topology(&tree);
    assert_eq!(nodes(&t), [(0, "0".into()), (1, "1".into()), (2, "".into())]);
    assert_eq!(t.nodes.iter().map(|n| n.memory_kb).collect::<Vec<_>>(), [Some(1 << 20), Some(0), Some(0)]);
    assert_eq!(t.distances.unwrap().rows.len(), 3);
}

#[test]
fn point_12_node_maps_with_offline_overlapping_and_missing_cpus() {
    let mut tree = two_sockets();
    tree.file(&format!("{CPU}/online"), "0-6\n");
    tree.file(&format!("{NODE}/node0/cpumap"), "0000001f\n")
        .file(&format!("{NODE}/node1/cpumap"), "000000b0\n");
    let t = topology(&tree);
    assert_eq!(nodes(&t), [(0, "0-4".into()), (1, "4-5".into())]);
    assert!(noted(&t, "CPUs 4 are in several nodes"), "{:?}", t.notes);
    assert!(noted(&t, "CPUs 6 are online but in no node"), "{:?}", t.notes);
}

#[test]
fn point_13_odd_package_core_and_die_numbers() {
    let mut tree = two_sockets();
    for cpu in 0..8 {
        let directory = format!("{CPU}/cpu{cpu}/topology");
        tree.file(&format!("{directory}/physical_package_id"), "5\n");
        tree.file(&format!("{directory}/core_id"), "0\n").file(&format!("{directory}/die_id"), "-1\n");
    }
    let t = topology(&tree);
    assert_eq!(packages(&t), [(Some(5), "0-3".into()), (Some(5), "4-7".into())]);
    assert_eq!(cores(&t), ["0-1", "2-3", "4-5", "6-7"]);
    assert!(t.cores.iter().all(|c| c.os_index == Some(0)) && t.dies.is_empty());
    for cpu in 0..8 {
        tree.file(&format!("{CPU}/cpu{cpu}/topology/physical_package_id"), "-1\n");
    }
    assert_eq!(packages(&topology(&tree)), [(None, "0-3".into()), (None, "4-7".into())]);
}

#[test]
fn point_14_topology_absent_or_without_siblings() {
    let mut tree = two_sockets();
    for cpu in 0..8 {
        for file in ["thread_siblings", "core_cpus"] {
            tree.remove(&format!("{CPU}/cpu{cpu}/topology/{file}"));
            tree.remove(&format!("{CPU}/cpu{cpu}/topology/{file}_list"));
        }
    }
    let t = topology(&tree);
    assert_eq!((t.cores.len(), t.packages.len()), (8, 2));
    assert!(noted(&t, "do not say which core"));
    for cpu in 0..8 {
        tree.remove(&format!("{CPU}/cpu{cpu}/topology"));
    }
    let t = topology(&tree);
    assert_eq!((t.cores.len(), t.packages.len()), (8, 0));
    assert!(noted(&t, "do not say which package"));
}

#[test]
fn point_14_topology_absent_on_the_first_cpu_only() {
    let mut tree = two_sockets();
    tree.remove(&format!("{CPU}/cpu0/topology"));
    let t = topology(&tree);
    // Its siblings say where it belongs.
    assert_eq!(cores(&t), ["0-1", "2-3", "4-5", "6-7"]);
    assert_eq!(packages(&t), [(Some(0), "0-3".into()), (Some(1), "4-7".into())]);
}

#[test]
fn point_15_old_and_new_names() {
    for gone in [["core_cpus", "package_cpus"], ["thread_siblings", "core_siblings"]] {
        let mut tree = two_sockets();
        for cpu in 0..8 {
            for file in gone {
                tree.remove(&format!("{CPU}/cpu{cpu}/topology/{file}"));
                tree.remove(&format!("{CPU}/cpu{cpu}/topology/{file}_list"));
            }
        }
        let t = topology(&tree);
        assert_eq!((cores(&t).len(), packages(&t).len()), (4, 2), "{gone:?}");
    }
}

#[test]
fn point_15_optional_levels() {
    let mut tree = two_sockets();
    for cpu in 0..8 {
        let directory = format!("{CPU}/cpu{cpu}/topology");
        let package = if cpu < 4 { "0f\n" } else { "f0\n" };
        let core = format!("{:02x}\n", 3 << (cpu / 2 * 2));
        tree.file(&format!("{directory}/die_cpus"), package).file(&format!("{directory}/cluster_cpus"), core);
        tree.file(&format!("{directory}/book_siblings"), package)
            .file(&format!("{directory}/drawer_cpus"), "ff\n");
    }
    let t = topology(&tree);
    assert_eq!(t.dies, [set("0-3"), set("4-7")]);
    assert_eq!(t.clusters, [set("0-1"), set("2-3"), set("4-5"), set("6-7")]);
    assert_eq!((t.books.len(), t.drawers), (2, vec![set("0-7")]));
}

#[test]
fn point_16_caches_missing_bare_or_with_odd_maps() {
    let mut tree = two_sockets();
    // CPUs 2 and 3 have none, 0 has no size and no list, 4 and 5 have maps of zeros.
    tree.remove(&format!("{CPU}/cpu2/cache")).remove(&format!("{CPU}/cpu3/cache"));
    for index in 0..4 {
        tree.remove(&format!("{CPU}/cpu0/cache/index{index}/size"));
        tree.remove(&format!("{CPU}/cpu0/cache/index{index}/shared_cpu_list"));
    }
    for cpu in [4, 5] {
        tree.file(&format!("{CPU}/cpu{cpu}/cache/index0/shared_cpu_map"), "00\n");
    }
    let t = topology(&tree);
    let first = |kind| t.caches.iter().filter(move |c| c.level == 1 && c.kind == kind);
    let data: Vec<String> = first(CacheKind::Data).map(|c| c.cpus.to_string()).collect();
    assert_eq!(data, ["0-1", "4-5", "6-7"]);
    assert_eq!(first(CacheKind::Data).next().unwrap().size, None);
    assert_eq!(caches(&t, 2), ["0-1", "4-5", "6-7"]);
    assert_eq!(caches(&t, 3), ["0-3", "4-7"]);
    for cpu in 0..8 {
        tree.remove(&format!("{CPU}/cpu{cpu}/cache"));
    }
    assert!(topology(&tree).caches.is_empty());
}

#[test]
fn point_16_duplicate_and_split_caches() {
    let mut tree = two_sockets();
    for cpu in 0..8 {
        // index1 is the data cache once more, index2 splits into data and instructions.
        let directory = format!("{CPU}/cpu{cpu}/cache");
        tree.file(&format!("{directory}/index1/type"), "Data\n");
        tree.file(&format!("{directory}/index2/type"), "Data\n");
        let mask = format!("{:02x}\n", 3 << (cpu / 2 * 2));
        tree.file(&format!("{directory}/index4/shared_cpu_map"), mask);
        tree.file(&format!("{directory}/index4/level"), "2\n")
            .file(&format!("{directory}/index4/type"), "Instruction\n");
    }
    let t = topology(&tree);
    assert_eq!(t.caches.iter().filter(|c| c.level == 1).count(), 4);
    assert_eq!(caches(&t, 2).len(), 4);
    assert_eq!(t.caches.iter().filter(|c| c.level == 2).count(), 8);
}

#[test]
fn point_16_third_level_across_and_inside_nodes() {
    let across = topology(&machine("package:1 l3:1 node:2 core:2"));
    assert_eq!(caches(&across, 3), ["0-3"]);
    let inside = topology(&machine("package:1 node:1 l3:2 core:2"));
    assert_eq!(caches(&inside, 3), ["0-1", "2-3"]);
    let mut tree = two_sockets();
    for cpu in 0..8 {
        tree.file(&format!("{CPU}/cpu{cpu}/cache/index3/shared_cpu_map"), "ff\n");
    }
    // Across both packages, and contrary to its list.
    assert_eq!(caches(&topology(&tree), 3), ["0-7"]);
}

#[test]
fn point_16_a_cpu_with_more_caches_than_the_others() {
    let mut tree = two_sockets();
    tree.file(&format!("{CPU}/cpu6/cache/index4/level"), "4\n")
        .file(&format!("{CPU}/cpu6/cache/index4/type"), "Unified\n")
        .file(&format!("{CPU}/cpu6/cache/index4/shared_cpu_map"), "c0\n");
    assert_eq!(caches(&topology(&tree), 4), ["6-7"]);
}

#[test]
fn point_17_meminfo_blank_absent_or_less_than_the_machine() {
    let mut tree = two_sockets();
    tree.file(&format!("{NODE}/node0/meminfo"), "\nNode 0 MemTotal:   8387892 kB\nNode 0 MemFree: 1 kB\n");
    tree.remove(&format!("{NODE}/node1/meminfo")).file("/proc/meminfo", "MemTotal: 99 kB\n");
    let t = topology(&tree);
    assert_eq!(t.nodes[0].memory_kb, Some(8_387_892));
    assert_eq!((t.nodes[1].memory_kb, t.nodes[1].free_kb), (None, None));
}

#[test]
fn point_18_access_classes() {
    let mut tree = machine("package:2 node:1 core:1 node:1(cpuless,mem=1G)");
    let directory = format!("{NODE}/node2");
    for (class, initiator, latency) in [(0, 7, "50\n"), (1, 1, "0\n")] {
        let place = format!("{directory}/access{class}/initiators");
        tree.symlink(&format!("{place}/node{initiator}"), &format!("../../../node{initiator}"));
        tree.file(&format!("{place}/read_latency"), latency)
            .file(&format!("{place}/write_bandwidth"), "78644\n");
    }
    tree.file(&format!("{directory}/memory_side_cache/index1/size"), "1048576\n");
    tree.file(&format!("{directory}/memory_side_cache/index1/line_size"), "64\n");
    let t = topology(&tree);
    let [any, cpus] = t.nodes[2].access.as_slice() else { panic!("{:?}", t.nodes[2]) };
    // A generic initiator has no CPUs, and need not be online.
    assert_eq!((any.class, &any.initiators, any.read_latency), (0, &set("7"), Some(50)));
    assert_eq!((cpus.class, &cpus.initiators, cpus.read_latency), (1, &set("1"), None));
    assert_eq!((cpus.write_bandwidth, cpus.read_bandwidth), (Some(78644), None));
    let [cache] = t.nodes[2].memory_side_caches.as_slice() else { panic!("{:?}", t.nodes[2]) };
    assert_eq!((cache.level, cache.size, cache.line_size), (1, 1 << 20, 64));
    assert!(t.nodes[0].access.is_empty());
}

#[test]
fn point_19_widths_and_capacities_differ() {
    // A package of two wide and two narrow cores; capacity varies inside both kinds.
    let mut tree = two_sockets();
    for (cpu, mask) in [(4, "10\n"), (5, "20\n"), (6, "40\n"), (7, "80\n")] {
        tree.file(&format!("{CPU}/cpu{cpu}/topology/core_cpus"), mask);
    }
    for (cpu, capacity) in
        [(0, 1024), (1, 1024), (2, 1009), (3, 1009), (4, 446), (5, 440), (6, 446), (7, 446)]
    {
        tree.file(&format!("{CPU}/cpu{cpu}/cpu_capacity"), format!("{capacity}\n"));
    }
    let t = topology(&tree);
    assert_eq!(cores(&t), ["0-1", "2-3", "4", "5", "6", "7"]);
    let kinds: Vec<String> = t.kinds.iter().map(|k| k.cpus.to_string()).collect();
    assert_eq!(kinds, ["4-7", "0-3"]);
    assert_eq!(t.cores.iter().map(|c| c.kind).collect::<Vec<_>>(), [1, 1, 0, 0, 0, 0].map(Some));
}

#[test]
fn point_19_the_kernels_names_of_kinds_come_first() {
    let mut tree = two_sockets();
    (0..8).for_each(|cpu| {
        tree.file(&format!("{CPU}/cpu{cpu}/cpu_capacity"), format!("{}\n", 100 + cpu * 100));
    });
    tree.file("/sys/devices/cpu_core/cpus", "0-3\n").file("/sys/devices/cpu_atom/cpus", "4-7\n");
    let kinds = topology(&tree).kinds;
    let names: Vec<&str> = kinds.iter().map(|k| k.name.as_str()).collect();
    assert_eq!(names, ["cpu_atom", "cpu_core"]);
    // A single kind is not shown.
    tree.remove("/sys/devices/cpu_atom");
    for cpu in 0..8 {
        tree.remove(&format!("{CPU}/cpu{cpu}/cpu_capacity"));
    }
    assert!(topology(&tree).kinds.is_empty());
}

#[test]
fn point_20_every_generation_of_cpusets() {
    let v2 = "x /cg cgroup2 rw 0 0\n";
    let cases = [
        ("cpuset /dev/cpuset cpuset rw 0 0\n", "/dev/cpuset/job/cpus", "/dev/cpuset/job/mems", ""),
        (
            "c /dev/cpuset cgroup rw,cpuset,noprefix 0 0\n",
            "/dev/cpuset/job/cpus",
            "/dev/cpuset/job/mems",
            "4:cpuset:/job\n",
        ),
        (
            "c /cg/cs cgroup rw,cpuset 0 0\n",
            "/cg/cs/job/cpuset.cpus",
            "/cg/cs/job/cpuset.mems",
            "4:cpuset,cpu:/job\n",
        ),
        (v2, "/cg/job/cpuset.cpus.effective", "/cg/job/cpuset.mems.effective", "0::/job\n"),
        // The group's own file is empty, so its parent's counts.
        (v2, "/cg/cpuset.cpus.effective", "/cg/cpuset.mems.effective", "0::/job/step\n"),
    ];
    for (mounts, cpus, mems, groups) in cases {
        let mut tree = two_sockets();
        tree.remove("/proc/self/status").file("/proc/mounts", mounts).file("/proc/self/cpuset", "/job\n");
        if !groups.is_empty() {
            tree.file("/proc/self/cgroup", groups);
        }
        tree.file("/cg/cgroup.controllers", "cpuset cpu\n");
        // Larger than what is online, and memory away from the CPUs.
        tree.file(cpus, "2-3,64-127\n").file(mems, "1-5\n");
        let t = topology(&tree);
        assert_eq!((t.allowed.clone(), t.allowed_nodes.clone()), (set("2-3"), set("1")), "{mounts} {cpus}");
        assert_eq!(t.not_allowed(), set("0-1,4-7"));
    }
}

#[test]
fn point_20_status_says_it_all() {
    let mut tree = two_sockets();
    tree.file(
        "/proc/self/status",
        "Name:\tx\nCpus_allowed:\tff\nCpus_allowed_list:\t1,5\nMems_allowed_list:\t0-63\n",
    );
    tree.file("/proc/mounts", "x /cg cgroup2 rw 0 0\n").file("/proc/self/cgroup", "0::/\n");
    let t = topology(&tree);
    assert_eq!((t.allowed, t.allowed_nodes), (set("1,5"), set("0-1")));
    // Garbage restricts nothing.
    tree.file("/proc/self/status", "Cpus_allowed_list:\tx\n").file("/proc/self/cgroup", "::::\n\n0:");
    let t = topology(&tree);
    assert_eq!((t.allowed, t.allowed_nodes), (set("0-7"), set("0-1")));
}

#[test]
fn point_21_dangling_links() {
    let mut tree = two_sockets();
    tree.symlink(&format!("{NODE}/node9"), "../gone")
        .symlink("/sys/bus/pci/devices/0000:00:01.0", "../../gone");
    tree.symlink(&format!("{CPU}/cpu0/cpufreq"), "../cpufreq/policy0");
    let t = topology(&tree);
    assert_eq!((t.nodes.len(), t.devices.len()), (2, 0));
}

#[test]
fn point_21_nothing_of_the_host_is_read() {
    // The host has CPUs; an empty root must be an error nevertheless.
    let error = read(&SysRoot::of_tree(FileTree::new())).unwrap_err().to_string();
    assert!(error.contains("shows no CPU") && error.contains("numa capture"), "{error}");
    let folder = std::env::temp_dir().join(format!("numakit-half-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("sys/devices/system/cpu")).unwrap();
    std::fs::write(folder.join("sys/devices/system/cpu/online"), "7\n").unwrap();
    let t = read(&SysRoot::open(&folder).unwrap()).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((t.online.clone(), t.nodes[0].memory_kb, t.page_size), (set("7"), None, 4096));
    assert_eq!((t.allowed, t.allowed_nodes), (set("7"), set("0")));
}

#[test]
fn unreadable_files_are_noted() {
    let mut tree = two_sockets();
    tree.failing(&format!("{NODE}/node0/meminfo"), ErrorKind::PermissionDenied);
    let t = topology(&tree);
    assert_eq!(t.nodes[0].memory_kb, None);
    assert!(noted(&t, "node0/meminfo: permission denied"), "{:?}", t.notes);
}

#[test]
fn a_thousand_broken_files_are_counted_not_listed() {
    let mut tree = machine("node:1 core:256");
    for cpu in 0..256 {
        tree.file(&format!("{CPU}/cpu{cpu}/topology/core_id"), "garbage");
    }
    let t = topology(&tree);
    assert_eq!(t.notes.len(), 21);
    assert!(noted(&t, "236 more of this kind"), "{:?}", t.notes);
}

#[test]
fn garbage_in_every_file_gives_a_topology_or_an_error() {
    let whole = two_sockets();
    let paths: Vec<String> = whole.files().map(|(path, _)| path.to_owned()).collect();
    for garbage in
        [&b""[..], b"\xff\xfe\0", b"-1", b"99999999999999999999999", b"0-4294967295", b",,,:::\n\n"]
    {
        for path in &paths {
            let mut tree = whole.clone();
            tree.file(path, garbage);
            // No panic; the number of CPUs is bounded by what the other files say.
            if let Ok(t) = read(&SysRoot::of_tree(tree)) {
                assert!(t.cores.len() <= 8, "{path}");
            }
        }
    }
}
