//! Which thread uses which part of an object.

use numakit_cure::FRACTIONS;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// How often each thread was seen in each of [`FRACTIONS`] fractions of an object. Threads have their order of creation as
/// their numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartUse(pub Vec<BTreeMap<u32, u64>>);

impl PartUse {
    /// How often threads were seen.
    pub fn samples(&self) -> u64 {
        self.0.iter().flat_map(BTreeMap::values).sum()
    }

    /// How often each thread was seen.
    pub fn threads(&self) -> BTreeMap<u32, u64> {
        let mut threads = BTreeMap::new();
        for (thread, samples) in self.0.iter().flatten() {
            *threads.entry(*thread).or_default() += samples;
        }
        threads
    }

    fn add(&mut self, fraction: usize, thread: u32) {
        self.0.resize(FRACTIONS as usize, BTreeMap::new());
        *self.0[fraction].entry(thread).or_default() += 1;
    }
}

/// A use of a block at a known address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockUse {
    /// The process and the number of the block in the order of allocation there.
    pub block: (u32, u64),
    /// The fraction of the block.
    pub fraction: u32,
    /// The number of the thread.
    pub thread: u32,
}

/// The fraction in which a place of a whole is.
pub fn fraction(place: u64, whole: u64) -> u32 {
    let at = u128::from(place) * u128::from(FRACTIONS) / u128::from(whole.max(1));
    u32::try_from(at).unwrap_or(FRACTIONS).min(FRACTIONS - 1)
}

/// What threads use of the blocks of an object: over each block, and over all blocks in the order of their allocation. The uses
/// are in order of time; `counts` has the number of blocks of each process.
///
/// A program fills a block before others use it, and one thread may look at the results when all others have gone. What a
/// thread does alone before others come or after they went does not count where others are.
pub fn of(uses: &[BlockUse], counts: &HashMap<u32, u64>) -> (PartUse, PartUse) {
    let mut blocks: BTreeMap<(u32, u64), Vec<BlockUse>> = BTreeMap::new();
    let mut users: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); FRACTIONS as usize];
    for used in uses.iter().filter(|used| used.fraction < FRACTIONS) {
        blocks.entry(used.block).or_default().push(*used);
        users[used.fraction as usize].insert(used.thread);
    }
    let (mut each, mut all) = (PartUse::default(), PartUse::default());
    for ((process, number), of) in blocks {
        let among = fraction(number, counts.get(&process).copied().unwrap_or(1));
        let runs = ends(&of);
        for (at, used) in of.iter().enumerate() {
            let is_alone = at < runs.0 || at >= runs.1;
            if !is_alone || users[used.fraction as usize].len() == 1 {
                each.add(used.fraction as usize, used.thread);
            }
            if !is_alone {
                all.add(among as usize, used.thread);
            }
        }
    }
    (each, all)
}

/// Where the uses by the first thread alone end, and where those by the last thread alone begin. Nothing is alone where only
/// one thread is.
fn ends(of: &[BlockUse]) -> (usize, usize) {
    let (first, last) = (of.first().map(|used| used.thread), of.last().map(|used| used.thread));
    let other = of.iter().position(|used| Some(used.thread) != first);
    let until = of.iter().rposition(|used| Some(used.thread) != last);
    match (other, until) {
        (Some(from), Some(until)) if from <= until => (from, until + 1),
        _ => (0, of.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(number: u64, fraction: u32, thread: u32) -> BlockUse {
        BlockUse { block: (7, number), fraction, thread }
    }

    fn counts(count: u64) -> HashMap<u32, u64> {
        HashMap::from([(7, count)])
    }

    #[test]
    fn a_place_has_its_fraction() {
        assert_eq!([0, 15, 16, 1023].map(|place| fraction(place, 1024)), [0, 0, 1, 63]);
        assert_eq!([fraction(9, 4), fraction(u64::MAX, u64::MAX), fraction(0, 0)], [63, 63, 0]);
    }

    #[test]
    fn filling_and_reading_back_count_only_where_others_are_not() {
        // The first thread fills all, works on the first half, and reads back all.
        let fill = (0..64).map(|at| used(0, at, 0));
        let work = (0..640).map(|n| used(0, n % 64, (n % 64) / 32));
        let all: Vec<BlockUse> = fill.clone().chain(work).chain(fill).collect();
        let (each, blocks) = of(&all, &counts(1));
        assert_eq!(each.0[0], BTreeMap::from([(0, 12)]));
        assert_eq!(each.0[63], BTreeMap::from([(1, 10)]));
        assert_eq!(each.threads(), BTreeMap::from([(0, 32 * 12), (1, 320)]));
        assert_eq!(blocks.0[0].keys().copied().collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn blocks_of_one_thread_each_are_told_from_blocks_that_threads_divide() {
        let own: Vec<BlockUse> =
            (0..400).map(|n| used(n % 4, (n / 4 * 7 % 64) as u32, (n % 4) as u32)).collect();
        let (each, blocks) = of(&own, &counts(4));
        assert_eq!(blocks.0[16], BTreeMap::from([(1, 100)]));
        assert!(each.0[0].len() > 1, "{each:?}");
        assert_eq!((blocks.samples(), each.samples()), (400, 400));
        assert_eq!(of(&[], &counts(0)), (PartUse::default(), PartUse::default()));
    }

    #[test]
    fn threads_that_come_one_after_the_other_keep_their_parts() {
        let all: Vec<BlockUse> = (0..256).map(|n| used(0, n / 4, n / 64)).collect();
        let (each, _) = of(&all, &counts(1));
        assert_eq!(each.threads(), BTreeMap::from([(0, 64), (1, 64), (2, 64), (3, 64)]));
    }
}
