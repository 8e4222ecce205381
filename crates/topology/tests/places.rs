//! What placing looks at is the same in the quick reading and in the whole one.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use numakit_model::topology::CacheKind;
use numakit_model::{CpuSet, Topology};
use numakit_sys::SysRoot;
use numakit_testing::sysfs;
use numakit_topology::{read, read_places, synthetic};

/// Caches by level and kind, with the CPUs that share them.
fn shared(topology: &Topology) -> Vec<(u32, CacheKind, CpuSet)> {
    let far = topology.caches.iter().filter(|cache| cache.level > 1);
    far.map(|cache| (cache.level, cache.kind, cache.cpus.clone())).collect()
}

/// Everything that a plan depends on is the same; says how many files each reading took.
fn compare(root: &SysRoot) {
    let (whole_root, quick_root) = (root.traced(), root.traced());
    let whole = read(&whole_root).unwrap();
    let quick = read_places(&quick_root, true).unwrap();
    let name = &whole.origin;
    assert_eq!(shared(&quick), shared(&whole), "{name}");
    assert_eq!(quick.devices, whole.devices, "{name}");
    let mut expected = Topology { devices: Vec::new(), caches: Vec::new(), ..whole.clone() };
    expected.cores.iter_mut().for_each(|core| core.os_index = None);
    for node in &mut expected.nodes {
        (node.huge_pages, node.access, node.memory_side_caches) = Default::default();
        node.interleave_weight = None;
    }
    expected.weights_auto = None;
    // Notes may be fewer, since less was looked at; the page size is this machine's.
    (expected.notes, expected.page_size) = (quick.notes.clone(), quick.page_size);
    let mut seen = Topology { devices: Vec::new(), caches: Vec::new(), ..quick };
    // Free memory changes from reading to reading.
    seen.nodes.iter_mut().chain(&mut expected.nodes).for_each(|node| node.free_kb = None);
    assert_eq!(seen, expected, "{name}");
    let (files, all) = (quick_root.touched().len(), whole_root.touched().len());
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
    for archive in numakit_captures::archives() {
        compare(&SysRoot::open(&archive).unwrap());
    }
}
