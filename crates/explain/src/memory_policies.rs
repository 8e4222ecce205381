//! What binds the memory of a process to nodes: a policy, or its cpuset. Nobody's first touch decides there.

use crate::process_visits::ProcessVisits;
use numakit_model::CpuSet;
use numakit_sys::proc::TaskDir;
use numakit_sys::proc::numa_maps;
use numakit_sys::{SysRoot, clock};
use std::collections::{BTreeMap, HashMap};

/// Maximum size of a process whose policies are all read. To list them, the kernel walks all page tables of the process, and
/// blocks its mappings meanwhile.
const MAX_RESIDENT: u64 = 4 << 30;

/// What binds memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BoundBy {
    /// The policy of a mapping or a thread: bind or prefer.
    Policy,
    /// The nodes that the cpuset of the process has.
    Cpuset,
}

/// The nodes that memory is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryBinding {
    /// The nodes.
    pub nodes: CpuSet,
    /// What binds it.
    pub by: BoundBy,
}

/// What binds the memory of each process, as it was when the process was looked at last.
#[derive(Debug)]
pub struct MemoryPolicies {
    /// All nodes with memory.
    nodes: CpuSet,
    /// Bindings by the first address of each mapping.
    of: HashMap<u32, BTreeMap<u64, Option<MemoryBinding>>>,
    visits: ProcessVisits,
}

impl MemoryPolicies {
    /// Makes an empty table, for an observation that starts now, on a machine with these nodes with memory. If there is one
    /// node only, nothing is ever looked at: there is nothing to bind.
    pub fn new(nodes: CpuSet, now: u64) -> Self {
        let visits = if nodes.len() > 1 { ProcessVisits::from(now) } else { ProcessVisits::never() };
        Self { nodes, of: HashMap::new(), visits }
    }

    /// Looks at these processes if it is time.
    pub fn visit(&mut self, root: &SysRoot, processes: &[u32], now: u64) {
        if !self.visits.is_due(now) {
            return;
        }
        for process in processes {
            if let Some(found) = self.read(&TaskDir::of(root, *process)) {
                self.of.insert(*process, found);
            }
        }
        self.visits.visited(now, clock::monotonic());
    }

    fn read(&self, process: &TaskDir<'_>) -> Option<BTreeMap<u64, Option<MemoryBinding>>> {
        let status = process.status().ok()?;
        let of_cpuset = status.allowed_nodes().map(|allowed| allowed.and(&self.nodes));
        let narrow = of_cpuset.filter(|allowed| !allowed.is_empty() && *allowed != self.nodes);
        let of_cpuset = narrow.map(|nodes| MemoryBinding { nodes, by: BoundBy::Cpuset });
        let is_large = status.bytes("VmRSS")? > MAX_RESIDENT;
        let text = match is_large {
            // Of a larger one the first mapping tells the policy of its main thread.
            true => numa_maps::first_line(process)?,
            false => process.bytes("numa_maps").ok()?,
        };
        let mapping = |line: &[u8]| {
            let (start, nodes) = numa_maps::bound_to(line)?;
            let of_policy = nodes.map(|nodes| MemoryBinding { nodes, by: BoundBy::Policy });
            Some((start, of_policy.or_else(|| of_cpuset.clone())))
        };
        Some(text.split(|byte| *byte == b'\n').filter_map(mapping).collect())
    }

    /// What binds the memory at an address of a process, as far as that is known.
    pub fn at(&self, process: u32, address: u64) -> Option<&MemoryBinding> {
        self.of.get(&process)?.range(..=address).next_back()?.1.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::root::FileTree;

    fn policies(status: &str, maps: &str) -> MemoryPolicies {
        let mut tree = FileTree::new();
        tree.file("/proc/7/status", status).file("/proc/7/numa_maps", maps);
        let mut policies = MemoryPolicies::new(CpuSet::range(0, 3), 1);
        let root = SysRoot::of_tree(tree);
        policies.visit(&root, &[7, 8], 0);
        assert!(policies.of.is_empty());
        let now = clock::monotonic();
        policies.visit(&root, &[7, 8], now);
        assert!(!policies.visits.is_due(now));
        policies
    }

    const MAPS: &str =
        "1000 default anon=1 N0=1\n3000 bind:0 anon=1 N0=1\n5000 prefer:2\n7000 interleave:0-3 anon=4\n";

    #[test]
    fn policies_bind_the_mappings_that_have_them() {
        let policies = policies("Name:\tx\nVmRSS:\t 9 kB\nMems_allowed_list:\t0-3\n", MAPS);
        let at = |address| policies.at(7, address).map(|found| (found.nodes.to_string(), found.by));
        let by_policy = |nodes: &str| Some((nodes.to_owned(), BoundBy::Policy));
        assert_eq!((at(0x2fff), at(0x3000), at(0x4fff)), (None, by_policy("0"), by_policy("0")));
        assert_eq!((at(0x5000), at(0x7000), at(0)), (by_policy("2"), None, None));
        assert_eq!(policies.at(8, 0x3000), None);
    }

    #[test]
    fn a_cpuset_binds_what_no_policy_does() {
        let policies = policies("Name:\tx\nVmRSS:\t 9 kB\nMems_allowed_list:\t1\n", MAPS);
        let at = |address| policies.at(7, address).map(|found| (found.nodes.to_string(), found.by));
        assert_eq!(at(0x1000), Some(("1".to_owned(), BoundBy::Cpuset)));
        assert_eq!(at(0x3000), Some(("0".to_owned(), BoundBy::Policy)));
    }

    #[test]
    fn of_what_is_large_only_the_first_line_is_read() {
        let large = format!("Name:\tx\nVmRSS:\t {} kB\nMems_allowed_list:\t0-3\n", (MAX_RESIDENT >> 10) + 1);
        assert_eq!(policies(&large, MAPS).at(7, 0x3000), None);
        let server =
            format!("1000 bind:0 file=/{} mapped=9 N0=9\n3000 default anon=1 N0=1\n", "a".repeat(200));
        let server = policies(&large, &server);
        let bound = server.at(7, 0x3000).map(|found| (found.nodes.to_string(), found.by));
        assert_eq!(bound, Some(("0".to_owned(), BoundBy::Policy)));
        let mut one = MemoryPolicies::new(CpuSet::range(0, 0), 0);
        one.visit(&SysRoot::host(), &[std::process::id()], u64::MAX - 1);
        assert!(one.of.is_empty());
    }
}
