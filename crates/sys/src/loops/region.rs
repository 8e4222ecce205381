//! Memory of a benchmark: fresh from the kernel, aligned to a huge page.

use crate::pages::{KernelPages, Pages};
use crate::proc::{TaskDir, numa_maps};
use crate::{SysRoot, check, migrate, sched};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

/// The size of a huge page of x86-64, and of AArch64 with small pages of 4 KiB.
pub const HUGE_PAGE: usize = 2 << 20;

/// The size of a page between small and huge ones that some kernels have (Linux 6.8).
pub const MEDIUM_PAGE: usize = 64 << 10;

/// Pages between two looks at whether to stop.
const STOPS: usize = 1024;

/// `MPOL_BIND` of the kernel.
const BIND: i32 = 2;
/// Room for 1024 nodes; the kernel uses one bit less than this number.
const WORDS: usize = 16;
const BITS: libc::c_ulong = WORDS as libc::c_ulong * 64 + 1;

/// What the kernel is told about memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// Huge pages, if there are free ones.
    Huge,
    /// Pages of [`MEDIUM_PAGE`], if the kernel has such pages: no piece of the memory has room for larger ones.
    Medium,
    /// Small pages.
    Small,
    /// Forget the content now.
    Drop,
    /// Forget the content when memory is short.
    Offer,
    /// Allocate all pages now (Linux 5.14).
    Populate,
}

impl Advice {
    fn number(self) -> i32 {
        match self {
            Self::Huge | Self::Medium => libc::MADV_HUGEPAGE,
            Self::Small => libc::MADV_NOHUGEPAGE,
            Self::Drop => libc::MADV_DONTNEED,
            Self::Offer => libc::MADV_FREE,
            Self::Populate => libc::MADV_POPULATE_WRITE,
        }
    }
}

/// A private mapping without content. Its pages are allocated when they are written.
#[derive(Debug)]
pub struct Region {
    /// The mapping.
    mapped: *mut u8,
    room: usize,
    /// The first address in it that is aligned to a huge page.
    start: *mut u8,
    length: usize,
}

