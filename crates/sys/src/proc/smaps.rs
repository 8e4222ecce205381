//! `smaps`: the kinds of memory of each mapping. The kernel walks the page tables to print it.

use super::digits;
use super::maps::addresses;

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
}
