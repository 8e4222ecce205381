//! Small blocks of allocation sites, of which the log has a sample: how many there are, of which sizes, and where.

use super::{AllocatingThread, ObjectId, ObjectOrigin, ObjectTimeline};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

/// Maximum number of sampled blocks that are known at one time.
const MAX_LIVE: usize = 1 << 17;
/// Pieces of memory that are known to have small blocks.
const REGION: u64 = 1 << 20;

/// A sampled block, which represents other blocks of its site too.
#[derive(Debug, Clone, Copy)]
struct LiveBlock {
    end: u64,
    site: u64,
    bytes: u64,
}

/// What is known of the blocks of a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SiteBlocks {
    /// The allocating function.
    pub by: &'static str,
    /// The smallest block that was seen.
    pub least: u64,
    /// The size of the largest block.
    pub most: u64,
}

impl SiteBlocks {
    /// Their sizes in words.
    pub fn words(&self) -> String {
        match (self.least, self.most) {
            (least, most) if least == most => format!("blocks of {least} bytes"),
            (least, most) => format!("blocks of {least} to {most} bytes"),
        }
    }
}

/// The small blocks of a process.
#[derive(Debug, Clone, Default)]
pub struct SmallBlocks {
    live: BTreeMap<u64, LiveBlock>,
    regions: BTreeSet<u64>,
    sites: HashMap<u64, SiteBlocks>,
    /// For each direct caller of the allocator, the site of its sampled blocks of each size; of all sizes under 0. `None` if
    /// there are several.
    wrapped: HashMap<(u64, u64), Option<u64>>,
}

impl SmallBlocks {
    /// A sampled block of this size that a direct caller of the allocator asked for belongs to this site.
    pub fn allocated_by(&mut self, direct: u64, size: u64, site: u64) {
        for size in [size, 0] {
            let known = self.wrapped.entry((direct, size)).or_insert(Some(site));
            *known = known.filter(|known| *known == site);
        }
    }

    /// The site of a block of which only the direct caller of the allocator is known. If that is a wrapper, the size often
    /// tells who asked; the direct caller itself if not.
    pub fn site(&self, direct: u64, size: u64) -> u64 {
        let known = |size| self.wrapped.get(&(direct, size)).copied().flatten();
        known(size).or_else(|| known(0)).unwrap_or(direct)
    }

    /// A sampled block, which represents `count`.
    pub fn add(
        &mut self,
        addresses: Range<u64>,
        by: &'static str,
        site: u64,
        count: f64,
        thread: Option<AllocatingThread>,
        to: &mut ObjectTimeline,
    ) {
        // The end of the block that had this address was not seen.
        self.free(addresses.start, to);
        let size = addresses.end - addresses.start;
        self.regions.insert(addresses.start / REGION);
        self.note(site, size).by = by;
        let bytes = (size as f64 * count) as u64;
        let Some(row) = to.name(&ObjectOrigin::SmallBlocks { site }).and_then(|id| to.rows.get_mut(id.0))
        else {
            return;
        };
        row.pieces = row.pieces.saturating_add(count.round() as u64);
        row.blocks.are_small = true;
        thread.into_iter().for_each(|by| row.blocks.add(by, bytes, None));
        if self.live.len() < MAX_LIVE {
            row.bytes = row.bytes.saturating_add(bytes);
            row.max_bytes = row.max_bytes.max(row.bytes);
            self.live.insert(addresses.start, LiveBlock { end: addresses.end, site, bytes });
        }
    }

    /// The block at this address is freed. False if it is no sampled one.
    pub fn free(&mut self, start: u64, from: &mut ObjectTimeline) -> bool {
        let Some(block) = self.live.remove(&start) else { return false };
        let object = from.name(&ObjectOrigin::SmallBlocks { site: block.site });
        if let Some(row) = object.and_then(|ObjectId(at)| from.rows.get_mut(at)) {
            row.bytes = row.bytes.saturating_sub(block.bytes);
        }
        true
    }

    /// A block of this site and size was seen.
    pub fn note(&mut self, site: u64, size: u64) -> &mut SiteBlocks {
        let known = self.sites.entry(site).or_insert(SiteBlocks { by: "malloc", least: size, most: size });
        (known.least, known.most) = (known.least.min(size), known.most.max(size));
        known
    }

    /// The site of the sampled block that has an address.
    pub fn find(&self, address: u64) -> Option<u64> {
        let (_, block) = self.live.range(..=address).next_back()?;
        (address < block.end).then_some(block.site)
    }

    /// Whether there are small blocks among these addresses, or were.
    pub fn are_in(&self, addresses: &Range<u64>) -> bool {
        self.regions.range(addresses.start / REGION..addresses.end.div_ceil(REGION)).next().is_some()
    }

    /// What is known of the blocks of a site.
    pub fn of_site(&self, site: u64) -> Option<&SiteBlocks> {
        self.sites.get(&site)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_tells_who_asked_a_wrapper() {
        let mut small = SmallBlocks::default();
        small.allocated_by(7, 24, 100);
        small.allocated_by(7, 48, 200);
        small.allocated_by(7, 24, 100);
        small.allocated_by(8, 16, 300);
        assert_eq!([small.site(7, 24), small.site(7, 48), small.site(7, 96)], [100, 200, 7]);
        assert_eq!([small.site(8, 16), small.site(8, 1000), small.site(9, 16)], [300, 300, 9]);
        small.allocated_by(7, 24, 200);
        assert_eq!(small.site(7, 24), 7, "two ask for this size");
    }

    #[test]
    fn samples_say_how_many_blocks_a_site_has_and_of_which_sizes() {
        let (mut small, mut timeline) = (SmallBlocks::default(), ObjectTimeline::new(10));
        small.add(0x1000..0x1018, "malloc", 7, 1000.0, None, &mut timeline);
        small.add(0x9000..0x9018, "malloc", 7, 1000.0, None, &mut timeline);
        small.add(0x5000..0x5100, "calloc", 8, 10.0, None, &mut timeline);
        let row = |timeline: &ObjectTimeline, site| {
            let is_it = |row: &&super::super::ObjectRow| row.origin == ObjectOrigin::SmallBlocks { site };
            let row = timeline.rows().map(|(_, row)| row).find(is_it).unwrap();
            (row.pieces, row.bytes, row.max_bytes)
        };
        assert_eq!(row(&timeline, 7), (2000, 48_000, 48_000));
        assert_eq!([0x1017, 0x1018, 0x5000, 0xfff].map(|at| small.find(at)), [Some(7), None, Some(8), None]);
        assert!(small.free(0x1000, &mut timeline) && !small.free(0x1000, &mut timeline));
        // The end of the other one was not seen.
        small.add(0x9000..0x9030, "malloc", 7, 500.0, None, &mut timeline);
        assert_eq!(row(&timeline, 7), (2500, 24_000, 48_000));
        assert_eq!(small.of_site(7).unwrap().words(), "blocks of 24 to 48 bytes");
        let of_calloc = small.of_site(8).unwrap();
        assert_eq!((of_calloc.words().as_str(), of_calloc.by), ("blocks of 256 bytes", "calloc"));
        assert!(small.are_in(&(0..0x2000)) && !small.are_in(&(0x20_0000..0x90_0000)));
    }
}
