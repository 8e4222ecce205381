//! Odd files: each part of the machine is shown once, as it is, and none is invented.
#![allow(clippy::unwrap_used)]

use numakit_model::Topology;
use numakit_model::topology::CacheKind;
use numakit_sys::SysRoot;
use numakit_sys::root::FileTree;
use numakit_testing::sysfs;
use numakit_topology::{read, read_for_placement, synthetic};

const CPU: &str = "/sys/devices/system/cpu";
const NODE: &str = "/sys/devices/system/node";

fn machine(description: &str) -> FileTree {
    sysfs::tree(&synthetic::parse(description).unwrap())
}

/// The topologies of `read` and `read_for_placement`, which must agree.
fn both(tree: &FileTree) -> [Topology; 2] {
    let root = SysRoot::of_tree(tree.clone());
    [read(&root).unwrap(), read_for_placement(&root, false).unwrap()]
}

fn caches(t: &Topology, level: u32) -> Vec<String> {
    t.caches_of_level(level).map(|c| c.cpus.to_string()).collect()
}

fn packages(t: &Topology) -> Vec<String> {
    t.packages.iter().map(|p| format!("{:?} {}", p.os_index, p.cpus)).collect()
}

/// A mask with one CPU.
fn only(cpu: u32) -> String {
    let words: Vec<String> = (0..4)
        .rev()
        .map(|at| format!("{:08x}", if cpu / 32 == at { 1 << (cpu % 32) } else { 0u32 }))
        .collect();
    words.join(",") + "\n"
}

#[test]
fn a_die_or_cluster_numbered_minus_one_is_none() {
    let mut tree = machine("package:2 node:2 core:32");
    for cpu in 0..128 {
        let folder = format!("{CPU}/cpu{cpu}/topology");
        for level in ["die", "cluster", "book", "drawer"] {
            tree.file(&format!("{folder}/{level}_id"), "-1\n");
            tree.file(&format!("{folder}/{level}_cpus"), only(cpu));
        }
    }
    for t in both(&tree) {
        let groups = [&t.dies, &t.clusters, &t.books, &t.drawers].map(Vec::len);
        assert_eq!(groups, [0; 4], "{:?}", t.notes);
    }
    // Numbered from 0 they exist, even as groups of one core.
    for cpu in 0..128 {
        tree.file(&format!("{CPU}/cpu{cpu}/topology/cluster_id"), format!("{cpu}\n"));
    }
    for t in both(&tree) {
        assert_eq!((t.dies.len(), t.clusters.len()), (0, 128));
    }
}

#[test]
fn a_map_of_zeros_means_the_threads_of_the_core() {
    let mut tree = machine("package:2 node:1 l3:1 core:2(l1=32K,l2=1M) pu:2 numbering=sequential");
    for cpu in 0..8 {
        for index in 0..3 {
            tree.file(&format!("{CPU}/cpu{cpu}/cache/index{index}/shared_cpu_map"), "00\n");
        }
    }
    for t in both(&tree) {
        assert_eq!(caches(&t, 2), ["0-1", "2-3", "4-5", "6-7"]);
        assert_eq!(caches(&t, 3), ["0-3", "4-7"]);
    }
}

#[test]
fn caches_that_are_listed_under_other_cpus_are_theirs() {
    // CPU 0 lists the caches of CPU 2: it has none, and does not share those.
    let mut tree = machine("package:1 node:1 l3:1 core:4(l1=32K,l2=1M)");
    for index in 0..3 {
        tree.file(&format!("{CPU}/cpu0/cache/index{index}/shared_cpu_map"), "4\n");
    }
    for t in both(&tree) {
        assert_eq!(caches(&t, 2), ["1", "2", "3"]);
        assert_eq!(caches(&t, 3), ["0-3"]);
        assert!(
            t.notes.iter().any(|note| note.contains("cpu0/cache/index2") && note.contains("not CPU 0")),
            "{:?}",
            t.notes
        );
    }
    // CPU 0 has no folder of caches, and the others name it in theirs.
    let mut tree = machine("package:1 node:1 l3:1 core:4(l1=32K,l2=1M)");
    tree.remove(&format!("{CPU}/cpu0/cache"));
    tree.file(&format!("{CPU}/cpu1/cache/index2/shared_cpu_map"), "3\n");
    for t in both(&tree) {
        assert_eq!(caches(&t, 2), ["0-1", "2", "3"]);
        assert_eq!(caches(&t, 3), ["0-3"]);
    }
}

