//! Where the regions of nodes lie in a program, and on which nodes their pages are.

/// The addresses of the regions, one for each node number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocatorSpace {
    /// Where the first region begins.
    pub address: u64,
    /// The distance from one region to the next.
    pub region_bytes: u64,
    /// The number of regions.
    pub regions: u32,
}

/// The pages of a region, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RegionPages {
    /// Pages on the region's node.
    pub local: u64,
    /// Pages on other nodes: the region's node was full when they were touched first.
    pub spilled: u64,
}

/// Why it is unknown where the pages lie.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PagesUnknown {
    /// The caller did not ask for it.
    #[error("they were not searched")]
    NotSearched,
    /// There is one region for the whole machine.
    #[error("with the profiles uma and lowmem memory has no node")]
    NoNodes,
    /// The file that shows it cannot be read.
    #[error(transparent)]
    Unreadable(#[from] numakit_sys::ReadError),
}

impl AllocatorSpace {
    /// The node to whose region an address belongs.
    pub fn node(&self, address: u64) -> Option<u32> {
        let number = address.checked_sub(self.address)?.checked_div(self.region_bytes)?;
        u32::try_from(number).ok().filter(|number| *number < self.regions)
    }

    /// No pages in any region.
    pub fn no_pages(&self) -> Vec<RegionPages> {
        vec![RegionPages::default(); self.regions as usize]
    }

    /// Adds pages of a mapping, if it is of a region, that are on a node.
    pub fn add(&self, pages: &mut [RegionPages], mapping: u64, node: u32, bytes: u64) {
        let Some(region) = self.node(mapping) else { return };
        if let Some(pages) = pages.get_mut(region as usize) {
            let sum = if region == node { &mut pages.local } else { &mut pages.spilled };
            *sum = sum.saturating_add(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_sys::proc::numa_maps;

    /// Of a program on four nodes; node 1 was full.
    const NUMA_MAPS: &str = "\
2f0000000000 default anon=9 dirty=9 N0=9 kernelpagesize_kB=4
300000000000 prefer:0 anon=1024 dirty=1024 active=0 N0=1024 kernelpagesize_kB=4
300000400000 prefer:0
380000000000 prefer:1 anon=3000 dirty=3000 N0=700 N1=2048 N2=252 kernelpagesize_kB=4
480000000000 prefer:3 anon=2 dirty=2 N3=2 kernelpagesize_kB=4
500000000000 default file=/lib/x mapped=5 N0=5 kernelpagesize_kB=4
";

    #[test]
    fn pages_on_another_node_than_that_of_their_region_are_spilled() {
        let space = AllocatorSpace { address: 0x3000_0000_0000, region_bytes: 1 << 43, regions: 4 };
        let mut pages = space.no_pages();
        for line in NUMA_MAPS.lines() {
            let mut on = Vec::new();
            let (start, _) =
                numa_maps::line(line.as_bytes(), 4096, |_, node, bytes| on.push((node, bytes))).unwrap();
            on.into_iter().for_each(|(node, bytes)| space.add(&mut pages, start, node, bytes));
        }
        let of = |local: u64, spilled: u64| RegionPages { local: local * 4096, spilled: spilled * 4096 };
        assert_eq!(pages, [of(1024, 0), of(2048, 952), of(0, 0), of(2, 0)]);
    }

    #[test]
    fn addresses_outside_belong_to_no_node() {
        let space = AllocatorSpace { address: 4096, region_bytes: 4096, regions: 2 };
        let nodes = [4095, 4096, 8191, 8192, 12_287, 12_288, u64::MAX].map(|address| space.node(address));
        assert_eq!(nodes, [None, Some(0), Some(0), Some(1), Some(1), None, None]);
        assert_eq!(AllocatorSpace { region_bytes: 0, ..space }.node(4096), None);
    }
}
