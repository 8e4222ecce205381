//! The table of counts, whose layout `native/alloc/counts.h` declares.

use super::space::{AllocatorSpace, PagesUnknown, RegionPages};

/// Bytes before the first region.
pub const HEADER_BYTES: usize = 64;
/// Bytes of the pool of small blocks and of that of large ones, and of what follows them.
const POOL_BYTES: usize = 64;
const REGION_BYTES: usize = 3 * POOL_BYTES;

const MAGIC: &[u8; 8] = b"NUMALLOC";
/// The version that is read here.
const VERSION: u32 = 3;
/// Maximum number of regions of nodes.
const MAX_REGIONS: u32 = 256;

/// Why bytes are not a table of counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CountTableError {
    /// The first bytes are not those of a table.
    #[error("its memory has no table of counts where libnumalloc has it; start the program again")]
    Magic,
    /// Nothing has been allocated.
    #[error("libnumalloc is loaded, but has allocated nothing yet; repeat the command when the program runs")]
    Unused,
    /// The program has a library of another numakit.
    #[error(
        "its libnumalloc has counts of version {0}, and this 'numa' reads version {VERSION}; use the 'numa' that started it"
    )]
    Version(u32),
    /// There are fewer bytes than the table has.
    #[error("its table of counts ends after {found} bytes of {needed}; start the program again")]
    Truncated {
        /// Bytes that there are.
        found: usize,
        /// Bytes of the table.
        needed: usize,
    },
    /// A number is impossible.
    #[error("its table of counts is damaged: {name} is {value}; start the program again")]
    Damaged {
        /// The field.
        name: &'static str,
        /// Its value.
        value: u64,
    },
}

/// The counts of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocatorCounts {
    /// Where the regions lie.
    pub space: AllocatorSpace,
    /// Where the pages of each region of the space lie, or why that is unknown.
    pub pages: Result<Vec<RegionPages>, PagesUnknown>,
    /// The regions, in the order of nodes; behind them that of memory policies, if something was allocated there.
    pub regions: Vec<RegionCounts>,
}

/// The counts of a region. All are in bytes, except two numbers; those that only grow do so from the start of the program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RegionCounts {
    /// Its node; `None` if the program does not keep memory by node, or if memory policies of the program decide.
    pub node: Option<u32>,
    /// Memory policies of the program decide where it lies.
    pub of_policies: bool,
    /// Address space that was made usable, with memory or without.
    pub mapped: u64,
    /// What blocks lie in: large ones, and slabs with at least one small block that the program or a thread's list has.
    pub in_use: u64,
    /// Free memory that is kept.
    pub cached: u64,
    /// What of it the kernel may take when memory is short.
    pub reclaimable: u64,
    /// Memory that was used again while it was kept; it only grows.
    pub recycled: u64,
    /// Page faults that would have been needed for it, in pages of the smallest size; it only grows.
    pub faults_avoided: u64,
    /// Number of small blocks that threads of other nodes freed; it only grows.
    pub from_other_nodes: u64,
}

struct CountHeader {
    /// The number of regions of nodes.
    regions: u32,
    of_policies: bool,
    unit: u64,
    page: u64,
    of_nodes: bool,
    space: AllocatorSpace,
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

impl CountHeader {
    fn parse(bytes: &[u8]) -> Result<Self, CountTableError> {
        let short = CountTableError::Truncated { found: bytes.len(), needed: HEADER_BYTES };
        let bytes = bytes.get(..HEADER_BYTES).ok_or(short)?;
        match &bytes[..MAGIC.len()] {
            magic if magic == MAGIC => {}
            [0, 0, 0, 0, 0, 0, 0, 0] => return Err(CountTableError::Unused),
            _ => return Err(CountTableError::Magic),
        }
        let number = |index: usize| half(bytes, MAGIC.len() + 4 * index).ok_or(short);
        let version = number(0)?;
        if version != VERSION {
            return Err(CountTableError::Version(version));
        }
        let (regions, stride, unit, page) = (number(1)?, number(2)?, number(3)?, number(4)?);
        let possible = [
            ("the number of regions", regions, (1..=MAX_REGIONS).contains(&regions)),
            ("the length of a region", stride, stride as usize == REGION_BYTES),
            ("the size of a unit", unit, unit.is_power_of_two()),
            ("the size of a page", page, page.is_power_of_two()),
        ];
        match possible.iter().find(|(.., is_possible)| !is_possible) {
            Some((name, value, _)) => Err(CountTableError::Damaged { name, value: u64::from(*value) }),
            None => {
                let (address, region_bytes) = (word(bytes, 32).ok_or(short)?, word(bytes, 40).ok_or(short)?);
                let space = AllocatorSpace { address, region_bytes, regions };
                let (of_nodes, of_policies) = (number(5)? != 0, half(bytes, 48).ok_or(short)? != 0);
                Ok(Self { regions, of_policies, unit: unit.into(), page: page.into(), of_nodes, space })
            }
        }
    }

    fn length(&self) -> usize {
        HEADER_BYTES + (self.regions as usize + usize::from(self.of_policies)) * REGION_BYTES
    }