#[test]
fn a_cpu_may_list_more_caches_than_those_that_share_one_with_it() {
    // L2 is shared by CPUs 0 and 1, 2 and 3, ...
    let all = machine("package:1 node:1 l2:4 core:2(l1=32K)");
    let first = |t: &Topology| -> Vec<String> {
        t.caches.iter().filter(|c| c.level == 1).map(|c| c.cpus.to_string()).collect()
    };
    let listed_by = |lists: fn(u32, u32) -> bool| {
        let mut tree = all.clone();
        for (cpu, index) in (0..8).flat_map(|cpu| (0..3).map(move |index| (cpu, index))) {
            if !lists(cpu, index) {
                tree.remove(&format!("{CPU}/cpu{cpu}/cache/index{index}"));
            }
        }
        both(&tree)
    };
    let l2 = |t: &Topology| caches(t, 2);
    // Even CPUs list L2 only: the others list all three.
    let [full, placed] = listed_by(|cpu, index| cpu % 2 == 1 || index == 2);
    assert_eq!(first(&full), ["1", "3", "5", "7", "1", "3", "5", "7"]);
    assert_eq!([l2(&full), l2(&placed)], [["0-1", "2-3", "4-5", "6-7"]; 2]);
    // The first CPU lists L1 only, and the last one alone lists L1 beside L2.
    let [full, placed] = listed_by(|cpu, index| (cpu == 7 || index == 2) ^ (cpu == 0));
    assert_eq!(first(&full), ["0", "7", "0", "7"]);
    assert_eq!([l2(&full), l2(&placed)], [["0-1", "2-3", "4-5", "6-7"]; 2]);
    // Nobody lists a cache that is not shown.
    let [full, placed] = listed_by(|cpu, index| cpu == 5 && index == 1);
    assert_eq!((first(&full), full.caches.len(), placed.caches.len()), (vec!["5".to_owned()], 1, 0));
}

#[test]
fn a_core_that_does_not_list_itself_is_its_own() {
    let mut tree = machine("package:1 node:1 core:4");
    tree.file(&format!("{CPU}/cpu0/topology/core_cpus"), "2\n");
    for t in both(&tree) {
        let cores: Vec<String> = t.cores.iter().map(|core| core.cpus.to_string()).collect();
        assert_eq!(cores, ["0", "1", "2", "3"]);
    }
}

#[test]
fn a_package_whose_siblings_are_cut_is_one() {
    // A kernel cuts the siblings at the nodes: cores 0-3 and 4-7 of the same package.
    let cut = |tree: &mut FileTree| {
        for cpu in 0..16 {
            for file in ["core_siblings", "package_cpus"] {
                let mask = format!("{:04x}\n", 0xf << (cpu / 4 * 4));
                tree.file(&format!("{CPU}/cpu{cpu}/topology/{file}"), mask);
            }
        }
    };
    let mut tree = machine("package:2 node:2 core:4");
    cut(&mut tree);
    for t in both(&tree) {
        assert_eq!(packages(&t), ["Some(0) 0-7", "Some(1) 8-15"]);
        assert!(t.notes[0].contains("package 0 is listed in parts, CPUs 0-3 and 4-7"), "{:?}", t.notes);
    }
    // Different packages with the same number: core numbers start again.
    for cpu in 0..16 {
        tree.file(&format!("{CPU}/cpu{cpu}/topology/core_id"), format!("{}\n", cpu % 4));
    }
    for t in both(&tree) {
        assert_eq!(packages(&t), ["Some(0) 0-3", "Some(0) 4-7", "Some(1) 8-11", "Some(1) 12-15"]);
    }
}

#[test]
fn nodes_that_all_list_all_cpus_are_noted() {
    let mut tree = machine("package:1 node:8 core:2");
    for node in 0..8 {
        tree.file(&format!("{NODE}/node{node}/cpumap"), "ffff\n");
    }
    for t in both(&tree) {
        assert!(t.notes.iter().any(|note| note == "CPUs 0-15 are in several nodes"), "{:?}", t.notes);
    }
}

#[test]
fn more_cpus_than_any_machine_has_are_refused() {
    let mut tree = machine("package:1 node:1 core:2");
    tree.file(&format!("{CPU}/online"), "0-262143\n");
    let error = read(&SysRoot::of_tree(tree.clone())).unwrap_err().to_string();
    assert!(error.contains("CPU 262143") && error.contains("up to 65536 CPUs, 0 to 65535"), "{error}");
    // Nothing is read for CPUs without a folder.
    tree.file(&format!("{CPU}/online"), "0-65535\n");
    let root = SysRoot::of_tree(tree).traced();
    let t = read(&root).unwrap();
    assert_eq!((t.online.len(), t.cores.len()), (65_536, 65_536));
    assert!(root.touched().len() < 200, "{}", root.touched().len());
}

#[test]
fn more_nodes_than_any_machine_has_are_refused() {
    let mut tree = machine("package:1 node:1 core:2");
    for node in 0..5000 {
        tree.file(&format!("{NODE}/node{node}/cpulist"), "\n");
    }
    let error = read(&SysRoot::of_tree(tree)).unwrap_err().to_string();
    assert!(error.contains("5000 nodes") && error.contains("4096 nodes"), "{error}");
}

