//! /proc/PID/maps: the use of each mapping. The kernel prints it without visiting pages, and holds the
//! mmap lock of the process for one page of text at a time.

use crate::numa_maps::Use;
use crate::parted_lines::PartedLines;
use numakit_sys::proc::maps::MapsEntry;
use numakit_sys::{ReadError, SysRoot};
use std::collections::VecDeque;
use std::ops::Range;

/// A mapping of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// Address of its first byte.
    pub start: u64,
    /// Address after its last byte.
    pub end: u64,
    /// Its use.
    pub usage: Use,
    /// Whether the process may read, write or execute it.
    pub accessible: bool,
}

/// Parses a line; `None` if it is not a mapping of memory. Files on the devices `pools` consist of
/// pages from the huge page pools.
pub fn line(text: &str, pools: &[(u32, u32)]) -> Option<Mapping> {
    let entry = MapsEntry::parse(text).filter(|entry| !entry.is_of_kernel())?;
    let Range { start, end } = entry.range;
    let usage = match (entry.name, entry.device) {
        (_, device) if device != (0, 0) && pools.contains(&device) => Use::Huge,
        (_, device) if device != (0, 0) || entry.inode != 0 => Use::File,
        ("[heap]", _) => Use::Heap,
        // Kernels before 4.5 add the number of the thread.
        (name, _) if name == "[stack]" || name.starts_with("[stack:") => Use::Stack,
        _ => Use::Anonymous,
    };
    let accessible = entry.readable || entry.writable || entry.executable;
    Some(Mapping { start, end, usage, accessible })
}

/// The devices of mounted huge page pools, from the mountinfo of a process.
pub fn pool_mounts(mountinfo: &str) -> Vec<(u32, u32)> {
    let device = |line: &str| {
        let (mount, system) = line.split_once(" - ")?;
        if system.split(' ').next() != Some("hugetlbfs") {
            return None;
        }
        let (major, minor) = mount.split(' ').nth(2)?.split_once(':')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    mountinfo.lines().filter_map(device).collect()
}

/// Reads the mappings of a process in parts.
#[derive(Debug)]
pub struct Mappings {
    lines: PartedLines,
    pools: Vec<(u32, u32)>,
    read: VecDeque<Mapping>,
}

impl Mappings {
    /// Opens the file of a process.
    pub fn open(root: &SysRoot, pid: u32, pools: Vec<(u32, u32)>) -> Result<Self, ReadError> {
        Ok(Self { lines: PartedLines::open(root, pid, "maps")?, pools, read: VecDeque::new() })
    }

    /// Reads the next mapping; `None` after the last one.
    pub fn next(&mut self) -> Result<Option<Mapping>, ReadError> {
        let Self { lines, pools, read } = self;
        while read.is_empty() {
            if !lines.advance(|text| read.extend(line(&String::from_utf8_lossy(text), pools)))? {
                return Ok(None);
            }
        }
        Ok(read.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use numakit_testing::sysfs::root;
    use proptest::prelude::*;

    #[test]
    fn lines_of_every_use_are_distinguished() {
        for (text, usage) in [
            ("55d0-55e0 rw-p 00000000 00:00 0    [heap]", Use::Heap),
            ("7ff0-7ff8 rw-p 00000000 00:00 0    [stack]", Use::Stack),
            ("7ff0-7ff8 rw-p 00000000 00:00 0    [stack:77]", Use::Stack),
            ("7f00-7f01 rw-p 00000000 00:00 0 ", Use::Anonymous),
            ("7f00-7f01 rw-p 00000000 00:00 0    [anon:arena 1]", Use::Anonymous),
            ("7f00-7f01 r-xp 00000000 fd:02 917  /usr/lib/libc.so.6", Use::File),
            ("7f00-7f01 rw-s 00000000 00:01 7    /dev/zero (deleted)", Use::File),
            ("7f00-7f01 rw-p 00000000 00:10 9    /anon_hugepage (deleted)", Use::Huge),
        ] {
            assert_eq!(line(text, &[(0, 16)]).map(|m| m.usage), Some(usage), "{text}");
        }
        for text in ["", "x-y rw-p 0 00:00 0", "7f01-7f00 rw-p 0 00:00 0", "7f00-7f01 r--p 0 00:00 0 [vvar]"]
        {
            assert_eq!(line(text, &[]), None, "{text}");
        }
    }

    #[test]
    fn mounts_of_huge_page_pools_are_found() {
        let text = "26 1 0:24 / / rw - tmpfs none rw\n31 26 0:27 / /dev/huge\\040pages rw shared:9 - hugetlbfs x rw\n";
        assert_eq!(pool_mounts(text), [(0, 27)]);
        assert_eq!(pool_mounts("31 26 0:27 / / rw - \n31 x - hugetlbfs"), []);
    }

    #[test]
    fn a_long_file_is_read_to_its_end() {
        let lines: String = (1..2000).map(|n| format!("{n}000-{n}fff rw-p 0 00:00 0\n")).collect();
        let root = root(&[("/proc/7/maps", &lines)]);
        let mut mappings = Mappings::open(&root, 7, Vec::new()).unwrap();
        let mut read = 0;
        while let Some(mapping) = mappings.next().unwrap() {
            read += 1;
            assert_eq!(mapping.end - mapping.start, 0xfff);
        }
        assert_eq!(read, 1999);
    }

    proptest! {
        #[test]
        fn anything_is_read_without_a_panic(text in "[0-9a-f\\-: rwp\\[\\]heap]{0,80}") {
            line(&text, &[(0, 1)]);
            pool_mounts(&text);
        }
    }
}