// SAFETY: the memory belongs to the region alone; shared references only read it.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Maps this many bytes, rounded up to whole small pages.
    pub fn map(bytes: usize) -> io::Result<Self> {
        let length = bytes.max(1).next_multiple_of(sched::page_size() as usize);
        let room = length.checked_add(HUGE_PAGE).ok_or(io::ErrorKind::OutOfMemory)?;
        let (protection, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a new mapping at an address of the kernel's choice.
        let mapped = unsafe { libc::mmap(std::ptr::null_mut(), room, protection, kind, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapped: *mut u8 = mapped.cast();
        Ok(Self { mapped, room, start: mapped.wrapping_add(mapped.align_offset(HUGE_PAGE)), length })
    }

    /// Maps pages of this size that the administrator has reserved (hugetlbfs), as many as `bytes` need. Advice is not for
    /// them, except [`Advice::Populate`], which is an error where writing would end the process with a signal.
    pub fn map_reserved(bytes: usize, page: usize) -> io::Result<Self> {
        if !page.is_power_of_two() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let length = bytes.max(1).checked_next_multiple_of(page).ok_or(io::ErrorKind::OutOfMemory)?;
        let size = page.trailing_zeros() as i32;
        let (protection, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB | size << libc::MAP_HUGE_SHIFT,
        );
        // SAFETY: a new mapping at an address of the kernel's choice, which is aligned to such a page.
        let mapped = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, kind, -1, 0) };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { mapped: mapped.cast(), room: length, start: mapped.cast(), length })
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> usize {
        self.length
    }

    /// The first byte; the mapping lives as long as the region.
    pub(super) fn start(&self) -> *mut u8 {
        self.start
    }

    /// Gives the kernel this advice for all of the region.
    pub fn advise(&mut self, advice: Advice) -> io::Result<()> {
        self.tell(0, self.length, advice.number())?;
        if advice == Advice::Medium {
            // Neighbouring pieces that differ in something harmless stay separate mappings, and a page cannot be larger than
            // its mapping.
            for at in (0..self.length).step_by(2 * MEDIUM_PAGE) {
                self.tell(at, MEDIUM_PAGE.min(self.length - at), libc::MADV_DONTDUMP)?;
            }
        }
        Ok(())
    }

    fn tell(&mut self, at: usize, bytes: usize, advice: i32) -> io::Result<()> {
        // SAFETY: the range is within this mapping, to which nobody else has a reference.
        check(unsafe { libc::madvise(self.start.add(at).cast(), bytes, advice) } as i64).map(drop)
    }

    /// Binds pages that are allocated from now on to a node (`mbind`).
    pub fn bind(&mut self, node: u32) -> io::Result<()> {
        let mut nodes = [0u64; WORDS];
        let word = nodes.get_mut(node as usize / 64).ok_or(io::ErrorKind::InvalidInput)?;
        *word = 1 << (node % 64);
        // SAFETY: the range is within this mapping, and the mask has this length.
        let result =
            unsafe { libc::syscall(libc::SYS_mbind, self.start, self.length, BIND, nodes.as_ptr(), BITS, 0) };
        check(result).map(drop)
    }

    /// Writes a byte every `step` bytes: the pages are allocated as by a first touch of the calling thread.
    ///
    /// Part of its caller's code: on some CPUs a page fault takes a quarter longer in a function that was just called.
    #[inline(always)]
    pub fn touch(&mut self, step: usize) {
        self.touch_part(0..self.length, step);
    }

    /// Touches pages as [`touch`](Self::touch) does; false if `stop` returned true before the end.
    pub fn touch_unless(&mut self, step: usize, stop: &dyn Fn() -> bool) -> bool {
        let piece = step.max(1).saturating_mul(STOPS);
        for from in (0..self.length).step_by(piece) {
            if stop() {
                return false;
            }
            self.touch_part(from..self.length.min(from.saturating_add(piece)), step);
        }
        true
    }

    #[inline(always)]
    fn touch_part(&mut self, part: Range<usize>, step: usize) {
        for at in part.step_by(step.max(1)) {
            // SAFETY: within the mapping.
            unsafe { self.start.add(at).write_volatile(1) };
        }
    }

    /// The nodes of at most `samples` pages, spread evenly over it; none for a page that is not present. An error where
    /// the kernel does not answer.
    pub fn nodes(&self, samples: usize) -> io::Result<Vec<Option<u32>>> {
        let page = sched::page_size() as usize;
        let step = (self.length / page).div_ceil(samples.max(1)).max(1) * page;
        let pages: Vec<u64> =
            (0..self.length).step_by(step).map(|at| self.start as u64 + at as u64).collect();
        migrate::own_nodes(&pages)
    }

    /// Bytes on each node of the mapping that has the region, by `/proc/self/numa_maps`, for kernels that do not tell the
    /// nodes of single pages; `None` if that file does not tell either. Other memory with the same policy may be part of the
    /// mapping.
    pub fn mapped_bytes(&self) -> Option<BTreeMap<u32, u64>> {
        let text = TaskDir::own(&SysRoot::host()).bytes("numa_maps").ok()?;
        mapped_in(&text, self.start as u64, self.length as u64, sched::page_size())
    }

    /// Bytes of it in huge pages; none where the kernel does not say.
    pub fn huge_bytes(&self) -> Option<u64> {
        let list = KernelPages.open(std::process::id()).ok()?;
        let (mut at, end) = (self.start as u64, self.start as u64 + self.length as u64);
        let mut runs = Vec::new();
        while at < end {
            at = list.runs(at, end, &mut runs).ok()?;
        }
        let huge = runs.iter().map(|run| Some(if run.huge? { run.end - run.start } else { 0 }));
        huge.sum()
    }

    /// The region as numbers.
    pub fn doubles(&self) -> &[f64] {
        // SAFETY: the mapping is aligned and as long; every bit pattern is a number.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.length / size_of::<f64>()) }
    }

    /// The region as numbers that can be written.
    pub fn doubles_mut(&mut self) -> &mut [f64] {
        // SAFETY: as above, and the reference is the only one.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.length / size_of::<f64>()) }
    }
}

