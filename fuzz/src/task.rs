//! Files of processes.

use numakit_model::Topology;
use numakit_model::topology::Node;
use numakit_processes::TaskNodes;
use numakit_processes::{AllocatorCounts, AllocatorSpace};
use numakit_processes::{MemoryByUse, NumaMapsReading};
use numakit_sys::SysRoot;
use numakit_sys::proc::{LoadAverage, TaskStat, TaskStatus, Variables, cgroup, machine, maps};
use numakit_sys::root::FileTree;

/// /proc/PID/numa_maps: every byte is of one use on one node.
pub fn numa_maps(input: &[u8]) -> bool {
    let node = |os_index| Node { os_index, ..Node::default() };
    let nodes = TaskNodes::of(&Topology { nodes: vec![node(0), node(3)], ..Topology::default() });
    let mut tree = FileTree::new();
    tree.file("/proc/7/numa_maps", input);
    let root = SysRoot::of_tree(tree);
    let space = AllocatorSpace { address: 1 << 44, region_bytes: 1 << 40, regions: 4 };
    let Ok(mut reading) = NumaMapsReading::open(&root, 7, &nodes, Some(space)) else { return false };
    while let Ok(true) = reading.advance(&nodes, 4096) {}
    let (memory, regions) = reading.found();
    assert_eq!(regions.len(), 4);
    assert!(memory.total() >= memory.on(0).max(memory.on(1)));
    let mut sum = MemoryByUse::none(nodes.count());
    sum.add(&memory);
    assert_eq!(sum, memory);
    memory.home();
    memory.total() > 0
}

/// The counts of libnumalloc in the memory of a process.
pub fn count_table(input: &[u8]) -> bool {
    let Ok(counts) = AllocatorCounts::parse(input) else { return false };
    assert!((1..=64).contains(&counts.regions.len()));
    true
}

/// /proc/PID/stat.
pub fn stat(input: &[u8]) -> bool {
    let Some(stat) = TaskStat::parse(input) else { return false };
    assert!(stat.command.len() < input.len());
    assert!(stat.runs() || stat.has_ended());
    assert!(!stat.name().chars().any(char::is_control));
    true
}

/// Other files of processes and of the machine: each line or text is passed to all parsers.
pub fn text(input: &[u8]) -> bool {
    let text = String::from_utf8_lossy(input);
    let status = TaskStatus::new(text.clone().into_owned());
    let _ = (status.users(), status.is_capable(63), status.bytes("VmRSS"));
    let _ = (status.allowed_cpus(), status.allowed_nodes());
    let variables = Variables::new(input.to_vec());
    for (name, _) in variables.iter() {
        assert!(variables.get(&name).is_some());
    }
    for group in cgroup::lines(&text) {
        assert!(!(group.is_unified && group.has("cpuset")));
    }
    if let Some(path) = cgroup::unified(&text) {
        assert!(cgroup::lines(&text).any(|line| line.is_unified && line.path == path));
    }
    let pointer = maps::stack_pointer_of(&text).unwrap_or(4096);
    assert!(maps::mapping_of(&text, pointer).is_none_or(|range| range.contains(&pointer)));
    for entry in text.lines().filter_map(maps::MapsEntry::parse) {
        assert!(!entry.range.is_empty() && (entry.is_of_kernel() <= entry.name.starts_with('[')));
    }
    let _ = LoadAverage::parse(&text);
    for line in input.split(|&byte| byte == b'\n') {
        let (machine::StatLine::Cpu(_, rest) | machine::StatLine::Other(_, rest)) = machine::stat_line(line);
        assert!(machine::numbers(rest).count() <= rest.len());
    }
    text.lines().any(|line| maps::MapsEntry::parse(line).is_some())
}
