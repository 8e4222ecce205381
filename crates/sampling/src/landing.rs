//! Where the samples of a method land on a machine.

pub use crate::operand::Landing;

use numakit_sys::chain::ChainSpot;
use std::fmt;

/// The word for a landing in results.
pub fn word(landing: Landing) -> &'static str {
    match landing {
        Landing::Behind => "precise",
        Landing::OneFurther => "precise, one further",
        Landing::BlockStart => "block",
        Landing::Other => "unknown",
    }
}

/// What a landing means, as the end of a sentence about samples.
pub fn sentence(landing: Landing) -> &'static str {
    match landing {
        Landing::Behind => "samples land right behind the instruction that waited",
        Landing::OneFurther => "samples land one instruction behind the one that waited",
        Landing::BlockStart => "samples land at the start of a block of instructions",
        Landing::Other => "samples land at no particular instruction",
    }
}

/// How many samples of the chain landed where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LandingCounts {
    /// Right behind a load.
    pub behind: u32,
    /// One instruction further.
    pub one_further: u32,
    /// At the start of the loop.
    pub block_start: u32,
    /// At a load.
    pub at_load: u32,
    /// At another instruction of the loop.
    pub elsewhere: u32,
}

/// Samples that a verdict needs.
const ENOUGH: u32 = 8;

impl LandingCounts {
    /// Counts a sample. One outside of the loop says nothing, and is not counted.
    pub fn add(&mut self, spot: ChainSpot) {
        match spot {
            ChainSpot::Behind => self.behind += 1,
            ChainSpot::OneFurther => self.one_further += 1,
            ChainSpot::BlockStart => self.block_start += 1,
            ChainSpot::Load => self.at_load += 1,
            ChainSpot::Padding => self.elsewhere += 1,
            ChainSpot::Outside => {}
        }
    }

    /// Samples in the loop.
    pub fn total(&self) -> u32 {
        self.behind + self.one_further + self.block_start + self.at_load + self.elsewhere
    }

    /// The place where at least nine of ten samples landed; [`Landing::Other`] if there is none, and `None` with too few
    /// samples.
    pub fn landing(&self) -> Option<Landing> {
        let total = self.total();
        if total < ENOUGH {
            return None;
        }
        let most = |count: u32| count >= total - total / 10;
        Some(if most(self.behind) {
            Landing::Behind
        } else if most(self.one_further) {
            Landing::OneFurther
        } else if most(self.block_start) {
            Landing::BlockStart
        } else {
            Landing::Other
        })
    }
}

impl fmt::Display for LandingCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} behind, {} one further, {} at the start of the block, {} at the load, {} elsewhere",
            self.behind, self.one_further, self.block_start, self.at_load, self.elsewhere
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_of_ten_samples_decide() {
        let counts = |behind, one_further, block_start, elsewhere| LandingCounts {
            behind,
            one_further,
            block_start,
            at_load: 0,
            elsewhere,
        };
        for (counts, landing) in [
            (counts(199, 0, 0, 0), Some(Landing::Behind)),
            (counts(9, 0, 0, 1), Some(Landing::Behind)),
            (counts(8, 0, 0, 2), Some(Landing::Other)),
            (counts(4, 502, 0, 0), Some(Landing::OneFurther)),
            (counts(0, 0, 772, 7), Some(Landing::BlockStart)),
            (counts(50, 50, 0, 0), Some(Landing::Other)),
            (counts(7, 0, 0, 0), None),
        ] {
            assert_eq!(counts.landing(), landing, "{counts}");
        }
        let mut counts = LandingCounts::default();
        for spot in [ChainSpot::Behind, ChainSpot::Load, ChainSpot::Outside, ChainSpot::Padding] {
            counts.add(spot);
        }
        assert_eq!((counts.total(), counts.at_load, counts.elsewhere), (3, 1, 1));
    }
}
