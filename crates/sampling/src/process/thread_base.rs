//! The base of a thread's local storage, for methods whose samples do not have it. On x86-64 the word at the base is its
//! own address, as its ABI demands; C libraries keep the number of the thread at a fixed distance.

use super::MemoryKind;
use super::mappings::MappingTable;
use std::ops::Range;

/// Bytes at the end of a stack in which the C library keeps the control block of the thread.
const END_OF_STACK: u64 = 16 << 10;
/// How far above the stack pointer a control block is searched, where a stack and other memory are one mapping. Thread-local
/// storage is between the two.
const ABOVE: u64 = 4 << 20;
const PIECE: u64 = 64 << 10;
/// How far two pieces overlap: the length of a control block up to the number of its thread.
const COMMON: u64 = 1 << 10;
/// The control block of the first thread is in a small mapping beside the C library, at the end of a larger one if the
/// program has much thread-local storage, before what the loader allocates later, or at the start of the heap.
const SMALL: u64 = 64 << 10;
/// MappingTable that are searched at most.
const MAX_SEARCHED: usize = 64;

/// Control blocks are aligned to this at least.
const ALIGNMENT: usize = 16;
/// Where the number of the thread is in the control block of glibc, and of musl.
const THREAD_NUMBERS: [usize; 2] = [720, 48];

/// The base of a thread, by its stack pointer and number; `far` is slow and looks farther from the pointer.
pub fn find(
    mappings: &MappingTable,
    pointer: u64,
    thread: u32,
    far: bool,
    read: impl Fn(u64, &mut [u8]) -> Option<usize>,
) -> Option<u64> {
    if cfg!(not(target_arch = "x86_64")) {
        return None;
    }
    let stack = mappings.find(pointer).filter(|mapping| mapping.kind == MemoryKind::Anonymous);
    // Memory below the stack pointer is no control block.
    let aligned = pointer / ALIGNMENT as u64 * ALIGNMENT as u64;
    let end = stack.map(|stack| stack.range.end.saturating_sub(END_OF_STACK).max(aligned)..stack.range.end);
    let small = mappings.all().iter().filter_map(|mapping| match mapping.kind {
        MemoryKind::Heap => Some(mapping.range.start..mapping.range.end.min(mapping.range.start + SMALL)),
        MemoryKind::Anonymous if mapping.range.end - mapping.range.start <= SMALL => {
            Some(mapping.range.clone())
        }
        _ => None,
    });
    let large = mappings.all().iter().filter(|mapping| {
        mapping.kind == MemoryKind::Anonymous && mapping.range.end - mapping.range.start > SMALL
    });
    let ends = large.map(|mapping| mapping.range.end - SMALL..mapping.range.end);
    let above =
        stack.filter(|_| far).map(|stack| aligned..stack.range.end.min(aligned.saturating_add(ABOVE)));
    let pieces = above.into_iter().flat_map(|range| {
        let piece = move |start: u64| start..range.end.min(start.saturating_add(PIECE + COMMON));
        (range.start..range.end).step_by(PIECE as usize).map(piece)
    });
    let mut bytes = Vec::new();
    let others = small.take(MAX_SEARCHED).chain(ends.take(MAX_SEARCHED));
    end.into_iter().chain(others).chain(pieces).find_map(|range| {
        bytes.resize(usize::try_from(range.end - range.start).ok()?, 0);
        let length = read(range.start, &mut bytes)?;
        search(&bytes[..length], &range, thread)
    })
}

/// The control block of this thread in a piece of memory.
fn search(bytes: &[u8], range: &Range<u64>, thread: u32) -> Option<u64> {
    let word = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
    let number = |at: usize| bytes.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    (0..bytes.len()).step_by(ALIGNMENT).find_map(|at| {
        let address = range.start + at as u64;
        let is_base = word(at) == Some(address)
            && THREAD_NUMBERS.iter().any(|distance| number(at + distance) == Some(thread));
        is_base.then_some(address)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_block_points_to_itself_and_has_the_number_of_its_thread() {
        let (start, mut bytes) = (0x7f00_0000_0000u64, vec![0u8; 4096]);
        let range = start..start + 4096;
        // Another thread's, then a pointer to itself that is no control block, then ours.
        for (at, number) in [(64usize, 8u32), (1024, 0), (2048, 9)] {
            bytes[at..at + 8].copy_from_slice(&(start + at as u64).to_ne_bytes());
            bytes[at + 720..at + 724].copy_from_slice(&number.to_ne_bytes());
        }
        assert_eq!(search(&bytes, &range, 9), Some(start + 2048));
        assert_eq!((search(&bytes, &range, 8), search(&bytes, &range, 7)), (Some(start + 64), None));
        // One that is cut off.
        assert_eq!(search(&bytes[..2060], &range, 9), None);
    }

    #[test]
    fn a_control_block_behind_much_thread_local_storage_is_found() {
        let (start, length) = (0x7f00_0000_0000u64, 64 << 20);
        let mappings = MappingTable::parse(&format!(
            "{start:x}-{:x} rw-p 00000000 00:00 0\n7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0 [stack]\n",
            start + length
        ));
        for base in [start + length - 0xa00, start + length - 0x4840] {
            let read = |at: u64, into: &mut [u8]| {
                into.fill(0);
                for (field, value) in [(base, base.to_ne_bytes()), (base + 720, 9u64.to_ne_bytes())] {
                    let from = field.checked_sub(at)? as usize;
                    into.get_mut(from..from + 8)?.copy_from_slice(&value);
                }
                Some(into.len())
            };
            assert_eq!(find(&mappings, 0x7ffd_0001_0000, 9, false, read), Some(base));
        }
    }

    #[test]
    fn a_control_block_in_the_middle_of_a_mapping_is_found() {
        let (start, length) = (0x7f00_0000_0000u64, 4 << 20);
        let mappings =
            MappingTable::parse(&format!("{start:x}-{:x} rw-p 00000000 00:00 0\n", start + length));
        // The last one lies across the end of a piece.
        for base in [start + 0x8000, start + 0x10_0000, start + 0x1000 + PIECE - 16] {
            let read = |at: u64, into: &mut [u8]| {
                into.fill(0);
                for (field, value) in [(base, base.to_ne_bytes()), (base + 720, 9u64.to_ne_bytes())] {
                    let within =
                        field.checked_sub(at).and_then(|from| into.get_mut(from as usize..from as usize + 8));
                    within.into_iter().for_each(|bytes| bytes.copy_from_slice(&value));
                }
                Some(into.len())
            };
            assert_eq!(find(&mappings, start + 0x1000, 9, true, read), Some(base));
            assert_eq!(find(&mappings, start + 0x1000, 8, true, read), None);
        }
    }
}
