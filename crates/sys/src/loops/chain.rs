//! Loads of which each needs the result of the one before.

use super::Region;

/// Distance of two elements: a cache line of x86-64 and most of AArch64.
const LINE: usize = 64;
/// Lines between two looks at whether to stop.
const STOPS: usize = 1 << 14;
/// Bytes of a small page.
const SMALL_PAGE: usize = 4096;
/// In large pages, lines with consecutive numbers are this many small pages apart.
const SPREAD: usize = 479;
/// Loads between two tests of the loop.
const UNROLLED: usize = 16;

/// One cycle through cache lines of a region, in random order: each holds the address of the next.
#[derive(Debug)]
pub struct Chain {
    region: Region,
    lines: usize,
    /// Bytes of the region for each of the lines.
    step: usize,
}

impl Chain {
    /// Writes a chain into all lines of the first `bytes` of a region; at least two lines, and no more than there are.
    pub fn over(region: Region, bytes: usize, seed: u64) -> Self {
        Self::stepping(region, LINE, bytes / LINE, seed)
    }

    /// Writes a chain into one line of each of the first `pages` pages of `page` bytes; at least two, and no more than
    /// there are. The lines are at many places of their pages, so that caches have room for as many of them as if they
    /// were side by side.
    pub fn by_page(region: Region, page: usize, pages: usize, seed: u64) -> Self {
        Self::stepping(region, page.max(LINE), pages, seed)
    }

    /// Writes a chain as [`over`](Self::over) does; `None` if `stop` returned true before the chain was complete.
    pub fn over_unless(region: Region, bytes: usize, seed: u64, stop: &dyn Fn() -> bool) -> Option<Self> {
        Self::stepping_unless(region, LINE, bytes / LINE, seed, stop)
    }

    /// Writes a chain as [`by_page`](Self::by_page) does; `None` if `stop` returned true before the chain was complete.
    pub fn by_page_unless(
        region: Region,
        page: usize,
        pages: usize,
        seed: u64,
        stop: &dyn Fn() -> bool,
    ) -> Option<Self> {
        Self::stepping_unless(region, page.max(LINE), pages, seed, stop)
    }

    /// The region has at least two steps: those of a line fit into every page.
    fn stepping(region: Region, step: usize, lines: usize, seed: u64) -> Self {
        let mut chain = Self { step: fitting(&region, step), region, lines };
        chain.relink(lines, seed);
        chain
    }

    fn stepping_unless(
        region: Region,
        step: usize,
        lines: usize,
        seed: u64,
        stop: &dyn Fn() -> bool,
    ) -> Option<Self> {
        let mut chain = Self { step: fitting(&region, step), region, lines };
        // Addresses that were not written would be followed.
        chain.link(lines, seed, stop).then_some(chain)
    }

    /// Writes the chain anew, through the first `lines` lines or pages of its region: at least two, and no more than there
    /// are.
    pub fn relink(&mut self, lines: usize, seed: u64) {
        self.link(lines, seed, &|| false);
    }

    /// Writes a chain. Returns false if `stop` returned true before the chain was complete.
    fn link(&mut self, lines: usize, seed: u64, stop: &dyn Fn() -> bool) -> bool {
        let is_stopped = |at: usize| at.is_multiple_of(STOPS) && stop();
        let lines = lines.min(self.region.bytes() / self.step).max(2);
        let line = |at: usize| self.region.start().wrapping_add(offset(self.step, at)).cast::<usize>();
        let mut random = seed | 1;
        // First each line holds its own address, then Sattolo's shuffle makes them one cycle.
        for at in 0..lines {
            if is_stopped(at) {
                return false;
            }
            // SAFETY: `at` is less than `lines`, whose steps are within the region that this chain owns.
            unsafe { line(at).write(line(at) as usize) };
        }
        for at in (1..lines).rev() {
            if is_stopped(at) {
                return false;
            }
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let other = ((u128::from(random) * at as u128) >> 64) as usize;
            // SAFETY: as above; `other` is less than `at`.
            unsafe { std::ptr::swap(line(at), line(other)) };
        }
        self.lines = lines;
        true
    }

    /// Number of cache lines, and of loads in a lap.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// The memory.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// Gives the memory back.
    pub fn into_region(self) -> Region {
        self.region
    }

    /// Loads at least `loads` times, beginning where the last call with this position ended; returns how often.
    pub fn load(&self, position: &mut ChainPosition, loads: usize) -> usize {
        let rounds = loads.div_ceil(UNROLLED).max(1);
        let mut at = match position.0 {
            Some(line) if line < self.lines => self.region.start().wrapping_add(offset(self.step, line)),
            _ => self.region.start(),
        };
        for _ in 0..rounds {
            // SAFETY: every line of the chain, which nobody else can write, holds the address of a line of it.
            unsafe { at = follow(at) };
        }
        position.0 = Some((at as usize - self.region.start() as usize) / self.step);
        rounds * UNROLLED
    }
}

/// The step, or a line where the region does not have two of them.
fn fitting(region: &Region, step: usize) -> usize {
    if region.bytes() / step < 2 { LINE } else { step }
}

/// The offset of a step's line. Within pages, lines fill the sets of caches evenly, as lines side by side do. Within large
/// pages they also lie in small pages with many different numbers: a TLB may keep a large page as small ones, as where the
/// host of a guest has small pages.
fn offset(step: usize, at: usize) -> usize {
    let in_small = at * LINE % SMALL_PAGE;
    let small = at / (SMALL_PAGE / LINE) + at * SPREAD;
    at * step + (small * SMALL_PAGE + in_small) % step
}

