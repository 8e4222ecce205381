//! `maps` and `syscall`: addresses in the memory of a process.

use super::TaskDir;
use std::ops::Range;

/// The addresses of a mapping, from a line such as `55d0-55e0 r-xp ...`.
pub fn addresses(line: &str) -> Option<Range<u64>> {
    let (start, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
    let hex = |word: &str| u64::from_str_radix(word, 16).ok();
    Some(hex(start)?..hex(end)?)
}

/// The mapping that contains an address.
pub fn mapping_of(maps: &str, address: u64) -> Option<Range<u64>> {
    maps.lines().filter_map(addresses).find(|range| range.contains(&address))
}

/// The stack pointer of a thread in a system call; none for a running thread.
pub fn stack_pointer(thread: &TaskDir<'_>) -> Option<u64> {
    stack_pointer_of(&thread.text("syscall").ok()?)
}

/// The stack pointer in a line of `syscall`: the last value but one.
pub fn stack_pointer_of(line: &str) -> Option<u64> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [.., pointer, _] = words[..] else { return None };
    u64::from_str_radix(pointer.strip_prefix("0x")?, 16).ok().filter(|&pointer| pointer != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_found_in_its_stack() {
        let pointer = Some(0x7ffd_41c0_7b08);
        let line = "35 0x7ffd 0x0 0x0 0x0 0x0 0x0 0x7ffd41c07b08 0x7f2ba7c8c0c3\n";
        assert_eq!(stack_pointer_of(line), pointer);
        assert_eq!(stack_pointer_of("-1 0x7ffd41c07b08 0x7f2ba7c8c0c3"), pointer);
        assert_eq!((stack_pointer_of("running"), stack_pointer_of("")), (None, None));
        let maps = "55d0-55e0 r-xp 0 08:01 1 /bin/x\n7ffd41be8000-7ffd41c09000 rw-p 0 00:00 0 [stack]\n";
        assert_eq!(mapping_of(maps, 0x7ffd_41c0_7b08).map(|range| range.end), Some(0x7ffd_41c0_9000));
        assert_eq!((mapping_of(maps, 0x55e0), mapping_of("x", 1)), (None, None));
    }
}
