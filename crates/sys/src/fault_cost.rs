//! What a page fault that gets fresh memory costs on this machine, measured by a few of them.

use crate::loops::{Advice, HUGE_PAGE, Region};
use crate::{clock, sched};

/// Small pages that are touched, and how often: the least time counts, since others were interrupted.
const PAGES: usize = 64;
const ROUNDS: usize = 3;
/// Writes to each page of this size, and returns the CPU time and the number of faults.
fn touch(memory: &mut Region, size: usize) -> (u64, u64) {
    let (faults, begin) = (own_faults(), clock::thread_cpu());
    memory.touch(size);
    (clock::thread_cpu() - begin, own_faults() - faults)
}

/// Page faults of the calling thread so far.
pub fn own_faults() -> u64 {
    u64::try_from(clock::usage(libc::RUSAGE_THREAD).ru_minflt).unwrap_or(0)
}

/// CPU time of a page fault that gets a small page, in ns; none where it cannot be measured.
pub fn small_page() -> Option<u64> {
    let size = sched::page_size() as usize;
    let once = || {
        let mut memory = Region::map(PAGES * size).ok()?;
        // A kernel without huge pages does not know the advice.
        let _ = memory.advise(Advice::Small);
        let (ns, faults) = touch(&mut memory, size);
        // Faults around an address may bring several pages at once: then a fault costs more, and there are fewer.
        (faults > 0).then(|| ns / faults)
    };
    (0..ROUNDS).filter_map(|_| once()).min().filter(|&ns| ns > 0)
}

/// CPU time of a page fault that gets a huge page, in ns; none where there is no huge page.
pub fn huge_page() -> Option<u64> {
    let mut memory = Region::map(HUGE_PAGE).ok()?;
    memory.advise(Advice::Huge).ok()?;
    let (ns, _) = touch(&mut memory, HUGE_PAGE);
    let (_, more) = touch(&mut memory, sched::page_size() as usize);
    (more == 0 && ns > 0).then_some(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measuring_a_page_fault_takes_some_time_and_a_huge_page_takes_more() {
        let small = small_page().unwrap();
        // The most is less than what all pages of a round take together.
        assert!((50..20_000).contains(&small), "{small} ns");
        match huge_page() {
            Some(huge) => assert!(huge > small, "{huge} ns, a small page {small} ns"),
            None => numakit_skips::MACHINE.skip_part("this machine gave no huge page"),
        }
    }

    #[test]
    fn each_page_of_fresh_memory_is_one_fault() {
        let size = sched::page_size() as usize;
        let mut memory = Region::map(16 * size).unwrap();
        memory.advise(Advice::Small).unwrap();
        assert_eq!(touch(&mut memory, size).1, 16);
        assert_eq!(touch(&mut memory, size).1, 0);
    }
}
