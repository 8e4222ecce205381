//! Threads that share data, and the groups in which they share a node.

use numakit_cure::{SharingThreads, together};
use numakit_explain::CureFacts;
use numakit_explain::part_use::PartUse;
use numakit_explain::sharing::ThreadSharing;
use numakit_model::thresholds::SHARING_GAIN;
use std::collections::BTreeMap;

/// The first thread of each thread's group. Without pairs that are worth an order, no thread is known.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ThreadGroups(BTreeMap<u32, u32>);

/// The pairs whose threads another order than that of their creation brings together, with the groups; none where it gains little.
pub(super) fn of(sharing: &ThreadSharing) -> (Vec<SharingThreads>, ThreadGroups) {
    let ThreadSharing { threads, pairs, node_threads, .. } = sharing;
    let created: Vec<u32> = (0..threads.len() as u32).map(|place| place / node_threads.max(&1)).collect();
    let arranged = together::arranged(pairs, threads, &created);
    let within = |nodes: &[u32]| together::within(pairs, threads, nodes);
    if pairs.is_empty() || within(&arranged) - within(&created) < SHARING_GAIN {
        return Default::default();
    }
    let mut first: BTreeMap<u32, u32> = BTreeMap::new();
    let group = |(thread, node): (&u32, &u32)| (*thread, *first.entry(*node).or_insert(*thread));
    let groups = threads.iter().zip(&arranged).map(group).collect();
    (pairs.clone(), ThreadGroups(groups))
}

impl ThreadGroups {
    /// The same use with the first thread of each group in place of all of its threads; `None` if there are no groups.
    pub(super) fn use_of(&self, facts: &CureFacts) -> Option<CureFacts> {
        let group = |thread: &u32| self.0.get(thread).copied().unwrap_or(*thread);
        let grouped = |used: &PartUse| {
            let each = used.0.iter().map(|seen| {
                let mut of_groups = BTreeMap::new();
                for (thread, samples) in seen {
                    *of_groups.entry(group(thread)).or_default() += samples;
                }
                of_groups
            });
            PartUse(each.collect())
        };
        let (each, blocks) = (grouped(&facts.each), grouped(&facts.blocks));
        (!self.0.is_empty()).then(|| CureFacts { each, blocks, ..facts.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sharing(pairs: &[[u32; 2]], share: f64) -> ThreadSharing {
        let pairs = pairs.iter().map(|threads| SharingThreads { threads: *threads, share }).collect();
        ThreadSharing { threads: (0..8).collect(), node_threads: 2, pairs, ..ThreadSharing::default() }
    }

    #[test]
    fn an_order_is_offered_where_it_brings_much_together() {
        let fourth = [[0, 4], [1, 5], [2, 6], [3, 7]];
        let (pairs, groups) = of(&sharing(&fourth, 0.1));
        assert_eq!(pairs.len(), 4);
        assert_eq!(groups.0.values().copied().collect::<Vec<_>>(), [0, 1, 2, 3, 0, 1, 2, 3]);
        // Little is shared, or neighbours share a node anyway.
        for little in
            [sharing(&fourth, 0.01), sharing(&[[0, 1], [2, 3], [4, 5], [6, 7]], 0.1), sharing(&[], 0.0)]
        {
            assert_eq!(of(&little), (Vec::new(), ThreadGroups::default()));
        }
    }
}