#[test]
fn weights_of_interleaving_are_read_under_either_name() {
    const WEIGHTS: &str = "/sys/kernel/mm/mempolicy/weighted_interleave";
    let mut tree = machine("package:1 node:2 core:2");
    let weights = |t: &Topology| t.nodes.iter().map(|node| node.interleave_weight).collect::<Vec<_>>();
    let t = read(&SysRoot::of_tree(tree.clone())).unwrap();
    assert_eq!((weights(&t), t.weights_auto), (vec![None, None], None));
    tree.file(&format!("{WEIGHTS}/node0"), "5\n").file(&format!("{WEIGHTS}/node1"), "2\n");
    for (name, content, auto) in [("auto", "true\n", true), ("__auto_type", "false\n", false)] {
        let mut tree = tree.clone();
        tree.file(&format!("{WEIGHTS}/{name}"), content);
        let root = SysRoot::of_tree(tree);
        let t = read(&root).unwrap();
        assert_eq!((weights(&t), t.weights_auto), (vec![Some(5), Some(2)], Some(auto)), "{name}");
        assert_eq!(numakit_topology::weights_auto_file(&root), Some(format!("{WEIGHTS}/{name}")));
        let mut placed = numakit_topology::read_for_placement(&root, false).unwrap();
        assert_eq!((weights(&placed), placed.weights_auto), (vec![None, None], None));
        numakit_topology::read_weights(&root, &mut placed);
        assert_eq!((weights(&placed), placed.weights_auto), (weights(&t), Some(auto)));
        let copy = read(&SysRoot::of_tree(sysfs::tree(&t))).unwrap();
        assert_eq!((weights(&copy), copy.weights_auto), (weights(&t), t.weights_auto));
    }
}

#[test]
fn first_level_caches_of_zeros_are_of_the_core_too() {
    let mut tree = machine("package:1 node:1 core:2(l1=32K) pu:2 numbering=sequential");
    for cpu in 0..4 {
        tree.file(&format!("{CPU}/cpu{cpu}/cache/index0/shared_cpu_map"), "0\n");
    }
    let t = read(&SysRoot::of_tree(tree)).unwrap();
    let data = t.caches.iter().filter(|c| c.level == 1 && c.kind == CacheKind::Data);
    assert_eq!(data.map(|c| c.cpus.to_string()).collect::<Vec<_>>(), ["0-1", "2-3"]);
}

/// In a container the list of online CPUs may be numbered from 0, or name the CPUs that the quota is worth.
#[test]
fn a_mask_outside_of_the_listed_cpus_wins() {
    let mut tree = machine("package:2 node:1 core:2");
    tree.file(&format!("{CPU}/online"), "0\n").file(&format!("{CPU}/cpu0/online"), "0\n");
    tree.file("/proc/self/status", "Cpus_allowed_list:\t2,3,40-127\nMems_allowed_list:\t0-1\n");
    for t in both(&tree) {
        let sets = [&t.online, &t.offline, &t.allowed, &t.nodes[1].cpus].map(ToString::to_string);
        assert_eq!(sets, ["1-3", "0", "2-3", "2-3"], "{:?}", t.notes);
        assert!(
            t.notes[0].contains("online lists CPUs 0, and this process may run on CPUs 2-3"),
            "{:?}",
            t.notes
        );
    }
    // CPUs of a mask that are offline are no reason to doubt the list.
    tree.file(&format!("{CPU}/online"), "0-1\n");
    for cpu in 2..4 {
        tree.file(&format!("{CPU}/cpu{cpu}/online"), "0\n");
    }
    tree.file("/proc/self/status", "Cpus_allowed_list:\t1-127\n");
    for t in both(&tree) {
        assert_eq!([&t.online, &t.allowed].map(ToString::to_string), ["0-1", "1"]);
        assert_eq!(t.notes, [""; 0]);
    }
}

#[test]
fn offline_cpus_belong_to_their_nodes_on_request() {
    let machine = numakit_topology::synthetic::parse("package:2 node:1 core:2").unwrap();
    let root = SysRoot::of_tree(numakit_testing::sysfs::tree(&machine));
    root.change(|tree| {
        tree.file("/sys/devices/system/cpu/online", "0,2-3\n");
        tree.file("/sys/devices/system/cpu/cpu1/online", "0\n")
            .file("/sys/devices/system/node/node0/cpu1/online", "0\n");
        tree.file("/sys/devices/system/node/node0/cpulist", "0\n")
            .file("/sys/devices/system/node/node0/cpumap", "1\n");
    });
    let mut topology = read(&root).unwrap();
    let cpus = |topology: &numakit_model::Topology| {
        topology.nodes.iter().map(|n| n.cpus.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(cpus(&topology), ["0", "2-3"]);
    numakit_topology::add_offline_cpus(&mut topology, &root);
    assert_eq!(
        (cpus(&topology), topology.online.to_string()),
        (vec!["0-1".to_owned(), "2-3".to_owned()], "0,2-3".to_owned())
    );
}
