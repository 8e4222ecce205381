//! `maps` and `syscall`: addresses in the memory of a process.

use super::TaskDir;
use std::ops::Range;

/// The addresses of a mapping, from a line such as `55d0-55e0 r-xp ...`.
pub fn addresses(line: &str) -> Option<Range<u64>> {
    let (start, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
    let hex = |word: &str| u64::from_str_radix(word, 16).ok();
    Some(hex(start)?..hex(end)?)
}

/// A line of `maps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapsEntry<'a> {
    /// The addresses; never empty.
    pub range: Range<u64>,
    /// Can be read.
    pub readable: bool,
    /// Can be written.
    pub writable: bool,
    /// Can be executed.
    pub executable: bool,
    /// Other processes may see what is written.
    pub shared: bool,
    /// Where in the file it begins.
    pub offset: u64,
    /// The device of the file: major and minor number.
    pub device: (u32, u32),
    /// The inode of the file; 0 without one.
    pub inode: u64,
    /// The path of the file, or the kernel's name in brackets. Empty for memory without a name.
    pub name: &'a str,
}

impl<'a> MapsEntry<'a> {
    /// Parses a line; `None` if it is not one.
    pub fn parse(line: &'a str) -> Option<Self> {
        let mut rest = line.trim_end_matches('\n');
        let mut word = || {
            let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
            rest = after.trim_start_matches(' ');
            word
        };
        let (range, access, offset, device, inode) = (word(), word(), word(), word(), word());
        let access = access.as_bytes();
        let has = |at: usize, letter: u8| access.get(at) == Some(&letter);
        let (major, minor) = device.split_once(':')?;
        let number = |word: &str| u32::from_str_radix(word, 16).ok();
        Some(Self {
            range: addresses(range).filter(|range| !range.is_empty())?,
            readable: has(0, b'r'),
            writable: has(1, b'w'),
            executable: has(2, b'x'),
            shared: has(3, b's'),
            offset: u64::from_str_radix(offset, 16).ok()?,
            device: (number(major)?, number(minor)?),
            inode: inode.parse().ok()?,
            name: rest,
        })
    }

    /// Whether the mapping belongs to the kernel, as the vDSO does.
    pub fn is_of_kernel(&self) -> bool {
        const NAMES: [&str; 5] = ["[vdso]", "[vvar]", "[vvar_vclock]", "[vsyscall]", "[uprobes]"];
        NAMES.contains(&self.name)
    }
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
    fn every_part_of_a_line_is_read() {
        let line =
            "7f3c80000000-7f3c80021000 rw-s 0000f000 fd:0a 1234                       /tmp/a b (deleted)\n";
        let entry = MapsEntry::parse(line).unwrap();
        assert_eq!((entry.range.clone(), entry.offset), (0x7f3c_8000_0000..0x7f3c_8002_1000, 0xf000));
        assert_eq!((entry.device, entry.inode, entry.name), ((0xfd, 10), 1234, "/tmp/a b (deleted)"));
        assert!(entry.readable && entry.writable && entry.shared && !entry.executable);
        let anonymous = MapsEntry::parse("1000-2000 r-xp 00000000 00:00 0 ").unwrap();
        assert!(anonymous.executable && !anonymous.shared && anonymous.name.is_empty());
        assert!(MapsEntry::parse("1000-2000 r-xp 00000000 00:00 0  [vdso]").unwrap().is_of_kernel());
        for malformed in
            ["", "1000-2000", "1000-1000 r-xp 0 00:00 0", "x-2000 r-xp 0 00:00 0", "1-2 r-xp 0 00 0"]
        {
            assert_eq!(MapsEntry::parse(malformed), None, "{malformed}");
        }
    }

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