/// Where in a chain the next loads begin.
#[derive(Debug, Clone, Copy, Default)]
pub struct ChainPosition(Option<usize>);

/// Follows [`UNROLLED`] addresses.
///
/// # Safety
/// Each is the address of a word with the next one.
#[inline(always)]
unsafe fn follow(at: *mut u8) -> *mut u8 {
    macro_rules! next {
        ($at:expr) => {
            $at.cast::<*mut u8>().read_volatile()
        };
    }
    // SAFETY: the caller's promise.
    unsafe {
        let at = next!(next!(next!(next!(at))));
        let at = next!(next!(next!(next!(at))));
        let at = next!(next!(next!(next!(at))));
        next!(next!(next!(next!(at))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_written_until_it_is_to_stop() {
        let lines = 4 * STOPS;
        let asked = std::cell::Cell::new(0);
        let of = |limit: usize| {
            asked.set(0);
            let stop = || {
                asked.set(asked.get() + 1);
                asked.get() > limit
            };
            Chain::over_unless(Region::map(lines * LINE).unwrap(), lines * LINE, 7, &stop).map(|c| c.lines())
        };
        assert_eq!((of(0), asked.get()), (None, 1));
        // While addresses are written, and while they are shuffled.
        assert_eq!([of(3), of(5)], [None, None]);
        assert_eq!((of(usize::MAX), asked.get()), (Some(lines), 7));
    }

    #[test]
    fn a_chain_is_one_cycle_through_all_lines() {
        for lines in [2, 3, 64, 1000] {
            let chain = Chain::over(Region::map(1 << 20).unwrap(), lines * LINE, 7);
            assert_eq!(chain.lines(), lines);
            let mut seen = vec![false; lines];
            let mut at = chain.region().start();
            for _ in 0..lines {
                let line = (at as usize - chain.region().start() as usize) / LINE;
                assert!(!std::mem::replace(&mut seen[line], true), "line {line} of {lines} twice");
                // SAFETY: the address of a line of the chain.
                at = unsafe { at.cast::<*mut u8>().read() };
            }
            assert_eq!(at, chain.region().start());
        }
    }

    #[test]
    fn a_chain_by_page_has_a_line_of_each_page_and_all_sets_of_a_cache() {
        let page = 4096;
        for pages in [2, 64, 100] {
            let chain = Chain::by_page(Region::map(256 * page).unwrap(), page, pages, 7);
            assert_eq!(chain.lines(), pages);
            let (mut seen, mut sets) = (vec![false; pages], [0; 64]);
            let mut position = ChainPosition::default();
            let mut at = chain.region().start();
            for _ in 0..pages {
                let offset = at as usize - chain.region().start() as usize;
                assert!(!std::mem::replace(&mut seen[offset / page], true), "page {} twice", offset / page);
                sets[offset % page / LINE] += 1;
                // SAFETY: the address of a line of the chain.
                at = unsafe { at.cast::<*mut u8>().read() };
            }
            assert!(sets.iter().max().unwrap() - sets.iter().min().unwrap() <= 1, "{sets:?}");
            // Sixteen laps end where they began.
            assert_eq!(chain.load(&mut position, UNROLLED * pages), UNROLLED * pages);
            assert_eq!((at, position.0), (chain.region().start(), Some(0)));
        }
        let mut shorter = Chain::by_page(Region::map(256 * page).unwrap(), page, 256, 7);
        shorter.relink(100, 7);
        let mut position = ChainPosition::default();
        assert_eq!((shorter.load(&mut position, 1600), position.0, shorter.lines()), (1600, Some(0), 100));
        let one = Chain::by_page(Region::map(page).unwrap(), page, 9, 7);
        assert_eq!((one.lines(), one.step), (9, LINE));
    }

    #[test]
    fn lines_of_large_pages_fill_caches_and_small_pages_evenly() {
        let page = 2 << 20;
        let (mut sets, mut small) = ([0; 1024], [0; 512]);
        for at in 0..1024 {
            let within = offset(page, at) - at * page;
            assert!(within + LINE <= page && within.is_multiple_of(LINE));
            sets[within / LINE % 1024] += 1;
            small[within / SMALL_PAGE] += 1;
            assert_eq!((offset(LINE, at), offset(SMALL_PAGE, at) / SMALL_PAGE), (at * LINE, at));
        }
        assert_eq!(sets, [1; 1024]);
        assert!(small.iter().all(|count| *count > 0), "{small:?}");
    }

    #[test]
    fn loads_continue_where_they_ended() {
        let chain = Chain::over(Region::map(1 << 16).unwrap(), 1 << 16, 3);
        let (mut one, mut two) = (ChainPosition::default(), ChainPosition::default());
        assert_eq!(chain.load(&mut one, 17), 32);
        assert_eq!(chain.load(&mut two, 1) + chain.load(&mut two, 16), 32);
        assert_eq!((one.0, one.0.is_some_and(|line| line < 1024)), (two.0, true));
        // A lap ends where it began.
        let before = one.0;
        assert_eq!(chain.load(&mut one, chain.lines()), 1024);
        assert_eq!(one.0, before);
    }

    #[test]
    fn the_order_depends_on_the_seed() {
        let order = |seed| {
            let (chain, mut at) =
                (Chain::over(Region::map(1 << 16).unwrap(), 1 << 16, seed), ChainPosition::default());
            chain.load(&mut at, 16);
            at.0
        };
        assert_eq!(order(5), order(5));
        assert_ne!(order(5), order(11));
    }
}
