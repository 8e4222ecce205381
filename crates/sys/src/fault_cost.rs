//! What a page fault that gets fresh memory costs on this machine, measured by a few of them.

use crate::clock;
use crate::sched;

/// Small pages that are touched, and how often: the least time counts, since others were interrupted.
const PAGES: usize = 64;
const ROUNDS: usize = 3;
/// The size of a huge page of x86-64, and of AArch64 with small pages of 4 KiB.
const HUGE: usize = 2 << 20;

/// Memory of its own, aligned to a huge page.
struct Fresh {
    start: *mut u8,
    length: usize,
}

impl Fresh {
    /// Maps room for `bytes` behind an aligned address; none without memory.
    fn map(bytes: usize) -> Option<Self> {
        let length = bytes + HUGE;
        let (protection, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
        );
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, kind, -1, 0) };
        (start != libc::MAP_FAILED).then(|| Self { start: start.cast(), length })
    }

    /// The first address that is aligned to a huge page.
    fn aligned(&self) -> *mut u8 {
        self.start.wrapping_add(self.start.align_offset(HUGE))
    }

    fn advise(&self, advice: i32) {
        // SAFETY: the range is this mapping.
        unsafe { libc::madvise(self.start.cast(), self.length, advice) };
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // SAFETY: the range is this mapping, to which there are no references.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}

/// Writes to each of these pages, and returns the CPU time and the number of faults.
fn touch(start: *mut u8, pages: usize, size: usize) -> (u64, u64) {
    let (faults, begin) = (own_faults(), clock::thread_cpu());
    for page in 0..pages {
        // SAFETY: the caller's mapping has these pages.
        unsafe { start.add(page * size).write_volatile(1) };
    }
    (clock::thread_cpu() - begin, own_faults() - faults)
}

/// Page faults of this thread so far.
fn own_faults() -> u64 {
    u64::try_from(clock::usage(libc::RUSAGE_THREAD).ru_minflt).unwrap_or(0)
}

/// CPU time of a page fault that gets a small page, in ns; none where it cannot be measured.
pub fn small_page() -> Option<u64> {
    let size = sched::page_size() as usize;
    let once = || {
        let memory = Fresh::map(PAGES * size)?;
        memory.advise(libc::MADV_NOHUGEPAGE);
        let (ns, faults) = touch(memory.aligned(), PAGES, size);
        // Faults around an address may bring several pages at once: then a fault costs more, and there are fewer.
        (faults > 0).then(|| ns / faults)
    };
    (0..ROUNDS).filter_map(|_| once()).min().filter(|&ns| ns > 0)
}

/// CPU time of a page fault that gets a huge page, in ns; none where there is no huge page.
pub fn huge_page() -> Option<u64> {
    let size = sched::page_size() as usize;
    let memory = Fresh::map(HUGE)?;
    memory.advise(libc::MADV_HUGEPAGE);
    let (ns, _) = touch(memory.aligned(), 1, size);
    let (_, more) = touch(memory.aligned(), HUGE / size, size);
    (more == 0 && ns > 0).then_some(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_fault_takes_some_time_and_a_huge_page_takes_more() {
        let small = small_page().unwrap();
        assert!((50..200_000).contains(&small), "{small} ns");
        match huge_page() {
            Some(huge) => assert!(huge > small, "{huge} ns, a small page {small} ns"),
            None => eprintln!("not compared with a huge page: this machine gave none"),
        }
    }

    #[test]
    fn each_page_of_fresh_memory_is_one_fault() {
        let memory = Fresh::map(16 * 4096).unwrap();
        memory.advise(libc::MADV_NOHUGEPAGE);
        let size = sched::page_size() as usize;
        assert_eq!(touch(memory.aligned(), 16, size).1, 16);
        assert_eq!(touch(memory.aligned(), 16, size).1, 0);
    }
}
