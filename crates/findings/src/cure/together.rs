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

/// Threads that use the same data and were not on one node.
#[derive(Debug, Clone, PartialEq)]
pub struct SeparatedThreads {
    /// Their groups, each of two threads or more, in ascending order.
    pub groups: Vec<Vec<u32>>,
    /// The part of what all threads share that is within these groups, from 0 to 1.
    pub part: f64,
}

/// Nodes of the threads, by the number of threads for which a node has CPUs, with those together that share data. `None` where that gains
/// little over the order of creation.
fn arranged(sharing: &ThreadSharing) -> Option<Vec<u32>> {
    let ThreadSharing { threads, pairs, node_threads, .. } = sharing;
    let created: Vec<u32> = (0..threads.len() as u32).map(|place| place / node_threads.max(&1)).collect();
    let arranged = together::arranged(pairs, threads, &created);
    let gain = within(sharing, &arranged) - within(sharing, &created);
    (!pairs.is_empty() && gain >= SHARING_GAIN).then_some(arranged)
}

fn within(sharing: &ThreadSharing, nodes: &[u32]) -> f64 {
    together::within(&sharing.pairs, &sharing.threads, nodes)
}

/// The pairs whose threads another order than that of their creation brings together, with the groups; none where it gains little.
pub(super) fn of(sharing: &ThreadSharing) -> (Vec<SharingThreads>, ThreadGroups) {
    let Some(arranged) = arranged(sharing) else { return Default::default() };
    let mut first: BTreeMap<u32, u32> = BTreeMap::new();
    let group = |(thread, node): (&u32, &u32)| (*thread, *first.entry(*node).or_insert(*thread));
    let groups = sharing.threads.iter().zip(&arranged).map(group).collect();
    (sharing.pairs.clone(), ThreadGroups(groups))
}

/// Threads that share data and that another order than that of their creation brings together, unless they were together when they were
/// observed.
pub(crate) fn separated(sharing: &ThreadSharing) -> Option<SeparatedThreads> {
    let arranged = arranged(sharing)?;
    let best = within(sharing, &arranged);
    let seen: Option<Vec<u32>> = sharing.nodes.iter().copied().collect();
    // On one node nobody is separated now, but would be on a machine of several.
    let has_several = |nodes: &Vec<u32>| nodes.windows(2).any(|two| two[0] != two[1]);
    if seen.filter(has_several).is_some_and(|nodes| best - within(sharing, &nodes) < SHARING_GAIN) {
        return None;
    }
    let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    sharing
        .threads
        .iter()
        .zip(&arranged)
        .for_each(|(thread, node)| groups.entry(*node).or_default().push(*thread));
    let mut groups: Vec<Vec<u32>> = groups.into_values().filter(|group| group.len() > 1).collect();
    groups.sort_unstable();
    Some(SeparatedThreads { groups, part: best / sharing.shared.max(f64::MIN_POSITIVE) })
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

    #[test]
    fn threads_that_were_together_are_not_separated() {
        let mut sharing = ThreadSharing { shared: 0.5, ..sharing(&[[0, 4], [1, 5], [2, 6], [3, 7]], 0.1) };
        let found = separated(&sharing).unwrap();
        assert_eq!(found.groups, [[0, 4], [1, 5], [2, 6], [3, 7]]);
        assert!((found.part - 0.8).abs() < 1e-9);
        sharing.nodes = [0, 1, 2, 3, 0, 1, 2, 3].map(Some).to_vec();
        assert_eq!(separated(&sharing), None);
        // The cure has them all the same: without it they would be where they were created.
        assert_eq!(of(&sharing).0.len(), 4);
        // On a machine of one node, or where threads moved.
        for nodes in [[Some(0); 8], [Some(0), Some(1), Some(2), Some(3), Some(0), Some(1), Some(2), None]] {
            sharing.nodes = nodes.to_vec();
            assert!(separated(&sharing).is_some());
        }
    }
}
