//! Files of processes.

use numakit_model::Topology;
use numakit_model::topology::Node;
use numakit_sensors::task::nodes::Nodes;
use numakit_sensors::task::numa_maps::{Memory, Reading};
use numakit_sensors::task::stat as line;
use numakit_sys::SysRoot;
use numakit_sys::root::Tree;

/// /proc/PID/numa_maps: every byte is of one use on one node.
pub fn numa_maps(input: &[u8]) {
    let node = |os_index| Node { os_index, ..Node::default() };
    let nodes = Nodes::of(&Topology { nodes: vec![node(0), node(3)], ..Topology::default() });
    let mut tree = Tree::new();
    tree.file("/proc/7/numa_maps", input);
    let root = SysRoot::of_tree(tree);
    if let Ok(mut reading) = Reading::open(&root, 7, &nodes) {
        while let Ok(true) = reading.advance(&nodes, 4096) {}
        let memory = reading.memory();
        assert!(memory.total() >= memory.on(0).max(memory.on(1)));
        let mut sum = Memory::none(nodes.count());
        sum.add(&memory);
        assert_eq!(sum, memory);
        memory.home();
    }
}

/// /proc/PID/stat.
pub fn stat(input: &[u8]) {
    if let Some(stat) = line::parse(input) {
        assert!(stat.command.len() < input.len());
    }
}
