//! Which threads of a program use the same data.
//!
//! Two threads share what one uses after the other. What one thread fills and another one uses from then on are few such turns, what both
//! work on are many. What all threads use alike gives all pairs the same turns, and says nothing about which of them belong together: the
//! usual number of turns of a pair is taken off each.
//!
//! Samples of threads come in a fixed order where all are busy, so that the use right before would always be that of the same other
//! thread. A use follows one of the last ones of its place, by chance.

use crate::observation::LINE;
use crate::part_use;
use numakit_cure::together::MAX_THREADS;
use numakit_cure::{FRACTIONS, MAX_PAIRS, SharingThreads};
use numakit_model::thresholds::MIN_POINTS;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Range;

/// A use follows one of this number of last uses for each thread, and of `MAX_WINDOW` at most.
const WINDOW: usize = 2;
const MAX_WINDOW: usize = 256;
/// With fewer uses for each thread, pairs meet by chance.
const MIN_USES: u64 = 16;

/// How much threads share, once the observation has ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadSharing {
    /// The process: that with most threads that work.
    pub process: u32,
    /// The numbers of these threads, by their order of creation.
    pub threads: Vec<u32>,
    /// The node on which each of them nearly always was; `None` for one that had several.
    pub nodes: Vec<Option<u32>>,
    /// For how many threads a node has CPUs; at most half of the threads.
    pub node_threads: u32,
    /// Uses at known addresses of places that were used before.
    pub uses: u64,
    /// The part of them that follow a use by another thread, from 0 to 1.
    pub shared: f64,
    /// The pairs that share more than most do, in ascending order.
    pub pairs: Vec<SharingThreads>,
    /// Why nothing is known of pairs.
    pub absent: Option<NoSharing>,
}

/// Why it is not known which threads share data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoSharing {
    /// Fewer than three threads work.
    FewThreads,
    /// More threads work than pairs are counted of.
    ManyThreads,
    /// Too few uses at known addresses.
    FewUses,
}

/// The turns of threads at the places of a process.
#[derive(Debug)]
pub(crate) struct Turns {
    process: u32,
    threads: BTreeSet<u32>,
    /// The last threads at each place.
    last: HashMap<u64, VecDeque<u32>>,
    uses: u64,
    of_pairs: HashMap<[u32; 2], u64>,
}

impl Turns {
    /// Those of these threads, by their order of creation, in the process with this number.
    pub(crate) fn new(process: u32, threads: impl IntoIterator<Item = u32>) -> Self {
        let threads = threads.into_iter().collect();
        Self { process, threads, last: HashMap::new(), uses: 0, of_pairs: HashMap::new() }
    }

    /// A thread uses an address of a block. Uses of a place come in order of time.
    pub(crate) fn add(&mut self, process: u32, thread: u32, address: u64, block: &Range<u64>) {
        if process != self.process || !self.threads.contains(&thread) {
            return;
        }
        let last = self.last.entry(place(address, block)).or_default();
        if !last.is_empty() {
            self.uses += 1;
            let before = last[mixed(self.uses) as usize % last.len()];
            if before != thread {
                *self.of_pairs.entry([before.min(thread), before.max(thread)]).or_default() += 1;
            }
        }
        if last.len() >= (WINDOW * self.threads.len()).min(MAX_WINDOW) {
            last.pop_front();
        }
        last.push_back(thread);
    }

    /// What threads share, where a node has CPUs for `cpus` of them, and some are known to have been on these nodes.
    pub(crate) fn sharing(self, cpus: usize, nodes: &HashMap<u32, u32>) -> ThreadSharing {
        let count = self.threads.len();
        let all: u64 = self.of_pairs.values().sum();
        let absent = match count {
            0..3 => Some(NoSharing::FewThreads),
            _ if count > MAX_THREADS => Some(NoSharing::ManyThreads),
            _ if self.uses < MIN_POINTS.max(MIN_USES * count as u64) => Some(NoSharing::FewUses),
            _ => None,
        };
        ThreadSharing {
            process: self.process,
            node_threads: cpus.min(count.div_ceil(2)).max(1) as u32,
            uses: self.uses,
            shared: all as f64 / self.uses.max(1) as f64,
            pairs: if absent.is_none() { self.pairs() } else { Vec::new() },
            absent,
            nodes: self.threads.iter().map(|thread| nodes.get(thread).copied()).collect(),
            threads: self.threads.into_iter().collect(),
        }
    }

