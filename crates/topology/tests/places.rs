//! `read_for_placement` reads the same as `read` of everything that a plan depends on.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_model::topology::CacheKind;
use numakit_model::{CpuSet, Topology};
use numakit_sys::SysRoot;
use numakit_testing::sysfs;
use numakit_topology::{read, read_for_placement, synthetic};

/// Caches by level and kind, with the CPUs that share them.
fn shared(topology: &Topology) -> Vec<(u32, CacheKind, CpuSet)> {
    let far = topology.caches.iter().filter(|cache| cache.level > 1);
    far.map(|cache| (cache.level, cache.kind, cache.cpus.clone())).collect()
}

/// Compares everything that a plan depends on; prints how many files each read.
fn compare(root: &SysRoot) {
    let (full_root, placement_root) = (root.traced(), root.traced());
    let full = read(&full_root).unwrap();
    let reduced = read_for_placement(&placement_root, true).unwrap();
    let name = &full.origin;
    assert_eq!(shared(&reduced), shared(&full), "{name}");
    assert_eq!(reduced.devices, full.devices, "{name}");
    let mut expected = Topology { devices: Vec::new(), caches: Vec::new(), ..full.clone() };
    expected.cores.iter_mut().for_each(|core| core.os_index = None);
    for node in &mut expected.nodes {
        (node.huge_pages, node.access, node.memory_side_caches) = Default::default();
        node.interleave_weight = None;
    }
    expected.weights_auto = None;
    // Notes may be fewer, since fewer files are read; the page size is this machine's.
    (expected.notes, expected.page_size) = (reduced.notes.clone(), reduced.page_size);
    let mut seen = Topology { devices: Vec::new(), caches: Vec::new(), ..reduced };
    // Free memory changes all the time.
    seen.nodes.iter_mut().chain(&mut expected.nodes).for_each(|node| node.free_kb = None);
    assert_eq!(seen, expected, "{name}");
    let (files, all) = (placement_root.touched().len(), full_root.touched().len());
    println!("{name}: {files} files instead of {all}");
    assert!(files < all, "{name}: {files} of {all}");
}

#[test]
fn a_plan_sees_the_same_machine_in_a_few_files() {
    compare(&SysRoot::host());
    for description in ["package:2 node:2 core:4 pu:2", "package:8 node:2 core:8", "node:4 core:2"] {
        let topology = synthetic::load(description).unwrap();
        compare(&SysRoot::of_tree(sysfs::tree(&topology)));
    }
    for archive in numakit_captures::further_archives() {
        compare(&SysRoot::open(&archive).unwrap());
    }
}
