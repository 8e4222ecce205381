//! Whether the nodes use parts of an object of their own, or all use all of it.

use crate::observation::PAGE;
use std::collections::{BTreeMap, HashMap};

/// An object is looked at in this many blocks, of a page at least.
const BLOCKS: u64 = 64;
/// With fewer pairs of samples in one block, the part of one node says little.
const MIN_PAIRS: u64 = 30;
/// Where one node has nearly all samples, there is nothing to tell.
const MAX_CHANCE: f64 = 0.9;

/// The part of pairs of samples in one block that are of one node, above what chance gives: 1 if each block belongs to a
/// node, 0 if all nodes use all blocks alike. `None` where samples are too few or of one node. Points are addresses with
/// the node of the CPU.
pub fn partition(points: &[(u64, u32)]) -> Option<f64> {
    let mut ends: Option<(u64, u64)> = None;
    for (address, _) in points {
        let (low, high) = ends.unwrap_or((*address, *address));
        ends = Some((low.min(*address), high.max(*address)));
    }
    let (low, high) = ends?;
    let block = ((high - low) / BLOCKS).max(PAGE);
    let mut blocks: HashMap<u64, BTreeMap<u32, u64>> = HashMap::new();
    let mut nodes: BTreeMap<u32, u64> = BTreeMap::new();
    for (address, node) in points {
        *blocks.entry((address - low) / block).or_default().entry(*node).or_default() += 1;
        *nodes.entry(*node).or_default() += 1;
    }
    let pairs = |count: u64| count * count.saturating_sub(1) / 2;
    let all: u64 = blocks.values().map(|block| pairs(block.values().sum())).sum();
    let same: u64 = blocks.values().flat_map(BTreeMap::values).map(|count| pairs(*count)).sum();
    let chance: f64 = nodes.values().map(|count| (*count as f64 / points.len() as f64).powi(2)).sum();
    let is_enough = all >= MIN_PAIRS && chance <= MAX_CHANCE;
    is_enough.then(|| ((same as f64 / all as f64 - chance) / (1.0 - chance)).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZE: u64 = 64 << 20;

    /// Samples without pattern; `node` says of which node each is.
    fn points(count: u64, node: impl Fn(u64, u64) -> u32) -> Vec<(u64, u32)> {
        let address = |n: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % SIZE;
        (0..count).map(|n| (1 << 40 | address(n), node(n, address(n)))).collect()
    }

    #[test]
    fn slices_are_told_from_sharing() {
        let slices = partition(&points(600, |_, address| (address * 4 / SIZE) as u32)).unwrap();
        let shared = partition(&points(600, |n, _| (n % 4) as u32)).unwrap();
        let two =
            partition(&points(600, |n, address| (address * 2 / SIZE) as u32 * 2 + (n % 2) as u32)).unwrap();
        assert!(slices > 0.95 && shared < 0.1 && (0.2..0.5).contains(&two), "{slices} {shared} {two}");
    }

    #[test]
    fn few_samples_and_one_node_say_nothing() {
        assert_eq!(partition(&points(600, |_, _| 3)), None);
        assert_eq!(partition(&points(12, |n, _| (n % 2) as u32)), None);
        assert_eq!(partition(&[]), None);
    }

    proptest! {
        #[test]
        fn it_is_a_share(points in proptest::collection::vec((0u64.., 0u32..5), 0..300)) {
            let found = partition(&points).unwrap_or(0.0);
            prop_assert!((0.0..=1.0).contains(&found));
        }
    }
}
