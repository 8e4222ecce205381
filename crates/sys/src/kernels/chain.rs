//! Loads of which each needs the result of the one before.

use super::Region;

/// Distance of two elements: a cache line of x86-64 and most of AArch64.
const LINE: usize = 64;
/// Loads between two tests of the loop.
const UNROLLED: usize = 16;

/// One cycle through all cache lines of a part of a region, in random order: each holds the address of the next.
#[derive(Debug)]
pub struct Chain {
    region: Region,
    lines: usize,
}

impl Chain {
    /// Writes a chain into the first `bytes` of a region; at least two lines, and no more than there are.
    pub fn over(region: Region, bytes: usize, seed: u64) -> Self {
        let lines = (bytes.min(region.bytes()) / LINE).max(2);
        let line = |at: usize| region.start().wrapping_add(at * LINE).cast::<usize>();
        let mut random = seed | 1;
        // First each line holds its own number, then Sattolo's shuffle makes them one cycle.
        for at in 0..lines {
            // SAFETY: `at` is less than `lines`, which are within the region that this function owns.
            unsafe { line(at).write(line(at) as usize) };
        }
        for at in (1..lines).rev() {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let other = ((u128::from(random) * at as u128) >> 64) as usize;
            // SAFETY: as above; `other` is less than `at`.
            unsafe { std::ptr::swap(line(at), line(other)) };
        }
        Self { region, lines }
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
            Some(line) if line < self.lines => self.region.start().wrapping_add(line * LINE),
            _ => self.region.start(),
        };
        for _ in 0..rounds {
            // SAFETY: every line of the chain, which nobody else can write, holds the address of a line of it.
            unsafe { at = follow(at) };
        }
        position.0 = Some((at as usize - self.region.start() as usize) / LINE);
        rounds * UNROLLED
    }
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