/// Bytes on each node of the mappings with memory of this range: from the last that begins at or before it, to those in it.
fn mapped_in(text: &[u8], start: u64, length: u64, page: u64) -> Option<BTreeMap<u32, u64>> {
    let mut found = BTreeMap::new();
    for line in text.split(|&byte| byte == b'\n') {
        let mut nodes = Vec::new();
        let Some((first, _)) = numa_maps::line(line, page, |_, node, bytes| nodes.push((node, bytes))) else {
            continue;
        };
        if first <= start {
            found.clear();
        }
        if first < start + length {
            nodes.into_iter().for_each(|(node, bytes)| *found.entry(node).or_insert(0) += bytes);
        }
    }
    Some(found).filter(|found| !found.is_empty())
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the range is this mapping, to which there are no references.
        unsafe { libc::munmap(self.mapped.cast(), self.room) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_bound_touched_and_found() {
        let mut region = Region::map(5 << 20).unwrap();
        assert_eq!((region.start() as usize % HUGE_PAGE, region.bytes()), (0, 5 << 20));
        region.advise(Advice::Small).unwrap();
        let page = sched::page_size() as usize;
        if let Ok(nodes) = region.nodes(64) {
            assert!(nodes.len() <= 64 && nodes.iter().all(Option::is_none), "{nodes:?}");
        }
        let bound = region.bind(0).is_ok();
        region.touch(page);
        assert_eq!(region.doubles().iter().filter(|value| **value != 0.0).count(), (5 << 20) / page);
        match region.nodes(64) {
            Ok(nodes) => {
                assert!(nodes.iter().all(|node| if bound { *node == Some(0) } else { node.is_some() }))
            }
            Err(_) => numakit_skips::PRIVILEGES.skip_part("this process may not ask where its pages are"),
        }
        assert!(region.huge_bytes().is_none_or(|bytes| bytes == 0));
        match region.mapped_bytes() {
            Some(nodes) => assert!(nodes.values().sum::<u64>() >= 5 << 20, "{nodes:?}"),
            None => numakit_skips::MACHINE.skip_part("this kernel has no /proc/self/numa_maps"),
        }
    }

    #[test]
    fn bytes_of_a_mapping_are_those_of_its_range() {
        let text = b"1000 default anon=1 N0=1 kernelpagesize_kB=4\n3000 bind:1 anon=4 N0=1 N1=3 kernelpagesize_kB=4\n\
                     8000 bind:1 anon=2 N1=2 kernelpagesize_kB=4\nf000 default stack=1 N3=1 kernelpagesize_kB=4\n";
        let of = |start, length| {
            mapped_in(text, start, length, 4096).map(|nodes| nodes.into_iter().collect::<Vec<_>>())
        };
        assert_eq!(of(0x4000, 0x1000), Some(vec![(0, 4096), (1, 3 * 4096)]));
        assert_eq!(of(0x3000, 0x6000), Some(vec![(0, 4096), (1, 5 * 4096)]));
        assert_eq!((of(0x100, 0x100), mapped_in(b"", 0, 1, 4096)), (None, None));
    }

    #[test]
    fn memory_is_touched_until_it_is_to_stop() {
        let asked = std::cell::Cell::new(0);
        let of = |limit: usize| {
            asked.set(0);
            let mut region = Region::map(2 * STOPS * 4096).unwrap();
            region.advise(Advice::Small).unwrap();
            let ended = region.touch_unless(4096, &|| {
                asked.set(asked.get() + 1);
                asked.get() > limit
            });
            (ended, region.doubles().iter().filter(|value| **value != 0.0).count())
        };
        assert_eq!([of(0), of(1), of(2)], [(false, 0), (false, STOPS), (true, 2 * STOPS)]);
    }

    #[test]
    fn a_node_that_is_not_there_is_refused() {
        let mut region = Region::map(1).unwrap();
        assert!(region.bind(900).is_err() && region.bind(5000).is_err());
        assert!(Region::map(usize::MAX - (1 << 20)).is_err());
    }

    #[test]
    fn reserved_pages_are_given_or_refused() {
        assert!(
            Region::map_reserved(1, 3 << 20).is_err() && Region::map_reserved(usize::MAX, 2 << 20).is_err()
        );
        // No pool has as many.
        assert!(Region::map_reserved(1 << 46, 2 << 20).is_err());
        let free = std::fs::read_to_string("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages");
        let free: usize = free.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        match Region::map_reserved(1, 2 << 20) {
            Ok(mut region) => {
                assert_eq!((region.bytes(), region.start() as usize % (2 << 20)), (2 << 20, 0));
                region.advise(Advice::Populate).unwrap();
                assert!(region.doubles().iter().all(|value| *value == 0.0));
            }
            Err(error) => {
                assert_eq!(free, 0, "{error}");
                numakit_skips::MACHINE.skip_part("no huge pages are reserved on this machine");
            }
        }
    }

    #[test]
    fn medium_pages_are_mappings_of_their_own() {
        let mut region = Region::map(4 * MEDIUM_PAGE).unwrap();
        if region.advise(Advice::Medium).is_err() {
            return numakit_skips::MACHINE.skip("this kernel has no huge pages");
        }
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let starts: Vec<_> =
            (0..4).map(|at| format!("{:x}-", region.start() as usize + at * MEDIUM_PAGE)).collect();
        assert!(starts.iter().all(|start| maps.contains(start)), "{maps}");
        region.advise(Advice::Populate).unwrap();
        region.touch(4096);
    }

    #[test]
    fn what_is_dropped_is_zero() {
        let mut region = Region::map(1 << 20).unwrap();
        region.doubles_mut().fill(3.0);
        region.advise(Advice::Drop).unwrap();
        assert!(region.doubles().iter().all(|value| *value == 0.0));
    }
}
