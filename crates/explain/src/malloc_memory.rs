//! Which mappings the C library's `malloc` made, by what it writes into them. Without a log of allocations nothing else tells
//! its memory from what a program maps itself.

use std::ops::Range;

/// The distance of the arenas of threads. Each begins at a multiple of it.
const ARENA: u64 = 64 << 20;
const PAGE: u64 = 4096;
/// In the size of a block: the block is a mapping of its own, or a part of one that the kernel has joined.
const IS_MAPPED: u64 = 2;
/// The lowest bits of a size are flags.
const FLAGS: u64 = 7;
/// Blocks that are walked in one mapping.
const MAX_BLOCKS: usize = 256;

/// Whether `malloc` of glibc gave the memory at this address of a mapping without a name. `word` reads eight bytes.
pub fn is_of_malloc(mapping: &Range<u64>, address: u64, word: impl Fn(u64) -> Option<u64>) -> bool {
    is_in_arena(mapping, address, &word) || is_in_block(mapping, address, &word)
}

/// An arena begins with the addresses of its state and of the arena before, the bytes in use and those that are writable.
fn is_in_arena(mapping: &Range<u64>, address: u64, word: impl Fn(u64) -> Option<u64>) -> bool {
    let start = address / ARENA * ARENA;
    let head = || Some([word(start)?, word(start + 16)?, word(start + 24)?]);
    if !mapping.contains(&start) {
        return false;
    }
    head().is_some_and(|[state, used, writable]| {
        let pages = |size: u64| size > 0 && size.is_multiple_of(PAGE);
        state != 0
            && pages(used)
            && pages(writable)
            && used <= writable
            && writable <= ARENA
            && address < start + used
    })
}

/// A large block begins with a word that is zero, its size and flags. The kernel joins neighbours.
fn is_in_block(mapping: &Range<u64>, address: u64, word: impl Fn(u64) -> Option<u64>) -> bool {
    let mut start = mapping.start;
    for _ in 0..MAX_BLOCKS {
        let Some((0, size)) = word(start).zip(word(start + 8)) else { return false };
        let length = size & !FLAGS;
        if size & FLAGS != IS_MAPPED || length == 0 || !length.is_multiple_of(PAGE) {
            return false;
        }
        let Some(end) = start.checked_add(length).filter(|end| *end <= mapping.end) else { return false };
        if (start..end).contains(&address) {
            return true;
        }
        start = end;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const AT: u64 = 0x7f00_0000_1000;

    fn is_of(words: &[(u64, u64)], mapping: Range<u64>, address: u64) -> bool {
        let words: HashMap<u64, u64> = words.iter().copied().collect();
        is_of_malloc(&mapping, address, |at| words.get(&at).copied())
    }

    #[test]
    fn large_blocks_are_walked() {
        let two = [(AT, 0), (AT + 8, 0x3002), (AT + 0x3000, 0), (AT + 0x3008, 0x5002)];
        for (address, is_block) in [(AT + 0x10, true), (AT + 0x3010, true), (AT + 0x8010, false)] {
            assert_eq!(is_of(&two, AT..AT + 0x9000, address), is_block, "{address:x}");
        }
        assert!(!is_of(&two, AT..AT + 0x2000, AT + 0x10), "longer than its mapping");
        // Data of a program: no flag, no whole pages, the size of nothing, unreadable memory.
        for size in [0x3000, 0x3012, 2, !5] {
            assert!(!is_of(&[(AT, 0), (AT + 8, size)], AT..AT + 0x9000, AT + 0x10), "{size:x}");
        }
        assert!(!is_of(&[], AT..AT + 0x9000, AT + 0x10));
    }

    #[test]
    fn arenas_of_threads_begin_with_their_size() {
        let start = 0x7f00_0000_0000;
        let arena = |used, writable| {
            let head = [(start, start + 48), (start + 16, used), (start + 24, writable)];
            is_of(&head, start..start + 0x40_0000, start + 0x2_0000)
        };
        assert!(arena(0x30_0000, 0x40_0000));
        assert!(!arena(0x1_0000, 0x40_0000), "behind its end");
        assert!(!arena(0x30_0001, 0x40_0000) && !arena(0x40_0000, 0x30_0000) && !arena(0, 0));
    }

    /// The C library of this machine writes what is read here.
    #[test]
    fn memory_of_this_process_is_told() {
        let large = vec![1_u64; 1 << 20];
        let at = large.as_ptr() as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let range = |line: &str| {
            let (start, end) = line.split_once(' ')?.0.split_once('-')?;
            Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
        };
        let mapping = maps.lines().filter_map(range).find(|range| range.contains(&at)).unwrap();
        let process = numakit_sampling::process::ObservedProcess::open(std::process::id()).unwrap();
        let word = |address| {
            let mut bytes = [0; 8];
            process.read(address, &mut bytes).then(|| u64::from_ne_bytes(bytes))
        };
        assert!(is_of_malloc(&mapping, at, word), "{mapping:x?} {at:x}");
    }
}
