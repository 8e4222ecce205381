//! The code that allocated the small blocks of some pages: a table in the memory of an observed process, which
//! `libnumaexplain.so` writes. native/explain/sites.h has the same layout.

const PAGE_BITS: u32 = 12;
/// The upper bits by which the library chooses pages; the bits below them name the slot.
const PAGES_BITS: u32 = 4;
const SLOT_BITS: u32 = 15;
const GRANULE_BITS: u32 = 4;
const SIZE_BITS: u32 = 16;

const SLOTS: u64 = 1 << SLOT_BITS;
const ENTRIES: usize = 1 << (PAGE_BITS - GRANULE_BITS);

/// The table of a process, by its address there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSites(u64);

/// A small block, of whatever size, and who allocated it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SmallBlock {
    /// Its first byte, rounded down to 16 bytes.
    pub address: u64,
    /// Its bytes. A large block has at least this many.
    pub size: u64,
    /// The address behind the call that allocated it.
    pub site: u64,
}

impl BlockSites {
    /// The table at an address.
    pub fn new(address: u64) -> Self {
        Self(address)
    }

    /// The block that has an address, if it begins in the same page and the library has chosen that page. `read` copies memory of
    /// the process. Nothing that it returns is trusted: the program may write there.
    pub fn find(self, address: u64, read: impl Fn(u64, &mut [u8]) -> bool) -> Option<SmallBlock> {
        let slot = mixed(address) >> (u64::BITS - PAGES_BITS - SLOT_BITS) & (SLOTS - 1);
        let mut page = [0; 8];
        if !read(self.0.checked_add(slot * 8)?, &mut page) || u64::from_le_bytes(page) != address >> PAGE_BITS
        {
            return None;
        }
        let within = (address >> GRANULE_BITS) as usize % ENTRIES;
        let mut bytes = [0; ENTRIES * 8];
        let bytes = bytes.get_mut(..(within + 1) * 8)?;
        let entries = self.0.checked_add((SLOTS + slot * ENTRIES as u64) * 8)?;
        if !read(entries, bytes) {
            return None;
        }
        let words =
            bytes.chunks_exact(8).rev().filter_map(|word| word.try_into().ok()).map(u64::from_le_bytes);
        let (back, entry) =
            words.zip(0u64..).map(|(entry, back)| (back, entry)).find(|(_, entry)| *entry != 0)?;
        let begin = ((address >> GRANULE_BITS) - back) << GRANULE_BITS;
        let size = entry & ((1 << SIZE_BITS) - 1);
        let is_in = address < begin.saturating_add(size.next_multiple_of(1 << GRANULE_BITS));
        is_in.then_some(SmallBlock { address: begin, size, site: entry >> SIZE_BITS })
    }
}

fn mixed(address: u64) -> u64 {
    (address >> PAGE_BITS).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const TABLE: u64 = 0x7f00_0000_0000;

    /// A process whose table has these entries of one page: granule, size and site.
    fn process(page: u64, entries: &[(u64, u64, u64)]) -> HashMap<u64, u64> {
        let slot = mixed(page << PAGE_BITS) >> (u64::BITS - PAGES_BITS - SLOT_BITS) & (SLOTS - 1);
        let at = |granule: u64| TABLE + (SLOTS + slot * ENTRIES as u64 + granule) * 8;
        let words = entries.iter().map(|(granule, size, site)| (at(*granule), site << SIZE_BITS | size));
        words.chain([(TABLE + slot * 8, page)]).collect()
    }

    fn find(memory: &HashMap<u64, u64>, address: u64) -> Option<SmallBlock> {
        BlockSites::new(TABLE).find(address, |at, into| {
            into.chunks_mut(8).zip(0..).for_each(|(word, n)| {
                word.copy_from_slice(&memory.get(&(at + n * 8)).copied().unwrap_or(0).to_le_bytes());
            });
            true
        })
    }

    #[test]
    fn a_block_has_its_addresses_and_no_others() {
        let page = 0x55d_0000;
        let memory = process(page, &[(2, 40, 0x401_000), (5, 100, 0x402_000)]);
        let start = page << PAGE_BITS;
        let site = |offset: u64| find(&memory, start + offset).map(|block| block.site);
        assert_eq!(
            (site(31), site(32), site(79), site(80)),
            (None, Some(0x401_000), Some(0x401_000), Some(0x402_000))
        );
        assert_eq!((site(80 + 111), site(80 + 112), site(4095)), (Some(0x402_000), None, None));
        let block = SmallBlock { address: start + 32, size: 40, site: 0x401_000 };
        assert_eq!(find(&memory, start + 50), Some(block));
        // Another page at the same place, a page without entries, and memory that cannot be read.
        assert_eq!(find(&process(page + 1, &[(2, 40, 0x401_000)]), start + 32), None);
        assert_eq!(find(&memory, (page + 1) << PAGE_BITS), None);
        assert_eq!(BlockSites::new(TABLE).find(start + 32, |_, _| false), None);
    }
}
