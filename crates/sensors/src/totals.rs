//! Counters of each node since the machine started: its numastat.

use crate::layout::digits;
use crate::switches::KernelSwitches;
use numakit_model::{Topology, Unavailable};
use numakit_sys::SysRoot;

/// The counters of a node, in the kernel's order.
pub const NAMES: [&str; 6] =
    ["numa_hit", "numa_miss", "numa_foreign", "interleave_hit", "local_node", "other_node"];

/// The counters of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    /// The kernel's number of the node.
    pub node: u32,
    /// The counters, in the order of [`NAMES`].
    pub counts: [Option<u64>; NAMES.len()],
}

/// Reads the counters of all nodes.
pub fn read(root: &SysRoot, topology: &Topology) -> Result<Vec<Totals>, Unavailable> {
    if let Some(why) = KernelSwitches::read(root).why_off(NAMES[0]) {
        return Err(why.clone());
    }
    let path = |node: u32| format!("/sys/devices/system/node/node{node}/numastat");
    let of = |node: u32| {
        let text = root.text(&path(node)).ok()?;
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|value| digits(value.trim().as_bytes())).map(|(value, _)| value)
        };
        Some(Totals { node, counts: NAMES.map(value) })
    };
    let found: Vec<Totals> = topology.nodes.iter().filter_map(|node| of(node.os_index)).collect();
    if found.is_empty() {
        let first = path(topology.nodes.first().map_or(0, |node| node.os_index));
        let fix = root.fix_for(&first);
        return Err(Unavailable::new("totals of allocations by node", format!("there is no {first}"), fix));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{nodes, root};

    #[test]
    fn totals_are_read_by_name_and_missing_ones_are_none() {
        let files = [
            (
                "/sys/devices/system/node/node0/numastat",
                "numa_hit 7\nnuma_miss 1\nother_node 3\nnuma_hit2 9\n",
            ),
            ("/sys/devices/system/node/node5/numastat", "local_node 18446744073709551615\n"),
        ];
        let root = root(&files);
        let found = read(&root, &nodes(&[0, 3, 5])).unwrap();
        assert_eq!(found.iter().map(|t| t.node).collect::<Vec<_>>(), [0, 5]);
        assert_eq!(found[0].counts, [Some(7), Some(1), None, None, None, Some(3)]);
        assert_eq!(found[1].counts[4], Some(u64::MAX));
        root.change(|tree| _ = tree.file("/proc/sys/vm/numa_stat", "0\n"));
        assert!(read(&root, &nodes(&[0])).unwrap_err().fix.is_command("sysctl vm.numa_stat=1"));
        assert!(
            read(&SysRoot::of_tree(Default::default()), &nodes(&[2])).unwrap_err().seen.contains("node2")
        );
    }
}