    fn region(&self, number: u32, bytes: &[u8]) -> Option<RegionCounts> {
        let of_policies = number >= self.regions;
        let node = (self.of_nodes && !of_policies).then_some(number);
        let mut counts = RegionCounts { node, of_policies, ..RegionCounts::default() };
        let mut recycled = 0u64;
        for pool in [0, POOL_BYTES] {
            let bytes_of = |index: usize| Some(word(bytes, pool + 8 * index)?.saturating_mul(self.unit));
            counts.mapped = counts.mapped.saturating_add(bytes_of(0)?);
            counts.in_use = counts.in_use.saturating_add(bytes_of(1)?);
            counts.cached = counts.cached.saturating_add(bytes_of(2)?);
            counts.reclaimable = counts.reclaimable.saturating_add(bytes_of(3)?);
            recycled = recycled.saturating_add(bytes_of(4)?);
        }
        let from_other_nodes = word(bytes, 2 * POOL_BYTES)?;
        Some(RegionCounts { recycled, faults_avoided: recycled / self.page, from_other_nodes, ..counts })
    }
}

/// Bytes of the table that begins with these.
pub fn length(header: &[u8]) -> Result<usize, CountTableError> {
    CountHeader::parse(header).map(|header| header.length())
}

impl AllocatorCounts {
    /// Whether the program keeps memory by node, but for what its memory policies decide.
    pub fn is_by_node(&self) -> bool {
        self.regions.iter().all(|region| region.node.is_some() || region.of_policies)
    }

    /// Parses the table.
    pub fn parse(bytes: &[u8]) -> Result<Self, CountTableError> {
        let header = CountHeader::parse(bytes)?;
        let short = CountTableError::Truncated { found: bytes.len(), needed: header.length() };
        let table = bytes.get(HEADER_BYTES..header.length()).ok_or(short)?;
        let regions = (0..).zip(table.chunks_exact(REGION_BYTES));
        let regions = regions.map(|(number, bytes)| header.region(number, bytes).ok_or(short));
        let mut regions = regions.collect::<Result<Vec<_>, _>>()?;
        regions.retain(|region| !region.of_policies || region.mapped > 0);
        Ok(Self { space: header.space, pages: Err(PagesUnknown::NotSearched), regions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of two nodes, whose words are 1, 2, 3, ... units.
    fn made() -> Vec<u8> {
        let mut bytes = b"NUMALLOC".to_vec();
        for number in [3u32, 2, 192, 16384, 4096, 1] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend([1u64 << 45, 1 << 43].iter().flat_map(|number| number.to_le_bytes()));
        bytes.resize(64, 0);
        bytes.extend((1..=48u64).flat_map(u64::to_le_bytes));
        bytes
    }

    fn with(at: usize, number: u32) -> Vec<u8> {
        let mut bytes = made();
        bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        bytes
    }

    #[test]
    fn pools_are_added_and_units_become_bytes() {
        let counts = AllocatorCounts::parse(&made()).unwrap();
        let unit = 16384;
        let first = RegionCounts {
            node: Some(0),
            of_policies: false,
            mapped: (1 + 9) * unit,
            in_use: (2 + 10) * unit,
            cached: (3 + 11) * unit,
            reclaimable: (4 + 12) * unit,
            recycled: (5 + 13) * unit,
            faults_avoided: (5 + 13) * 4,
            from_other_nodes: 17,
        };
        assert_eq!((counts.regions.len(), counts.regions[0]), (2, first));
        assert_eq!((counts.space.node(1 << 45), counts.space.node(5 << 43)), (Some(0), Some(1)));
        assert_eq!((counts.regions[1].mapped, counts.regions[1].from_other_nodes), ((25 + 33) * unit, 41));
        assert_eq!(counts.regions[1].node, Some(1));
        assert_eq!(AllocatorCounts::parse(&with(28, 0)).unwrap().regions[0].node, None);
    }

    #[test]
    fn blocks_of_policies_are_behind_those_of_nodes() {
        let mut bytes = with(48, 1);
        bytes.extend((49..=72u64).flat_map(u64::to_le_bytes));
        let counts = AllocatorCounts::parse(&bytes).unwrap();
        assert_eq!(
            (counts.regions.len(), counts.regions[2].node, counts.regions[2].of_policies),
            (3, None, true)
        );
        assert!(counts.is_by_node() && counts.space.node(1 << 46).is_none());
        assert!(!AllocatorCounts::parse(&with(28, 0)).unwrap().is_by_node());
        // Nothing was allocated there.
        bytes[64 + 2 * REGION_BYTES..].fill(0);
        assert_eq!(AllocatorCounts::parse(&bytes).unwrap().regions.len(), 2);
    }

    #[test]
    fn other_tables_are_refused_with_what_is_wrong() {
        let error = |bytes: &[u8]| AllocatorCounts::parse(bytes).unwrap_err();
        assert_eq!(error(&with(0, 7)), CountTableError::Magic);
        assert_eq!(error(&[0; 64]), CountTableError::Unused);
        assert_eq!(error(&with(8, 1)), CountTableError::Version(1));
        assert!(error(&with(8, 1)).to_string().contains("version 1, and this 'numa' reads version 3"));
        for (at, number, name) in
            [(12, 0, "regions"), (12, 257, "regions"), (16, 184, "region"), (20, 3, "unit"), (24, 0, "page")]
        {
            let value = u64::from(number);
            assert!(
                matches!(error(&with(at, number)), CountTableError::Damaged { name: field, value: found }
                if field.ends_with(name) && found == value)
            );
        }
        let all = made();
        for found in 0..all.len() {
            let needed = if found < HEADER_BYTES { HEADER_BYTES } else { all.len() };
            assert_eq!(error(&all[..found]), CountTableError::Truncated { found, needed });
        }
        assert_eq!(length(&all[..HEADER_BYTES]), Ok(all.len()));
    }

    #[test]
    fn impossible_counts_do_not_overflow() {
        let mut bytes = made();
        bytes[64..].fill(0xff);
        assert_eq!(AllocatorCounts::parse(&bytes).unwrap().regions[0].recycled, u64::MAX);
    }
}
