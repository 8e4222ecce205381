//! Random order, from a seed.

/// SplitMix64: a race has some hundred random numbers, and each seed gives another order.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn of_seed(seed: u64) -> Self {
        Self(seed)
    }

    fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which is not 0. The bias of the remainder is below 1 in 10^15 for a race's numbers.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.number() % end as u64) as usize
    }

    /// Puts them into random order (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_published_generator() {
        let mut random = Random::of_seed(1_234_567);
        let first = [(); 3].map(|()| random.number());
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn every_place_gets_every_item() {
        let mut random = Random::of_seed(7);
        let mut counts = [[0; 4]; 4];
        for _ in 0..4000 {
            let mut items = [0, 1, 2, 3];
            random.shuffle(&mut items);
            items.iter().enumerate().for_each(|(place, item)| counts[place][*item] += 1);
        }
        assert!(counts.iter().flatten().all(|count| (850..1150).contains(count)), "{counts:?}");
    }
}
