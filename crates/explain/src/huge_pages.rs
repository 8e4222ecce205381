//! How much of each mapping is in huge pages, as the kernel says.

use crate::process_visits::ProcessVisits;
use numakit_sys::proc::TaskDir;
use numakit_sys::proc::smaps::{self, MappedMemory};
use numakit_sys::{SysRoot, clock};
use std::collections::HashMap;

/// The mappings of each process with what they had in huge pages when the process was looked at last.
///
/// The sum of a process tells nothing about one object: a large table on huge pages hides a small one that needs them.
#[derive(Debug)]
pub struct HugePageShares {
    of: HashMap<u32, Vec<MappedMemory>>,
    visits: ProcessVisits,
}

impl HugePageShares {
    /// Makes an empty table, for an observation that starts now.
    pub fn new(now: u64) -> Self {
        Self { of: HashMap::new(), visits: ProcessVisits::from(now) }
    }

    /// Looks at these processes if it is time.
    pub fn visit(&mut self, root: &SysRoot, processes: &[u32], now: u64) {
        if !self.visits.is_due(now) {
            return;
        }
        for process in processes {
            let mapped = smaps::mapped(&TaskDir::of(root, *process).bytes("smaps").unwrap_or_default());
            // Of a process that has just ended, what it had remains.
            if !mapped.is_empty() {
                self.of.insert(*process, mapped);
            }
        }
        self.visits.visited(now, clock::monotonic());
    }

    /// The part in huge pages of the mapping at an address; `None` if that is not known.
    pub fn at(&self, process: u32, address: u64) -> Option<f64> {
        let mapped = self.of.get(&process)?;
        let after = mapped.partition_point(|mapping| mapping.addresses.start <= address);
        let mapping = mapped.get(after.checked_sub(1)?)?;
        let part = mapping.huge as f64 / mapping.resident as f64;
        mapping.addresses.contains(&address).then(|| part.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::root::FileTree;

    #[test]
    fn a_mapping_is_looked_at_when_it_is_time() {
        let mut tree = FileTree::new();
        let maps =
            "1000-3000 rw-p 0 00:00 0\nRss: 8 kB\nAnonHugePages: 2 kB\n4000-5000 rw-p 0 00:00 0\nRss: 4 kB\n";
        tree.file("/proc/7/smaps", maps);
        let root = SysRoot::of_tree(tree);
        let mut shares = HugePageShares::new(1);
        shares.visit(&root, &[7], 0);
        assert_eq!(shares.at(7, 0x1000), None, "it was not time");
        let now = clock::monotonic();
        shares.visit(&root, &[7, 8], now);
        assert!(!shares.visits.is_due(now));
        let at = |address| shares.at(7, address);
        assert_eq!([at(0xfff), at(0x1000), at(0x2fff), at(0x3000)], [None, Some(0.25), Some(0.25), None]);
        assert_eq!((at(0x4000), shares.at(8, 0x4000)), (Some(0.0), None));
    }
}
