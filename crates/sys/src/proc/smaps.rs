//! `smaps`: the kinds of memory of each mapping. The kernel walks the page tables to print it.

use super::digits;
use super::maps::addresses;
use std::ops::Range;

/// The bytes of a file that the mapping at this address maps as huge pages; `None` if the kernel does not say, or if there
/// is no such mapping.
pub fn huge_file_bytes(text: &[u8], start: u64) -> Option<u64> {
    let mut lines = text.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    lines.find(|line| addresses(line).is_some_and(|range| range.start == start))?;
    let fields = lines.take_while(|line| addresses(line).is_none()).filter_map(|line| line.split_once(':'));
    let huge = fields.filter(|(name, _)| matches!(*name, "FilePmdMapped" | "ShmemPmdMapped"));
    let kib = huge.filter_map(|(_, value)| Some(digits(value.trim_start().as_bytes())?.0));
    kib.fold(None, |sum: Option<u64>, kib| Some(sum.unwrap_or(0).saturating_add(kib.saturating_mul(1024))))
}

/// What a mapping has in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedMemory {
    /// Its addresses.
    pub addresses: Range<u64>,
    /// Bytes in memory.
    pub resident: u64,
    /// Those of them that are mapped as huge pages.
    pub huge: u64,
}

/// The mappings that have something in memory, in the order of their addresses.
pub fn mapped(text: &[u8]) -> Vec<MappedMemory> {
    let mut all: Vec<MappedMemory> = Vec::new();
    for line in text.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok()) {
        if let Some(addresses) = addresses(line) {
            all.push(MappedMemory { addresses, resident: 0, huge: 0 });
            continue;
        }
        let Some((mapping, (name, value))) = all.last_mut().zip(line.split_once(':')) else { continue };
        let bytes = || digits(value.trim_start().as_bytes()).map_or(0, |(kib, _)| kib.saturating_mul(1024));
        match name {
            "Rss" => mapping.resident = bytes(),
            "AnonHugePages" | "ShmemPmdMapped" | "FilePmdMapped" => {
                mapping.huge = mapping.huge.saturating_add(bytes());
            }
            _ => {}
        }
    }
    all.retain(|mapping| mapping.resident > 0);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"7f00-7f10 r--s 00000000 fe:00 12 /a: b\n\
        Size:                 64 kB\nFilePmdMapped:         0 kB\n\
        8000-9000 r--s 00000000 fe:00 13 /b\n\
        ShmemPmdMapped:     2048 kB\nFilePmdMapped:      4096 kB\nVmFlags: rd mr\n\
        9000-a000 rw-p 00000000 00:00 0\nRss: 4 kB\n";

    #[test]
    fn only_the_mapping_at_the_address_counts() {
        assert_eq!(huge_file_bytes(TEXT, 0x7f00), Some(0));
        assert_eq!(huge_file_bytes(TEXT, 0x8000), Some(6 << 20));
        assert_eq!(huge_file_bytes(TEXT, 0x9000), None);
        assert_eq!(huge_file_bytes(TEXT, 0x7f01), None);
    }

    #[test]
    fn each_mapping_has_its_own_huge_pages() {
        let text = b"1000-2000 rw-p 0 00:00 0\nRss: 0 kB\nAnonHugePages: 0 kB\n\
            200000-600000 rw-p 0 00:00 0\nSize: 4096 kB\nRss: 4096 kB\nAnonHugePages: 2048 kB\nShmemPmdMapped: 0 kB\n\
            700000-800000 rw-s 0 00:01 9 /dev/shm/x\nRss: 1024 kB\nbroken\nAnonHugePages: what kB\n";
        let of = |addresses, resident, huge| MappedMemory { addresses, resident, huge };
        assert_eq!(
            mapped(text),
            [of(0x200000..0x600000, 4 << 20, 2 << 20), of(0x700000..0x800000, 1 << 20, 0)]
        );
        assert_eq!(mapped(b"Rss: 4 kB\n"), []);
    }
}