    /// The pairs that share more than most, without what most share.
    fn pairs(&self) -> Vec<SharingThreads> {
        let count = self.threads.len();
        let mut turns: Vec<u64> = self.of_pairs.values().copied().collect();
        turns.resize(count * (count - 1) / 2, 0);
        turns.sort_unstable();
        let usual = turns[turns.len() / 2] as f64;
        // What chance adds to the usual.
        let chance = 3.0 * usual.sqrt() + 3.0;
        let over = |(threads, turns): (&[u32; 2], &u64)| {
            let over = *turns as f64 - usual;
            (over > chance).then(|| SharingThreads { threads: *threads, share: over / self.uses as f64 })
        };
        let mut pairs: Vec<SharingThreads> = self.of_pairs.iter().filter_map(over).collect();
        pairs.sort_by_key(|pair| (Reverse((pair.share * 1e9) as u64), pair.threads));
        pairs.truncate(MAX_PAIRS);
        pairs.sort_by_key(|pair| pair.threads);
        pairs
    }
}

/// A number without pattern for each number (the last step of SplitMix64).
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The place of an address: the fraction of its block, or its line in smaller blocks.
fn place(address: u64, block: &Range<u64>) -> u64 {
    let bytes = block.end.saturating_sub(block.start);
    if bytes / u64::from(FRACTIONS) <= LINE {
        return address / LINE * LINE;
    }
    let fraction = part_use::fraction(address.saturating_sub(block.start), bytes);
    block.start + bytes / u64::from(FRACTIONS) * u64::from(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: u64 = 1 << 20;

    /// Eight threads use blocks of their own, or those that the function names, `count` times.
    fn sharing(count: u64, block: impl Fn(u64, u32) -> u64) -> ThreadSharing {
        let mut turns = Turns::new(7, 0..8);
        for n in 0..count {
            let (thread, address) = (n as u32 % 8, mixed(n) % BYTES);
            let start = block(n, thread) * BYTES;
            turns.add(7, thread, start + address, &(start..start + BYTES));
            turns.add(8, 0, address, &(0..BYTES));
            turns.add(7, 99, address, &(0..BYTES));
        }
        turns.sharing(2, &HashMap::from([(3, 1)]))
    }

    #[test]
    fn threads_that_work_on_the_same_data_are_pairs() {
        let found = sharing(8000, |_, thread| u64::from(thread % 4));
        let pairs: Vec<[u32; 2]> = found.pairs.iter().map(|pair| pair.threads).collect();
        assert_eq!(pairs, [[0, 4], [1, 5], [2, 6], [3, 7]]);
        let share: f64 = found.pairs.iter().map(|pair| pair.share).sum();
        assert!((share - found.shared).abs() < 1e-9 && (0.45..0.55).contains(&share), "{found:?}");
        assert_eq!((found.node_threads, found.absent), (2, None));
        assert_eq!(found.nodes[2..5], [None, Some(1), None]);
    }

    #[test]
    fn what_all_use_alike_or_one_after_the_other_makes_no_pairs() {
        let all = sharing(8000, |_, _| 0);
        assert!(all.pairs.is_empty() && all.shared > 0.8, "{all:?}");
        let own = sharing(8000, |_, thread| thread.into());
        assert_eq!((own.pairs.len(), own.shared), (0, 0.0));
        // Each thread takes what another one had in the first half.
        let handed = sharing(32_000, |n, thread| if n < 16_000 { thread } else { thread ^ 1 }.into());
        assert!(handed.shared < 0.15, "{handed:?}");
        // A line that all threads change, whose samples come in the order of the threads.
        let mut turns = Turns::new(7, 0..8);
        (0..8000).for_each(|n| turns.add(7, n % 8, 64, &(64..72)));
        assert_eq!(turns.sharing(2, &HashMap::new()).pairs, []);
    }

    #[test]
    fn pairs_are_seen_beside_what_all_use() {
        let found = sharing(32_000, |n, thread| if n % 3 == 0 { u64::from(thread % 4) } else { 9 });
        let pairs: Vec<[u32; 2]> = found.pairs.iter().map(|pair| pair.threads).collect();
        assert_eq!(pairs, [[0, 4], [1, 5], [2, 6], [3, 7]]);
    }

    #[test]
    fn too_little_is_said() {
        assert_eq!(sharing(100, |_, thread| u64::from(thread % 4)).absent, Some(NoSharing::FewUses));
        assert_eq!(Turns::new(1, [0, 1]).sharing(8, &HashMap::new()).absent, Some(NoSharing::FewThreads));
        let many = Turns::new(1, 0..MAX_THREADS as u32 + 1).sharing(8, &HashMap::new());
        assert_eq!(many.absent, Some(NoSharing::ManyThreads));
    }

    #[test]
    fn a_place_is_a_fraction_or_a_line() {
        assert_eq!([0x1000, 0x103f, 0x1040].map(|at| place(at, &(0x1000..0x1100))), [0x1000, 0x1000, 0x1040]);
        assert_eq!(
            [1 << 20, (1 << 20) + 16_384].map(|at| place(at, &(1 << 20..2 << 20))),
            [1 << 20, (1 << 20) + 16_384]
        );
    }
}
